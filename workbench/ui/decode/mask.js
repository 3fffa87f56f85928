/** The mask at one position: what was allowed, the model's top few before it, what was taken. */
(function (RP) {
  "use strict";

  const percent = (p) => (p >= 0.0995 ? `${Math.round(p * 100)} %` : p >= 0.00095 ? `${(p * 100).toFixed(1)} %` : "< 0.1 %");
  RP.percentOf = percent;

  class Mask {
    constructor() {
      this.panel = RP.panel("mask", "Mask");
      this.line = RP.el("p", { class: "rp-why-line", role: "status", "aria-live": "polite" });
      this.more = RP.el("p", { class: "rd-share" });
      this.body = RP.el("div", { class: "rd-top" });
      this.panel.body.append(this.line, this.body, this.more);
    }

    show(facts, which, at) {
      const arm = facts.arms[which];
      const token = arm.tokens[at];
      this.panel.note.textContent = token ? `${facts.arms.length > 1 ? `${arm.name} · ` : ""}token ${at + 1} of ${arm.tokens.length}${token.state === null ? "" : ` · state ${token.state}`}` : "";
      this.line.textContent = token ? token.told : "The run gave no token.";
      this.more.textContent = token ? token.share : "";
      this.body.replaceChildren(...(token && token.top.length ? [this.bars(token, facts)] : []));
      if (token && !token.top.length && token.allowed === null && facts.grammar) this.more.textContent = "No mask was worked out here: nobody looked at this position.";
    }

    /** The top few as bars; the token that was taken beneath them where it is none of these. */
    bars(token, facts) {
      const rows = token.top.map((c) => ({ ...c, taken: c.id === token.id }));
      if (!rows.some((row) => row.taken) && token.p !== null) rows.push({ id: token.id, text: token.text, p: token.p, forbidden: false, taken: true, beyond: true });
      const most = Math.max(...rows.map((row) => row.p), 1e-9);
      const verdict = (row) => (row.taken ? "taken" : row.forbidden ? "forbidden" : "allowed");
      return RP.el(
        "table",
        { class: "rp-table rd-bars" },
        RP.el("caption", { text: "The model's top few before the mask" }),
        RP.el("thead", {}, RP.el("tr", {}, ...["token", "probability", ""].map((text) => RP.el("th", { scope: "col", text: text || "verdict", class: text ? null : "rd-verdict" })))),
        RP.el(
          "tbody",
          {},
          ...rows.map((row) =>
            RP.el(
              "tr",
              { "data-verdict": verdict(row) },
              RP.el("th", { scope: "row", class: "rd-mono", text: facts.eos.includes(row.id) ? "end of text" : row.text === null ? String(row.id) : RP.visible(row.text) }),
              RP.el("td", {}, RP.el("span", { class: "rd-bar" }, RP.el("i", { style: `width:${Math.max(1.5, (row.p / most) * 100)}%` })), RP.el("span", { class: "rd-p", text: percent(row.p) })),
              RP.el("td", { class: "rd-verdict", text: `${row.taken ? "✓ " : row.forbidden ? "✕ " : ""}${verdict(row)}`, title: row.beyond ? "none of the top few" : null }),
            ),
          ),
        ),
      );
    }
  }

  RP.Mask = Mask;
})(globalThis.RadixPlayer);
