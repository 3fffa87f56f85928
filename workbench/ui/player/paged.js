/**
 * Arrays that copy on write, a chunk at a time: a snapshot costs one list of chunk references, and only
 * chunks written afterwards are copied. This is what makes keyframes cheap.
 */
(function (RP) {
  "use strict";

  const NOTHING = [];

  class Paged {
    /** @param {number} bits log2 of the chunk length. @param {function(number)} make a new zeroed chunk. */
    constructor(bits, make) {
      this.bits = bits;
      this.mask = (1 << bits) - 1;
      this.make = make;
      this.chunks = [];
      this.owned = [];
    }

    /** Entry `i`; 0 (or null in a list of references) where nothing was ever written. */
    get(i) {
      const chunk = this.chunks[i >> this.bits];
      return chunk === undefined ? 0 : chunk[i & this.mask];
    }

    set(i, value) {
      this.own(i >> this.bits)[i & this.mask] = value;
    }

    add(i, delta) {
      this.own(i >> this.bits)[i & this.mask] += delta;
    }

    /** Call `each(value, length)` for every run of equal entries in [from, to). */
    runs(from, to, each) {
      let start = from;
      let value = this.get(from);
      for (let i = from; i < to; ) {
        const chunk = this.chunks[i >> this.bits] || NOTHING;
        const end = Math.min(to, ((i >> this.bits) + 1) << this.bits);
        for (; i < end; i++) {
          const v = chunk[i & this.mask] || 0;
          if (v === value) continue;
          each(value, i - start);
          start = i;
          value = v;
        }
      }
      if (to > start) each(value, to - start);
    }

    /** Chunk `k`, ours to write. */
    own(k) {
      if (this.owned[k]) return this.chunks[k];
      while (this.chunks.length <= k) {
        this.owned[this.chunks.length] = true;
        this.chunks.push(this.make(this.mask + 1));
      }
      if (!this.owned[k]) {
        this.chunks[k] = this.chunks[k].slice();
        this.owned[k] = true;
      }
      return this.chunks[k];
    }

    /** An independent copy of this moment; both sides copy what they write from now on. */
    fork() {
      const copy = new Paged(this.bits, this.make);
      copy.chunks = this.chunks.slice();
      this.owned.length = 0;
      return copy;
    }
  }

  const zeros = (n) => new Int32Array(n);
  const nulls = (n) => new Array(n).fill(null);

  /** Chunked Int32 array. */
  RP.pagedInts = (bits) => new Paged(bits, zeros);

  /** Chunked array of references to values that are never changed in place. */
  RP.pagedRefs = (bits) => new Paged(bits, nulls);

  /**
   * An append-only run of integers that is passed around by value: `(buffer, length)`. Appending writes
   * beyond `length` into the shared buffer. Two holders of one prefix can only ever append the same
   * values, because a trace has one history, so replaying it writes what is there already.
   */
  class Run {
    constructor(buffer, length) {
      this.buffer = buffer;
      this.length = length;
    }

    append(values) {
      const n = this.length + values.length;
      let buffer = this.buffer;
      if (n > buffer.length) {
        buffer = new Int32Array(Math.max(8, 2 * n));
        buffer.set(this.values());
      }
      buffer.set(values, this.length);
      return new Run(buffer, n);
    }

    /** The values but those in `gone` (a Set). */
    without(gone) {
      const kept = this.values().filter((v) => !gone.has(v));
      return new Run(kept, kept.length);
    }

    values() {
      return this.buffer.subarray(0, this.length);
    }
  }

  RP.Run = Run;
  RP.EMPTY_RUN = new Run(new Int32Array(0), 0);
})(globalThis.RadixPlayer);
