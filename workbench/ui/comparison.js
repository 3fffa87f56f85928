/** First token beside the same traffic without the cache: paired bars, medians, the honest sentence, a table. */
(function (RP) {
  "use strict";

  const seconds = (value) => (value === null ? "-" : value < 1 ? `${(value * 1000).toFixed(0)} ms` : `${value.toFixed(2)} s`);
  const share = (value) => (value === null ? "unknown" : `${(value * 100).toFixed(0)} %`);
  const count = (value) => (value === null ? "-" : value.toLocaleString("en"));

  const bar = (value, longest, name) =>
    RP.el(
      "div",
      { class: "rw-bar" },
      RP.el("span", { class: "rw-bar-name", text: name }),
      RP.el("span", { class: "rw-bar-room" }, RP.el("i", { class: `rw-bar-fill rw-arm-${name}`, style: `width:${value === null ? 0 : Math.max(1, (value / longest) * 100)}%` })),
      RP.el("span", { class: "rw-bar-value", text: seconds(value) }),
    );

  /** What the table says of each request, once an arm: heading, and the cells of a row. */
  const SAID = [
    ["first token", (row) => row.ttft.map(seconds)],
    ["of its whole time", (row) => row.share.map(share)],
    ["computed, tokens", (row) => row.computed.map(count)],
  ];

  const table = (facts) => {
    const heading = (text, more = {}) => RP.el("th", { text, ...more });
    const arms = SAID.flatMap(() => ["on", "off"].map((text) => heading(text, { scope: "col", class: "rp-num" })));
    return RP.el(
      "table",
      { class: "rp-table" },
      RP.el(
        "thead",
        {},
        RP.el("tr", {}, heading("request", { scope: "col", rowspan: 2 }), ...SAID.map(([words]) => heading(words, { scope: "colgroup", colspan: 2, class: "rp-num" }))),
        RP.el("tr", {}, ...arms),
      ),
      RP.el(
        "tbody",
        {},
        ...facts.rows.map((row) =>
          RP.el("tr", {}, heading(row.id, { scope: "row" }), ...SAID.flatMap(([, cells]) => cells(row)).map((text) => RP.el("td", { class: "rp-num", text }))),
        ),
      ),
    );
  };

  /** Requests drawn as bars; the table has all. */
  const BARS = 6;

  /** Draw the facts of `workbench.figures.ttft.ttft_pairs` into `element`; null empties it. */
  RP.drawComparison = (element, facts) => {
    element.dataset.ready = String(Boolean(facts));
    element.hidden = !facts;
    if (!facts) return element.replaceChildren();
    const longest = Math.max(...facts.rows.flatMap((row) => row.ttft.filter((v) => v !== null)), 1e-9);
    const [on, off] = facts.median;
    const medians = ` against ${seconds(off)}: medians of ${facts.rows.length} requests${facts.simulated ? `, ${facts.simulated}` : ""}`;
    const tokens = `Prompt tokens computed: ${count(facts.computed[0])} with the cache, ${count(facts.computed[1])} without.`;
    const answers = facts.equal ? "The answers are identical, token for token." : `The answers are not identical. ${facts.difference || ""}`;
    return element.replaceChildren(
      RP.el("div", { class: "rp-head" }, RP.el("h2", { text: "First token, cache on against off" })),
      RP.el("p", { class: "rw-big" }, RP.el("b", { text: seconds(on) }), medians),
      ...facts.rows.slice(0, BARS).map((row) =>
        RP.el("div", { class: "rw-pair" }, RP.el("span", { class: "rw-pair-id", text: row.id }), RP.el("div", {}, bar(row.ttft[0], longest, "on"), bar(row.ttft[1], longest, "off"))),
      ),
      ...(facts.rows.length > BARS ? [RP.el("p", { class: "rw-fine", text: `The first ${BARS} of ${facts.rows.length} requests are drawn; the table has all.` })] : []),
      RP.el("p", { class: "rw-fine", text: facts.sentence }),
      RP.el("p", { class: "rw-fine", text: tokens }),
      RP.el("p", { class: "rw-fine", "data-equal": String(facts.equal), text: answers }),
      RP.el("details", {}, RP.el("summary", { text: "Every request, as a table" }), RP.el("div", { class: "rw-scroll", tabindex: "0", role: "region", "aria-label": "every request, cache on against off" }, table(facts))),
    );
  };
})(globalThis.RadixPlayer);
