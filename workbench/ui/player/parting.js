/** Rows of tokens one under the other, the first different one marked. */
(function (RP) {
  "use strict";

  /** Tokens shown around the place where a prompt parted from the tree. */
  const BEFORE = 2;
  const AFTER = 2;

  /** Index of the first token in which two rows differ; -1 when there is no second row. */
  const firstDifference = (rows) => {
    if (rows.length < 2) return -1;
    const [a, b] = rows.map((row) => row.tokens);
    let i = 0;
    while (i < a.length && i < b.length && a[i] === b[i]) i++;
    return i;
  };

  /** @param {{name: string, tokens: (number|string)[], differs: ?number}[]} rows ids, or texts as they are */
  RP.tokenRows = (trace, rows) => {
    const found = firstDifference(rows);
    return rows.map(({ name, tokens, differs = found }) =>
      RP.el(
        "div",
        { class: "rp-tokens" },
        RP.el("span", { text: name }),
        ...tokens.map((token, i) =>
          RP.el("i", { class: i === differs ? "rp-differs" : null, text: typeof token === "number" ? RP.tokenMark(trace, token) : RP.visible(token) }),
        ),
      ),
    );
  };

  /** The two rows of a match that parted inside a node: what the tree has, what was asked. */
  RP.parting = (trace, state) => {
    if (state.seq < 0 || trace.kindOf(state.seq) !== "request.matched") return [];
    const e = trace.event(state.seq);
    const slot = e.at_node ? state.slotOfNode.get(e.at_node) - 1 : -1;
    if (e.stop !== "parted" || slot < 0) return [];
    const number = trace.requestNumber(e.request);
    const common = [];
    for (let i = Math.max(0, e.raw_length - BEFORE); i < e.raw_length; i++) common.push(trace.token(number, i));
    const wanted = Array.from(trace.prompt(number).slice(e.raw_length, e.raw_length + AFTER));
    const stored = state.nodeTokens(slot, e.offset + AFTER).slice(e.offset);
    return [
      { name: "tree", tokens: [...common, ...stored], differs: common.length },
      { name: "asked", tokens: [...common, ...wanted], differs: common.length },
    ];
  };
})(globalThis.RadixPlayer);
