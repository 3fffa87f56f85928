/** One lane a request: what it did and when, and what it has answered. A window of lanes and of time. */
(function (RP) {
  "use strict";

  const FONT = 11.5;
  const AXIS = 20;
  const BAR = RP.LANE_BAR;
  const R = RP.R;
  const LIVE = 3;
  /** How much closer one press looks, and how close at most. */
  const CLOSER = 2;
  const CLOSEST = 256;
  const SCROLLING = [["tabindex", "0"], ["role", "region"], ["aria-label", "lanes of all requests"]];

  class Lanes {
    constructor(player, options) {
      this.player = player;
      this.limit = options.lanes;
      this.bySteps = false;
      this.all = false;
      this.zoom = 1;
      this.panel = RP.panel("lanes", "Requests");
      this.rows = [];
      this.bars = { gaps: [] };
      this.build();
      this.listen();
    }

    build() {
      const { player } = this;
      this.frame = RP.el("div", { class: "rp-frame rp-lanes-frame" });
      this.window = RP.el("div", { class: "rp-window" });
      this.rest = RP.el("div");
      this.frame.append(this.window, this.rest);
      this.panel.body.append(this.frame);
      this.surface = new RP.Surface(this.window, "requests", () => player.redraw());
      this.tip = new RP.Tip(this.window, this.surface);
      const button = (text, label, act) =>
        RP.el("button", { type: "button", class: "rp-twin", text, "aria-label": label, title: label, on: { click: act } });
      this.allButton = button("all", "all requests, in order of arrival", () => this.showAll(!this.all));
      this.axisButton = button("by steps", "time axis by steps", () => {
        this.bySteps = !this.bySteps;
        this.axisButton.setAttribute("aria-pressed", String(this.bySteps));
        player.redraw();
      });
      this.closer = button("+", "look closer at the time around the cursor", () => this.look(this.zoom * CLOSER));
      this.wider = button("−", "see more time", () => this.look(this.zoom / CLOSER));
      for (const b of [this.allButton, this.axisButton]) b.setAttribute("aria-pressed", "false");
      this.legend = RP.legend([
        ["wait", "waiting"], ["hit", "tokens found in the cache: not computed"], ["computed", "prefill"], ["recomputed", "prefill again"],
        ["decode", "answering"], ["forced", "forced"], ["jumped", "jumped"], ["drafted", "drafted"], ["stall", "stalled"], ["retract", "◆ sent back"],
      ]);
      this.empty = RP.el("p", { class: "rp-hint", text: "No request has arrived yet." });
      this.hint = RP.el("button", { type: "button", class: "rp-link", hidden: "", on: { click: () => this.showAll(true) } });
      this.panel.body.append(this.empty, this.hint);
      this.panel.explain(this.legend);
      this.panel.tools.append(this.allButton, this.wider, this.closer, this.axisButton);
    }

    listen() {
      const { canvas } = this.surface;
      this.tip.watch((event) => this.told(event));
      this.frame.addEventListener("scroll", () => this.player.redraw());
      let grip = null;
      canvas.addEventListener("pointerdown", (event) => (grip = { x: this.surface.point(event)[0], low: this.low, moved: false }));
      canvas.addEventListener("pointermove", (event) => {
        if (!grip || !event.buttons || this.zoom === 1) return;
        const dx = this.surface.point(event)[0] - grip.x;
        if (Math.abs(dx) > 4) grip.moved = true;
        if (grip.moved) this.pan = { seq: this.player.seq, low: grip.low - dx / this.scale };
        this.player.redraw();
      });
      canvas.addEventListener("click", (event) => {
        if (grip && grip.moved) return;
        const number = this.rowAt(event);
        this.player.select(number === undefined ? null : { request: this.player.trace.requests[number].name });
      });
    }

    showAll(on) {
      this.all = on;
      this.allButton.setAttribute("aria-pressed", String(on));
      this.player.redraw();
    }

    look(zoom) {
      this.zoom = Math.max(1, Math.min(CLOSEST, zoom));
      this.pan = null;
      this.player.redraw();
    }

    /** Which requests to show while not all are: those that run, that wait, that ended last; and the selected. */
    choose(state) {
      const running = [];
      const ended = [];
      for (let i = state.requestCount - 1; i >= 0; i--) {
        const status = state.requestField(i, R.STATUS);
        if (status === 1 || status === 2) running.push(i);
        else if (status >= LIVE && ended.length < this.limit) ended.push(i);
      }
      const picked = [...new Set([...running, ...state.queue, ...ended])].slice(0, this.limit);
      const chosen = this.chosen(state);
      if (chosen !== undefined && !picked.includes(chosen)) picked.splice(this.limit - 1, 1, chosen);
      return picked.sort((a, b) => a - b);
    }

    /** The number of the selected request, once it has arrived. */
    chosen(state) {
      const { selection, trace } = this.player;
      const number = selection && selection.request ? trace.requestNumber(selection.request) : undefined;
      return number < state.requestCount ? number : undefined;
    }

    /** The lanes of the scrolled window, by arrival; goes to a request that is newly selected and out of sight. */
    scrolled(state) {
      const { selection } = this.player;
      const total = state.requestCount;
      this.rest.style.height = `${Math.max(0, total - this.limit) * this.rowHeight}px`;
      const number = this.chosen(state);
      const top = () => Math.max(0, Math.min(total - this.limit, Math.round(this.frame.scrollTop / this.rowHeight)));
      const away = number < top() || number >= top() + this.limit;
      if (away && selection !== this.sought) this.frame.scrollTop = Math.max(0, number - Math.floor(this.limit / 2)) * this.rowHeight;
      this.sought = selection;
      const first = top();
      return Array.from({ length: Math.min(this.limit, total) }, (_, i) => first + i);
    }

    /** The place of an event on the axis: seconds, or steps done. */
    value(seq) {
      return this.bySteps ? this.player.replay.segments.steps.a[seq] : this.player.trace.t.a[seq];
    }

    at(seq) {
      return this.left + (this.value(seq) - this.low) * this.scale;
    }

    draw(state) {
      const { surface, player } = this;
      const narrow = surface.available < 600;
      const many = player.trace.requests.length > this.limit;
      const scrolls = this.all && many;
      this.rowHeight = narrow ? 48 : 24;
      this.frame.classList.toggle("rp-scrolls", scrolls);
      if (scrolls) for (const [name, value] of SCROLLING) this.frame.setAttribute(name, value);
      else for (const [name] of SCROLLING) this.frame.removeAttribute(name);
      const shown = Math.max(1, Math.min(this.limit, player.trace.requests.length));
      const height = shown * this.rowHeight + AXIS;
      this.frame.style.maxHeight = scrolls ? `${height}px` : "";
      this.rest.hidden = !scrolls;
      this.rows = scrolls ? this.scrolled(state) : this.choose(state);
      const ctx = surface.begin(height);
      const answer = narrow ? 0 : surface.width * 0.28;
      this.left = narrow ? RP.LANE_FOUND + 1 : Math.min(170, surface.width * 0.18);
      this.right = surface.width - answer - 8;
      this.range(state, many);
      this.empty.hidden = state.requestCount > 0;
      this.paint(ctx, state, narrow);
      this.ticks(ctx, state, shown * this.rowHeight);
      this.tell(state, many);
    }

    paint(ctx, state, narrow) {
      const { theme, lit, replay } = this.player;
      this.bars = new RP.LaneBars(ctx, theme, { left: this.left, right: this.right, seq: state.seq, at: (seq) => this.at(seq) });
      this.rows.forEach((number, i) => {
        const top = i * this.rowHeight + (narrow ? 14 : 4);
        if (lit.requests.has(number)) {
          ctx.fillStyle = theme.soft;
          ctx.fillRect(0, i * this.rowHeight, this.surface.width, this.rowHeight);
          ctx.fillStyle = theme.ink;
          ctx.fillRect(0, i * this.rowHeight + 2, 3, this.rowHeight - 4);
        }
        this.bars.lane(number, replay.segments.lanes[number], top);
        this.words(ctx, state, number, top, narrow);
      });
    }

    /** The axis: the whole run while all requests fit, else from the first lane shown to the cursor; then the zoom. */
    range(state, many) {
      const { trace } = this.player;
      const [from, to] = many ? this.span(state) : [0, trace.length - 1];
      let low = many ? this.value(from) : 0;
      let high = Math.max(this.value(to), low);
      if (this.zoom > 1) {
        const span = (high - low) / this.zoom;
        const followed = this.value(Math.max(0, state.seq)) - 0.7 * span;
        const wanted = this.pan && this.pan.seq === state.seq ? this.pan.low : followed;
        low = Math.max(low, Math.min(high - span, wanted));
        high = low + span;
      }
      this.low = low;
      this.high = high;
      this.scale = (this.right - this.left) / (high - low || 1);
    }

    /** First and last event of the lanes shown. */
    span(state) {
      const { lanes } = this.player.replay.segments;
      const parts = this.rows.map((number) => lanes[number].parts);
      if (!parts.length) return [0, Math.max(0, state.seq)];
      const ends = parts.map((list) => list[list.length - 1].to);
      const over = this.all && ends.every((to) => to >= 0 && to <= state.seq);
      return [Math.min(...parts.map((list) => list[0].from)), over ? Math.max(...ends) : Math.max(0, state.seq)];
    }

    words(ctx, state, number, top, narrow) {
      const { theme, trace, lit } = this.player;
      const font = `${FONT}px ${theme.font}`;
      const label = lit.requests.has(number) ? `600 ${font}` : font;
      ctx.textBaseline = "alphabetic";
      ctx.fillStyle = theme.ink;
      const indent = lit.requests.has(number) ? 8 : 0;
      const room = (narrow ? this.surface.width : this.left - 10) - indent;
      ctx.fillText(RP.fitText(ctx, label, RP.requestName(trace, number), room), indent, narrow ? top - 3 : top + 12);
      const ended = state.requestField(number, R.STATUS) >= LIVE;
      const output = state.output(number);
      const text = RP.oneLine(RP.tokensText(trace, ended ? output.subarray(0, 80) : output.subarray(-80)));
      ctx.fillStyle = theme.mute;
      const space = narrow ? this.surface.width : this.surface.width - this.right - 12;
      const fitted = (ended ? RP.fitText : RP.fitEnd)(ctx, `${FONT}px ${theme.mono}`, text, space);
      ctx.fillText(fitted, narrow ? indent : this.right + 12, top + (narrow ? BAR + 11 : 12));
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
      if (this.rows.length && this.right < this.surface.width - 60) ctx.fillText("answer", this.right + 12, top + 15);
      const x = state.seq < 0 ? -1 : this.at(state.seq);
      if (x < this.left) return;
      if (x > this.right + 1) return;
      ctx.fillStyle = theme.ink;
      ctx.fillRect(Math.min(this.right, x) - 0.75, 0, 1.5, top + 3);
    }

    rowAt(event) {
      return this.rows[Math.floor(this.surface.point(event)[1] / this.rowHeight)];
    }

    /** What a pointer over a lane reads; over a stall, whose prefill it was. */
    told(event) {
      const number = this.rowAt(event);
      if (number === undefined) return null;
      const [x, y] = this.surface.point(event);
      return RP.laneTold(this.player, number, this.bars.gaps.find((g) => x >= g.x - 2 && x <= g.x + g.w + 2 && y >= g.top && y <= g.top + BAR));
    }

    tell(state, many) {
      const total = state.requestCount;
      const shown = this.rows.length;
      this.allButton.hidden = !many;
      this.wider.disabled = this.zoom === 1;
      this.closer.disabled = this.zoom === CLOSEST;
      const { sources } = this.player.replay.segments;
      for (const source of ["forced", "jumped", "drafted"]) this.legend.marks[source].hidden = !sources.has(source);
      for (const mark of ["recomputed", "retract"]) this.legend.marks[mark].hidden = !this.player.trace.has("request.retracted");
      this.legend.marks.hit.hidden = !this.player.replay.segments.founds;
      this.legend.marks.stall.hidden = !this.player.replay.segments.stalls;
      const some = this.all ? `from number ${RP.number((this.rows[0] || 0) + 1)} on, scroll for the rest` : "running, next to go, last ended";
      const which = shown < total ? `${RP.number(shown)} of ${RP.count(total, "request")} shown: ${some}` : RP.count(total, "request");
      this.hint.hidden = shown >= total || this.all;
      this.hint.textContent = `${RP.number(total - shown)} more: scroll through all ${RP.number(total)}`;
      const clock = this.bySteps ? "steps" : RP.clockWords(this.player.trace.header);
      this.panel.note.textContent = `${which} · ${clock}${this.zoom > 1 ? ` · ${this.zoom}× closer` : ""}`;
      this.surface.canvas.setAttribute("aria-label", `Lanes of ${which}. The table shows the same.`);
    }
  }

  RP.Lanes = Lanes;
})(globalThis.RadixPlayer);
