/** One lane a request: waiting, prefill (cached and computed), answering; and what it has answered. */
(function (RP) {
  "use strict";

  const BAR = 16;
  const FONT = 11.5;
  const AXIS = 20;
  const R = RP.R;
  const LIVE = 3;

  class Lanes {
    constructor(player, options) {
      this.player = player;
      this.limit = options.lanes;
      this.bySteps = false;
      this.panel = RP.panel("lanes", "Requests");
      this.frame = RP.el("div", { class: "rp-frame" });
      this.panel.body.append(this.frame);
      this.surface = new RP.Surface(this.frame, "requests", () => player.redraw());
      this.axis = RP.el("button", { type: "button", class: "rp-twin", text: "by steps", "aria-pressed": "false" });
      this.axis.addEventListener("click", () => {
        this.bySteps = !this.bySteps;
        this.axis.setAttribute("aria-pressed", String(this.bySteps));
        player.redraw();
      });
      this.panel.tools.append(
        RP.legend([
          ["wait", "waiting"], ["hit", "prefill, cached"], ["computed", "computed"],
          ["recomputed", "computed again"], ["decode", "answering"],
        ]),
        this.axis,
      );
      this.rows = [];
      this.surface.canvas.addEventListener("click", (event) => {
        const row = this.rows[Math.floor(this.surface.point(event)[1] / this.rowHeight)];
        if (row !== undefined) player.select({ request: player.trace.requests[row].name });
      });
    }

    /** Which requests to show: those that run, then those that wait, then the latest that ended. */
    choose(state) {
      const running = [];
      const ended = [];
      for (let i = state.requestCount - 1; i >= 0; i--) {
        const status = state.requestField(i, R.STATUS);
        if (status === 1 || status === 2) running.push(i);
        else if (status >= LIVE && ended.length < this.limit) ended.push(i);
      }
      const picked = running.slice(0, this.limit);
      picked.push(...state.queue.slice(0, Math.max(0, this.limit - picked.length)));
      picked.push(...ended.slice(0, Math.max(0, this.limit - picked.length)));
      return picked.sort((a, b) => a - b);
    }

    /** The place of an event on the axis: seconds, or steps done. */
    value(seq) {
      return this.bySteps ? this.player.replay.segments.steps.a[seq] : this.player.trace.t.a[seq];
    }

    draw(state) {
      const { surface, player } = this;
      const narrow = surface.available < 600;
      this.rows = this.choose(state);
      this.rowHeight = narrow ? 48 : 24;
      const shown = Math.max(1, Math.min(this.limit, player.trace.requests.length));
      const ctx = surface.begin(shown * this.rowHeight + AXIS);
      const label = narrow ? 0 : Math.min(170, surface.width * 0.18);
      const answer = narrow ? 0 : surface.width * 0.28;
      this.left = label;
      this.right = surface.width - answer - 8;
      this.range(state);
      const lanes = player.replay.segments.lanes;
      this.rows.forEach((number, i) => {
        const top = i * this.rowHeight + (narrow ? 14 : 4);
        for (const segment of lanes[number]) if (segment.from <= state.seq) this.bar(ctx, state, segment, top);
        this.words(ctx, state, number, top, narrow);
      });
      this.ticks(ctx, state, shown * this.rowHeight);
      this.tell(state);
    }

    /** The axis: the whole run while all requests fit, else from the first lane shown to the cursor. */
    range(state) {
      const { trace, replay } = this.player;
      const all = trace.requests.length <= this.limit;
      const starts = this.rows.map((number) => this.value(replay.segments.lanes[number][0].from));
      this.low = all || !starts.length ? 0 : Math.min(...starts);
      this.high = Math.max(this.value(all ? trace.length - 1 : Math.max(0, state.seq)), this.low);
      this.scale = (this.right - this.left) / (this.high - this.low || 1);
    }

    at(seq) {
      return this.left + (this.value(seq) - this.low) * this.scale;
    }

    bar(ctx, state, segment, top) {
      const theme = this.player.theme;
      const to = segment.to < 0 || segment.to > state.seq ? state.seq : segment.to;
      const x = Math.max(this.left, this.at(segment.from));
      const w = Math.min(this.right - x, Math.max(segment.sort === "waiting" ? 0 : 1.5, this.at(to) - x - 1));
      if (w <= 0) return;
      if (segment.sort !== "prefill") {
        ctx.fillStyle = segment.sort === "waiting" ? theme.wait : theme.decode;
        ctx.fillRect(x, segment.sort === "waiting" ? top + BAR / 2 - 3 : top, w, segment.sort === "waiting" ? 6 : BAR);
        return;
      }
      const whole = segment.kept + segment.computed || 1;
      const kept = (w * segment.kept) / whole;
      ctx.fillStyle = theme.cached;
      ctx.fillRect(x, top, kept, BAR);
      RP.hatch(ctx, x, top, kept, BAR, theme.panel, 6);
      ctx.fillStyle = segment.again ? theme.recomputed : theme.computed;
      ctx.fillRect(x + kept, top, w - kept, BAR);
    }

    words(ctx, state, number, top, narrow) {
      const { theme, trace, selection } = this.player;
      const font = `${FONT}px ${theme.font}`;
      const mono = `${FONT}px ${theme.mono}`;
      const name = trace.requests[number].name;
      const chosen = selection && selection.request === name;
      ctx.textBaseline = "alphabetic";
      ctx.fillStyle = theme.ink;
      const label = chosen ? `600 ${font}` : font;
      const room = narrow ? this.surface.width : this.left - 10;
      ctx.fillText(RP.fitText(ctx, label, `${chosen ? "▸ " : ""}${RP.requestName(trace, number)}`, room), 0, narrow ? top - 3 : top + 12);
      const ended = state.requestField(number, R.STATUS) >= LIVE;
      const output = state.output(number);
      const text = RP.oneLine(RP.tokensText(trace, ended ? output.subarray(0, 80) : output.subarray(-80)));
      ctx.fillStyle = theme.mute;
      const space = narrow ? this.surface.width : this.surface.width - this.right - 12;
      const fitted = (ended ? RP.fitText : RP.fitEnd)(ctx, mono, text, space);
      ctx.fillText(fitted, narrow ? 0 : this.right + 12, top + (narrow ? BAR + 11 : 12));
    }

    /** Start, middle and end of the axis, and the cursor. */
    ticks(ctx, state, top) {
      const theme = this.player.theme;
      ctx.font = `${FONT}px ${theme.font}`;
      ctx.fillStyle = theme.mute;
      const unit = (v) => (this.bySteps ? `step ${RP.number(Math.round(v))}` : RP.instant(v, this.high - this.low));
      for (const [part, align] of [[0, "left"], [0.5, "center"], [1, "right"]]) {
        ctx.textAlign = align;
        ctx.fillText(unit(this.low + part * (this.high - this.low)), this.left + part * (this.right - this.left), top + 15);
      }
      ctx.textAlign = "left";
      if (state.seq < 0) return;
      ctx.fillStyle = theme.ink;
      ctx.fillRect(Math.min(this.right, this.at(state.seq)) - 0.75, 0, 1.5, top + 3);
    }

    tell(state) {
      const total = state.requestCount;
      const shown = this.rows.length;
      const which = shown < total ? `${RP.number(shown)} of ${RP.count(total, "request")}: running, next to go, last ended` : RP.count(total, "request");
      const clock = this.bySteps ? "steps" : RP.clockWords(this.player.trace.header);
      this.panel.note.textContent = `${which} · ${clock}`;
      this.surface.canvas.setAttribute("aria-label", `Lanes of ${which}. The table shows the same.`);
    }
  }
  RP.Lanes = Lanes;
})(globalThis.RadixPlayer);
