/** The curves of the timeline, drawn once until the trace grows: pool fill, hit rates, ghost, marks. */
(function (RP) {
  "use strict";

  /** Room above the curves for the marks, in pixels. */
  const TOP = 16;

  class Curves {
    /** @param {{width: number, bottom: number, n: number}} room `bottom` of the curves; n events. */
    constructor(ctx, player, room) {
      this.ctx = ctx;
      this.theme = player.theme;
      this.trace = player.trace;
      this.marks = player.replay.marks;
      this.pages = Math.max(1, player.replay.head.pages);
      Object.assign(this, room);
      this.tall = this.bottom - TOP - 1;
    }

    /** The event that a column of pixels stands for, and the other way round. */
    event(x) {
      return Math.min(this.n - 1, Math.round((x / Math.max(1, this.width - 1)) * (this.n - 1)));
    }
    place(seq) {
      return (seq / Math.max(1, this.n - 1)) * this.width;
    }

    paint(ghost) {
      const { theme, marks } = this;
      if (!this.n) return;
      this.fill();
      this.line((i) => marks.recent.a[i], theme.ink, 1, []);
      this.line((i) => (marks.prompts.a[i] ? marks.hits.a[i] / marks.prompts.a[i] : NaN), theme.accent, 2, []);
      if (ghost) this.ghost(ghost);
      this.axis();
      this.ctx.strokeStyle = theme.line;
      this.ctx.lineWidth = 1;
      this.ctx.strokeRect(0.5, TOP - 0.5, this.width - 1, this.tall + 1);
      this.row(marks.eviction, theme.evict, (pen, x) => {
        pen.moveTo(x - 4, 3);
        pen.lineTo(x + 4, 3);
        pen.lineTo(x, 11);
      });
      this.row(marks.retract, theme.recomputed, (pen, x) => {
        pen.moveTo(x, 2);
        pen.lineTo(x + 4, 7);
        pen.lineTo(x, 12);
        pen.lineTo(x - 4, 7);
      });
    }

    /** Both fill and rates are shares of a whole. */
    axis() {
      const { ctx, theme } = this;
      ctx.font = `11px ${theme.font}`;
      ctx.fillStyle = theme.mute;
      ctx.textBaseline = "alphabetic";
      ctx.fillText("100 %", this.width + 5, TOP + 9);
      ctx.fillText("0", this.width + 5, this.bottom);
    }

    /** Pages in the tree, and of running requests on top: hatched, so that they differ without colour too. */
    fill() {
      const { ctx, theme, marks } = this;
      const tree = (i) => marks.cached.a[i] / this.pages;
      this.area(() => 0, tree);
      ctx.globalAlpha = 0.28;
      ctx.fillStyle = theme.cached;
      ctx.fill();
      this.area(tree, (i) => tree(i) + marks.private.a[i] / this.pages);
      ctx.globalAlpha = 0.75;
      ctx.fillStyle = theme.computed;
      ctx.fill();
      ctx.fillStyle = RP.hatching(ctx, theme.panel, 4);
      ctx.fill();
      ctx.globalAlpha = 1;
    }

    /** The path around what lies between two shares, in whole columns of pixels. */
    area(low, high) {
      const { ctx, bottom, tall } = this;
      ctx.beginPath();
      for (let x = 0; x < this.width; x++) {
        const y = bottom - tall * high(this.event(x));
        ctx.lineTo(x, y);
        ctx.lineTo(x + 1, y);
      }
      for (let x = this.width - 1; x >= 0; x--) {
        const y = bottom - tall * low(this.event(x));
        ctx.lineTo(x + 1, y);
        ctx.lineTo(x, y);
      }
    }

    /** A line of shares 0 to 1; NaN is left out. */
    line(value, colour, weight, dash) {
      const { ctx } = this;
      ctx.strokeStyle = colour;
      ctx.lineWidth = weight;
      ctx.setLineDash(dash);
      ctx.beginPath();
      for (let x = 0; x < this.width; x++) {
        const v = value(this.event(x));
        if (!Number.isNaN(v)) ctx.lineTo(x, this.bottom - 1 - (this.tall - 1) * v);
      }
      ctx.stroke();
      ctx.setLineDash([]);
    }

    /** Another run's line over this one's time; what lies beyond its end is not drawn. */
    ghost({ points }) {
      let at = -1;
      const { t } = this.trace;
      this.line((i) => {
        while (at + 1 < points.length && points[at + 1][0] <= t.a[i]) at++;
        return at < 0 ? NaN : points[at][1];
      }, this.theme.mute, 1.6, [6, 4]);
    }

    /** One mark a place: neighbours closer than five pixels are one. */
    row(list, colour, shape) {
      const { ctx } = this;
      ctx.fillStyle = colour;
      ctx.beginPath();
      let last = -Infinity;
      for (let i = 0; i < list.n; i++) {
        const x = this.place(list.a[i]);
        if (x - last < 5) continue;
        last = x;
        shape(ctx, x);
      }
      ctx.fill();
    }
  }
  RP.Curves = Curves;
})(globalThis.RadixPlayer);
