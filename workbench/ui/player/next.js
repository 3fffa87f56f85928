/** Which node goes next, by the policy that the run's header names; a policy not listed here marks none. */
(function (RP) {
  "use strict";

  const N = RP.N;

  /** Keys as [first, second], smallest goes first; ties fall to the node that was created first. */
  const at = (field, sign = 1) => (state, slot) => sign * state.get(slot, field);
  const none = () => 0;
  const POLICIES = {
    lru: [at(N.LAST), none],
    mru: [at(N.LAST, -1), none],
    fifo: [at(N.ID), none],
    filo: [at(N.ID, -1), none],
    lfu: [at(N.HITS), at(N.LAST)],
    slru: [(state, slot) => (state.get(slot, N.HITS) >= 2 ? 1 : 0), at(N.LAST)],
    priority: [at(N.PRIORITY), at(N.LAST)],
    size: [at(N.COUNT, -1), at(N.LAST)],
  };

  /** The free queue of blocks: whoever joined it first; of one chain its last block, or its first. */
  const QUEUE = { "tail-first": [at(N.JOINED), at(N.DEPTH, -1)], "head-first": [at(N.JOINED), at(N.DEPTH)] };

  const config = (trace) => trace.header.config || {};
  const inBlocks = (trace) => config(trace).cache === "blocks";
  const keysOf = (trace) => (inBlocks(trace) ? QUEUE[config(trace).block_order] : POLICIES[RP.evictionOf(trace)]);

  /** What the run keeps its prefixes in. */
  RP.treeName = (trace) => (inBlocks(trace) ? "Blocks" : "Radix tree");

  /** The run's eviction policy, "" where its header does not say. */
  RP.evictionOf = (trace) => config(trace).eviction || "";

  /** An eviction policy as it is called. */
  RP.evictionName = (policy) => (policy === "belady" ? "farthest next use" : policy);

  /** Whether the policy is one that can be marked. */
  RP.knowsEviction = (trace) => Boolean(keysOf(trace));

  /** Slot of the node that goes next: unlocked, unpinned, in a tree a leaf of what lies on the device; smallest key. -1: none, or not known. */
  RP.nextToGo = (state) => {
    const policy = keysOf(state.trace);
    if (!policy) return -1;
    const parents = inBlocks(state.trace);
    const [first, second] = policy;
    let best = -1;
    let [a, b, c] = [Infinity, Infinity, Infinity];
    for (let slot = 0; slot < state.slots; slot++) {
      if (!state.alive(slot) || state.get(slot, N.LOCKS) || state.get(slot, N.PINS)) continue;
      if (!parents && (state.get(slot, N.RESIDENT) || !state.nodePages.get(slot).length)) continue;
      const x = first(state, slot);
      if (x > a) continue;
      const y = second(state, slot);
      if (x === a && y > b) continue;
      const z = state.get(slot, N.ID);
      if (x === a && y === b && z > c) continue;
      [best, a, b, c] = [slot, x, y, z];
    }
    return best;
  };
})(globalThis.RadixPlayer);
