/** Small helpers for the page. Data only ever becomes text nodes: no markup is built from it. */
(function (RP) {
  "use strict";

  /**
   * An element. `props`: attributes, plus `class`, `text` and `on` (listeners); null attributes are left out.
   * @param {string} tag
   * @param {Object} [props]
   * @param {...(Node|string)} children
   */
  RP.el = (tag, props = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(props)) {
      if (key === "on") for (const [name, fn] of Object.entries(value)) node.addEventListener(name, fn);
      else if (key === "text") node.textContent = value;
      else if (value !== null && value !== undefined) node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
  };

  /** A panel: a heading, whose it is (of several replicas), a note beside it, room for a legend and for tools, a body. */
  RP.panel = (name, title, note = "") => {
    const noteNode = RP.el("span", { class: "rp-note", text: note });
    const tools = RP.el("span", { class: "rp-tools" });
    const right = RP.el("div", { class: "rp-right" }, tools);
    const whose = RP.el("span", { class: "rp-whose", hidden: "" });
    const head = RP.el("div", { class: "rp-head" }, RP.el("h2", { text: title }), whose, noteNode, right);
    const body = RP.el("div", { class: "rp-body" });
    const root = RP.el("section", { class: `rp-panel rp-${name}`, "aria-label": title }, head, body);
    return { root, body, tools, whose, note: noteNode, explain: (legend) => right.prepend(legend) };
  };

  /** A legend: [css class, words] each; `legend.marks[class]` is one entry. */
  RP.legend = (entries) => {
    const root = RP.el("span", { class: "rp-legend" });
    root.marks = {};
    for (const [mark, words] of entries) {
      root.marks[mark] = RP.el("span", {}, RP.el("i", { class: `rp-key rp-key-${mark}` }), words);
      root.append(root.marks[mark]);
    }
    return root;
  };

  /** A switch between a picture and its table; `onChange(tableShown)`. */
  RP.twinSwitch = (what, onChange) => {
    const button = RP.el("button", { type: "button", class: "rp-twin", "aria-pressed": "false", text: "table" });
    button.setAttribute("aria-label", `${what} as a table`);
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(shown));
      onChange(shown);
    });
    return button;
  };
})(globalThis.RadixPlayer);
