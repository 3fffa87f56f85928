/** The radix tree as an icicle on a canvas: hover, select, zoom, and movement between events. */
(function (RP) {
  "use strict";

  const N = RP.N;
  const GAP = 2;
  const FONT = 12;
  const SMALL = 11.5;
  /** No text in a cell narrower than this, in pixels. */
  const TEXT_ROOM = 44;
  /** A padlock fits under the text from this width on. */
  const LOCKED_ROOM = 20;
  /** Wide enough to read a few words, in pixels. */
  const READABLE = 220;
  /** Jumps longer than this, in events, are not animated. */
  const LONG = 600;
  /** Rows that are given room from the start. */
  const LEAST_ROWS = 3;

  class Icicle {
    /** @param {Object} player gives `theme`, `select`, `still`. @param {Object} tree the view it is one of. */
    constructor(player, tree, options) {
      this.player = player;
      this.tree = tree;
      this.height = options.height;
      this.limits = { row: 26, tall: 59 };
      this.frame = RP.el("div", { class: "rp-frame" });
      this.out = RP.el("button", { type: "button", class: "rp-twin rp-out", hidden: "", text: "whole tree (Esc)" });
      this.empty = RP.el("p", { class: "rp-empty", text: "The tree is empty: nothing has been stored yet." });
      this.surface = new RP.Surface(this.frame, "radix tree", () => player.relayout());
      this.frame.append(this.empty, this.out);
      this.tip = new RP.Tip(this.frame, this.surface);
      this.layout = new RP.Layout();
      this.tween = new RP.Tween();
      this.view = new RP.View();
      this.cells = [];
      this.shown = -2;
      this.listen();
    }

    listen() {
      const canvas = this.surface.canvas;
      this.tip.watch((event) => this.told(this.hit(event)));
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
        this.view.zoom = null;
        this.deepest = LEAST_ROWS;
      }
      this.state = state;
      this.layout.run(state, READABLE / Math.max(READABLE, this.surface.available));
      this.deepest = Math.max(this.deepest, this.layout.rows);
      this.tween.aim(this.layout, state, long || this.player.still, now);
      this.shown = state.seq;
    }

    /** As tall as the deepest tree that was shown of this run, so that looking back and forth moves nothing. */
    get tall() {
      return Math.min(this.height, this.deepest * this.limits.tall);
    }

    /** Draw; returns whether something still moves. */
    draw(now, elapsed) {
      const { layout, tween, view, state, surface } = this;
      tween.advance(layout, elapsed, now);
      const ctx = surface.begin(this.tall);
      view.fit(layout, tween, state, surface.width, this.tall, this.limits);
      this.cells = RP.cells(layout, tween, view, surface.width);
      this.empty.hidden = layout.n > 0;
      this.out.hidden = view.zoom === null;
      this.paint(ctx);
      this.paintLost(ctx);
      this.paintText(ctx);
      this.paintMarks(ctx);
      this.paintGhosts(ctx, now);
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
      for (const cell of this.cells) this.paintHostOnly(ctx, cell);
      const lit = this.player.lit.nodes;
      for (const cell of this.cells) {
        if (cell.nodes === 1) continue;
        if (cell.w > 4) RP.hatch(ctx, cell.x, cell.y, cell.w, cell.h - 4, theme.panel, 4);
        if (lit.size) for (const s of cell.members) if (lit.has(this.state.get(s, N.ID))) this.stroke(ctx, cell, s);
      }
    }

    /** What has no page on the device is hollow: it takes none of the memory that widths stand for. */
    paintHostOnly(ctx, cell) {
      cell.hollow = cell.nodes === 1 && this.state.tier(cell.slot) === "host";
      if (!cell.hollow) return;
      ctx.fillStyle = this.player.theme.panel;
      const edge = Math.min(3, cell.w / 4);
      ctx.fillRect(cell.x + 1 + edge, cell.y + 3, Math.max(0, cell.w - GAP - 2 * edge), cell.h - 10);
    }

    /** The colour in which a cell is written on. */
    inkOn(cell) {
      return cell.hollow ? this.player.theme.ink : this.player.theme.labels[cell.level];
    }

    /** The heading over what no look-up can find. */
    paintLost(ctx) {
      const { layout, tween, view } = this;
      if (layout.lost < 0 || view.firstRow) return;
      const x = (tween.x[layout.lost] - view.from) * view.scale;
      const w = (tween.total - tween.x[layout.lost]) * view.scale;
      RP.drawLost(ctx, this.player.theme, this.state, layout, { x: x + 1, y: 1, w: w - GAP, h: view.rowHeight - 6 });
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
        const badge = cell.w > 64 && (this.layout.locks[cell.slot] > 0 || this.state.get(cell.slot, N.PINS) > 0);
        const copied = cell.w > 64 && this.state.host(cell.slot).length > 0;
        const room = Math.min(cell.x + cell.w, this.surface.width) - left - 7 - (badge ? 18 : 0) - (copied ? 16 : 0);
        if (room < TEXT_ROOM - 16) continue;
        const tall = cell.h >= 44;
        ctx.fillStyle = this.inkOn(cell);
        const middle = cell.y + (cell.h - 4) / 2;
        const line = tall ? middle - 5 : middle + 4;
        ctx.fillText(RP.fitText(ctx, bold, this.tree.words.text(this.state, cell.slot), room), left, line);
        if (tall) ctx.fillText(RP.fitParts(ctx, small, this.tree.words.facts(this.state, cell.slot, cell.below), room), left, middle + 13);
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

    /** Locks, pins, what goes next, what this event is about, what is selected. */
    paintMarks(ctx) {
      const { theme } = this.player;
      const { marked, next } = this.tree;
      const lit = this.player.lit.nodes;
      for (const cell of this.cells) {
        const { slot } = cell;
        const one = cell.nodes === 1;
        this.badges(ctx, cell, one ? this.layout.locks[slot] > 0 : cell.locked, one && this.state.get(slot, N.PINS) > 0);
        if (one && this.state.host(slot).length) this.hostMark(ctx, cell);
        const has = (s) => s >= 0 && (one ? slot === s : cell.members.includes(s));
        if (has(next)) this.outline(ctx, cell, theme.evict, [5, 4]);
        if (one) {
          const id = this.state.get(slot, N.ID);
          if (marked.has(id)) this.outline(ctx, cell, theme.computed, []);
          if (lit.has(id)) this.outline(ctx, cell, theme.ink, [], 2.5);
        }
      }
    }

    /** An H, left of a padlock or a pin, where there is room. */
    hostMark(ctx, cell) {
      const { slot, x, y, w, h } = cell;
      if (w < LOCKED_ROOM) return;
      const badge = this.layout.locks[slot] > 0 || this.state.get(slot, N.PINS) > 0;
      const right = w > 64 ? Math.min(x + w, this.surface.width) - 20 - (badge ? 16 : 0) : x + w / 2 - 4;
      RP.drawHost(ctx, right, w > 64 ? y + (h - 4) / 2 - 5 : y + 5, this.inkOn(cell));
    }

    /** A padlock and a pin where there is room for them, else a bar along the top and a dot. */
    badges(ctx, cell, locked, pinned) {
      if (!locked && !pinned) return;
      const { x, y, w, h } = cell;
      const middle = y + (h - 4) / 2;
      const right = Math.min(x + w, this.surface.width) - 22;
      const roomy = w > 64 && cell.nodes === 1;
      const colour = this.inkOn(cell);
      if (locked && roomy) RP.drawLock(ctx, right, middle - (h >= 44 ? 17 : 7), colour);
      else if (locked && w >= LOCKED_ROOM && h >= 44) RP.drawLock(ctx, x + w / 2 - 5.5, y + h - 22, colour);
      else if (locked) {
        ctx.fillStyle = this.player.theme.ink;
        ctx.fillRect(x + 0.5, y, Math.max(1, w - 1), 3);
      }
      if (pinned) RP.drawPin(ctx, roomy ? right - (locked && h < 44 ? 18 : 0) : x + w / 2 - 5, middle - (roomy ? (h >= 44 ? -3 : 7) : 6), colour);
    }

    /** A node inside a bundle, too narrow for an outline. */
    stroke(ctx, { y, h }, slot) {
      const { view, tween } = this;
      const x = (tween.x[slot] - view.from) * view.scale;
      ctx.fillStyle = this.player.theme.panel;
      ctx.fillRect(x - 2, y, tween.w[slot] * view.scale + 4, h - 4);
      ctx.fillStyle = this.player.theme.ink;
      ctx.fillRect(x - 0.5, y, Math.max(2, tween.w[slot] * view.scale), h - 4);
    }

    outline(ctx, { x, y, w, h }, colour, dash, weight = 2) {
      ctx.beginPath();
      ctx.roundRect(x + 2, y + 1, Math.max(2, w - 4), h - 6, w > 18 ? 4 : 0);
      ctx.strokeStyle = this.player.theme.panel;
      ctx.lineWidth = weight + 2;
      ctx.stroke();
      ctx.strokeStyle = colour;
      ctx.lineWidth = weight;
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

    hit(event) {
      const [x, y] = this.surface.point(event);
      return this.cells.find((c) => x >= c.x && x < c.x + c.w && y >= c.y && y < c.y + c.h) || null;
    }

    told(cell) {
      if (!cell) return null;
      if (cell.nodes === 1) return this.tree.tip(cell.slot);
      return {
        head: `${RP.count(cell.nodes, "node")}, too narrow to show apart`,
        lines: [`${RP.count(cell.tokens, "token")} · double click to look closer`],
      };
    }
  }
  RP.Icicle = Icicle;
})(globalThis.RadixPlayer);
