/** Who waits, in the order in which the scheduler last looked at them, by what key, and what holds them. */
(function (RP) {
  "use strict";

  const R = RP.R;
  /** Rows shown; the rest is told as a number. */
  const MOST = 12;
  /** Milliseconds between two lists while the run moves. */
  const READABLE = 250;
  const UNITS = { pages: "page", budget: "token", chunk: "token", "leader room": "page" };
  const NAMES = {
    fcfs: "first come, first served", lpm: "longest prefix first", "lpm-as-shipped": "longest prefix first while at most 128 wait",
    "lpm-fair": "longest prefix first within the bound", "dfs-weight": "the branch that most wait for first", lof: "longest output first",
    priority: "highest priority first", random: "random order",
  };
  /** Limits that hold everybody behind as well. */
  const STOPS = ["pages", "budget", "running cap", "chunk"];
  /** Keys of longest prefix first: minus what was found, or 1 for those that go behind one like them. */
  const FOUND = ["found, tokens", (key) => (key > 0 ? "behind" : RP.number(0 - key))];
  /** Policies whose key is more than a number: its column's heading, and what it counts. */
  const KEYS = {
    lpm: FOUND, "lpm-as-shipped": FOUND, "lpm-fair": FOUND,
    lof: ["may answer, tokens", (key) => RP.number(0 - key)], priority: ["priority", (key) => RP.number(0 - key)],
  };

  /** {number, key} of the waiting: the last order's head, then whoever came since, as they stand in the queue. */
  const ordered = (state, event, lanes) => {
    const keys = new Map();
    const since = (number) => lanes[number].retracts.findLast((seq) => seq <= state.seq) ?? -1;
    const ranked = event ? event.head.map((name) => state.trace.requestNumber(name)) : [];
    ranked.forEach((number, i) => since(number) < event.seq && keys.set(number, event.keys[i]));
    const waiting = new Set(state.queue);
    const head = [...keys.keys()].filter((number) => waiting.has(number));
    const rest = state.queue.filter((number) => !keys.has(number));
    return [...head, ...rest].map((number) => ({ number, key: keys.get(number) }));
  };

  class Queue {
    constructor(player) {
      this.player = player;
      this.panel = RP.panel("queue", "Queue");
      this.shown = "";
      this.drawn = 0;
    }

    /** While the run moves by itself, no more often than one can read. */
    draw(state) {
      const { player } = this;
      const left = player.following || player.scrubber.playing ? this.drawn + READABLE - performance.now() : 0;
      clearTimeout(this.timer);
      if (left > 0) this.timer = setTimeout(() => this.show(player.now), left);
      else this.show(state);
    }

    show(state) {
      const { trace, replay, selection } = this.player;
      this.drawn = performance.now();
      const waiting = state.queue.length;
      this.panel.root.classList.toggle("rp-folded", !waiting);
      this.panel.body.hidden = !waiting;
      const seq = replay.marks.next("ordered", state.seq + 1, -1);
      const event = seq === null ? null : trace.event(seq);
      const policy = event ? event.policy : (trace.header.config || {}).policy;
      this.panel.note.textContent = waiting
        ? `${RP.count(waiting, "request")} waiting${policy ? ` · ${NAMES[policy] || policy}` : ""}${event && event.fell_back ? `, fell back: ${event.why}` : ""}`
        : "nothing waits";
      const [heading, told] = KEYS[policy] || ["key", RP.number];
      this.holder = null;
      const rows = waiting ? ordered(state, event, replay.segments.lanes).slice(0, MOST).map((entry, i) => this.row(state, entry, i, told)) : [];
      const key = JSON.stringify([rows.map((r) => r.cells), selection]);
      if (key === this.shown) return;
      this.shown = key;
      const keyed = rows.some((r) => r.cells[2] !== "–");
      const columns = [["no.", true], ["request"], ...(keyed ? [[heading, true]] : []), ["prompt, tokens", true], ["held by"]];
      const cells = rows.map((r) => ({ ...r, cells: keyed ? r.cells : r.cells.filter((_, i) => i !== 2) }));
      const more = waiting > MOST ? [RP.el("p", { class: "rp-hint", text: `and ${RP.number(waiting - MOST)} more` })] : [];
      this.panel.body.replaceChildren(RP.table("Waiting requests, next first", columns, cells), ...more);
    }

    row(state, { number, key }, i, told) {
      const { player } = this;
      const { trace } = player;
      return {
        cells: [
          RP.number(i + 1), RP.requestName(trace, number), key === undefined ? "–" : told(key),
          RP.number(trace.prompt(number).length), this.held(state, number),
        ],
        current: player.lit.requests.has(number),
        pick: () => player.select({ request: trace.requests[number].name }),
        picks: 1,
      };
    }

    /** The limit that last passed it over while it has been waiting this time, or whom it stands behind. */
    held(state, number) {
      const own = this.limit(state, number);
      if (own) return own;
      if (this.holder !== null) return `behind ${this.player.trace.requests[this.holder].name}`;
      return state.requestField(number, R.RETRACTIONS) ? "sent back" : "–";
    }

    limit(state, number) {
      const { replay, trace } = this.player;
      const { passed, parts } = replay.segments.lanes[number];
      const since = parts.filter((part) => part.sort === "waiting" && part.from <= state.seq).pop();
      const seq = passed.filter((at) => at <= state.seq).pop();
      if (seq === undefined || !since || seq < since.from) return null;
      const e = trace.event(seq);
      if (STOPS.includes(e.limit)) this.holder ??= number;
      const over = e.overtaken ? `; overtaken by ${RP.count(e.overtaken, "token")}` : "";
      if (e.limit === "running cap") return `running cap: ${RP.number(e.available)} at a time${over}`;
      const unit = UNITS[e.limit];
      const has = e.available < 0 ? `none, ${RP.number(-e.available)} are promised already` : RP.number(e.available);
      const numbers = unit ? `: needs ${RP.count(e.needed, unit)}, has ${has}` : e.behind ? `: ${e.behind}` : "";
      return `${e.limit}${numbers}${over}`;
    }

    destroy() {
      clearTimeout(this.timer);
    }
  }
  RP.Queue = Queue;
})(globalThis.RadixPlayer);
