/** The right column's facts: the last eviction's ranking, and what is selected. */
(function (RP) {
  "use strict";

  const N = RP.N;
  const R = RP.R;
  /** Requests named in a fact. */
  const NAMED = 6;
  /** Tokens of a prompt and of a node that are shown before somebody asks for all. */
  const START = { prompt: 600, node: 200 };

  class LastEviction {
    constructor(player) {
      this.player = player;
      this.panel = RP.panel("eviction", "Last eviction");
    }

    draw(state) {
      const { trace, replay } = this.player;
      const seq = replay.marks.next("eviction", state.seq + 1, -1);
      this.panel.root.hidden = seq === null;
      if (seq === null || (seq === this.shown && trace === this.trace)) return;
      this.shown = seq;
      this.trace = trace;
      const e = trace.event(seq);
      this.panel.note.textContent = `asked ${RP.count(e.asked, "page")}, freed ${RP.number(e.freed)} · ${RP.evictionName(e.policy)}`;
      const rows = e.ranking.slice(0, 5).map((r) => ({
        cells: [`#${r.node}`, RP.number(r.tokens), RP.number(r.age), RP.number(r.hits), r.taken ? `${RP.number(r.taken)}` : "stays"],
        current: r.taken > 0,
      }));
      this.panel.body.replaceChildren(
        RP.table("Ranking", [[e.unit === "block" ? "block" : "leaf"], ["tokens", true], ["idle, ticks", true], ["hits", true], ["taken, tokens", true]], rows),
      );
    }
  }
  RP.LastEviction = LastEviction;

  class Selection {
    constructor(player) {
      this.player = player;
      this.panel = RP.panel("selection", "Selected");
      /** What is told, without its values; "" is the hint, null nothing yet. */
      this.shape = null;
      this.values = [];
      this.texts = [];
    }

    draw(state) {
      const selection = this.player.selection;
      const told = selection ? (selection.node ? this.node(state, selection.node) : this.request(state, selection.request)) : null;
      if (!told) {
        this.panel.note.textContent = "";
        const hint = "Click a node, a page or a request, or press / to find one: every view lights up what belongs to it.";
        if (this.shape !== "") this.panel.body.replaceChildren(RP.el("p", { class: "rp-hint", text: hint }));
        this.shape = "";
        return;
      }
      this.panel.note.textContent = told.name;
      const shape = JSON.stringify([told.name, told.facts.map(([name]) => name), told.texts.map(({ title }) => title)]);
      if (shape !== this.shape) this.make(told);
      this.shape = shape;
      told.facts.forEach(([, text], i) => {
        if (this.values[i].textContent !== text) this.values[i].textContent = text;
      });
      told.texts.forEach((text, i) => this.texts[i].show(text));
    }

    /** New elements; while the same things are told they stay, and only their values change. */
    make({ facts, texts, node }) {
      this.values = facts.map(() => RP.el("dd"));
      this.texts = texts.map(({ title }) => new RP.LongText(this.player, title));
      const list = RP.el("dl", { class: "rp-facts" }, ...facts.flatMap(([name], i) => [RP.el("dt", { text: name }), this.values[i]]));
      const closer = RP.el("button", { type: "button", class: "rp-twin", text: "look closer", on: { click: () => this.closer(node) } });
      this.panel.body.replaceChildren(list, ...(node ? [closer] : []), ...this.texts.map((text) => text.root));
    }

    closer(id) {
      const slot = this.player.now.slotOfNode.get(id) - 1;
      this.player.setView("icicle");
      if (slot >= 0) this.player.tree.icicle.zoomTo(slot);
    }

    /** The first few of some requests by name, and how many more there are. */
    names(numbers) {
      const { trace } = this.player;
      const shown = [...numbers].slice(0, NAMED).map((number) => trace.requests[number].name);
      if (numbers.size > NAMED) shown.push(`${RP.number(numbers.size - NAMED)} more`);
      return shown.join(", ") || "–";
    }

    node(state, id) {
      const slot = state.slotOfNode.get(id) - 1;
      if (slot < 0) return { name: `node #${id}`, facts: [["in the tree", this.absent(state.seq)]], texts: [] };
      const field = (f) => state.get(slot, f);
      const parent = field(N.PARENT);
      return {
        name: `node #${id}`,
        facts: [
          ["keeps", RP.count(field(N.COUNT), "token")],
          ["in", RP.count(state.nodePages.get(slot).length, "page")],
          ...(state.host(slot).length ? [["on the host", `${RP.count(state.host(slot).length, "page")}${state.tier(slot) === "host" ? ", and nowhere else" : ", a copy"}`]] : []),
          ["begins at", `token ${RP.number(field(N.DEPTH))}`],
          ["below", parent >= 0 ? `#${state.get(parent, N.ID)}` : parent < -1 ? `#${-1 - parent}, which is gone` : "the root"],
          ...(state.reachable(slot) ? [] : [["unreachable", "no look-up can find it"]]),
          ["children", RP.number(field(N.CHILDREN))],
          ["hits", `${RP.number(field(N.HITS))}${this.player.lit.used.size ? `: found by ${this.names(this.player.lit.used)}` : ""}`],
          ["idle", RP.count(state.tick - field(N.LAST), "tick")],
          ["written by", this.names(this.player.lit.wrote)],
          ["held by", this.names(this.player.lit.holds)],
          ...(field(N.PINS) ? [["pinned until", `step ${RP.number(field(N.PINS))}`]] : []),
        ],
        texts: [
          {
            title: "Text", key: state.nodePieces.get(slot).join(), total: field(N.COUNT), limit: START.node,
            tell: (n) => RP.shortText(state.trace, state.nodeTokens(slot, n)),
          },
        ],
        node: id,
      };
    }

    /** Why a selected node is not in the tree. */
    absent(seq) {
      const { n, a } = this.player.chosenEvents;
      if (!n) return "it never was";
      return a[0] > seq ? `not yet: event ${RP.number(a[0])} brings it` : "no more";
    }

    /** The nodes that are lit, from the top. */
    path() {
      const ids = [...this.player.lit.nodes].sort((a, b) => this.depth(a) - this.depth(b));
      const shown = ids.slice(0, NAMED).map((id) => `#${id}`);
      if (ids.length > NAMED) shown.push(`${RP.number(ids.length - NAMED)} more`);
      return shown.join(" › ") || "nothing of it is in the tree";
    }

    depth(id) {
      const { now } = this.player;
      return now.get(now.slotOfNode.get(id) - 1, N.DEPTH);
    }

    /** The time to first token, and how it splits. */
    firstToken(number, first) {
      const { trace, replay } = this.player;
      const prefill = replay.segments.lanes[number].parts.find((part) => part.sort === "prefill");
      const { ttft } = trace.event(first);
      const after = trace.t.a[first] - trace.t.a[prefill.from];
      return `${RP.seconds(ttft)}: ${RP.seconds(Math.max(0, ttft - after))} in the queue, ${RP.seconds(after)} in prefill`;
    }

    /** How long others' prefill has kept it from decoding so far, and whose. */
    stalled(state, number) {
      const { trace, replay } = this.player;
      const stalls = replay.segments.lanes[number].stalls.filter((stall) => stall.from <= state.seq);
      if (!stalls.length) return "–";
      const until = ({ to }) => (to < 0 || to > state.seq ? state.seq : to);
      const time = stalls.reduce((sum, stall) => sum + trace.t.a[until(stall)] - trace.t.a[stall.from], 0);
      const by = new Set(stalls.flatMap((stall) => [...stall.by].map((name) => trace.requestNumber(name))));
      return `${RP.seconds(time)} by the prefill of ${this.names(by)}`;
    }

    request(state, name) {
      const { trace } = state;
      const number = trace.requestNumber(name);
      if (number === undefined || number >= state.requestCount)
        return { name, facts: [["status", "has not arrived at this event"]], texts: [] };
      const field = (f) => state.requestField(number, f);
      const tokens = (v) => (v < 0 ? "–" : RP.count(v, "token"));
      const first = field(R.FIRST);
      const prompt = trace.prompt(number);
      const output = state.output(number);
      return {
        name: RP.requestName(trace, number),
        facts: [
          ["status", state.status(number)],
          ["prompt", tokens(prompt.length)],
          ["cached", tokens(field(R.CACHED))],
          ["computed", tokens(field(R.COMPUTED))],
          ["answer", tokens(field(R.OUTPUT))],
          ["own pages", RP.count(state.requestPages.get(number).length, "page")],
          ["path", this.path()],
          ["first token after", first < 0 ? "–" : this.firstToken(number, first)],
          ["stalled", this.stalled(state, number)],
          ["sent back", `${RP.number(field(R.RETRACTIONS))} ×`],
        ],
        texts: [
          { title: "Prompt", key: name, total: prompt.length, limit: START.prompt, tell: (n) => RP.shortText(trace, prompt.slice(0, n)) },
          { title: "Answer", key: name, total: output.length, limit: Infinity, tell: () => RP.tokensText(trace, output) || "–" },
        ],
      };
    }
  }
  RP.Selection = Selection;
})(globalThis.RadixPlayer);
