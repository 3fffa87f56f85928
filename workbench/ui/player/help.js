/** The keys, told in a dialog of their own: `?` opens it, Escape closes it. */
(function (RP) {
  "use strict";

  const KEYS = [
    ["←  →", "one event back, one event on; with Shift a hundred"],
    ["Home  End", "the first event, the last"],
    ["Space", "play; with Shift backwards"],
    ["e  m  r  s", "next eviction, miss, retraction, schedule; with Shift the one before"],
    ["n", "next event of what is selected; with Shift the one before"],
    ["/", "find a request, a node or a text; ↑ ↓ through the hits, Enter selects"],
    ["Esc", "the whole tree, nothing selected"],
    ["?", "these keys"],
  ];

  class Help {
    constructor() {
      const rows = KEYS.map(([keys, words]) =>
        RP.el("div", {}, RP.el("dt", {}, ...keys.split("  ").map((key) => RP.el("kbd", { text: key }))), RP.el("dd", { text: words })),
      );
      const close = RP.el("button", { type: "button", text: "close", on: { click: () => this.root.close() } });
      this.root = RP.el(
        "dialog",
        { class: "rp-help rp-panel", "aria-label": "Keys" },
        RP.el("div", { class: "rp-head" }, RP.el("h2", { text: "Keys" }), RP.el("span", { class: "rp-tools" }, close)),
        RP.el("dl", {}, ...rows),
      );
    }

    open() {
      if (!this.root.open) this.root.showModal();
    }
  }
  RP.Help = Help;
})(globalThis.RadixPlayer);
