/** Where each node is shown while it moves to where it belongs. */
(function (RP) {
  "use strict";

  /** Time constant of the approach and life of a leaving node, in milliseconds. */
  const PACE = 70;
  const FADE = 320;
  const N = RP.N;

  class Tween {
    constructor() {
      this.capacity = 0;
      this.total = 0;
      this.ids = new Int32Array(0);
      this.moving = false;
      /** Nodes that have just been evicted: {x, w, row, since}. */
      this.ghosts = [];
    }

    grow(layout) {
      if (layout.capacity <= this.capacity) return;
      this.capacity = layout.capacity;
      for (const [name, Type] of [["ids", Int32Array], ["x", Float64Array], ["w", Float64Array], ["row", Float64Array]]) {
        const bigger = new Type(this.capacity);
        if (this[name]) bigger.set(this[name]);
        this[name] = bigger;
      }
    }

    /** Aim at a new layout; `snap` jumps there at once. */
    aim(layout, state, snap, now) {
      this.grow(layout);
      if (snap) this.ghosts.length = 0;
      else this.remember(layout, state, now);
      for (let i = 0; i < layout.n; i++) {
        const slot = layout.slots[i];
        const id = state.get(slot, N.ID);
        if (this.ids[slot] !== id && !snap) this.enter(layout, slot);
        if (snap) this.settle(layout, slot);
        this.ids[slot] = id;
      }
      if (snap || this.total === 0) this.total = layout.total;
      this.moving = !snap;
    }

    /** A node that was not there: it grows out of what it was split from, or out of its parent's edge. */
    enter(layout, slot) {
      const child = layout.first[slot];
      const parent = layout.parent[slot];
      if (child >= 0) {
        this.x[slot] = this.x[child];
        this.w[slot] = this.w[child];
        this.row[slot] = layout.row[slot];
      } else {
        this.x[slot] = parent >= 0 ? Math.min(layout.x[slot], this.x[parent] + this.w[parent]) : layout.x[slot];
        this.w[slot] = 0;
        this.row[slot] = layout.row[slot];
      }
    }

    settle(layout, slot) {
      this.x[slot] = layout.x[slot];
      this.w[slot] = layout.w[slot];
      this.row[slot] = layout.row[slot];
    }

    /** Keep the place of what has left, to fade it out. */
    remember(layout, state, now) {
      for (let slot = 0; slot < state.slots && this.ghosts.length < 64; slot++) {
        const id = this.ids[slot];
        if (!id || state.slotOfNode.get(id)) continue;
        this.ghosts.push({ x: this.x[slot], w: this.w[slot], row: this.row[slot], since: now });
        this.ids[slot] = 0;
      }
    }

    /** Move on by `elapsed` milliseconds. */
    advance(layout, elapsed, now) {
      if (!this.moving) return;
      const k = 1 - Math.exp(-elapsed / PACE);
      const near = layout.total / 4000;
      let far = Math.abs(layout.total - this.total) > near;
      this.total += (layout.total - this.total) * k;
      for (let i = 0; i < layout.n; i++) {
        const slot = layout.slots[i];
        const dx = layout.x[slot] - this.x[slot];
        const dw = layout.w[slot] - this.w[slot];
        const dr = layout.row[slot] - this.row[slot];
        this.x[slot] += dx * k;
        this.w[slot] += dw * k;
        this.row[slot] += dr * k;
        if (dx > near || dx < -near || dw > near || dw < -near || dr > 0.02 || dr < -0.02) far = true;
      }
      this.ghosts = this.ghosts.filter((g) => now - g.since < FADE);
      if (far || this.ghosts.length) return;
      this.moving = false;
      this.total = layout.total;
      for (let i = 0; i < layout.n; i++) this.settle(layout, layout.slots[i]);
    }
  }

  Tween.FADE = FADE;
  RP.Tween = Tween;
})(globalThis.RadixPlayer);
