/**
 * The icicle: rows by depth, width = tokens = memory. A node is as wide as its own tokens or as all its
 * children together, whichever is more, so that a long shared prefix stays wide above what shares it.
 * In a small tree a node is also at least wide enough to read, as long as that costs hardly any room.
 * Nodes that no look-up can find, because what stood above them has left, form a group at the end, a row down.
 */
(function (RP) {
  "use strict";

  const N = RP.N;
  /** Sort keys are order x 2^21 + slot: one numeric sort, no comparator. */
  const SLOTS = 2097152;
  /** Added to the order of what no look-up can find; with it a sort key still is an exact number. */
  const LAST = 2147483648;
  /** Trees up to this many nodes get a least width; it may widen the whole by this factor at most. */
  const SMALL = 60;
  const WIDER = 1.2;

  class Layout {
    constructor() {
      this.n = 0;
      this.capacity = 0;
      this.moment = 0;
    }

    grow(slots) {
      if (this.capacity && slots <= this.capacity) return;
      this.capacity = Math.max(256, 2 * slots);
      this.keys = new Float64Array(this.capacity);
      /** Preorder: slots, and for each place in it the subtree's node count. */
      this.slots = new Int32Array(this.capacity);
      this.span = new Int32Array(this.capacity);
      this.place = new Int32Array(this.capacity);
      for (const name of ["first", "next", "row", "parent", "under", "newest", "locks"])
        this[name] = new Int32Array(this.capacity);
      /** In tokens. */
      this.x = new Float64Array(this.capacity);
      this.w = new Float64Array(this.capacity);
    }

    /** Lay out the live nodes of `state`; `least` is the share of the whole width that a text needs. */
    run(state, least = 0) {
      this.grow(state.slots);
      /** The first node under the root; the others follow by `next`. */
      this.roots = this.link(state);
      this.walk(this.roots);
      this.measure(state, 0);
      if (this.n <= SMALL) this.widen(state, least);
      this.position();
      /** Rises with each run, so that what was derived from one can be kept. */
      this.moment++;
      return this;
    }

    /** The largest least width, halving from the one asked for, that leaves the whole about as wide. */
    widen(state, least) {
      const plain = this.total;
      for (let share = least; share > least / 5; share /= 2) {
        this.measure(state, share * plain);
        if (this.total <= WIDER * plain) return;
      }
      this.measure(state, 0);
    }

    /** Children of each node as lists in order; returns the first node under the root. */
    link(state) {
      let n = 0;
      /** The first of the roots that no look-up can find; -1: there are none. */
      this.lost = -1;
      for (let slot = 0; slot < state.slots; slot++)
        if (state.alive(slot)) this.keys[n++] = (state.get(slot, N.ORDER) + (state.get(slot, N.PARENT) < -1 ? LAST : 0)) * SLOTS + slot;
      this.n = n;
      this.keys.subarray(0, n).sort();
      for (let i = 0; i < n; i++) this.first[this.keys[i] % SLOTS] = -1;
      let roots = -1;
      for (let i = n - 1; i >= 0; i--) {
        const slot = this.keys[i] % SLOTS;
        const parent = state.get(slot, N.PARENT);
        this.parent[slot] = parent;
        if (parent < 0) {
          this.next[slot] = roots;
          roots = slot;
          if (parent < -1) this.lost = slot;
        } else {
          this.next[slot] = this.first[parent];
          this.first[parent] = slot;
        }
      }
      return roots;
    }

    /** Preorder and rows. */
    walk(roots) {
      let at = 0;
      let slot = roots;
      this.rows = 0;
      while (slot >= 0) {
        const parent = this.parent[slot];
        this.row[slot] = parent >= 0 ? this.row[parent] + 1 : parent < -1 ? 1 : 0;
        if (this.row[slot] >= this.rows) this.rows = this.row[slot] + 1;
        this.place[slot] = at;
        this.slots[at++] = slot;
        if (this.first[slot] >= 0) slot = this.first[slot];
        else {
          while (slot >= 0 && this.next[slot] < 0) slot = this.parent[slot];
          if (slot >= 0) slot = this.next[slot];
        }
      }
    }

    /** Widths, no less than `floor` tokens, and what each subtree holds, from the leaves up. */
    measure(state, floor) {
      this.total = 0;
      /** Whether some node is shown wider than its tokens are. */
      this.widened = false;
      this.tokens = 0;
      this.oldest = state.tick;
      for (let i = 0; i < this.n; i++) this.w[this.slots[i]] = 0;
      for (let i = this.n - 1; i >= 0; i--) {
        const slot = this.slots[i];
        const own = state.get(slot, N.COUNT);
        const last = state.get(slot, N.LAST);
        const leaf = this.first[slot] < 0;
        const parent = this.parent[slot];
        if (leaf) {
          this.under[slot] = own;
          this.newest[slot] = last;
          this.span[i] = 1;
        } else {
          this.under[slot] += own;
          if (last > this.newest[slot]) this.newest[slot] = last;
          this.span[i] = this.spanOf(i);
        }
        if (own > this.w[slot]) this.w[slot] = own;
        if (this.w[slot] < floor) {
          this.w[slot] = floor;
          this.widened = true;
        }
        if (last < this.oldest) this.oldest = last;
        this.locks[slot] = state.get(slot, N.LOCKS);
        this.tokens += own;
        if (parent < 0) this.total += this.w[slot];
        else this.addTo(parent, slot);
      }
      this.lostTokens = 0;
      for (let slot = this.lost; slot >= 0; slot = this.next[slot]) this.lostTokens += this.under[slot];
    }

    /** A child's sums go to its parent; the last child comes first and resets them. */
    addTo(parent, slot) {
      if (this.next[slot] < 0) {
        this.under[parent] = 0;
        this.newest[parent] = 0;
      }
      this.w[parent] += this.w[slot];
      this.under[parent] += this.under[slot];
      if (this.newest[slot] > this.newest[parent]) this.newest[parent] = this.newest[slot];
    }

    /** Nodes in the subtree at preorder place `i`: up to the next node that is not below it. */
    spanOf(i) {
      const slot = this.slots[i];
      let end = i + 1;
      for (let child = this.first[slot]; child >= 0; child = this.next[child]) end += this.span[this.place[child]];
      return end - i;
    }

    position() {
      let right = 0;
      for (let i = 0; i < this.n; i++) {
        const slot = this.slots[i];
        const parent = this.parent[slot];
        if (parent < 0) {
          this.x[slot] = right;
          right += this.w[slot];
        } else if (this.first[parent] === slot) this.x[slot] = this.x[parent];
        const next = this.next[slot];
        if (next >= 0 && parent >= 0) this.x[next] = this.x[slot] + this.w[slot];
      }
    }
  }
  RP.Layout = Layout;

  /** 0 (just used) to 5 (longest idle): the age against the oldest node's, finer among the recent. */
  RP.recency = (tick, oldest, last) =>
    last >= tick ? 0 : Math.min(5, Math.floor(6 * ((tick - last) / Math.max(1, tick - oldest)) ** 0.7));
})(globalThis.RadixPlayer);
