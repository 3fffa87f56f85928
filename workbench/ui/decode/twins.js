/** The table twins of the tape and of the automaton, and the table of costs. */
(function (RP) {
  "use strict";

  const cells = (tag, list) => list.map((text) => (text instanceof Node ? text : RP.el(tag, { text: String(text) })));

  const table = (caption, head, rows) =>
    RP.el(
      "table",
      { class: "rp-table" },
      RP.el("caption", { text: caption }),
      RP.el("thead", {}, RP.el("tr", {}, ...head.map((text) => RP.el("th", { scope: "col", text })))),
      RP.el("tbody", {}, ...rows),
    );

  const scrolls = (name, content) => RP.el("div", { class: "rp-scroll", tabindex: "0", role: "region", "aria-label": name }, content);

  const shown = (facts, id, text) => (facts.eos.includes(id) ? "end of text" : text === null ? String(id) : RP.visible(text));

  /** One row a token; rolled back ones where they stood. A row is chosen by its button. */
  RP.tapeTable = (facts, which, choose) => {
    const arm = facts.arms[which];
    const rows = [];
    const back = (at) => {
      for (const b of arm.back.filter((x) => x.position === at))
        b.ids.forEach((id, i) => rows.push(RP.el("tr", { class: "rd-gone" }, ...cells("td", ["–", shown(facts, id, b.texts[i]), b.why, b.number ?? "–", "–", "–", "–", "–"]))));
    };
    arm.tokens.forEach((t, at) => {
      back(at);
      const first = t.top[0];
      const wanted = first ? `${shown(facts, first.id, first.text)} ${RP.percentOf(first.p)}${first.forbidden ? ", forbidden" : ""}` : "–";
      const number = RP.el("td", {}, RP.el("button", { type: "button", class: "rp-link", text: String(at + 1), "aria-label": `look at token ${at + 1}`, on: { click: () => choose(which, at) } }));
      rows.push(
        RP.el("tr", { "data-at": at }, number, ...cells("td", [shown(facts, t.id, t.text), t.source, t.pass ?? "–", t.state ?? "–", t.allowed === null ? "–" : RP.number(t.allowed), t.p === null ? "–" : RP.percentOf(t.p), wanted])),
      );
    });
    back(arm.tokens.length);
    const head = ["", "token", "source", "pass", "state", "allowed", "probability", "the model's first choice"];
    return scrolls(`${arm.name}, token by token`, table(arm.name, head, rows));
  };

  /** One row an edge. */
  RP.edgeTable = (grammar) => {
    const rows = grammar.edges.map(([from, to, label, forced]) => RP.el("tr", {}, ...cells("td", [from, label, forced ? "forced run" : "choice", to])));
    const note = grammar.count > grammar.edges.length ? `, the first ${RP.number(grammar.edges.length)} of ${RP.number(grammar.count)}` : "";
    return scrolls("Edges of the automaton", table(`Edges of the compressed automaton${note}`, ["from state", "text or characters", "kind", "to state"], rows));
  };

  /** What each arm took. */
  RP.costTable = (facts) => {
    const rows = facts.costs.map(([what, ...values]) => RP.el("tr", {}, RP.el("th", { scope: "row", text: what }), ...values.map((text) => RP.el("td", { class: "rp-num", text }))));
    return table("What it costs", ["", ...facts.arms.map((arm) => arm.name.split(",")[0])], rows);
  };
})(globalThis.RadixPlayer);
