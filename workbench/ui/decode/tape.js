/** One or two tapes of tokens, aligned by their text and broken into lines; tokens of one pass hang together. */
(function (RP) {
  "use strict";

  const SOURCES = [
    ["sampled", "sampled: the model chose"], ["forced", "forced: the mask left one"], ["jumped", "jumped: no pass of its own"],
    ["respelt", "spelt anew"], ["back", "rolled back or replaced"],
  ];
  /** Room that a line's name takes, in px. */
  const NAME = 74;
  const NARROW_NAME = 46;

  class Tape {
    /** @param {function(number, number)} choose called with arm and position. */
    constructor(choose) {
      this.choose = choose;
      this.panel = RP.panel("tape", "Answer");
      this.lines = RP.el("div", { class: "rd-lines", role: "group", "aria-label": "The answer, token by token. Arrow keys step through it." });
      this.legend = RP.legend(SOURCES.map(([source, words]) => [`rd rd-key-${source}`, words]));
      this.panel.explain(this.legend);
      this.panel.body.append(this.lines);
      this.width = 0;
      new ResizeObserver(() => this.width !== this.lines.clientWidth && this.facts && this.lay()).observe(this.lines);
    }

    show(facts) {
      this.facts = facts;
      const used = new Set(facts.arms.flatMap((arm) => [...arm.tokens.map((t) => t.source), ...arm.back.map(() => "back")]));
      SOURCES.forEach(([source, words]) => (this.legend.marks[`rd rd-key-${source}`].hidden = !used.has(source)));
      this.lay();
    }

    /** Columns from left to right: {a, b} lists of chips each, and whether the answers have parted. */
    columns() {
      const { arms, columns } = this.facts;
      const cut = columns || arms[0].tokens.map((_, i) => [i, i + 1, 0, 0, true]);
      const out = [];
      for (const [a, aEnd, b, bEnd, same] of cut) {
        arms.forEach((arm, which) => {
          const from = which ? b : a;
          for (const back of arm.back.filter((x) => x.position === from && (which ? bEnd : aEnd) > from)) out.push(this.ghosts(which, back));
        });
        out.push({ chips: [this.chips(0, a, aEnd), this.chips(1, b, bEnd)], same, start: !this.joined(0, a) });
      }
      arms.forEach((arm, which) => {
        for (const back of arm.back.filter((x) => x.position >= arm.tokens.length)) out.push(this.ghosts(which, back));
      });
      return out;
    }

    /** Tokens that stood here for a moment, as one strip. */
    ghosts(which, back) {
      const why = back.why === "respelt" ? "spelt anew after this" : `drafted and rolled back in pass ${back.number}`;
      const text = back.ids.map((id, i) => (back.texts[i] === null ? ` ${id} ` : RP.visible(back.texts[i]))).join("");
      const strip = RP.el("s", { class: "rd-ghost", title: `${RP.count(back.ids.length, "token")}, ${why}`, text });
      strip.prepend(RP.el("span", { class: "rp-spoken", text: `${why}: ` }));
      return { chips: which ? [[], [strip]] : [[strip], []], same: true, start: true };
    }

    chips(which, from, to) {
      const arm = this.facts.arms[which];
      return arm ? arm.tokens.slice(from, to).map((token, i) => this.chip(which, from + i, token)) : [];
    }

    /** Whether a token came with the pass of the one before it. */
    joined(which, at) {
      const { tokens } = this.facts.arms[which];
      return at > 0 && at < tokens.length && tokens[at].pass !== null && tokens[at].pass === tokens[at - 1].pass;
    }

    chip(which, at, token) {
      const text = token.text === null ? String(token.id) : RP.visible(token.text);
      const ends = this.facts.eos.includes(token.id);
      const pass = token.pass === null ? "no pass" : `pass ${token.pass}`;
      return RP.el("button", {
        type: "button", class: `rd-tok${this.joined(which, at) ? " rd-joined" : ""}`, text: ends ? "end" : text, tabindex: "-1",
        "data-arm": which, "data-at": at, "data-source": token.source, title: `${at + 1}: ${token.source}, ${pass}`,
        "aria-label": `${at + 1}: ${ends ? "end of text" : text}, ${token.source}, ${pass}`, on: { click: () => this.choose(which, at) },
      });
    }

    /** Break the columns into lines as wide as there is room. */
    lay() {
      const names = this.facts.arms.map((arm) => arm.name);
      this.width = this.lines.clientWidth;
      const room = this.width - (this.width < 560 ? NARROW_NAME : NAME);
      const two = names.length > 1;
      const columns = this.columns().map((column) => {
        const rows = column.chips.slice(0, names.length).map((chips) => RP.el("span", { class: "rd-row" }, ...chips));
        return { ...column, node: RP.el("span", { class: `rd-col${column.start ? "" : " rd-on"}` }, ...rows) };
      });
      const probe = RP.el("div", { class: "rd-cols rd-probe" }, ...columns.map((c) => c.node));
      this.lines.replaceChildren(probe);
      const widths = columns.map((c) => c.node.getBoundingClientRect().width + (c.start ? 5 : 0));
      const lines = [];
      let used = Infinity;
      let parted = false;
      columns.forEach((column, i) => {
        if (used + widths[i] > room) {
          lines.push(RP.el("div", { class: "rd-cols" }));
          used = 0;
        }
        if (!column.same && !parted && two) {
          parted = true;
          column.node.classList.add("rd-parts");
          column.node.title = "from here on the answers differ";
        }
        used += widths[i];
        lines[lines.length - 1].append(column.node);
      });
      const named = (line) =>
        RP.el("div", { class: "rd-line" }, RP.el("div", { class: "rd-names", "aria-hidden": "true" }, ...names.map((text) => RP.el("span", { text: text.split(",")[0] }))), line);
      this.lines.replaceChildren(...lines.map(named));
      this.mark();
    }

    /** Mark the chosen token and what stands beside it. */
    select(arm, at, focus) {
      this.chosen = [arm, at];
      this.mark();
      const chip = this.find(arm, at);
      if (focus && chip) {
        chip.focus({ preventScroll: true });
        chip.scrollIntoView({ block: "nearest" });
      }
    }

    find(arm, at) {
      return this.lines.querySelector(`[data-arm="${arm}"][data-at="${at}"]`);
    }

    mark() {
      for (const old of this.lines.querySelectorAll("[aria-current], .rd-beside")) {
        old.removeAttribute("aria-current");
        old.classList.remove("rd-beside");
        old.tabIndex = -1;
      }
      if (!this.chosen) return;
      const chip = this.find(...this.chosen);
      if (!chip) return;
      chip.setAttribute("aria-current", "true");
      chip.tabIndex = 0;
      const other = this.beside(...this.chosen);
      if (other !== null) this.find(1 - this.chosen[0], other)?.classList.add("rd-beside");
    }

    /** The position in the other tape at the same text; null where there is none. */
    beside(arm, at) {
      const { columns } = this.facts;
      if (!columns) return null;
      const column = columns.find((c) => at >= c[2 * arm] && at < c[2 * arm + 1]);
      if (!column) return null;
      const [from, to] = arm ? column : column.slice(2);
      return to > from ? Math.min(from + at - column[2 * arm], to - 1) : null;
    }
  }

  RP.Tape = Tape;
})(globalThis.RadixPlayer);
