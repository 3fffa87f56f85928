/** The whole run at a glance: pool fill, hit rate so far, evictions and retractions, the cursor. */
(function (RP) {
  "use strict";

  const HEIGHT = 74;
  const TOP = 16;

  class Timeline {
    constructor(player) {
      this.player = player;
      this.panel = RP.panel("timeline", "Timeline");
      this.frame = RP.el("div", { class: "rp-frame" });
      this.panel.body.append(this.frame);
      this.surface = new RP.Surface(this.frame, "timeline", () => player.redraw());
      this.panel.tools.append(
        RP.legend([["fill-tree", "pages in the tree"], ["fill-private", "of running requests"], ["rate", "hit rate so far"],
          ["evict", "▼ eviction"], ["retract", "◆ sent back"]]),
      );
      this.back = document.createElement("canvas");
      this.known = "";
      const seek = (event) => player.seek(Math.round((this.surface.point(event)[0] / this.surface.width) * (player.trace.length - 1)));
      const canvas = this.surface.canvas;
      canvas.addEventListener("pointerdown", (event) => {
        canvas.setPointerCapture(event.pointerId);
        seek(event);
      });
      canvas.addEventListener("pointermove", (event) => {
        if (canvas.hasPointerCapture(event.pointerId)) seek(event);
      });
    }

    draw(state) {
      const { surface, player } = this;
      const ctx = surface.begin(HEIGHT);
      const n = player.trace.length;
      const key = [n, surface.width, surface.ratio, Object.values(player.theme)].join();
      if (key !== this.known) {
        this.known = key;
        this.paintBack(n);
      }
      ctx.drawImage(this.back, 0, 0, surface.width, HEIGHT);
      const x = n > 1 ? (Math.max(0, state.seq) / (n - 1)) * surface.width : 0;
      ctx.fillStyle = player.theme.ink;
      ctx.fillRect(Math.max(0, Math.min(surface.width - 2, x - 1)), 0, 2, HEIGHT);
      this.tell(state);
    }

    /** The curves change only when the trace grows: drawn once, a column a pixel. */
    paintBack(n) {
      const { width, ratio } = this.surface;
      const { theme, replay } = this.player;
      const { marks } = replay;
      this.back.width = Math.round(width * ratio);
      this.back.height = Math.round(HEIGHT * ratio);
      const ctx = this.back.getContext("2d");
      ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
      const pages = Math.max(1, replay.head.pages);
      const room = HEIGHT - TOP - 1;
      const at = (x) => Math.min(n - 1, Math.round((x / Math.max(1, width - 1)) * (n - 1)));
      for (let x = 0; x < width && n; x++) {
        const i = at(x);
        const tree = (room * marks.cached.a[i]) / pages;
        const own = (room * marks.private.a[i]) / pages;
        ctx.globalAlpha = 0.28;
        ctx.fillStyle = theme.cached;
        ctx.fillRect(x, HEIGHT - tree, 1, tree);
        ctx.globalAlpha = 0.6;
        ctx.fillStyle = theme.computed;
        ctx.fillRect(x, HEIGHT - tree - own, 1, own);
      }
      ctx.globalAlpha = 1;
      ctx.strokeStyle = theme.accent;
      ctx.lineWidth = 2;
      ctx.beginPath();
      for (let x = 0; x < width && n; x++) {
        const i = at(x);
        const rate = marks.prompts.a[i] ? marks.hits.a[i] / marks.prompts.a[i] : 0;
        ctx.lineTo(x, HEIGHT - 1 - room * rate);
      }
      ctx.stroke();
      ctx.strokeStyle = theme.line;
      ctx.lineWidth = 1;
      ctx.strokeRect(0.5, TOP - 0.5, width - 1, room + 1);
      this.paintMarks(ctx, marks.eviction, n, theme.evict, (x) => {
        ctx.moveTo(x - 4, 3);
        ctx.lineTo(x + 4, 3);
        ctx.lineTo(x, 11);
      });
      this.paintMarks(ctx, marks.retraction, n, theme.recomputed, (x) => {
        ctx.moveTo(x, 2);
        ctx.lineTo(x + 4, 7);
        ctx.lineTo(x, 12);
        ctx.lineTo(x - 4, 7);
      });
    }

    /** One mark a place: neighbours closer than five pixels are one. */
    paintMarks(ctx, list, n, colour, shape) {
      ctx.fillStyle = colour;
      ctx.beginPath();
      let last = -Infinity;
      for (let i = 0; i < list.n; i++) {
        const x = (list.a[i] / Math.max(1, n - 1)) * this.surface.width;
        if (x - last < 5) continue;
        last = x;
        shape(x);
      }
      ctx.fill();
    }

    tell(state) {
      const used = state.cachedPages + state.privatePages;
      const rate = RP.percent(state.total("cached_tokens"), state.total("prompt_tokens"));
      const words = `${RP.number(used)} of ${RP.count(state.pages, "page")} in use · hit rate ${rate} · ${RP.count(state.total("evictions"), "eviction")}`;
      this.panel.note.textContent = words;
      this.surface.canvas.setAttribute("aria-label", `Timeline: ${words} at the cursor.`);
    }
  }
  RP.Timeline = Timeline;
})(globalThis.RadixPlayer);
