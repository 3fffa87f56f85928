/** Two rows of tokens one under the other, the first different one marked. */
(function (RP) {
  "use strict";

  /** Tokens shown around the place where a prompt parted from the tree. */
  const BEFORE = 2;
  const AFTER = 2;

  const row = (trace, { name, ids, texts = [] }, differs) => {
    const mark = (id, i) => (typeof texts[i] === "string" ? RP.visible(texts[i]) : RP.tokenMark(trace, id));
    const cells = ids.map((id, i) => RP.el("i", { class: i === differs ? "rp-differs" : null, text: mark(id, i) }));
    if (differs >= ids.length) cells.push(RP.el("i", { class: "rp-differs", text: "(ends)" }));
    return RP.el("div", { class: "rp-tokens" }, RP.el("span", { text: name }), ...cells);
  };

  /** @param {{stored: Object, asked: Object, differs: number, same_text: boolean}} parting rows are {name, ids, texts}. */
  RP.tokenRows = (trace, { stored, asked, differs, same_text }) => [
    row(trace, stored, differs),
    row(trace, asked, differs),
    ...(same_text ? [RP.el("p", { class: "rp-hint", text: "The same text, cut into other tokens." })] : []),
  ];

  /** Where the match at the cursor parted inside a node: what the tree has, what was asked. Null: it did not. */
  RP.parting = (trace, state) => {
    if (state.seq < 0 || trace.kindOf(state.seq) !== "request.matched") return null;
    const e = trace.event(state.seq);
    const slot = e.at_node ? state.slotOfNode.get(e.at_node) - 1 : -1;
    if (e.stop !== "parted" || slot < 0) return null;
    const number = trace.requestNumber(e.request);
    const common = [];
    for (let i = Math.max(0, e.raw_length - BEFORE); i < e.raw_length; i++) common.push(trace.token(number, i));
    const wanted = trace.prompt(number).slice(e.raw_length, e.raw_length + AFTER);
    const stored = state.nodeTokens(slot, e.offset + AFTER).slice(e.offset);
    return {
      stored: { name: "tree", ids: [...common, ...stored] },
      asked: { name: "asked", ids: [...common, ...wanted] },
      differs: common.length,
    };
  };
})(globalThis.RadixPlayer);
