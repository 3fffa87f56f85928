/** How one request's life is painted along the time axis. */
(function (RP) {
  "use strict";

  const BAR = 16;
  RP.LANE_BAR = BAR;

  /**
   * Paints lanes at `axis.at(seq)` pixels, clipped to [axis.left, axis.right], up to event `axis.seq`.
   * `gaps` of stalls are kept for hovering: {x, w, top, stall, number}.
   */
  class LaneBars {
    constructor(ctx, theme, axis) {
      this.ctx = ctx;
      this.theme = theme;
      this.axis = axis;
      this.gaps = [];
    }

    lane(number, lane, top) {
      const { seq } = this.axis;
      for (const part of lane.parts) if (part.from <= seq) this.part(part, top);
      for (const stall of lane.stalls) if (stall.from <= seq) this.stall(number, stall, top);
      for (const token of lane.tokens) if (token.seq <= seq) this.token(token, top);
      for (const at of lane.retracts) if (at <= seq) this.retract(at, top);
      const end = lane.parts[lane.parts.length - 1].to;
      if (end >= 0 && end <= seq && this.axis.at(end) < this.axis.left) this.earlier(top);
    }

    /** All of it lies before what the axis shows. */
    earlier(top) {
      const { ctx, theme } = this;
      ctx.fillStyle = theme.mute;
      ctx.fillText(RP.fitText(ctx, `11.5px ${theme.font}`, "◂ earlier", 90), this.axis.left + 2, top + 12);
    }

    /** [x, width] of a span of events, cut at the axis' ends and at the cursor. */
    span({ from, to }, least) {
      const { left, right, seq } = this.axis;
      const start = this.axis.at(from);
      const end = this.axis.at(to < 0 || to > seq ? seq : to);
      if (end < left || start > right) return [0, 0];
      const x = Math.max(left, start);
      return [x, Math.min(right - x, Math.max(least, end - x - 1))];
    }

    part(part, top) {
      const { ctx, theme } = this;
      const waiting = part.sort === "waiting";
      const [x, w] = this.span(part, waiting ? 0 : 1.5);
      if (w <= 0) return;
      if (waiting) {
        ctx.fillStyle = theme.wait;
        ctx.fillRect(x, top + BAR / 2 - 3, w, 6);
      } else if (part.sort === "decode") {
        ctx.fillStyle = theme.decode;
        ctx.fillRect(x, top, w, BAR);
      } else this.prefill(part, x, w, top);
    }

    prefill(part, x, w, top) {
      const { ctx, theme } = this;
      const kept = (w * part.kept) / (part.kept + part.computed || 1);
      ctx.fillStyle = theme.cached;
      ctx.fillRect(x, top, kept, BAR);
      RP.hatch(ctx, x, top, kept, BAR, theme.panel, 6);
      ctx.fillStyle = part.again ? theme.recomputed : theme.computed;
      ctx.fillRect(x + kept, top, w - kept, BAR);
      if (!part.again || w - kept < 4) return;
      ctx.fillStyle = theme.panel;
      ctx.fillRect(x + kept + 1, top + BAR / 2 - 1, w - kept - 2, 2);
    }

    /** A hole in the answer: others' prefill ran. */
    stall(number, stall, top) {
      const { ctx, theme } = this;
      const [x, w] = this.span(stall, 3);
      if (w <= 0) return;
      ctx.fillStyle = theme.panel;
      ctx.fillRect(x, top, w, BAR);
      RP.hatch(ctx, x, top, w, BAR, theme.mute, 5);
      ctx.strokeStyle = theme.mute;
      ctx.lineWidth = 1;
      if (w > 5) ctx.strokeRect(x + 0.5, top + 0.5, w - 1, BAR - 1);
      this.gaps.push({ x, w, top, stall, number });
    }

    /** A token that was not simply sampled: forced is a notch, jumped a bar of its own colour. */
    token({ seq, source }, top) {
      const { ctx, theme } = this;
      const { left, right } = this.axis;
      const x = this.axis.at(seq);
      if (x < left || x > right) return;
      ctx.fillStyle = source === "jumped" ? theme.jump : theme.panel;
      if (source === "jumped") ctx.fillRect(x - 2, top, 3, BAR);
      else ctx.fillRect(x - 1.5, top + BAR / 2, 2, BAR / 2);
    }

    /** Sent back to the queue. */
    retract(seq, top) {
      const { ctx } = this;
      const { left, right } = this.axis;
      const x = this.axis.at(seq);
      if (x < left || x > right) return;
      const middle = top + BAR / 2;
      ctx.fillStyle = this.theme.recomputed;
      ctx.strokeStyle = this.theme.panel;
      ctx.lineWidth = 1.5;
      ctx.beginPath();
      ctx.moveTo(x, middle - 7);
      ctx.lineTo(x + 6, middle);
      ctx.lineTo(x, middle + 7);
      ctx.lineTo(x - 6, middle);
      ctx.closePath();
      ctx.fill();
      ctx.stroke();
    }
  }
  RP.LaneBars = LaneBars;
})(globalThis.RadixPlayer);
