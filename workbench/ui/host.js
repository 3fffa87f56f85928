/**
 * The player inside Gradio's page. The component's value is JSON text:
 * { kind: "recorded" | "uploaded" | "live" | "empty", run, url, compare }. The server says which run; all else is drawn here.
 */
/** The player's script is a file of its own and may come after this component: wait for it. */
const ready = new Promise((done) => {
  const look = () => (globalThis.RadixPlayer?.drawComparison ? done(globalThis.RadixPlayer) : setTimeout(look, 20));
  look();
});

/** Mount the player; returns the function that shows a value. */
function host(RP) {
  const player = RP.mount(element.querySelector(".rw-player"), { theme: "auto", keys: "page" });
  const strip = RP.el("p", { class: "rw-strip", role: "status", id: "shown" });
  player.slot("top").append(strip);
  const beside = element.querySelector(".rw-compare");
  player.slot("side").append(beside);

  let source = null;
  let shown = null;

  const facts = (header) => [header.model, header.device, header.dtype].filter(Boolean).join(" · ") || "scripted model";

  function tell(words, live, value) {
    const header = player.trace.header;
    const clock = header.clock === "virtual" ? "simulated time" : "measured time";
    strip.replaceChildren(
      RP.el("b", { text: words, "data-live": String(live) }),
      document.createTextNode(` ${header.scenario || ""} · ${facts(header)} · ${clock}`),
      ...(live ? [] : [" · ", RP.el("a", { href: `${value.url}.jsonl`, text: "save the trace" }), " · ", RP.el("a", { href: `${value.url}.html`, text: "save as one page" })]),
    );
  }

  async function showRecorded(value) {
    const answer = await fetch(`${value.url}.jsonl`);
    if (!answer.ok) throw new Error(await answer.text());
    await player.load({ jsonl: await answer.text(), run: value.run });
    player.seek(player.trace.length - 1);
    tell(value.run.startsWith("recorded-") ? "Recorded run of the real engine:" : value.kind === "uploaded" ? "Opened trace:" : "Run from the address:", false, value);
  }

  /** Events come as server-sent events; the stream is closed while nobody looks and resumed where it was. */
  function watchLive(value) {
    let ended = false;
    let loaded = false;
    const open = () => {
      if (ended || source || document.hidden) return;
      const stream = new EventSource(`${value.url}/events?since=${loaded ? player.trace.length : 0}`);
      source = stream;
      stream.addEventListener("header", async (message) => {
        if (loaded) return;
        loaded = true;
        player.following = true;
        await player.load({ header: message.data, events: [], run: value.run });
        player.follow(true);
        tell("Live run:", true, value);
      });
      stream.onmessage = (message) => {
        const batch = JSON.parse(message.data);
        Object.assign(player.trace.header.texts, batch.texts);
        player.append(batch.events);
      };
      stream.addEventListener("end", () => {
        ended = true;
        close();
        player.root.dataset.ended = "true";
        if (loaded) tell("Run of just now:", false, value);
      });
    };
    const close = () => {
      if (source) source.close();
      source = null;
    };
    const look = () => (document.hidden ? close() : open());
    document.addEventListener("visibilitychange", look);
    player.root.dataset.ended = "false";
    open();
    return () => {
      document.removeEventListener("visibilitychange", look);
      ended = true;
      close();
    };
  }

  let leave = () => {};

  /** The server explains from the same events; without an answer the player's own sentence stands. */
  player.setWhy(async (seq, selection) => {
    if (!shown || seq < 0) return null;
    const asked = new URLSearchParams({ seq: String(seq), ...(selection || {}) });
    const answer = await fetch(`/runs/${shown}/why?${asked}`);
    return answer.ok ? answer.json() : null;
  });

  /** An address that names a run opens on it: a teacher can send a moment. */
  function addressed() {
    const run = new URLSearchParams(location.hash.slice(1)).get("run");
    return run && /^[\w-]{1,64}$/.test(run) ? { kind: "addressed", run, url: `/runs/${run}` } : null;
  }

  function remember(run) {
    const at = new URLSearchParams(location.hash.slice(1));
    if (at.get("run") === run) return;
    history.replaceState(null, "", `#${new URLSearchParams({ run })}`);
  }

  async function show(text) {
    if (!text) return;
    const value = (shown === null && addressed()) || JSON.parse(text);
    RP.drawComparison(beside, value.compare || null);
    player.setGhost(value.compare ? value.compare.ghost : null);
    if (value.run === shown) return;
    shown = value.run;
    remember(value.run);
    leave();
    leave = () => {};
    try {
      if (value.kind === "live") leave = watchLive(value);
      else if (value.kind !== "empty") await showRecorded(value);
      else strip.replaceChildren("No run is shown yet. Choose a preset and press Run.");
    } catch (error) {
      strip.replaceChildren(`This run cannot be shown: ${error.message}`);
    }
  }

  show(props.value).then(() => RP.linkToAddress(player));
  return show;
}

const hosted = ready.then(host);
watch("value", () => hosted.then((show) => show(props.value)));
