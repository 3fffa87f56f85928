/** What is written on a node, whatever the picture of the tree. */
(function (RP) {
  "use strict";

  const N = RP.N;
  const START = 60;

  class NodeWords {
    constructor() {
      this.texts = new Map();
    }

    /** Forget all texts: other tokens are meant, or more of them are known. */
    clear() {
      this.texts.clear();
    }

    /** The start of a node's text, remembered until the node changes. */
    text(state, slot) {
      const id = state.get(slot, N.ID);
      const size = state.get(slot, N.COUNT);
      const known = this.texts.get(id);
      if (known && known.size === size) return known.text;
      const text = RP.nodeText(state, slot, START);
      this.texts.set(id, { size, text });
      return text;
    }

    /** What is told of a node, most important first; `below` counts nodes that are not drawn. */
    facts(state, slot, below = 0) {
      const parts = [RP.count(state.get(slot, N.COUNT), "token")];
      if (!state.reachable(slot)) parts.push("unreachable");
      const tier = state.tier(slot);
      if (tier !== "device") parts.push(tier === "host" ? "on the host only" : "copied to the host");
      const hits = state.get(slot, N.HITS);
      const locks = state.get(slot, N.LOCKS);
      const pins = state.get(slot, N.PINS);
      const idle = state.tick - state.get(slot, N.LAST);
      if (below) parts.push(`${RP.count(below, "node")} below`);
      if (hits) parts.push(RP.count(hits, "hit"));
      if (locks) parts.push(`held by ${RP.count(locks, "request")}`);
      else if (idle) parts.push(`idle ${RP.count(idle, "tick")}`);
      if (pins) parts.push(`pinned until step ${RP.number(pins)}`);
      return parts;
    }
  }
  RP.NodeWords = NodeWords;
})(globalThis.RadixPlayer);
