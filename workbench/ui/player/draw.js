/** A canvas that knows its size and its pixels, and text that fits. */
(function (RP) {
  "use strict";

  const widths = new Map();

  /** Width of one character in the context's font, remembered. */
  const charWidth = (ctx, table, char) => {
    let width = table.get(char);
    if (width === undefined) {
      width = ctx.measureText(char).width;
      table.set(char, width);
    }
    return width;
  };

  const tableOf = (font) => {
    if (!widths.has(font)) widths.set(font, new Map());
    return widths.get(font);
  };

  /** The longest start of `text` that fits in `room` pixels, with an ellipsis; "" when too little does. */
  RP.fitText = (ctx, font, text, room) => {
    ctx.font = font;
    const table = tableOf(font);
    const dots = charWidth(ctx, table, "…");
    let used = 0;
    let fits = 0;
    for (let i = 0; i < text.length; i++) {
      used += charWidth(ctx, table, text[i]);
      if (used + dots <= room) fits = i + 1;
      if (used > room) return fits < 3 ? "" : `${text.slice(0, fits).replace(/[\s…]+$/, "")}…`;
    }
    return text;
  };

  /** As many whole parts as fit, so that no number is cut. */
  RP.fitParts = (ctx, font, parts, room) => {
    ctx.font = font;
    const table = tableOf(font);
    const width = (text) => [...text].reduce((sum, char) => sum + charWidth(ctx, table, char), 0);
    for (let n = parts.length; n > 0; n--) {
      const text = parts.slice(0, n).join(" · ");
      if (width(text) <= room) return text;
    }
    return "";
  };

  /** The longest end of `text` that fits. */
  RP.fitEnd = (ctx, font, text, room) => {
    ctx.font = font;
    const table = tableOf(font);
    let used = charWidth(ctx, table, "…");
    for (let i = text.length - 1; i >= 0; i--) {
      used += charWidth(ctx, table, text[i]);
      if (used > room) return `…${text.slice(i + 1)}`;
    }
    return text;
  };

  class Surface {
    /**
     * @param {HTMLElement} parent
     * @param {string} label what the picture shows, for those who do not see it
     * @param {function()} resized called when the width changed
     */
    constructor(parent, label, resized) {
      this.canvas = RP.el("canvas", { class: "rp-canvas", role: "img", "aria-label": label });
      this.ctx = this.canvas.getContext("2d");
      this.width = 0;
      this.height = 0;
      this.ratio = 1;
      parent.append(this.canvas);
      // The width is kept, not asked for: asking between two changes of the page makes the browser lay it out.
      this.available = 0;
      this.observer = new ResizeObserver(([entry]) => {
        const width = Math.floor(entry.contentRect.width);
        if (width === 0 || width === this.available) return;
        this.available = width;
        resized();
      });
      this.observer.observe(parent);
    }

    /** Take the parent's width and this height, in CSS pixels; clears the picture. */
    begin(height) {
      const width = Math.max(1, this.available);
      const ratio = Math.min(2, window.devicePixelRatio || 1);
      if (width !== this.width || height !== this.height || ratio !== this.ratio) {
        [this.width, this.height, this.ratio] = [width, height, ratio];
        this.canvas.width = Math.round(width * ratio);
        this.canvas.height = Math.round(height * ratio);
        this.canvas.style.height = `${height}px`;
      }
      this.ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.ctx.clearRect(0, 0, width, height);
      return this.ctx;
    }

    /** Where a pointer event happened, in CSS pixels of the picture. */
    point(event) {
      const box = this.canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    }
  }
  RP.Surface = Surface;

  /** A padlock whose body is 11 x 8 pixels, its top left at (x, y). */
  RP.drawLock = (ctx, x, y, colour) => {
    ctx.fillStyle = colour;
    ctx.strokeStyle = colour;
    ctx.lineWidth = 1.6;
    ctx.fillRect(x, y + 5, 11, 8);
    ctx.beginPath();
    ctx.arc(x + 5.5, y + 5, 3.2, Math.PI, 0);
    ctx.stroke();
  };

  /** A drawing pin, 11 x 14 pixels, its top left at (x, y). */
  RP.drawPin = (ctx, x, y, colour) => {
    ctx.fillStyle = colour;
    ctx.strokeStyle = colour;
    ctx.lineWidth = 1.6;
    ctx.beginPath();
    ctx.arc(x + 5.5, y + 4, 4, 0, 2 * Math.PI);
    ctx.moveTo(x + 5.5, y + 7);
    ctx.lineTo(x + 5.5, y + 14);
    ctx.fill();
    ctx.stroke();
  };

  /** An H, 9 x 10 pixels, its top left at (x, y): a copy lies on the host. */
  RP.drawHost = (ctx, x, y, colour) => {
    ctx.fillStyle = colour;
    ctx.fillRect(x, y, 2, 10);
    ctx.fillRect(x + 7, y, 2, 10);
    ctx.fillRect(x + 2, y + 4, 5, 2);
  };

  const patterns = new Map();

  /** A tile of one diagonal stroke, made once a colour. */
  const patternOf = (ctx, colour, gap) => {
    const key = `${colour} ${gap}`;
    if (!patterns.has(key)) {
      const tile = document.createElement("canvas");
      tile.width = tile.height = gap;
      const pen = tile.getContext("2d");
      pen.strokeStyle = colour;
      pen.lineWidth = 1.1;
      for (const shift of [-gap, 0, gap]) {
        pen.moveTo(shift - 1, gap + 1);
        pen.lineTo(shift + gap + 1, -1);
      }
      pen.stroke();
      patterns.set(key, ctx.createPattern(tile, "repeat"));
    }
    return patterns.get(key);
  };

  /** Diagonal strokes as a fill style. */
  RP.hatching = patternOf;

  /** Diagonal strokes inside a rectangle: the second mark beside colour. */
  RP.hatch = (ctx, x, y, w, h, colour, gap = 5) => {
    ctx.fillStyle = patternOf(ctx, colour, gap);
    ctx.fillRect(x, y, w, h);
  };
})(globalThis.RadixPlayer);
