/**
 * What is drawn of the icicle: a rectangle for each node that is wide enough, one for each run of
 * siblings that are not, and a note on rows that are too deep to show.
 */
(function (RP) {
  "use strict";

  /** Narrower than this, in pixels, neighbours are drawn as one. */
  const NARROW = 3;

  /** How tokens and rows become pixels: `from` tokens at the left edge, `scale` pixels a token. */
  class View {
    constructor() {
      this.zoom = null;
      this.from = 0;
      this.scale = 1;
      this.firstRow = 0;
    }

    /** Fit the whole tree, or the zoomed node, into `width` x `height`. */
    fit(layout, tween, state, width, height, limits) {
      let [from, span, row] = [0, tween.total, 0];
      const slot = this.zoom === null ? -1 : state.slotOfNode.get(this.zoom) - 1;
      if (slot >= 0) [from, span, row] = [tween.x[slot], tween.w[slot], Math.max(0, layout.row[slot] - 1)];
      else this.zoom = null;
      this.from = from;
      this.scale = width / Math.max(1, span);
      this.firstRow = row;
      const rows = Math.max(1, layout.rows - row);
      this.rowHeight = Math.max(limits.row, Math.min(limits.tall, Math.floor(height / rows)));
      this.rowsShown = Math.max(1, Math.floor(height / this.rowHeight));
    }
  }
  RP.View = View;

  /**
   * The rectangles to draw, in pixels: {slot, nodes, x, y, w, h, below}. `nodes` above 1 is a bundle of
   * narrow siblings and all below them; `below` counts the nodes under the last row shown.
   */
  RP.cells = (layout, tween, view, width) => {
    const out = [];
    const open = [];
    for (let i = 0; i < layout.n; ) {
      const slot = layout.slots[i];
      const row = layout.row[slot] - view.firstRow;
      const x = (tween.x[slot] - view.from) * view.scale;
      const w = tween.w[slot] * view.scale;
      if (x + w < 0 || x > width || row >= view.rowsShown) {
        i += layout.span[i];
        continue;
      }
      const y = (tween.row[slot] - view.firstRow) * view.rowHeight;
      if (w < NARROW) {
        const last = open[row];
        if (last && last.parent === layout.parent[slot] && x - (last.x + last.w) < 1.5) {
          last.w = x + w - last.x;
          last.nodes += layout.span[i];
          last.tokens += layout.under[slot];
          last.newest = Math.max(last.newest, layout.newest[slot]);
          last.locked = last.locked || layout.locks[slot] > 0;
          last.members.push(slot);
        } else if (row >= 0) {
          open[row] = bundle(layout, slot, i, x, y, w, view);
          out.push(open[row]);
        }
        i += layout.span[i];
        continue;
      }
      open[row] = null;
      if (row >= 0) {
        const deepest = row === view.rowsShown - 1;
        out.push({
          slot, x, y, w, h: view.rowHeight, nodes: 1, parent: layout.parent[slot],
          below: deepest ? layout.span[i] - 1 : 0,
        });
        if (deepest) {
          i += layout.span[i];
          continue;
        }
      }
      i++;
    }
    return out;
  };

  const bundle = (layout, slot, i, x, y, w, view) => ({
    slot, x, y, w, h: view.rowHeight,
    nodes: layout.span[i],
    tokens: layout.under[slot],
    newest: layout.newest[slot],
    locked: layout.locks[slot] > 0,
    parent: layout.parent[slot],
    members: [slot],
    below: 0,
  });
})(globalThis.RadixPlayer);
