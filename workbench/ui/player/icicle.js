/** The radix tree as an icicle on a canvas: hover, select, zoom, and movement between events. */
(function (RP) {
  "use strict";

  const N = RP.N;
  const GAP = 2;
  const FONT = 12;
  const SMALL = 11.5;
  /** No text in a cell narrower than this, in pixels. */
  const TEXT_ROOM = 44;
  /** Wide enough to read a few words, in pixels. */
  const READABLE = 220;
  /** Jumps longer than this, in events, are not animated. */
  const LONG = 600;

  class Icicle {
    /** @param {Object} player gives `theme`, `selection`, `select`, `still`, `redraw`. */
    constructor(player, options) {
      this.player = player;
      this.height = options.height;
      this.limits = { row: 26, tall: 72 };
      this.panel = RP.panel("tree", "Radix tree");
      this.frame = RP.el("div", { class: "rp-frame" });
      this.tip = RP.el("div", { class: "rp-tip", hidden: "" });
      this.out = RP.el("button", { type: "button", class: "rp-twin", hidden: "", text: "whole tree" });
      this.empty = RP.el("p", { class: "rp-empty", text: "The tree is empty: nothing has been stored yet." });
      this.panel.body.append(this.frame);
      this.surface = new RP.Surface(this.frame, "radix tree", () => player.relayout());
      this.frame.append(this.empty, this.tip);
      this.panel.tools.append(
        RP.legend([["ramp", "just used … idle"], ["lock", "locked"], ["next", "next to go"], ["event", "this event"]]),
        this.out,
      );
      this.layout = new RP.Layout();
      this.tween = new RP.Tween();
      this.view = new RP.View();
      this.cells = [];
      this.texts = new Map();
      this.shown = -2;
      this.listen();
    }

    listen() {
      const canvas = this.surface.canvas;
      canvas.addEventListener("pointermove", (event) => this.hover(event));
      canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
      canvas.addEventListener("click", (event) => {
        const cell = this.hit(event);
        this.player.select(cell && cell.nodes === 1 ? { node: this.state.get(cell.slot, N.ID) } : null);
      });
      canvas.addEventListener("dblclick", (event) => {
        const cell = this.hit(event);
        if (cell) this.zoomTo(cell.nodes === 1 ? cell.slot : cell.parent);
      });
      this.out.addEventListener("click", () => this.zoomTo(-1));
    }

    /** Show the node in `slot` over the whole width; -1 shows the whole tree. */
    zoomTo(slot) {
      const id = slot < 0 ? null : this.state.get(slot, N.ID);
      this.view.zoom = id === this.view.zoom ? null : id;
      this.player.redraw();
    }

    /** Take a new moment: lay it out, and move there unless the way is long. */
    take(state, now) {
      const long = Math.abs(state.seq - this.shown) > LONG || this.shown === -2;
      if (state.trace !== (this.state && this.state.trace)) {
        this.texts.clear();
        this.view.zoom = null;
      }
      this.state = state;
      this.layout.run(state, READABLE / Math.max(READABLE, this.surface.available));
      this.tween.aim(this.layout, state, long || this.player.still, now);
      this.next = RP.nextToGo(state);
      this.marked = RP.nodesOf(state);
      this.shown = state.seq;
    }

    /** Draw; returns whether something still moves. */
    draw(now, elapsed) {
      const { layout, tween, view, state, surface } = this;
      tween.advance(layout, elapsed, now);
      const ctx = surface.begin(this.height);
      view.fit(layout, tween, state, surface.width, this.height, this.limits);
      this.cells = RP.cells(layout, tween, view, surface.width);
      this.empty.hidden = layout.n > 0;
      this.out.hidden = view.zoom === null;
      this.paint(ctx);
      this.paintText(ctx);
      this.paintMarks(ctx);
      this.paintGhosts(ctx, now);
      const words = `${RP.count(layout.n, "node")}, ${RP.count(layout.tokens, "token")}`;
      this.panel.note.textContent = `width = tokens kept${layout.widened ? ", small nodes widened" : ""} · colour = how recently used · ${words}`;
      surface.canvas.setAttribute("aria-label", `Radix tree: ${words}. The table shows the same.`);
      return tween.moving;
    }

    level(last) {
      return RP.recency(this.state.tick, this.layout.oldest, last);
    }

    /** Fills, a colour at a time. */
    paint(ctx) {
      const theme = this.player.theme;
      const byLevel = [[], [], [], [], [], []];
      for (const cell of this.cells) {
        cell.level = this.level(cell.nodes > 1 ? cell.newest : this.state.get(cell.slot, N.LAST));
        byLevel[cell.level].push(cell);
      }
      byLevel.forEach((cells, level) => {
        ctx.fillStyle = theme.ramp[level];
        for (const { x, y, w, h } of cells) {
          if (w > 18) {
            ctx.beginPath();
            ctx.roundRect(x + 1, y, w - GAP, h - 4, 5);
            ctx.fill();
          } else ctx.fillRect(x + (w > 4 ? 0.5 : 0), y, Math.max(0.6, w > 4 ? w - 1 : w - 0.3), h - 4);
        }
      });
      for (const cell of this.cells)
        if (cell.nodes > 1 && cell.w > 4) RP.hatch(ctx, cell.x, cell.y, cell.w, cell.h - 4, theme.panel, 4);
    }

    paintText(ctx) {
      const theme = this.player.theme;
      const bold = `600 ${FONT}px ${theme.font}`;
      const small = `${SMALL}px ${theme.font}`;
      ctx.textBaseline = "alphabetic";
      for (const cell of this.cells) {
        if (cell.w < TEXT_ROOM) continue;
        if (cell.nodes > 1) {
          this.tag(ctx, cell, small);
          continue;
        }
        const left = Math.max(cell.x, 0) + 9;
        const lock = this.layout.locks[cell.slot] > 0 && cell.w > 64;
        const room = Math.min(cell.x + cell.w, this.surface.width) - left - 7 - (lock ? 18 : 0);
        if (room < TEXT_ROOM - 16) continue;
        const tall = cell.h >= 44;
        ctx.fillStyle = theme.labels[cell.level];
        const middle = cell.y + (cell.h - 4) / 2;
        const line = tall ? middle - 5 : middle + 4;
        ctx.fillText(RP.fitText(ctx, bold, this.text(cell.slot), room), left, line);
        if (tall) ctx.fillText(RP.fitParts(ctx, small, this.facts(cell), room), left, middle + 13);
      }
    }

    /** How many nodes a bundle stands for, where there is room. */
    tag(ctx, { x, y, w, h, nodes }, font) {
      const { theme } = this.player;
      const words = RP.fitText(ctx, font, RP.count(nodes, "node"), w - 6);
      if (!words || words.endsWith("…")) return;
      const wide = ctx.measureText(words).width + 6;
      const middle = y + (h - 4) / 2;
      ctx.fillStyle = theme.panel;
      ctx.fillRect(x + (w - wide) / 2, middle - 9, wide, 18);
      ctx.fillStyle = theme.ink;
      ctx.fillText(words, x + (w - wide) / 2 + 3, middle + 4);
    }

    /** Locks, what goes next, what this event is about, what is selected. */
    paintMarks(ctx) {
      const { theme, selection } = this.player;
      for (const cell of this.cells) {
        const { x, y, w, h, slot } = cell;
        const locked = cell.nodes > 1 ? cell.locked : this.layout.locks[slot] > 0;
        if (locked && w > 64 && cell.nodes === 1)
          RP.drawLock(ctx, Math.min(x + w, this.surface.width) - 22, y + (h - 4) / 2 - (h >= 44 ? 17 : 7), theme.labels[cell.level]);
        else if (locked) {
          ctx.fillStyle = theme.ink;
          ctx.fillRect(x + 0.5, y, Math.max(1, w - 1), 3);
        }
        const has = (s) => s >= 0 && (cell.nodes > 1 ? cell.members.includes(s) : slot === s);
        if (has(this.next)) this.outline(ctx, cell, theme.evict, [5, 4]);
        if (cell.nodes > 1) continue;
        const id = this.state.get(slot, N.ID);
        if (this.marked.has(id)) this.outline(ctx, cell, theme.computed, []);
        if (selection && selection.node === id) this.outline(ctx, cell, theme.ink, []);
      }
    }

    outline(ctx, { x, y, w, h }, colour, dash) {
      ctx.beginPath();
      ctx.roundRect(x + 2, y + 1, Math.max(2, w - 4), h - 6, w > 18 ? 4 : 0);
      ctx.strokeStyle = this.player.theme.panel;
      ctx.lineWidth = 4;
      ctx.stroke();
      ctx.strokeStyle = colour;
      ctx.lineWidth = 2;
      ctx.setLineDash(dash);
      ctx.stroke();
      ctx.setLineDash([]);
    }

    paintGhosts(ctx, now) {
      const { view, tween } = this;
      ctx.strokeStyle = this.player.theme.evict;
      ctx.lineWidth = 1.5;
      for (const ghost of tween.ghosts) {
        ctx.globalAlpha = Math.max(0, 1 - (now - ghost.since) / RP.Tween.FADE);
        const y = (ghost.row - view.firstRow) * view.rowHeight;
        ctx.strokeRect((ghost.x - view.from) * view.scale + 1, y, Math.max(1, ghost.w * view.scale - 2), view.rowHeight - 4);
      }
      ctx.globalAlpha = 1;
    }

    /** The start of a node's text, remembered until the node changes. */
    text(slot) {
      const id = this.state.get(slot, N.ID);
      const size = this.state.get(slot, N.COUNT);
      const known = this.texts.get(id);
      if (known && known.size === size) return known.text;
      const text = RP.nodeText(this.state, slot, 60);
      this.texts.set(id, { size, text });
      return text;
    }

    /** What is told of a node, most important first. */
    facts({ slot, below }) {
      const { state } = this;
      const parts = [RP.count(state.get(slot, N.COUNT), "token")];
      const hits = state.get(slot, N.HITS);
      const idle = state.tick - state.get(slot, N.LAST);
      if (below) parts.push(`${RP.count(below, "node")} below`);
      if (hits) parts.push(RP.count(hits, "hit"));
      if (this.layout.locks[slot]) parts.push(`held by ${RP.count(this.layout.locks[slot], "request")}`);
      else if (idle) parts.push(`idle ${RP.count(idle, "tick")}`);
      return parts;
    }

    hit(event) {
      const [x, y] = this.surface.point(event);
      return this.cells.find((c) => x >= c.x && x < c.x + c.w && y >= c.y && y < c.y + c.h) || null;
    }

    hover(event) {
      const cell = this.hit(event);
      this.tip.hidden = !cell;
      if (!cell) return;
      const head =
        cell.nodes > 1
          ? `${RP.count(cell.nodes, "node")}, too narrow to show apart`
          : `#${this.state.get(cell.slot, N.ID)} ${this.text(cell.slot)}`;
      const facts = cell.nodes > 1 ? `${RP.count(cell.tokens, "token")} · double click to look closer` : this.facts(cell).join(" · ");
      this.tip.replaceChildren(RP.el("b", { text: head }), RP.el("span", { text: facts }));
      const [x, y] = this.surface.point(event);
      this.tip.style.left = `${Math.max(4, Math.min(x + 14, this.surface.width - this.tip.offsetWidth - 4))}px`;
      this.tip.style.top = `${y + 18}px`;
    }
  }
  RP.Icicle = Icicle;

  const NODE_NAMES = ["node", "front", "at_node"];

  /** The nodes that the event at the cursor is about. */
  RP.nodesOf = (state) => {
    const out = new Set();
    if (state.seq < 0) return out;
    const event = state.trace.event(state.seq);
    for (const name of NODE_NAMES) if (event[name]) out.add(event[name]);
    for (const id of event.path || []) out.add(id);
    return out;
  };
})(globalThis.RadixPlayer);
