/**
 * Why: the host's answer where a host answers, else the player's own sentence. An answer is what
 * `workbench.explain` gives, as JSON: a headline; and where there are any, `detail` (sentences), `rows`
 * (partings: two rows of tokens each), `table` ({title, columns, rows, taken, links}) and `links` ({kind, id,
 * text}; kind event, node, request, page or replica). It is asked when the cursor has rested a moment, one question at
 * a time; the last answer stays until the next is there. All of it is shown as text.
 */
(function (RP) {
  "use strict";

  /** Milliseconds: before a question is asked, at most while playing, and before anything is spoken. */
  const ASK = 80;
  const LONGEST = 600;
  const REST = 400;
  /** A number, with its unit or without: such a column is aligned to the right. */
  const QUANTITY = /^[\d.,]+( m?s| %)?$/;

  class Why {
    constructor(player) {
      this.player = player;
      this.panel = RP.panel("why", "Why");
      this.line = RP.el("p", { class: "rp-why-line" });
      this.more = RP.el("div", { class: "rp-why-more" });
      this.notYet = RP.el("p", { class: "rp-hint rp-not-yet", hidden: "" });
      this.spoken = RP.el("p", { class: "rp-spoken", "aria-live": "polite" });
      this.panel.body.append(this.line, this.more, this.notYet, this.spoken);
      this.key = "";
      this.busy = false;
    }

    /**
     * @param {?function(number, ?Object, number): Promise<Object>} fn asked with event number, selection and replica.
     * @param {string} [without] what is added to the player's own sentence where there is no answer.
     */
    setAsk(fn, without = "") {
      this.ask = fn;
      this.without = without;
      this.unanswered = false;
      this.key = "";
      /** The run that the answer shown is about; until there is one, the player's own sentence stands. */
      this.answered = null;
    }

    draw(state) {
      const { trace } = this.player;
      const coming = this.coming(state.seq);
      const selection = coming < 0 ? this.player.selection : null;
      this.tellComing(coming);
      if (this.ask && state.seq >= 0) this.wonder(state.seq, selection);
      if (!this.ask || state.seq < 0 || this.answered !== this.whose) this.own(state);
      const about = !this.ask || !selection ? "" : `${selection.node ? `node #${selection.node}` : selection.request} · `;
      this.panel.note.textContent = state.seq < 0 ? "" : `${about}event ${RP.number(state.seq)}, ${trace.kindOf(state.seq)}`;
      this.rest();
    }

    /** The run and the replica that an answer is about. */
    get whose() {
      return `${this.player.run} ${this.player.replica}`;
    }

    /** The event that brings a selection which is not there yet; -1 where it is there, or nothing is selected. */
    coming(seq) {
      const { selection, chosenEvents } = this.player;
      return selection && chosenEvents.n && chosenEvents.a[0] > seq ? chosenEvents.a[0] : -1;
    }

    /** Until then the event is explained, and this says why it is not the selection. */
    tellComing(coming) {
      const { selection } = this.player;
      this.notYet.hidden = coming < 0;
      if (coming < 0 || (selection === this.awaited && coming === this.brings)) return;
      [this.awaited, this.brings] = [selection, coming];
      const what = selection.node ? `Node #${selection.node} is selected, but is not in the tree yet` : `${selection.request} is selected, but has not arrived yet`;
      const go = this.link({ kind: "event", id: coming, text: `event ${RP.number(coming)} brings it` });
      this.notYet.replaceChildren(`${what}: `, go, ".");
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
      const parting = RP.parting(trace, state);
      const hint = this.unanswered && this.without ? [RP.el("p", { class: "rp-hint", text: this.without })] : [];
      this.more.replaceChildren(...(parting ? RP.tokenRows(trace, parting) : []), ...hint);
    }

    /** Ask the host about (seq, selection) once the cursor rests; while it never rests, now and then. */
    wonder(seq, selection) {
      const key = `${this.whose} ${seq} ${JSON.stringify(selection)}`;
      if (key === this.key) return;
      this.key = key;
      this.since ??= performance.now();
      clearTimeout(this.asking);
      const patience = Math.max(0, LONGEST - (performance.now() - this.since));
      const asked = { seq, selection, replica: this.player.replica, whose: this.whose };
      this.asking = setTimeout(() => this.question(asked), Math.min(ASK, patience));
    }

    async question(asked) {
      if (this.busy) {
        this.later = () => this.question(asked);
        return;
      }
      this.since = undefined;
      this.busy = true;
      this.panel.body.setAttribute("aria-busy", "true");
      const { seq, selection, replica, whose } = asked;
      try {
        const answer = await this.ask(seq, selection, replica);
        if (whose === this.whose) answer ? this.show(answer) : this.missed();
      } catch (error) {
        if (whose === this.whose) this.show({ headline: "This could not be answered.", detail: [error.message] });
      }
      this.busy = false;
      this.panel.body.removeAttribute("aria-busy");
      const { later } = this;
      this.later = null;
      if (later) later();
    }

    /** No answer: the player's own sentence, and not the last answer, which was about something else. */
    missed() {
      this.answered = null;
      this.unanswered = true;
      this.own(this.player.now);
      this.rest();
    }

    show({ headline, detail = [], rows = [], table = null, links = [] }) {
      this.answered = this.whose;
      this.unanswered = false;
      this.line.textContent = headline;
      this.more.replaceChildren(
        ...detail.map((text) => RP.el("p", { text })),
        ...rows.flatMap((parting) => RP.tokenRows(this.player.trace, parting)),
        ...(table ? [this.table(table)] : []),
        ...(links.length ? [RP.el("p", { class: "rp-links" }, ...links.map((link) => this.link(link)))] : []),
      );
      this.rest();
    }

    table({ title, columns, rows, taken, links }) {
      const columnsOf = columns.map((name, i) => [name, rows.every((row) => row[i] === null || QUANTITY.test(row[i]))]);
      const told = (v) => (typeof v === "number" ? RP.number(v) : v ?? "–");
      return RP.table(
        title,
        columnsOf,
        rows.map((cells, i) => ({ cells: cells.map(told), current: taken[i], pick: links[i] ? () => this.go(links[i]) : null })),
      );
    }

    link(link) {
      return RP.el("button", { type: "button", class: "rp-link", text: link.text, on: { click: () => this.go(link) } });
    }

    /** Follow a link: go to an event, select a node or a request, or whoever owns a page. */
    go({ kind, id }) {
      const { player } = this;
      if (kind === "event") player.seek(id);
      else if (kind === "replica") player.show(id);
      else player.select(kind === "page" ? player.ownerOf(id) : { [kind]: id });
    }

    destroy() {
      clearTimeout(this.timer);
      clearTimeout(this.asking);
    }
  }
  RP.Why = Why;
})(globalThis.RadixPlayer);
