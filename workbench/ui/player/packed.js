/** Reading the packed form that `workbench.export.pack` writes: columns as JSON, gzip, base64. */
(function (RP) {
  "use strict";

  /** Numbers from what each is more than the one before it. */
  RP.undelta = (values) => {
    let last = 0;
    return values.map((v) => (v === null ? RP.NONE : (last += v)));
  };

  /** Lists end to end, where each may begin with the start of an earlier one. */
  const unshare = (packed) => {
    const rest = RP.undelta(packed.values);
    if (!packed.shared) return rest;
    const out = [];
    const starts = [];
    let at = 0;
    packed.lengths.forEach((length, i) => {
      const source = starts[i - packed.from[i]];
      const shared = packed.shared[i];
      starts.push(out.length);
      for (let k = 0; k < shared; k++) out.push(out[source + k]);
      for (let k = shared; k < length; k++) out.push(rest[at++]);
    });
    return out;
  };

  const unpackColumn = (type, packed) => {
    if (type === "int" || type === "str") return RP.undelta(packed);
    if (type === "ints" || type === "strs") return { lengths: packed.lengths, values: unshare(packed) };
    return packed;
  };

  /** [value, count, value, count, ...] -> a flat list. */
  RP.unrun = (runs) => {
    const out = [];
    for (let i = 0; i < runs.length; i += 2) for (let k = 0; k < runs[i + 1]; k++) out.push(runs[i]);
    return out;
  };

  /** A trace from the packed JSON's parsed content. */
  RP.fromColumns = (packed) => {
    const trace = new RP.Trace(packed.header);
    for (const text of packed.names) trace.names.id(text);
    for (const [kind, group] of Object.entries(packed.tables)) {
      const table = trace.tables[trace.kindNumber(kind)];
      for (const [name, type, fallback] of table.fields) {
        const column = group.columns[name];
        if (column !== undefined) table[name] = RP.makeColumn(type, trace.names, unpackColumn(type, column));
        else for (let i = 0; i < group.count; i++) table[name].add(fallback);
      }
    }
    const order = packed.kinds.map((kind) => trace.kindNumber(kind));
    const t = RP.unrun(packed.t);
    const step = RP.unrun(packed.step);
    const commit = RP.unrun(packed.commit);
    packed.order.forEach((k, i) => trace.place(order[k], t[i], step[i], commit[i]));
    return trace;
  };

  /** The content of base64 text of gzipped JSON. */
  RP.unzip = async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).json();
  };
})(globalThis.RadixPlayer);
