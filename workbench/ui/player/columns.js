/** Growing columns: one per field of an event kind, read by row. */
(function (RP) {
  "use strict";

  /** What an absent integer is stored as. */
  const NONE = -2147483648;
  RP.NONE = NONE;

  /** A typed array that doubles when full; read through `.a` up to `.n`. */
  class Growing {
    constructor(Type, from) {
      this.a = from ? Type.from(from) : new Type(16);
      this.n = from ? from.length : 0;
    }

    push(v) {
      if (this.n === this.a.length) {
        const bigger = new this.a.constructor(Math.max(16, 2 * this.n));
        bigger.set(this.a);
        this.a = bigger;
      }
      this.a[this.n++] = v;
    }
  }
  RP.Growing = Growing;

  class IntColumn extends Growing {
    constructor(from) {
      super(Int32Array, from);
    }
    add(v) {
      this.push(v === null ? NONE : v);
    }
    at(row) {
      const v = this.a[row];
      return v === NONE ? null : v;
    }
  }

  class NumColumn extends Growing {
    constructor(from) {
      super(Float64Array, from);
    }
    add(v) {
      this.push(v === null ? NaN : v);
    }
    at(row) {
      const v = this.a[row];
      return Number.isNaN(v) ? null : v;
    }
  }

  class BoolColumn extends Growing {
    constructor(from) {
      super(Uint8Array, from);
    }
    add(v) {
      this.push(v ? 1 : 0);
    }
    at(row) {
      return this.a[row] === 1;
    }
  }

  /** Strings, each kept once: a column of indices into the trace's `Names`. */
  class StrColumn extends Growing {
    constructor(names, from) {
      super(Int32Array, from);
      this.names = names;
    }
    add(v) {
      this.push(v === null ? NONE : this.names.id(v));
    }
    at(row) {
      const v = this.a[row];
      return v === NONE ? null : this.names.list[v];
    }
  }

  /** Lists of integers, end to end in one array. */
  class IntsColumn {
    constructor(lengths, values) {
      this.values = new Growing(Int32Array, values);
      this.ends = new Growing(Int32Array);
      let end = 0;
      for (const n of lengths || []) this.ends.push((end += n));
    }
    add(list) {
      for (let i = 0; i < list.length; i++) this.values.push(list[i]);
      this.ends.push(this.values.n);
    }
    /** A view; never write to it. */
    at(row) {
      return this.values.a.subarray(row ? this.ends.a[row - 1] : 0, this.ends.a[row]);
    }
  }

  /** Lists of strings, as lists of indices. */
  class StrsColumn extends IntsColumn {
    constructor(names, lengths, values) {
      super(lengths, values);
      this.names = names;
    }
    add(list) {
      super.add(list.map((s) => this.names.id(s)));
    }
    texts(row) {
      return Array.from(this.at(row), (i) => this.names.list[i]);
    }
  }

  /** Whatever JSON there is. */
  class AnyColumn {
    constructor(from) {
      this.a = from || [];
    }
    add(v) {
      this.a.push(v);
    }
    at(row) {
      return this.a[row];
    }
  }

  /** Strings by number. */
  class Names {
    constructor() {
      this.list = [];
      this.ids = new Map();
    }
    id(text) {
      let i = this.ids.get(text);
      if (i === undefined) {
        i = this.list.length;
        this.list.push(text);
        this.ids.set(text, i);
      }
      return i;
    }
  }
  RP.Names = Names;

  /** A column of a schema type; `packed` is its content in an exported run. */
  RP.makeColumn = (type, names, packed) => {
    switch (type) {
      case "int":
        return new IntColumn(packed);
      case "num":
        return new NumColumn(packed && packed.map((v) => (v === null ? NaN : v)));
      case "bool":
        return new BoolColumn(packed);
      case "str":
        return new StrColumn(names, packed);
      case "ints":
        return packed ? new IntsColumn(packed.lengths, packed.values) : new IntsColumn();
      case "strs":
        return packed ? new StrsColumn(names, packed.lengths, packed.values) : new StrsColumn(names);
      default:
        return new AnyColumn(packed);
    }
  };
})(globalThis.RadixPlayer);
