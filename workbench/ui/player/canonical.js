/** The state in the shape of `Engine.snapshot()`, and its hash: equal to Python's, bit for bit. */
(function (RP) {
  "use strict";

  const N = RP.N;
  const R = RP.R;
  const LIVE = 3;

  const known = (v) => (v < 0 ? null : v);

  const requestEntry = (s, number) => {
    const field = (f) => s.requestField(number, f);
    return {
      status: s.status(number),
      prompt: s.trace.prompt(number).length,
      cached: known(field(R.CACHED)),
      computed: known(field(R.COMPUTED)),
      recovered: field(R.RECOVERED),
      recomputed: field(R.RECOMPUTED),
      kv: field(R.KV),
      output: Array.from(s.output(number)),
      pages: Array.from(s.requestPages.get(number).values()),
      node: field(R.NODE),
      retractions: field(R.RETRACTIONS),
      grammar: field(R.GRAMMAR)
        ? { state: field(R.GRAMMAR) - 2, forced: field(R.FORCED), jumped: field(R.JUMPED), rolled_back: field(R.ROLLED_BACK) }
        : null,
    };
  };

  const nodeEntry = (s, slot) => {
    const field = (f) => s.get(slot, f);
    const hash = new RP.Fnv();
    for (const id of s.nodeTokens(slot)) hash.int32(id);
    const parent = field(N.PARENT);
    return {
      parent: parent < 0 ? -1 - parent : s.get(parent, N.ID),
      namespace: s.trace.namespaces[field(N.SPACE)],
      run: [field(N.DEPTH), field(N.COUNT), hash.hex()],
      pages: Array.from(s.nodePages.get(slot)),
      host: Array.from(s.host(slot)),
      locks: field(N.LOCKS),
      hits: field(N.HITS),
      last_used: field(N.LAST),
      pins: field(N.PINS),
      tier: s.tier(slot),
    };
  };

  RP.canonical = (s) => {
    const nameOf = (number) => s.trace.requests[number].name;
    const requests = Object.create(null);
    for (let i = 0; i < s.requestCount; i++)
      if (s.requestField(i, R.STATUS) < LIVE) requests[nameOf(i)] = requestEntry(s, i);
    const nodes = {};
    for (let slot = 0; slot < s.slots; slot++)
      if (s.alive(slot)) nodes[s.get(slot, N.ID)] = nodeEntry(s, slot);
    const owners = [];
    for (let page = 0; page < s.pages; page++) {
      const code = s.owner.get(page);
      owners.push(code === 0 ? null : code & 1 ? nameOf(code >> 1) : code >> 1);
    }
    const totals = Object.fromEntries(RP.TOTALS.map((name, i) => [name, s.totals[i]]));
    return { queue: s.queue.map(nameOf), requests, nodes, owners, totals };
  };

  RP.digest = (s) => RP.hashText(RP.stableJson(RP.canonical(s)));
})(globalThis.RadixPlayer);
