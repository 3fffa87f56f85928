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

  let shown = null;

  /** A live picture can be held still, and let go on. */
  const following = RP.el("button", { type: "button", class: "rp-twin", on: { click: () => player.follow(!player.following) } });
  player.on("follow", () => (following.textContent = player.following ? "hold still" : "go on with the run"));

  const facts = (header) => [header.model, header.device, header.dtype].filter(Boolean).join(" · ") || "scripted model";

  /** A moment as a query; of several replicas `seq` counts the events of the one that is named. */
  const asked = (seq, selection, replica) =>
    new URLSearchParams({ seq: String(seq), ...(player.fleet.several ? { replica: String(replica) } : {}), ...(selection || {}) });

  /** The page opens at the moment, and with the selection, that was on the screen when it was saved. */
  const pageLink = ({ url }) => {
    const link = RP.el("a", { href: `${url}.html`, text: "save as one page" });
    link.addEventListener("click", () => {
      const { seq, replica, selection } = player.state();
      link.href = `${url}.html?${asked(seq, selection, replica)}`;
    });
    return link;
  };

  /** A run with a grammar has a page of its own for how it was decoded. */
  const decodeLink = ({ run }) => (player.replicas.some(({ trace }) => trace.has("grammar.compiled")) ? [" · ", RP.el("a", { href: `/decode#${new URLSearchParams({ run })}`, text: "see how it was decoded" })] : []);

  function tell(words, live, value) {
    const header = player.trace.header;
    const machine = (header.hardware || {}).name;
    const clock = header.clock !== "virtual" ? "measured time" : machine ? `time simulated for ${machine}` : "simulated time";
    strip.replaceChildren(
      RP.el("b", { text: words, "data-live": String(live) }),
      document.createTextNode(` ${header.scenario || ""} · ${facts(header)} · ${clock}`),
      ...(live ? [" ", following] : [" · ", RP.el("a", { href: `${value.url}.jsonl`, text: "save the trace" }), " · ", pageLink(value), ...decodeLink(value)]),
      ...(header.note && value.kind === "addressed" ? [RP.el("span", { class: "rw-own-note", text: header.note })] : []),
    );
  }

  async function showRecorded(value) {
    const answer = await fetch(`${value.url}.jsonl`);
    if (!answer.ok) throw new Error(await answer.text());
    await player.load({ jsonl: await answer.text(), run: value.run });
    player.seekMoment(player.fleet.length - 1);
    tell(value.run.startsWith("recorded-") ? "Recorded run of the real engine:" : value.kind === "uploaded" ? "Opened trace:" : "Run from the address:", false, value);
  }

  /**
   * Events come as server-sent events; the stream is closed while nobody looks and resumed where it was.
   * Returns how to leave, and a promise of the first events.
   */
  function watchLive(value) {
    let ended = false;
    let loaded = false;
    let close = null;
    let arrived;
    const first = new Promise((done) => (arrived = done));

    const start = () => {
      const stream = new EventSource(`${value.url}/events?since=${loaded ? player.fleet.length : 0}`);
      player.root.dataset.stream = "open";
      stream.addEventListener("header", (message) => {
        if (loaded) return;
        loaded = true;
        player.following = true;
        player.load({ header: message.data, events: [], run: value.run });
        player.follow(true);
        tell("Live run:", true, value);
      });
      stream.onmessage = (message) => {
        const batch = JSON.parse(message.data);
        Object.assign(player.fleet.texts, batch.texts);
        player.append(batch.events);
        arrived();
      };
      stream.addEventListener("end", () => {
        end();
        if (loaded) tell("Run of just now:", false, value);
      });
      stream.onerror = () => {
        if (stream.readyState !== EventSource.CLOSED) return; // otherwise the browser tries again by itself
        end();
        strip.replaceChildren("The server does not know this run any more; what came until then is shown.");
      };
      return () => {
        stream.close();
        player.root.dataset.stream = "closed";
      };
    };

    const look = () => {
      if (document.hidden || ended) {
        if (close) close();
        close = null;
      } else if (!close) close = RP.takeTurns(start);
    };
    const end = () => {
      ended = true;
      player.root.dataset.ended = "true";
      look();
      arrived();
    };
    document.addEventListener("visibilitychange", look);
    player.root.dataset.ended = "false";
    look();
    const leave = () => {
      document.removeEventListener("visibilitychange", look);
      ended = true;
      look();
    };
    return { leave, first };
  }

  /** Whether a run is still going on, or waits to. */
  async function goesOn(value) {
    const answer = await fetch(value.url);
    if (!answer.ok) throw new Error(await answer.text());
    return !(await answer.json()).ended;
  }

  let leave = () => {};

  /** A run from the address is not the preset's above: its own note stands beside it, until a preset is looked at. */
  const elsewhere = (on) => document.body.classList.toggle("rw-elsewhere", on);
  document.addEventListener("focusin", ({ target }) => target.closest("#preset") && elsewhere(false));

  /** The server explains from the same events; without an answer the player's own sentence stands. */
  player.setWhy(async (seq, selection, replica) => {
    if (!shown || seq < 0) return null;
    const answer = await fetch(`/runs/${shown}/why?${asked(seq, selection, replica)}`);
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
    elsewhere(value.kind === "addressed");
    remember(value.run);
    leave();
    leave = () => {};
    try {
      if (value.kind === "live") leave = watchLive(value).leave;
      else if (value.kind === "addressed" && (await goesOn(value))) {
        const watched = watchLive(value);
        leave = watched.leave;
        await watched.first;
      } else if (value.kind !== "empty") await showRecorded(value);
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
