/** The right column: why this event, the last eviction's ranking, what is selected. */
(function (RP) {
  "use strict";

  const N = RP.N;
  const R = RP.R;
  /** Tokens shown around the place where a prompt parted from the tree. */
  const BEFORE = 2;
  const AFTER = 2;
  /** The spoken line waits for the cursor to rest this long, in milliseconds. */
  const REST = 350;

  class Why {
    constructor(player) {
      this.player = player;
      this.panel = RP.panel("why", "Why");
      this.line = RP.el("p", { class: "rp-why-line" });
      this.rows = RP.el("div");
      this.spoken = RP.el("p", { class: "rp-spoken", "aria-live": "polite" });
      this.panel.body.append(this.line, this.rows, this.spoken);
    }

    draw(state) {
      const { trace } = this.player;
      const [subject, rest] = RP.why(trace, state.seq);
      this.line.replaceChildren(RP.el("b", { text: this.named(subject) }), rest);
      this.rows.replaceChildren(...this.parting(state));
      this.panel.note.textContent = state.seq < 0 ? "" : trace.kindOf(state.seq);
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.say(`${this.named(subject)}${rest}`), REST);
    }

    say(text) {
      if (this.spoken.textContent !== text) this.spoken.textContent = text;
    }

    /** A request is called by its label where it has one. */
    named(subject) {
      const number = this.player.trace.requestNumber(subject);
      return number === undefined ? subject : RP.requestName(this.player.trace, number);
    }

    /** Where a prompt parted from the tree: both rows of tokens, the first different one marked. */
    parting(state) {
      const { trace } = this.player;
      if (state.seq < 0 || trace.kindOf(state.seq) !== "request.matched") return [];
      const e = trace.event(state.seq);
      const slot = e.at_node ? state.slotOfNode.get(e.at_node) - 1 : -1;
      if (e.stop !== "parted" || slot < 0) return [];
      const number = trace.requestNumber(e.request);
      const common = [];
      for (let i = Math.max(0, e.raw_length - BEFORE); i < e.raw_length; i++) common.push(trace.token(number, i));
      const wanted = Array.from(trace.prompt(number).slice(e.raw_length, e.raw_length + AFTER));
      const stored = state.nodeTokens(slot, e.offset + AFTER).slice(e.offset);
      return [this.tokens("tree", common, stored), this.tokens("asked", common, wanted)];
    }

    tokens(name, common, rest) {
      const { trace } = this.player;
      const cell = (id, i) => RP.el("i", { class: i === common.length ? "rp-differs" : null, text: RP.tokenMark(trace, id) });
      return RP.el("div", { class: "rp-tokens" }, RP.el("span", { text: name }), ...[...common, ...rest].map(cell));
    }
  }
  RP.Why = Why;

  class LastEviction {
    constructor(player) {
      this.player = player;
      this.panel = RP.panel("eviction", "Last eviction");
    }

    draw(state) {
      const { trace, replay } = this.player;
      const seq = replay.marks.next("eviction", state.seq + 1, -1);
      this.panel.root.hidden = seq === null;
      if (seq === null || seq === this.shown) return;
      this.shown = seq;
      const e = trace.event(seq);
      this.panel.note.textContent = `asked ${RP.count(e.asked, "page")}, freed ${RP.number(e.freed)} · ${e.policy}`;
      const rows = e.ranking.slice(0, 5).map((r) => ({
        cells: [`#${r.node}`, RP.number(r.tokens), RP.number(r.age), RP.number(r.hits), r.taken ? `${RP.number(r.taken)}` : "stays"],
        current: r.taken > 0,
      }));
      this.panel.body.replaceChildren(
        RP.table("Ranking", [["leaf"], ["tokens", true], ["idle, ticks", true], ["hits", true], ["taken, tokens", true]], rows),
      );
    }
  }
  RP.LastEviction = LastEviction;

  class Selection {
    constructor(player) {
      this.player = player;
      this.panel = RP.panel("selection", "Selected");
    }

    draw(state) {
      const selection = this.player.selection;
      const told = selection ? (selection.node ? this.node(state, selection.node) : this.request(state, selection.request)) : null;
      if (!told) {
        this.panel.note.textContent = "";
        this.panel.body.replaceChildren(RP.el("p", { class: "rp-hint", text: "Click a node or a request to read its tokens. Double click a node to look closer." }));
        return;
      }
      this.panel.note.textContent = told.name;
      const facts = told.facts.flatMap(([name, value]) => [RP.el("dt", { text: name }), RP.el("dd", { text: value })]);
      this.panel.body.replaceChildren(RP.el("dl", { class: "rp-facts" }, ...facts), ...told.texts);
    }

    text(title, text) {
      return RP.el("div", { class: "rp-text" }, RP.el("h3", { text: title }), RP.el("p", { tabindex: "0", text: text || "–" }));
    }

    node(state, id) {
      const slot = state.slotOfNode.get(id) - 1;
      if (slot < 0) return { name: `node #${id}`, facts: [["in the tree", "no, at this event"]], texts: [] };
      const field = (f) => state.get(slot, f);
      const parent = field(N.PARENT);
      return {
        name: `node #${id}`,
        facts: [
          ["keeps", RP.count(field(N.COUNT), "token")],
          ["in", RP.count(state.nodePages.get(slot).length, "page")],
          ["begins at", `token ${RP.number(field(N.DEPTH))}`],
          ["below", parent < 0 ? "the root" : `#${state.get(parent, N.ID)}`],
          ["children", RP.number(field(N.CHILDREN))],
          ["hits", RP.number(field(N.HITS))],
          ["locks", RP.count(field(N.LOCKS), "request")],
          ["idle", RP.count(state.tick - field(N.LAST), "tick")],
        ],
        texts: [
          RP.el("button", { type: "button", class: "rp-twin", text: "look closer", on: { click: () => this.player.icicle.zoomTo(slot) } }),
          this.text("Text", RP.tokensText(state.trace, state.nodeTokens(slot, 200))),
        ],
      };
    }

    request(state, name) {
      const { trace } = state;
      const number = trace.requestNumber(name);
      if (number === undefined || number >= state.requestCount)
        return { name, facts: [["status", "has not arrived at this event"]], texts: [] };
      const field = (f) => state.requestField(number, f);
      const tokens = (v) => (v < 0 ? "–" : RP.count(v, "token"));
      const first = field(R.FIRST);
      return {
        name: RP.requestName(trace, number),
        facts: [
          ["status", state.status(number)],
          ["prompt", tokens(trace.prompt(number).length)],
          ["cached", tokens(field(R.CACHED))],
          ["computed", tokens(field(R.COMPUTED))],
          ["answer", tokens(field(R.OUTPUT))],
          ["own pages", RP.count(state.requestPages.get(number).length, "page")],
          ["first token after", first < 0 ? "–" : RP.seconds(trace.event(first).ttft)],
          ["sent back", `${RP.number(field(R.RETRACTIONS))} ×`],
        ],
        texts: [
          this.text("Prompt", RP.tokensText(trace, trace.prompt(number).slice(0, 600))),
          this.text("Answer", RP.tokensText(trace, state.output(number))),
        ],
      };
    }
  }
  RP.Selection = Selection;
})(globalThis.RadixPlayer);
