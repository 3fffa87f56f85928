/** What belongs to the selection at one moment: nodes, pages, requests. All views light up the same. */
(function (RP) {
  "use strict";

  const N = RP.N;
  const R = RP.R;

  /** Slots from `slot` up to the node under the root. */
  const upward = (state, slot) => {
    const out = [];
    for (; slot >= 0; slot = state.get(slot, N.PARENT)) out.push(slot);
    return out;
  };

  /** How many of a request's tokens from `at` on equal the node's. */
  const common = (state, slot, number, at, end) => {
    const pieces = state.nodePieces.get(slot);
    let n = 0;
    for (let i = 0; i < pieces.length; i += 3)
      for (let k = pieces[i + 1]; k < pieces[i + 2]; k++, n++)
        if (at + n >= end || state.trace.token(pieces[i], k) !== state.trace.token(number, at + n)) return n;
    return n;
  };

  /** Where a request's tokens lead in the tree as it is now: [slot, tokens of it] from the top. */
  const walk = (state, layout, number) => {
    const out = [];
    const space = state.trace.spaceOf(number);
    const end = state.trace.prompt(number).length + state.requestField(number, R.OUTPUT);
    let at = 0;
    for (let slot = layout.roots; slot >= 0; ) {
      let best = -1;
      let most = 0;
      for (let child = slot; child >= 0; child = layout.next[child]) {
        if (state.get(child, N.SPACE) !== space || state.get(child, N.PARENT) < -1) continue;
        const n = common(state, child, number, at, end);
        if (n >= state.pageSize && n > most) [best, most] = [child, n];
      }
      if (best < 0) break;
      out.push([best, most]);
      at += most;
      slot = most === state.get(best, N.COUNT) ? layout.first[best] : -1;
    }
    return out;
  };

  /** A request's path: what it holds while it runs, else where its tokens would be found now. */
  const pathOf = (state, layout, number) => {
    const held = state.requestField(number, R.NODE);
    const slot = held ? state.slotOfNode.get(held) - 1 : -1;
    if (slot >= 0) return upward(state, slot).map((s) => [s, state.get(s, N.COUNT)]);
    return walk(state, layout, number);
  };

  const ofRequest = (state, layout, number, out) => {
    out.requests.add(number);
    for (const page of state.requestPages.get(number).values()) out.pages.add(page);
    for (const [slot, tokens] of pathOf(state, layout, number)) {
      out.nodes.add(state.get(slot, N.ID));
      const whole = Math.floor(tokens / state.pageSize);
      for (const page of state.nodePages.get(slot).subarray(0, whole)) out.pages.add(page);
    }
  };

  const ofNode = (state, id, hits, out) => {
    const slot = state.slotOfNode.get(id) - 1;
    out.nodes.add(id);
    for (let i = 0; i < hits.seqs.length && hits.seqs[i] <= state.seq; i++) out.used.add(hits.requests[i]);
    if (slot < 0) return;
    for (const page of state.nodePages.get(slot)) out.pages.add(page);
    const pieces = state.nodePieces.get(slot);
    for (let i = 0; i < pieces.length; i += 3) out.wrote.add(pieces[i]);
    for (let number = 0; number < state.requestCount; number++) {
      const held = state.requestField(number, R.NODE);
      if (held && upward(state, state.slotOfNode.get(held) - 1).includes(slot)) out.holds.add(number);
    }
    for (const set of [out.holds, out.used, out.wrote]) for (const number of set) out.requests.add(number);
  };

  /**
   * @param {Object} selection {node} or {request}, or null
   * @param {Hits} hits whose look-ups found each node, and when
   * @returns {{nodes: Set, pages: Set, requests: Set, holds: Set, used: Set, wrote: Set}} node ids, page ids
   *   and request numbers; of a node also which requests hold it now, found it at admission, and wrote it.
   */
  RP.lit = (state, layout, selection, hits) => {
    const out = {};
    for (const name of ["nodes", "pages", "requests", "holds", "used", "wrote"]) out[name] = new Set();
    if (!selection) return out;
    if (selection.node) ofNode(state, selection.node, hits.of(selection.node), out);
    else {
      const number = state.trace.requestNumber(selection.request);
      if (number < state.requestCount) ofRequest(state, layout, number, out);
    }
    return out;
  };
})(globalThis.RadixPlayer);
