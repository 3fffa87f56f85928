/** A text of what is selected: its first tokens, how many there are in all, and the whole of it when asked. */
(function (RP) {
  "use strict";

  class LongText {
    constructor(player, title) {
      this.whole = false;
      this.known = null;
      this.note = RP.el("span", { class: "rp-note" });
      this.more = RP.el("button", {
        type: "button", class: "rp-twin", hidden: "",
        on: {
          click: () => {
            this.whole = !this.whole;
            player.redraw();
          },
        },
      });
      this.body = RP.el("p", { tabindex: "0" });
      this.root = RP.el("div", { class: "rp-text" }, RP.el("div", { class: "rp-row" }, RP.el("h3", { text: title }), this.note, this.more), this.body);
    }

    /**
     * @param {{key: string, total: number, limit: number, tell: function(number): string}} text `key` changes
     *   when its tokens do; `tell(n)` is the text of the first `n` of `total` tokens, of which `limit` are shown at first.
     */
    show({ key, total, limit, tell }) {
      const n = this.whole ? total : Math.min(limit, total);
      const known = `${key} ${n}`;
      if (known === this.known) return;
      this.known = known;
      this.body.textContent = tell(n);
      const cut = total > limit;
      this.more.hidden = !cut;
      this.more.textContent = this.whole ? "show less" : "show all";
      this.more.setAttribute("aria-expanded", String(this.whole));
      this.note.textContent = cut && !this.whole ? `the first ${RP.number(n)} of ${RP.count(total, "token")}` : "";
      this.root.classList.toggle("rp-whole", this.whole);
    }
  }
  RP.LongText = LongText;
})(globalThis.RadixPlayer);
