/** The events that concern a selection, found by one pass over the columns and kept up as the trace grows. */
(function (RP) {
  "use strict";

  const REQUEST_FIELDS = ["request", "writer", "behind"];
  const NODE_FIELDS = ["node", "front", "at_node", "parent"];

  /** For each event kind, the tests of a row that make it one of the selection's. */
  const testsOf = (trace, selection) => {
    const node = selection.node;
    const who = node || selection.request;
    const id = node ? node : trace.names.ids.get(who);
    return (table) => {
      const tests = [];
      for (const [name] of table.fields) {
        const column = table[name];
        if ((node ? NODE_FIELDS : REQUEST_FIELDS).includes(name)) tests.push((row) => column.a[row] === id);
        else if (name === "owner") tests.push((row) => column.at(row) === who);
        else if (name === "owners" && table.kind === "page.allocated") tests.push((row) => column.at(row).includes(who));
        else if (name === "members" && table.kind === "executor.failed") tests.push((row) => column.at(row).includes(id));
        else if (node && name === "path") tests.push((row) => column.at(row).includes(id));
        else if (node && name === "ranking") tests.push((row) => column.at(row).some((r) => r.node === id && r.taken));
      }
      return tests;
    };
  };

  class Concerns {
    constructor(trace) {
      this.trace = trace;
      this.key = "";
    }

    /** Event numbers, rising, as a `Growing`. */
    of(selection) {
      const { trace } = this;
      const key = JSON.stringify(selection);
      if (key !== this.key) {
        this.key = key;
        this.found = new RP.Growing(Int32Array);
        this.until = 0;
        this.tests = [];
        this.make = selection ? testsOf(trace, selection) : () => [];
      }
      for (let i = this.until; i < trace.length; i++) {
        const k = trace.kind.a[i];
        const tests = (this.tests[k] ??= this.make(trace.tables[k]));
        for (const test of tests)
          if (test(trace.row.a[i])) {
            this.found.push(i);
            break;
          }
      }
      this.until = trace.length;
      return this.found;
    }
  }
  RP.Concerns = Concerns;
})(globalThis.RadixPlayer);
