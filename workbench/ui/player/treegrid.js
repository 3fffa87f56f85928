/** The tree as a treegrid: arrows move and fold, Enter selects. */
(function (RP) {
  "use strict";

  const N = RP.N;
  const MOST = 400;
  const HEADS = ["node", "tokens", "pages", "hits", "locks", "last used, tick", "lies on"];
  const TIERS = { device: "device", host: "host", both: "device, copied to host" };

  class TreeGrid {
    constructor(player) {
      this.player = player;
      this.folded = new Set();
      this.focused = null;
      this.body = RP.el("tbody");
      this.note = RP.el("caption");
      const head = RP.el("tr", {}, ...HEADS.map((text, i) => RP.el("th", { scope: "col", class: i && i < HEADS.length - 1 ? "rp-num" : null, text })));
      const grid = RP.el("table", { class: "rp-table", role: "treegrid", "aria-label": "Radix tree" }, this.note, RP.el("thead", {}, head), this.body);
      this.root = RP.el("div", { class: "rp-scroll" }, grid);
      grid.addEventListener("keydown", (event) => this.key(event));
    }

    /** Rows for the layout's preorder, folded subtrees left out. */
    draw(state, layout) {
      const rows = [];
      this.state = state;
      for (let i = 0; i < layout.n && rows.length < MOST; ) {
        const slot = layout.slots[i];
        const id = state.get(slot, N.ID);
        const folded = this.folded.has(id);
        if (slot === layout.lost) rows.push(this.heading(RP.lostWords(state, layout)));
        rows.push(this.row(state, layout, slot, id, folded));
        i += folded ? layout.span[i] : 1;
      }
      this.note.textContent = `${RP.number(rows.filter((row) => row.dataset.node).length)} rows of ${RP.count(layout.n, "node")}`;
      const had = this.body.contains(document.activeElement);
      this.body.replaceChildren(...rows);
      const focus = rows.find((row) => row.dataset.node === String(this.focused)) || rows.find((row) => row.dataset.node);
      if (!focus) return;
      focus.tabIndex = 0;
      if (had) focus.focus();
    }

    /** A row over the group of nodes that no look-up can find; they stand one level below it. */
    heading(text) {
      return RP.el("tr", { role: "row", "aria-level": 1 }, RP.el("td", { colspan: HEADS.length, text }));
    }

    row(state, layout, slot, id, folded) {
      const depth = layout.row[slot];
      const parent = layout.first[slot] >= 0;
      const selected = this.player.selection && this.player.selection.node === id;
      const name = RP.el("td", { text: `${parent ? (folded ? "▸ " : "▾ ") : ""}${RP.nodeName(state, id)}` });
      name.style.paddingInlineStart = `${8 + 16 * Math.min(depth, 12)}px`;
      const number = (v) => RP.el("td", { class: "rp-num", text: RP.number(v) });
      const tr = RP.el(
        "tr",
        {
          role: "row", tabindex: "-1", "aria-level": depth + 1, "data-node": id,
          "aria-expanded": parent ? String(!folded) : null, "aria-selected": String(Boolean(selected)),
        },
        name,
        number(state.get(slot, N.COUNT)),
        number(state.nodePages.get(slot).length),
        number(state.get(slot, N.HITS)),
        number(state.get(slot, N.LOCKS)),
        number(state.get(slot, N.LAST)),
        RP.el("td", { text: TIERS[state.tier(slot)] }),
      );
      tr.addEventListener("click", () => this.pick(id));
      tr.addEventListener("focus", () => (this.focused = id));
      return tr;
    }

    pick(id) {
      this.focused = id;
      this.player.select({ node: id });
    }

    key(event) {
      const row = event.target.closest("tr[data-node]");
      if (!row) return;
      const id = +row.dataset.node;
      const go = (way) => {
        let other = row[way];
        while (other && !other.dataset.node) other = other[way];
        if (!other) return;
        row.tabIndex = -1;
        other.tabIndex = 0;
        other.focus();
      };
      if (event.key === "ArrowDown") go("nextElementSibling");
      else if (event.key === "ArrowUp") go("previousElementSibling");
      else if (event.key === "ArrowLeft") this.fold(id, true);
      else if (event.key === "ArrowRight") this.fold(id, false);
      else if (event.key === "Enter") this.pick(id);
      else return;
      event.preventDefault();
    }

    fold(id, folded) {
      this.focused = id;
      if (folded) this.folded.add(id);
      else this.folded.delete(id);
      this.player.redraw();
    }
  }
  RP.TreeGrid = TreeGrid;
})(globalThis.RadixPlayer);
