/**
 * The trace: header and events in columns. Events are appended one at a time (live, JSONL) or all at
 * once (packed); `event(i)` gives any of them back as an object with every field.
 */
(function (RP) {
  "use strict";

  /** All events of one kind: `trace.kinds[k].node.a[row]`. */
  class KindTable {
    constructor(kind, names) {
      this.kind = kind;
      this.fields = RP.schema[kind] || [];
      for (const [name, type] of this.fields) this[name] = RP.makeColumn(type, names);
    }

    add(event) {
      for (const [name, , fallback] of this.fields) {
        const value = event[name];
        this[name].add(value === undefined ? fallback : value);
      }
    }

    read(row, out) {
      for (const [name, type] of this.fields) {
        const column = this[name];
        out[name] = type === "strs" ? column.texts(row) : type === "ints" ? Array.from(column.at(row)) : column.at(row);
      }
      return out;
    }
  }

  const KIND_NAMES = Object.keys(RP.schema);
  const KIND_INDEX = new Map(KIND_NAMES.map((kind, i) => [kind, i]));

  class Trace {
    constructor(header) {
      this.texts = Object.assign(Object.create(null), header.texts);
      this.header = { ...header, texts: this.texts };
      this.names = new RP.Names();
      /** Kind numbers as in the schema; a kind this version does not know gets the next number. */
      this.kindNames = KIND_NAMES.slice();
      this.kindIndex = new Map(KIND_INDEX);
      this.tables = this.kindNames.map((kind) => new KindTable(kind, this.names));
      this.rows = this.kindNames.map(() => 0);
      this.kind = new RP.Growing(Uint8Array);
      this.row = new RP.Growing(Int32Array);
      this.t = new RP.Growing(Float64Array);
      this.step = new RP.Growing(Int32Array);
      this.commit = new RP.Growing(Uint8Array);
      /** Per request, in order of arrival: its name, its prompt's place, all ids it ever emits. */
      this.requests = [];
      this.requestOf = new Map();
      this.planned = [];
      this.members = [];
      this.namespaces = [null];
    }

    get length() {
      return this.kind.n;
    }

    kindNumber(kind) {
      let k = this.kindIndex.get(kind);
      if (k === undefined) {
        k = this.kindNames.length;
        this.kindIndex.set(kind, k);
        this.kindNames.push(kind);
        this.tables.push(new KindTable(kind, this.names));
        this.rows.push(0);
      }
      return k;
    }

    /** Append one event as parsed from its JSON line. */
    push(event) {
      const k = this.kindNumber(event.kind);
      this.tables[k].add(event);
      this.place(k, event.t, event.step, event.commit ? 1 : 0);
    }

    /** Note where the next event lies; its columns are filled already. */
    place(k, t, step, commit) {
      const row = this.rows[k]++;
      this.kind.push(k);
      this.row.push(row);
      this.t.push(t);
      this.step.push(step);
      this.commit.push(commit);
      const note = NOTES[this.kindNames[k]];
      if (note) note(this, this.tables[k], row);
    }

    /** Whether any event of this kind occurs. */
    has(kind) {
      return this.rows[this.kindIndex.get(kind)] > 0;
    }

    kindOf(i) {
      return this.kindNames[this.kind.a[i]];
    }

    /** Event `i` with all its fields. */
    event(i) {
      const out = {
        seq: i,
        kind: this.kindOf(i),
        t: this.t.a[i],
        step: this.step.a[i],
        commit: this.commit.a[i] === 1,
      };
      return this.tables[this.kind.a[i]].read(this.row.a[i], out);
    }

    /** The number of a request named `name`; undefined if it has not arrived in this trace. */
    requestNumber(name) {
      return this.requestOf.get(this.names.ids.get(name));
    }

    prompt(number) {
      return this.arrival(number, "prompt");
    }

    /** A field of a request's arrival. */
    arrival(number, field) {
      return this.tables[this.kindIndex.get("request.arrived")][field].at(this.requests[number].row);
    }

    /** The number of a request's namespace. */
    spaceOf(number) {
      return this.namespace(this.arrival(number, "namespace"));
    }

    /** Token `i` of a request's prompt + output. */
    token(number, i) {
      const prompt = this.prompt(number);
      return i < prompt.length ? prompt[i] : this.requests[number].output.a[i - prompt.length];
    }

    /** All ids of a request's answer as they stood after its first `edits` respellings. */
    answer(number, edits) {
      const request = this.requests[number];
      let out = request.output.a.subarray(0, request.output.n);
      for (let i = request.edits.length - 1; i >= edits; i--) {
        const { keep, before } = request.edits[i];
        const earlier = new Int32Array(keep + before.length);
        earlier.set(out.subarray(0, keep));
        earlier.set(before, keep);
        out = earlier;
      }
      return out;
    }

    /** A token's text; null where the header does not tell it. */
    text(id) {
      const text = this.texts[id];
      return text === undefined ? null : text;
    }

    /** The number of a namespace; 0 is none. */
    namespace(value) {
      if (!value) return 0;
      const key = JSON.stringify(value);
      let i = this.namespaces.findIndex((n) => n && JSON.stringify(n) === key);
      if (i < 0) i = this.namespaces.push(value) - 1;
      return i;
    }
  }

  /** What the trace remembers of an event beside its columns. */
  const NOTES = {
    "request.arrived"(trace, table, row) {
      const name = table.request.a[row];
      trace.requestOf.set(name, trace.requests.length);
      trace.requests.push({ name: trace.names.list[name], row, output: new RP.Growing(Int32Array), edits: [] });
    },
    "step.planned"(trace, table, row) {
      trace.planned = table.members.at(row);
    },
    "step.started"(trace, table, row) {
      const dropped = new Set(table.dropped.at(row));
      trace.members = Array.from(trace.planned).filter((name) => !dropped.has(name));
    },
    "step.finished"(trace, table, row) {
      const emitted = table.emitted.at(row);
      const ids = table.ids.at(row);
      let at = 0;
      for (let m = 0; m < emitted.length; m++) {
        const output = trace.requests[trace.requestOf.get(trace.members[m])].output;
        for (let j = 0; j < emitted[m]; j++) output.push(ids[at++]);
      }
    },
    "grammar.jumped"(trace, table, row) {
      const { output, edits } = trace.requests[trace.requestOf.get(table.request.a[row])];
      const before = table.before.at(row);
      output.n -= before.length;
      edits.push({ keep: output.n, before });
      for (const id of table.after.at(row)) output.push(id);
    },
  };

  RP.Trace = Trace;

  /** A trace from JSONL text: the header, then one event a line; or what else `make` makes of the header and takes events. */
  RP.parseJsonl = (text, make = (header) => new Trace(header)) => {
    const lines = text.split("\n").filter((line) => line.trim());
    const trace = make(JSON.parse(lines[0]));
    for (let i = 1; i < lines.length; i++) trace.push(JSON.parse(lines[i]));
    return trace;
  };
})(globalThis.RadixPlayer);
