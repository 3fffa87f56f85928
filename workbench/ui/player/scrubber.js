/** Play forwards and backwards, step, jump, and the range input that moves through the run. */
(function (RP) {
  "use strict";

  /** Events a second at 1x: the whole run in about half a minute, but never a blur nor a crawl. */
  const paceFor = (n) => Math.max(4, Math.min(400, n / 30));
  const SPEEDS = [0.5, 1, 2, 4, 8, 16];

  /** [sort of mark, words, key, in a sentence]; "selection" is any event of what is selected. */
  const JUMPS = [
    ["eviction", "eviction", "e"],
    ["miss", "miss", "m"],
    ["retract", "retract", "r"],
    ["schedule", "schedule", "s"],
    ["selection", "selected", "n", "event of what is selected"],
  ];

  class Scrubber {
    constructor(player) {
      this.player = player;
      this.playing = false;
      /** 1 forwards, -1 backwards. */
      this.direction = 1;
      this.speed = 1;
      this.debt = 0;
      const button = (text, label, act, more = {}) =>
        RP.el("button", { type: "button", text, "aria-label": label, title: label, on: { click: act }, ...more });
      this.play = button("▶ play", "play (space)", () => this.toggle(), { class: "rp-go" });
      this.rewind = button("◀", "play backwards (Shift+space)", () => this.toggle(undefined, -1));
      this.range = RP.el("input", {
        type: "range", min: "0", max: "0", step: "1", value: "0", class: "rp-range", "aria-label": "event",
        on: { input: () => player.seek(+this.range.value) },
      });
      this.pace = RP.el(
        "select",
        { class: "rp-speed", "aria-label": "speed", title: "speed", on: { change: () => this.setSpeed(+this.pace.value) } },
        ...SPEEDS.map((speed) => RP.el("option", { value: speed, text: `${speed}×`, selected: speed === 1 ? "" : null })),
      );
      this.place = RP.el("output", { class: "rp-place" });
      const pair = (words, back, on) => RP.el("span", { class: "rp-jump", role: "group", "aria-label": words }, button("‹", ...back), RP.el("span", { text: words }), button("›", ...on));
      this.jumps = JUMPS.map(([sort, words, key, told = words]) =>
        pair(words, [`previous ${told} (Shift+${key.toUpperCase()})`, () => this.jump(sort, -1)], [`next ${told} (${key})`, () => this.jump(sort, 1)]),
      );
      const events = pair("event", ["one event back (left arrow)", () => player.step(-1)], ["one event on (right arrow)", () => player.step(1)]);
      const moves = [this.rewind, this.play, this.pace, events];
      const more = [button("find", "find a request, a node or a text (/)", () => player.find.open()), button("keys", "the keys (?)", () => player.help.open())];
      this.root = RP.el(
        "div",
        { class: "rp-scrubber" },
        RP.el("div", { class: "rp-track" }, this.range),
        RP.el("div", { class: "rp-row" }, ...moves, RP.el("div", { class: "rp-jumps" }, ...this.jumps), ...more),
        this.place,
      );
    }

    setSpeed(speed) {
      this.speed = speed;
      this.pace.value = String(speed);
    }

    /** Start or stop playing; without `on`, stop if that is what plays already, else go that way. */
    toggle(on, direction = 1) {
      const { player } = this;
      const start = on ?? !(this.playing && this.direction === direction);
      const last = player.trace.length - 1;
      if (start) {
        if (player.following) player.follow(false);
        if (direction > 0 && player.seq >= last) player.moveTo(Math.min(0, last));
        if (direction < 0 && player.seq <= 0) player.moveTo(last);
      }
      this.direction = direction;
      this.playing = start;
      this.debt = 0;
      const forwards = start && direction > 0;
      const backwards = start && direction < 0;
      this.play.textContent = forwards ? "❚❚ pause" : "▶ play";
      this.play.setAttribute("aria-label", forwards ? "pause (space)" : "play (space)");
      this.rewind.textContent = backwards ? "❚❚" : "◀";
      this.rewind.setAttribute("aria-label", backwards ? "pause (space)" : "play backwards (Shift+space)");
      player.redraw();
    }

    /** Called for each frame while playing. */
    advance(elapsed) {
      const { player } = this;
      this.debt += (Math.min(elapsed, 100) / 1000) * this.speed * paceFor(player.trace.length);
      const events = Math.floor(this.debt);
      this.debt -= events;
      const last = player.trace.length - 1;
      if (events) player.moveTo(Math.max(0, Math.min(last, player.seq + this.direction * events)));
      if (this.direction > 0 ? player.seq >= last : player.seq <= 0) this.toggle(false);
    }

    jump(sort, direction) {
      const { player } = this;
      const list = sort === "selection" ? player.chosenEvents : player.replay.marks[sort];
      const seq = RP.nearest(list, player.seq, direction);
      if (seq !== null) player.seek(seq);
      else if (sort === "selection" && !player.selection) player.why.say("Nothing is selected.");
      else player.why.say(`There is no ${direction > 0 ? "later" : "earlier"} ${inSentence(sort)}.`);
    }

    draw(state) {
      const { player } = this;
      const { trace, selection } = player;
      const last = Math.max(0, trace.length - 1);
      this.range.max = String(last);
      this.range.value = String(Math.max(0, state.seq));
      this.jumps[JUMPS.length - 1].hidden = !selection;
      const seq = Math.max(0, state.seq);
      const words = trace.length
        ? `${player.fleet.several ? `replica ${player.replica} · ` : ""}event ${RP.number(seq)} of ${RP.number(last)} · ${RP.stepOf(this.player, seq)} · ${RP.seconds(trace.t.a[seq])}`
        : "no events yet";
      this.place.textContent = words;
      this.range.setAttribute("aria-valuetext", words);
    }
  }

  const inSentence = (sort) => {
    const [, words, , told = words] = JUMPS.find(([name]) => name === sort);
    return told;
  };

  RP.Scrubber = Scrubber;
  RP.JUMPS = JUMPS;
  RP.SPEEDS = SPEEDS;
})(globalThis.RadixPlayer);
