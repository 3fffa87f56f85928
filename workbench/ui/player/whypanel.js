/**
 * Why: the host's answer where a host answers, else the player's own sentence. An answer is
 *
 *     { headline: "R5 missed …", detail: ["…"],
 *       rows: [{ name: "tree", tokens: [318, " the", …], differs: 4 }, …],
 *       table: { caption, columns: ["leaf", ["tokens", true], …], rows: [[…] | { cells, current, link }] },
 *       links: [{ text, seq } | { text, node } | { text, request }] }
 *
 * where all but the headline may be missing, `true` means numbers, and `differs` defaults to the first
 * token in which the first two rows differ. It is asked when the cursor has rested a moment, one question
 * at a time; the last answer stays until the next is there. All of it is text.
 */
(function (RP) {
  "use strict";

  /** Milliseconds: before a question is asked, at most while playing, and before anything is spoken. */
  const ASK = 80;
  const LONGEST = 600;
  const REST = 400;

  class Why {
    constructor(player) {
      this.player = player;
      this.panel = RP.panel("why", "Why");
      this.line = RP.el("p", { class: "rp-why-line" });
      this.more = RP.el("div", { class: "rp-why-more" });
      this.spoken = RP.el("p", { class: "rp-spoken", "aria-live": "polite" });
      this.panel.body.append(this.line, this.more, this.spoken);
      this.key = "";
      this.busy = false;
    }

    /** @param {?function(number, ?Object): Promise<Object>} fn asked with event number and selection. */
    setAsk(fn) {
      this.ask = fn;
      this.key = "";
    }

    draw(state) {
      const { trace, selection } = this.player;
      if (this.ask && state.seq >= 0) this.wonder(state.seq, selection);
      if (!this.ask || state.seq < 0 || !this.line.textContent) this.own(state);
      this.panel.note.textContent = state.seq < 0 ? "" : trace.kindOf(state.seq);
      this.rest();
    }

    /** Speak when nothing has moved for a while; never while playing. */
    rest() {
      clearTimeout(this.timer);
      if (!this.player.scrubber.playing) this.timer = setTimeout(() => this.say(this.line.textContent), REST);
    }

    say(text) {
      if (this.spoken.textContent !== text) this.spoken.textContent = text;
    }

    /** The player's own sentence, and both rows of tokens where a match parted. */
    own(state) {
      const { trace } = this.player;
      const [subject, rest] = RP.why(trace, state.seq);
      const number = trace.requestNumber(subject);
      this.line.replaceChildren(RP.el("b", { text: number === undefined ? subject : RP.requestName(trace, number) }), rest);
      this.more.replaceChildren(...RP.tokenRows(trace, RP.parting(trace, state)));
    }

    /** Ask the host about (seq, selection) once the cursor rests; while it never rests, now and then. */
    wonder(seq, selection) {
      const key = `${this.player.run} ${seq} ${JSON.stringify(selection)}`;
      if (key === this.key) return;
      this.key = key;
      this.since ??= performance.now();
      clearTimeout(this.asking);
      const patience = Math.max(0, LONGEST - (performance.now() - this.since));
      this.asking = setTimeout(() => this.question(seq, selection, key), Math.min(ASK, patience));
    }

    async question(seq, selection, key) {
      if (this.busy) {
        this.later = () => this.question(seq, selection, key);
        return;
      }
      this.since = undefined;
      this.busy = true;
      this.panel.body.setAttribute("aria-busy", "true");
      const run = this.player.run;
      try {
        const answer = await this.ask(seq, selection);
        if (answer && run === this.player.run) this.show(answer);
      } catch (error) {
        if (run === this.player.run) this.show({ headline: "This could not be answered.", detail: [error.message] });
      }
      this.busy = false;
      this.panel.body.removeAttribute("aria-busy");
      const { later } = this;
      this.later = null;
      if (later) later();
    }

    show({ headline, detail = [], rows = [], table, links = [] }) {
      const { trace } = this.player;
      this.line.textContent = headline;
      this.more.replaceChildren(
        ...detail.map((text) => RP.el("p", { text })),
        ...RP.tokenRows(trace, rows),
        ...(table ? [this.table(table)] : []),
        ...(links.length ? [RP.el("p", { class: "rp-links" }, ...links.map((link) => this.link(link)))] : []),
      );
      this.rest();
    }

    table({ caption = "Ranking", columns, rows }) {
      const entries = rows.map((row) => {
        const { cells, current, link } = Array.isArray(row) ? { cells: row } : row;
        return { cells: cells.map((v) => (typeof v === "number" ? RP.number(v) : v ?? "–")), current, pick: link ? () => this.go(link) : null };
      });
      return RP.table(caption, columns.map((c) => (Array.isArray(c) ? c : [c])), entries);
    }

    link(link) {
      return RP.el("button", { type: "button", class: "rp-link", text: link.text, on: { click: () => this.go(link) } });
    }

    /** Follow a link: go to its event, select what it names. */
    go({ seq, node, request }) {
      if (Number.isInteger(seq)) this.player.seek(seq);
      if (node) this.player.select({ node });
      else if (request) this.player.select({ request });
    }

    destroy() {
      clearTimeout(this.timer);
      clearTimeout(this.asking);
    }
  }
  RP.Why = Why;
})(globalThis.RadixPlayer);
