/** Where a run holds a text: requests by name, label, prompt and answer; nodes by number and by what they keep. */
(function (RP) {
  "use strict";

  const N = RP.N;
  /** Characters shown on each side of what was found. */
  const AROUND = 34;

  class Search {
    constructor(player) {
      this.player = player;
      this.texts = new Map();
    }

    /** Hits for `words`, best first: {selection, name, before, match, after}; names come before texts. */
    hits(words) {
      const wanted = RP.oneLine(words).toLowerCase();
      if (!wanted) return [];
      const named = [];
      const inside = [];
      this.nodeNumbered(wanted, named);
      this.requests(wanted, named, inside);
      this.nodes(wanted, inside);
      return [...named, ...inside];
    }

    /** `9` and `#9` mean node 9, if there ever was one. */
    nodeNumbered(wanted, out) {
      const digits = /^#?(\d{1,9})$/.exec(wanted);
      if (!digits) return;
      const selection = { node: +digits[1] };
      if (!new RP.Concerns(this.player.trace).of(selection).n) return;
      const state = this.player.now;
      const slot = state.slotOfNode.get(selection.node) - 1;
      out.push({ selection, name: `node #${digits[1]}`, before: "", match: "", after: slot < 0 ? "not in the tree at this event" : RP.nodeText(state, slot) });
    }

    requests(wanted, named, inside) {
      for (const { trace } of this.player.replicas)
        trace.requests.forEach(({ name }, number) => {
          const selection = { request: name };
          const title = RP.requestName(trace, number);
          if (title.toLowerCase().includes(wanted)) named.push({ selection, ...cut(title, wanted), name: "request" });
          else this.text(wanted, { selection, name: title }, inside, this.written(trace, number));
        });
    }

    /** A request's prompt and answer, remembered until more of it is known. */
    written(trace, number) {
      const { name, output } = trace.requests[number];
      const known = this.texts.get(name);
      if (known && known.trace === trace && known.size === output.n) return known.text;
      const ids = [...trace.prompt(number), ...output.a.subarray(0, output.n)];
      const text = RP.oneLine(RP.tokensText(trace, ids));
      this.texts.set(name, { trace, size: output.n, text });
      return text;
    }

    /** The nodes of the tree as it is now. */
    nodes(wanted, out) {
      const state = this.player.now;
      for (let slot = 0; slot < state.slots; slot++) {
        if (!state.alive(slot)) continue;
        const id = state.get(slot, N.ID);
        const text = RP.oneLine(RP.tokensText(state.trace, state.nodeTokens(slot)));
        this.text(wanted, { selection: { node: id }, name: `node #${id}` }, out, text);
      }
    }

    text(wanted, hit, out, text) {
      const found = cut(text, wanted);
      if (found) out.push({ ...hit, ...found });
    }
  }

  /** The text around what was found; null where it is not there. */
  const cut = (text, wanted) => {
    const at = text.toLowerCase().indexOf(wanted);
    if (at < 0) return null;
    const end = at + wanted.length;
    const from = Math.max(0, at - AROUND);
    const to = Math.min(text.length, end + 2 * AROUND);
    return { before: `${from ? "…" : ""}${text.slice(from, at)}`, match: text.slice(at, end), after: `${text.slice(end, to)}${to < text.length ? "…" : ""}` };
  };

  RP.Search = Search;
})(globalThis.RadixPlayer);
