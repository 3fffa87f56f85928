/** The small card beside the pointer. */
(function (RP) {
  "use strict";

  class Tip {
    /** @param {HTMLElement} frame positioned; @param {Object} surface the picture inside it. */
    constructor(frame, surface) {
      this.surface = surface;
      this.frame = frame;
      this.root = RP.el("div", { class: "rp-tip", hidden: "" });
      frame.append(this.root);
    }

    /**
     * Show what `tell(event)` says wherever the pointer is: {head, lines} or null.
     * @param {function(PointerEvent): ?{head: string, lines: string[]}} tell
     */
    watch(tell) {
      this.surface.canvas.addEventListener("pointermove", (event) => this.show(event, tell(event)));
      for (const name of ["pointerleave", "pointercancel"]) this.surface.canvas.addEventListener(name, () => (this.root.hidden = true));
    }

    show(event, told) {
      this.root.hidden = !told;
      if (!told) return;
      this.root.replaceChildren(RP.el("b", { text: told.head }), ...told.lines.map((text) => RP.el("span", { text })));
      const [x, y] = this.surface.point(event);
      const left = Math.min(x + 14, this.surface.width - this.root.offsetWidth - 4);
      const box = this.frame.getBoundingClientRect();
      const below = event.clientY - box.top + 18;
      const fits = event.clientY + 18 + this.root.offsetHeight < window.innerHeight - 120;
      this.root.style.left = `${Math.max(4, left)}px`;
      this.root.style.top = `${fits || y < this.root.offsetHeight + 12 ? below : below - this.root.offsetHeight - 30}px`;
    }
  }
  RP.Tip = Tip;
})(globalThis.RadixPlayer);
