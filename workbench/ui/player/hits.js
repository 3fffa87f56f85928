/** Whose look-ups found each node: one entry a hit that is counted on it, so that both always agree. */
(function (RP) {
  "use strict";

  const N = RP.N;
  const NONE = { seqs: [], requests: [] };

  class Hits {
    constructor(trace) {
      this.trace = trace;
      this.byNode = new Map();
      /** Number of the request that was last looked up: the hit that follows is its own. */
      this.seeker = -1;
    }

    /** Event and request numbers of a node's hits, in order. */
    of(node) {
      return this.byNode.get(node) || NONE;
    }

    /** Note the event that `state` has just folded. */
    note(state) {
      const { seq } = state;
      const kind = this.trace.kindOf(seq);
      if (kind === "request.matched") this.seeker = this.trace.requestNumber(this.trace.event(seq).request);
      else if (kind === "node.touched") this.touched(state, this.trace.event(seq));
      else if (kind === "node.split") this.split(this.trace.event(seq));
    }

    touched(state, { node, hit, seq }) {
      if (!hit || this.seeker < 0) return;
      for (let slot = state.slotOfNode.get(node) - 1; slot >= 0; slot = state.get(slot, N.PARENT)) {
        const id = state.get(slot, N.ID);
        if (!this.byNode.has(id)) this.byNode.set(id, { seqs: [], requests: [] });
        const { seqs, requests } = this.byNode.get(id);
        seqs.push(seq);
        requests.push(this.seeker);
      }
    }

    /** The front holds what those before had found. */
    split({ node, front }) {
      const { seqs, requests } = this.of(node);
      this.byNode.set(front, { seqs: [...seqs], requests: [...requests] });
    }
  }
  RP.Hits = Hits;
})(globalThis.RadixPlayer);
