/** FNV-1a with 64 bits, in two 32-bit halves; and JSON with keys in code-point order. */
(function (RP) {
  "use strict";

  class Fnv {
    constructor() {
      this.high = 0xcbf29ce4;
      this.low = 0x84222325;
    }

    /** One byte. The prime is 2^40 + 435, so the product is 435 x h plus h shifted by 40 bits. */
    byte(b) {
      const low = (this.low ^ b) >>> 0;
      const product = low * 435;
      this.low = product >>> 0;
      const carry = (product - this.low) / 4294967296;
      this.high = (Math.imul(this.high, 435) + carry + (low << 8)) >>> 0;
    }

    /** A token id as a little-endian 32-bit integer. */
    int32(v) {
      this.byte(v & 255);
      this.byte((v >>> 8) & 255);
      this.byte((v >>> 16) & 255);
      this.byte(v >>> 24);
    }

    hex() {
      return this.high.toString(16).padStart(8, "0") + this.low.toString(16).padStart(8, "0");
    }
  }

  RP.Fnv = Fnv;

  /** The hash of a text's UTF-8 bytes. */
  RP.hashText = (text) => {
    const hash = new Fnv();
    for (const b of new TextEncoder().encode(text)) hash.byte(b);
    return hash.hex();
  };

  /** Order of two strings by code point (the default sort goes by UTF-16 unit). */
  const byCodePoint = (a, b) => {
    const n = Math.min(a.length, b.length);
    for (let i = 0; i < n; i++) {
      const x = a.charCodeAt(i);
      const y = b.charCodeAt(i);
      if (x === y) continue;
      const surrogate = (c) => c >= 0xd800 && c < 0xe000;
      if (surrogate(x) !== surrogate(y)) return surrogate(x) ? 1 : -1;
      return x - y;
    }
    return a.length - b.length;
  };
  RP.byCodePoint = byCodePoint;

  /** JSON without spaces, keys in code-point order. */
  RP.stableJson = function stableJson(value) {
    if (value === null || typeof value !== "object") return JSON.stringify(value);
    if (Array.isArray(value)) return `[${value.map(stableJson).join(",")}]`;
    const keys = Object.keys(value).sort(byCodePoint);
    return `{${keys.map((k) => `${JSON.stringify(k)}:${stableJson(value[k])}`).join(",")}}`;
  };
})(globalThis.RadixPlayer);
