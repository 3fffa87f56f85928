/** How one request's life is painted along the time axis. */
(function (RP) {
  "use strict";

  const BAR = 16;
  RP.LANE_BAR = BAR;
  /** Width of the mark for tokens found in the cache: it stands before the prefill, as they were not computed. */
  const FOUND = 5;
  RP.LANE_FOUND = FOUND;

  /**
   * Paints lanes at `axis.at(seq)` pixels, clipped to [axis.left, axis.right], up to event `axis.seq`.
   * `gaps` of stalls are kept for hovering: {x, w, top, stall, number}; `founds` are the marks of what came
   * from the cache: {x, number, tokens, told}, `told` where there was room for the count.
   */
  class LaneBars {
    constructor(ctx, theme, axis) {
      this.ctx = ctx;
      this.theme = theme;
      this.axis = axis;
      this.gaps = [];
      this.founds = [];
    }

    lane(number, lane, top) {
      const { seq } = this.axis;
      for (const part of lane.parts) if (part.from <= seq) this.part(part, top);
      lane.parts.forEach((part, i) => {
        if (part.kept && part.from <= seq) this.found(number, part, this.freeFrom(lane.parts, i), top);
      });
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

    /** All of it is computing: what was found in the cache was not; a load from the host comes before the step's forward. */
    prefill(part, x, w, top) {
      const { ctx, theme } = this;
      ctx.fillStyle = part.again ? theme.recomputed : theme.computed;
      ctx.fillRect(x, top, w, BAR);
      if (!part.again || w < 4) return;
      ctx.fillStyle = theme.panel;
      ctx.fillRect(x + 1, top + BAR / 2 - 1, w - 2, 2);
    }

    /** Where the room before part `i` begins, in pixels: only its waiting is drawn there. */
    freeFrom(parts, i) {
      const before = parts.slice(0, i).findLast((part) => part.sort !== "waiting");
      return Math.max(this.axis.left, before ? this.axis.at(before.to) : 0);
    }

    /** Tokens that came from the cache: a mark where the prefill begins, and how many where there is room. */
    found(number, part, free, top) {
      const { ctx, theme } = this;
      const { left, right } = this.axis;
      const at = this.axis.at(part.from);
      if (at < left || at > right) return;
      const x = at - FOUND - 1;
      ctx.fillStyle = theme.cached;
      ctx.fillRect(x, top, FOUND, BAR);
      RP.hatch(ctx, x, top, FOUND, BAR, theme.panel, 6);
      const text = RP.number(part.kept);
      ctx.font = `11.5px ${theme.font}`;
      const width = ctx.measureText(text).width;
      const told = x - 3 - width > free;
      this.founds.push({ x, number, tokens: part.kept, told });
      if (!told) return;
      ctx.lineWidth = 4;
      ctx.lineJoin = "round";
      ctx.strokeStyle = theme.panel;
      ctx.strokeText(text, x - 3 - width, top + 12);
      ctx.fillStyle = theme.ink;
      ctx.fillText(text, x - 3 - width, top + 12);
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

    /** A token that was not simply sampled: forced is a notch, jumped or drafted a bar of its own colour. */
    token({ seq, source }, top) {
      const { ctx, theme } = this;
      const { left, right } = this.axis;
      const x = this.axis.at(seq);
      if (x < left || x > right) return;
      const passless = source !== "forced";
      ctx.fillStyle = passless ? theme.jump : theme.panel;
      if (passless) ctx.fillRect(x - 2, top, 3, BAR);
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
