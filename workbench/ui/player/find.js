/** The find field: `/` opens it, arrows go through the hits, Enter selects one, Escape closes. */
(function (RP) {
  "use strict";

  /** Hits shown; the rest is told as a number. */
  const MOST = 40;

  class Find {
    constructor(player) {
      this.player = player;
      this.search = new RP.Search(player);
      this.hits = [];
      this.active = 0;
      const list = `rp-hits-${Math.random().toString(36).slice(2)}`;
      this.field = RP.el("input", {
        type: "text", class: "rp-field", role: "combobox", "aria-label": "find", "aria-expanded": "false", "aria-controls": list,
        "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false", placeholder: "a request, a node (#9) or a text",
        on: { input: () => this.look(), keydown: (event) => this.key(event) },
      });
      this.told = RP.el("p", { class: "rp-hint", role: "status" });
      this.list = RP.el("ul", { class: "rp-hits", id: list, role: "listbox", "aria-label": "hits", hidden: "" });
      const close = RP.el("button", { type: "button", text: "close", on: { click: () => this.root.close() } });
      this.root = RP.el("dialog", { class: "rp-find rp-panel", "aria-label": "Find" }, RP.el("div", { class: "rp-row" }, this.field, close), this.told, this.list);
      this.root.addEventListener("click", (event) => event.target === this.root && this.root.close());
    }

    open() {
      if (this.root.open) return;
      this.root.showModal();
      this.field.select();
      this.look();
    }

    look() {
      this.hits = this.search.hits(this.field.value);
      const shown = this.hits.slice(0, MOST);
      this.list.replaceChildren(...shown.map((hit, i) => this.option(hit, i)));
      this.list.hidden = !shown.length;
      this.field.setAttribute("aria-expanded", String(shown.length > 0));
      const more = this.hits.length > MOST ? `, the first ${MOST} shown` : "";
      this.told.textContent = this.hits.length
        ? `${RP.count(this.hits.length, "hit")}${more}`
        : this.field.value.trim() ? "Nothing in this run reads like that." : "Names, token texts of prompts, answers and nodes. ↑ ↓ to go through, Enter to select.";
      this.move(0);
    }

    option({ name, before, match, after }, i) {
      const text = [before, RP.el("mark", { text: match }), after];
      return RP.el(
        "li",
        { id: `${this.list.id}-${i}`, role: "option", "aria-selected": "false", on: { click: () => this.take(i), pointermove: () => this.move(i) } },
        RP.el("b", { text: name }), " ", ...text,
      );
    }

    /** Make hit `i` the active one. */
    move(i) {
      const options = this.list.children;
      if (options[this.active]) options[this.active].setAttribute("aria-selected", "false");
      this.active = i;
      const option = options[i];
      if (!option) return this.field.removeAttribute("aria-activedescendant");
      option.setAttribute("aria-selected", "true");
      this.field.setAttribute("aria-activedescendant", option.id);
      return option.scrollIntoView({ block: "nearest" });
    }

    key(event) {
      const n = this.list.children.length;
      if (event.key === "Enter") this.take(this.active);
      else if (event.key === "ArrowDown" && n) this.move((this.active + 1) % n);
      else if (event.key === "ArrowUp" && n) this.move((this.active + n - 1) % n);
      else return;
      event.preventDefault();
    }

    /** Select hit `i`; what is not there yet is gone to. */
    take(i) {
      const hit = this.hits[i];
      if (!hit) return;
      const { player } = this;
      this.root.close();
      player.select(hit.selection);
      const first = player.chosenEvents;
      if (first.n && first.a[0] > player.seq) player.seek(first.a[0]);
    }
  }
  RP.Find = Find;
})(globalThis.RadixPlayer);
