/**
 * State: the engine as the trace tells it, up to one event (`workbench.replay.State` in typed arrays).
 * A node lives in a slot, sixteen integers wide; a request under its number, thirty-two wide. `fork()` is cheap.
 */
(function (RP) {
  "use strict";

  const NODE_FIELDS = [
    "ID", "PARENT", "DEPTH", "COUNT", "LOCKS", "HITS", "LAST", "PINS", "CHILDREN", "SPACE", "ORDER", "BORN",
    "PRIORITY", "JOINED", "RESIDENT",
  ];
  const REQUEST_FIELDS = [
    "STATUS", "CACHED", "COMPUTED", "RECOVERED", "RECOMPUTED", "KV", "TARGET", "OUTPUT", "NODE", "RETRACTIONS",
    "ADMITTED", "FIRST", "ENDED", "GRAMMAR", "FORCED", "JUMPED", "ROLLED_BACK", "HELD", "EDITS",
  ];
  const enumerate = (names) => Object.freeze(Object.fromEntries(names.map((name, i) => [name, i])));

  /**
   * Fields of a node. PARENT is a slot (-1: under the root; -1 - id: under node `id`, which is gone); ORDER keeps
   * siblings in place over splits; JOINED is the event with which it last joined the free queue of blocks; RESIDENT
   * counts children with device pages.
   */
  RP.N = enumerate(NODE_FIELDS);
  /**
   * Fields of a request. ADMITTED, FIRST and ENDED are event numbers, -1 while it has not happened; GRAMMAR is the
   * automaton's state + 2 (0: none); HELD: it waits for its grammar, outside the queue; EDITS: how often its answer
   * has been spelt anew.
   */
  RP.R = enumerate(REQUEST_FIELDS);
  RP.STATUS = ["waiting", "prefill", "decode", "finished", "refused", "aborted", "failed"];
  RP.TOTALS = [
    "arrived", "finished", "refused", "aborted", "failed",
    "prompt_tokens", "cached_tokens", "computed_tokens", "loaded_tokens", "recovered_tokens", "recomputed_tokens",
    "output_tokens", "forced_tokens", "jumped_tokens", "drafted_tokens", "forward_passes", "steps",
    "evictions", "evicted_tokens", "demoted_tokens", "retractions",
  ];
  const TOTAL_INDEX = new Map(RP.TOTALS.map((name, i) => [name, i]));
  const N = RP.N;
  const R = RP.R;

  class ReplayError extends Error {}
  RP.ReplayError = ReplayError;

  class State {
    constructor(trace) {
      this.trace = trace;
      this.seq = -1;
      this.pages = 0;
      this.pageSize = 1;
      this.slots = 0;
      this.firstFree = -1;
      this.live = 0;
      this.tick = 0;
      this.cachedPages = 0;
      this.privatePages = 0;
      this.hostPages = 0;
      this.node = RP.pagedInts(10);
      this.nodePages = RP.pagedRefs(6);
      /** Host pages that hold a copy of a node; undefined or empty: none do. */
      this.nodeHost = RP.pagedRefs(6);
      this.nodePieces = RP.pagedRefs(6);
      this.slotOfNode = RP.pagedInts(10);
      this.request = RP.pagedInts(9);
      this.requestPages = RP.pagedRefs(6);
      this.owner = RP.pagedInts(10);
      this.requestCount = 0;
      this.queue = [];
      this.totals = new Float64Array(RP.TOTALS.length);
      /** The step that was planned last: members, tokens, drafted. The other three are of the one handed over last. */
      this.planned = null;
      this.members = [];
      this.memberTokens = [];
      this.memberDrafted = [];
    }

    /** An independent copy, in time that does not depend on how much the state holds. */
    fork() {
      const copy = Object.assign(Object.create(State.prototype), this);
      for (const name of PAGED) copy[name] = this[name].fork();
      copy.queue = this.queue.slice();
      copy.totals = this.totals.slice();
      return copy;
    }

    total(name) {
      return this.totals[TOTAL_INDEX.get(name)];
    }

    count(name, by) {
      this.totals[TOTAL_INDEX.get(name)] += by;
    }

    // --- nodes

    get(slot, field) {
      return this.node.get((slot << 4) | field);
    }

    set(slot, field, value) {
      this.node.set((slot << 4) | field, value);
    }

    /** The slot of a live node. */
    slot(id) {
      const slot = this.slotOfNode.get(id) - 1;
      if (slot < 0) throw new ReplayError(`node ${id} is not in the tree`);
      return slot;
    }

    /** Whether `slot` holds a node. */
    alive(slot) {
      return this.get(slot, N.ID) !== 0;
    }

    /** Host pages that hold a copy of the node in `slot`. */
    host(slot) {
      return this.nodeHost.get(slot) || NO_PAGES;
    }

    setHost(slot, pages) {
      this.hostPages += pages.length - this.host(slot).length;
      this.nodeHost.set(slot, pages);
    }

    /** `device`, `host`, or `both`: copied, and still on the device. */
    tier(slot) {
      if (!this.host(slot).length) return "device";
      return this.nodePages.get(slot).length ? "both" : "host";
    }

    /** Whether a look-up can come to the node in `slot`: nothing above it has left. */
    reachable(slot) {
      let parent = this.get(slot, N.PARENT);
      while (parent >= 0) parent = this.get(parent, N.PARENT);
      return parent === -1;
    }

    /** A slot for a new node; left slots form a list through PARENT. */
    newSlot(id) {
      let slot = this.firstFree;
      if (slot < 0) slot = this.slots++;
      else this.firstFree = this.get(slot, N.PARENT);
      this.node.own(slot >> 6).fill(0, (slot & 63) << 4, ((slot & 63) + 1) << 4);
      this.set(slot, N.ID, id);
      this.slotOfNode.set(id, slot + 1);
      this.live++;
      return slot;
    }

    dropSlot(slot) {
      this.slotOfNode.set(this.get(slot, N.ID), 0);
      this.set(slot, N.ID, 0);
      this.set(slot, N.PARENT, this.firstFree);
      this.nodePages.set(slot, null);
      this.setHost(slot, NO_PAGES);
      this.nodePieces.set(slot, null);
      this.firstFree = slot;
      this.live--;
    }

    /** Token ids of a node, at most `limit`. */
    nodeTokens(slot, limit = Infinity) {
      const out = [];
      const pieces = this.nodePieces.get(slot);
      for (let i = 0; i < pieces.length; i += 3)
        for (let at = pieces[i + 1]; at < pieces[i + 2] && out.length < limit; at++)
          out.push(this.trace.token(pieces[i], at));
      return out;
    }

    // --- requests

    requestField(number, field) {
      return this.request.get((number << 5) | field);
    }

    setRequest(number, field, value) {
      this.request.set((number << 5) | field, value);
    }

    addRequest(number, field, delta) {
      this.request.add((number << 5) | field, delta);
    }

    status(number) {
      return RP.STATUS[this.requestField(number, R.STATUS)];
    }

    /** The ids a request has answered so far. */
    output(number) {
      return this.trace.answer(number, this.requestField(number, R.EDITS)).subarray(0, this.requestField(number, R.OUTPUT));
    }

    // --- pages: 0 is free, 2 x node id a cached page, 2 x request number + 1 a private one

    setOwner(page, code) {
      const before = this.owner.get(page);
      if (before) this[before & 1 ? "privatePages" : "cachedPages"]--;
      if (code) this[code & 1 ? "privatePages" : "cachedPages"]++;
      this.owner.set(page, code);
    }
  }

  const NO_PAGES = new Int32Array(0);
  const PAGED = ["node", "nodePages", "nodeHost", "nodePieces", "slotOfNode", "request", "requestPages", "owner"];

  RP.State = State;
})(globalThis.RadixPlayer);
