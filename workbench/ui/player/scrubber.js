/** Play, step, jump, and the range input that moves through the run. */
(function (RP) {
  "use strict";

  /** Events a second when playing: the whole run in about half a minute, but never a blur nor a crawl. */
  const speedFor = (n) => Math.max(4, Math.min(400, n / 30));

  /** [sort of mark, words, key]. */
  const JUMPS = [
    ["eviction", "eviction", "e"],
    ["miss", "miss", "m"],
    ["schedule", "schedule", "s"],
  ];

  class Scrubber {
    constructor(player) {
      this.player = player;
      this.playing = false;
      this.debt = 0;
      const button = (text, label, act, more = {}) =>
        RP.el("button", { type: "button", text, "aria-label": label, title: label, on: { click: act }, ...more });
      this.play = button("▶ play", "play (space)", () => this.toggle(), { class: "rp-go" });
      this.range = RP.el("input", {
        type: "range", min: "0", max: "0", step: "1", value: "0", class: "rp-range", "aria-label": "event",
        on: { input: () => player.seek(+this.range.value) },
      });
      this.place = RP.el("output", { class: "rp-place" });
      const jumps = JUMPS.map(([sort, words, key]) =>
        RP.el(
          "span",
          { class: "rp-jump", role: "group", "aria-label": words },
          button("‹", `previous ${words} (Shift+${key.toUpperCase()})`, () => this.jump(sort, -1)),
          RP.el("span", { text: words }),
          button("›", `next ${words} (${key})`, () => this.jump(sort, 1)),
        ),
      );
      this.root = RP.el(
        "div",
        { class: "rp-scrubber" },
        RP.el("div", { class: "rp-row" }, this.play, button("◀", "one event back (left arrow)", () => player.step(-1)),
          button("▶", "one event on (right arrow)", () => player.step(1)), this.range),
        RP.el("div", { class: "rp-row rp-jumps" }, ...jumps, this.place),
      );
    }

    toggle(on = !this.playing) {
      const { player } = this;
      if (on && player.seq >= player.trace.length - 1) player.seek(0);
      this.playing = on;
      this.debt = 0;
      this.play.textContent = on ? "❚❚ pause" : "▶ play";
      this.play.setAttribute("aria-label", on ? "pause (space)" : "play (space)");
      player.redraw();
    }

    /** Called for each frame while playing. */
    advance(elapsed) {
      const { player } = this;
      this.debt += (Math.min(elapsed, 100) / 1000) * speedFor(player.trace.length);
      const events = Math.floor(this.debt);
      this.debt -= events;
      if (events) player.moveTo(Math.min(player.trace.length - 1, player.seq + events));
      if (player.seq >= player.trace.length - 1) this.toggle(false);
    }

    jump(sort, direction) {
      const { player } = this;
      const seq = player.replay.marks.next(sort, player.seq, direction);
      if (seq !== null) player.seek(seq);
      else player.why.say(`There is no ${direction > 0 ? "later" : "earlier"} ${sort}.`);
    }

    draw(state) {
      const { trace } = this.player;
      const last = Math.max(0, trace.length - 1);
      this.range.max = String(last);
      this.range.value = String(Math.max(0, state.seq));
      const seq = Math.max(0, state.seq);
      const words = trace.length
        ? `event ${RP.number(seq)} of ${RP.number(last)} · step ${RP.number(trace.step.a[seq])} · ${RP.seconds(trace.t.a[seq])}`
        : "no events yet";
      this.place.textContent = words;
      this.range.setAttribute("aria-valuetext", words);
    }
  }
  RP.Scrubber = Scrubber;
  RP.JUMPS = JUMPS;
})(globalThis.RadixPlayer);
