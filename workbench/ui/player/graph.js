/**
 * The radix tree as nodes and links, for small trees. A split is seen as the front coming out of the place
 * where the tail was while the tail moves on; an insert grows out of its parent; what is evicted fades.
 */
(function (RP) {
  "use strict";

  const N = RP.N;
  const FONT = 12;
  const SMALL = 11.5;
  const ROW = { least: 19, most: 58 };
  /** Time constant of the movement and life of a leaving node, in milliseconds: slow enough to follow. */
  const PACE = 130;
  const FADE = 420;
  /** Jumps longer than this, in events, are not animated. */
  const LONG = 60;
  const DOT = 5;
  /** Narrower than this a node carries its number instead of its text. */
  const ROOMY = 90;

  class Graph {
    constructor(player, tree, options) {
      this.player = player;
      this.tree = tree;
      this.height = options.height;
      this.frame = RP.el("div", { class: "rp-frame", hidden: "" });
      this.surface = new RP.Surface(this.frame, "radix tree", () => player.relayout());
      this.empty = RP.el("p", { class: "rp-empty", text: "The tree is empty: nothing has been stored yet." });
      this.frame.append(this.empty);
      this.tip = new RP.Tip(this.frame, this.surface);
      /** node id -> {slot, x, y, w, h, a, to: {x, y, w, h}}, where it is drawn now and where it goes. */
      this.items = new Map();
      this.leaving = [];
      this.shown = -2;
      this.moving = false;
      this.tip.watch((event) => {
        const item = this.hit(event);
        return item && this.tree.tip(item.slot);
      });
      this.surface.canvas.addEventListener("click", (event) => {
        const item = this.hit(event);
        player.select(item ? { node: item.id } : null);
      });
    }

    /** Take a new moment; the tree view has laid it out. */
    take(state, now) {
      const { layout } = this.tree.icicle;
      const width = this.surface.available || this.tree.icicle.surface.available;
      const snap =
        this.player.still || Math.abs(state.seq - this.shown) > LONG || state.trace !== (this.state && this.state.trace) || width !== this.width;
      this.state = state;
      this.shown = state.seq;
      this.width = width;
      this.plan = RP.tidy(layout, { width, height: this.height, ...ROW });
      const before = this.items;
      this.items = new Map();
      for (let i = 0; i < layout.n; i++) {
        const slot = layout.slots[i];
        const id = state.get(slot, N.ID);
        const to = this.plan.places.get(slot);
        const from = snap ? { ...to, a: 1 } : before.get(id) || this.entrance(before, slot, to);
        this.items.set(id, { id, slot, x: from.x, y: from.y, w: from.w, h: from.h, a: from.a, to });
      }
      this.leaving = snap ? [] : this.leaving;
      if (!snap) for (const item of before.values()) if (!this.items.has(item.id)) this.leaving.push({ ...item, since: now });
      this.moving = !snap;
    }

    /** Where a node comes from: a front from its tail's place, a leaf from its parent's edge. */
    entrance(before, slot, to) {
      const { layout } = this.tree.icicle;
      const idOf = (s) => (s < 0 ? 0 : this.state.get(s, N.ID));
      const tail = before.get(idOf(layout.first[slot]));
      if (tail) return { x: tail.x, y: tail.y, w: to.w / 2, h: to.h, a: 0 };
      const parent = before.get(idOf(layout.parent[slot]));
      return { x: parent ? parent.x + parent.w : 0, y: parent ? parent.y : this.plan.root, w: 0, h: to.h, a: 0 };
    }

    advance(elapsed, now) {
      if (!this.moving) return;
      const k = 1 - Math.exp(-elapsed / PACE);
      this.leaving = this.leaving.filter((item) => now - item.since < FADE);
      let far = this.leaving.length > 0;
      for (const item of this.items.values()) {
        for (const name of ["x", "y", "w", "h"]) {
          const d = item.to[name] - item[name];
          item[name] += d * k;
          if (d > 0.5 || d < -0.5) far = true;
        }
        item.a += (1 - item.a) * k;
      }
      if (far) return;
      this.moving = false;
      for (const item of this.items.values()) Object.assign(item, item.to, { a: 1 });
    }

    /** Draw; returns whether something still moves. */
    draw(now, elapsed) {
      this.advance(elapsed, now);
      const ctx = this.surface.begin(Math.round(this.plan.height));
      this.empty.hidden = this.items.size > 0;
      if (!this.items.size) return this.moving;
      this.paintLinks(ctx);
      for (const item of this.items.values()) this.paintNode(ctx, item);
      for (const item of this.leaving) this.paintLeaving(ctx, item, now);
      for (const item of this.items.values()) this.paintMarks(ctx, item);
      ctx.globalAlpha = 1;
      return this.moving;
    }

    paintLinks(ctx) {
      const { theme } = this.player;
      const lit = this.player.lit.nodes;
      const { lost } = this.plan;
      for (const item of this.items.values()) {
        const parent = this.state.get(item.slot, N.PARENT);
        const above = parent < -1 ? lost : parent < 0 ? null : this.items.get(this.state.get(parent, N.ID));
        const [x, y] = above ? [above.x + above.w, above.y] : [DOT, this.plan.root];
        ctx.setLineDash(parent < -1 ? [4, 3] : []);
        const middle = (x + item.x) / 2;
        ctx.globalAlpha = item.a;
        ctx.strokeStyle = lit.has(item.id) ? theme.ink : theme.mute;
        ctx.lineWidth = lit.has(item.id) ? 2.5 : 1.2;
        ctx.beginPath();
        ctx.moveTo(x, y);
        ctx.bezierCurveTo(middle, y, middle, item.y, item.x, item.y);
        ctx.stroke();
      }
      ctx.setLineDash([]);
      ctx.globalAlpha = 1;
      if (lost) RP.drawLost(ctx, theme, this.state, this.tree.icicle.layout, { ...lost, y: lost.y - lost.h / 2 });
      ctx.fillStyle = theme.mute;
      ctx.beginPath();
      ctx.arc(DOT, this.plan.root, DOT, 0, 2 * Math.PI);
      ctx.fill();
    }

    paintNode(ctx, item) {
      const { theme } = this.player;
      const { x, y, w, h, slot, a } = item;
      item.level = RP.recency(this.state.tick, this.tree.icicle.layout.oldest, this.state.get(slot, N.LAST));
      ctx.globalAlpha = a;
      ctx.textBaseline = "alphabetic";
      ctx.fillStyle = theme.ramp[item.level];
      ctx.beginPath();
      ctx.roundRect(x, y - h / 2, Math.max(2, w), h, Math.min(5, h / 2));
      ctx.fill();
      item.hollow = this.state.tier(slot) === "host";
      item.ink = item.hollow ? theme.ink : theme.labels[item.level];
      if (item.hollow) {
        ctx.fillStyle = theme.panel;
        ctx.fillRect(x + 3, y - h / 2 + 3, Math.max(0, w - 6), h - 6);
      }
      const edge = w < ROOMY ? 5 : 8;
      const room = w - 2 * edge - (this.badged(slot) ? 14 : 0) - (this.state.host(slot).length ? 14 : 0);
      if (room < 18) return;
      if (w < ROOMY) {
        ctx.fillStyle = item.ink;
        ctx.fillText(RP.fitText(ctx, `${SMALL}px ${theme.font}`, `#${item.id}`, room), x + edge, y + 4);
        return;
      }
      const { words } = this.tree;
      const tall = h >= 34;
      ctx.fillStyle = item.ink;
      ctx.fillText(RP.fitText(ctx, `600 ${FONT}px ${theme.font}`, words.text(this.state, slot), room), x + edge, tall ? y - 3 : y + 4);
      if (tall) ctx.fillText(RP.fitParts(ctx, `${SMALL}px ${theme.font}`, words.facts(this.state, slot), room), x + edge, y + 13);
    }

    badged(slot) {
      return this.state.get(slot, N.LOCKS) > 0 || this.state.get(slot, N.PINS) > 0;
    }

    paintMarks(ctx, item) {
      const { theme } = this.player;
      const { slot, id } = item;
      ctx.globalAlpha = item.a;
      const colour = item.ink;
      const right = item.x + item.w - (item.w < ROOMY ? 14 : 17);
      const [locks, pins] = [this.state.get(slot, N.LOCKS), this.state.get(slot, N.PINS)];
      if (locks && item.w > 40) RP.drawLock(ctx, right, item.y - 7, colour);
      if (pins && item.w > 40) RP.drawPin(ctx, right - (locks ? 16 : 0), item.y - 7, colour);
      if (this.state.host(slot).length && item.w > 40) RP.drawHost(ctx, right + 1 - (locks || pins ? 16 : 0) - (locks && pins ? 16 : 0), item.y - 5, colour);
      if (slot === this.tree.next) this.outline(ctx, item, theme.evict, 2, [5, 4]);
      if (this.tree.marked.has(id)) this.outline(ctx, item, theme.computed, 2, []);
      if (this.player.lit.nodes.has(id)) this.outline(ctx, item, theme.ink, 2.5, []);
    }

    outline(ctx, { x, y, w, h }, colour, weight, dash) {
      ctx.strokeStyle = colour;
      ctx.lineWidth = weight;
      ctx.setLineDash(dash);
      ctx.beginPath();
      ctx.roundRect(x - 1.5, y - h / 2 - 1.5, Math.max(2, w) + 3, h + 3, 6);
      ctx.stroke();
      ctx.setLineDash([]);
    }

    paintLeaving(ctx, item, now) {
      ctx.globalAlpha = Math.max(0, 1 - (now - item.since) / FADE);
      this.outline(ctx, item, this.player.theme.evict, 1.5, []);
    }

    hit(event) {
      const [x, y] = this.surface.point(event);
      for (const item of this.items.values()) if (x >= item.x && x <= item.x + item.w && Math.abs(y - item.y) <= item.h / 2) return item;
      return null;
    }
  }
  RP.Graph = Graph;
})(globalThis.RadixPlayer);
