/** The whole run at a glance: curves and marks, the events of the selection, the cursor. */
(function (RP) {
  "use strict";

  const HEIGHT = 80;
  /** Room for the axis' words at the right, in pixels. */
  const GUTTER = 40;
  /** The selection's events stand under the curves. */
  const CHOSEN = 9;

  class Timeline {
    constructor(player) {
      this.player = player;
      this.panel = RP.panel("timeline", "Timeline");
      this.frame = RP.el("div", { class: "rp-frame" });
      this.panel.body.append(this.frame);
      this.surface = new RP.Surface(this.frame, "timeline", () => player.redraw());
      this.legend = RP.legend([
        ["fill-tree", "pages in the tree"], ["fill-private", "of running requests"], ["rate", "hit rate"],
        ["recent", `last ${RP.Marks.WINDOW} admissions`], ["ghost", ""], ["evict", "▼ eviction"], ["retract", "◆ sent back"],
        ["mine", "selected"],
      ]);
      this.panel.explain(this.legend);
      this.back = document.createElement("canvas");
      this.known = "";
      this.setGhost(null);
      const seek = (event) => player.seek(Math.round((this.surface.point(event)[0] / this.wide) * (player.trace.length - 1)));
      const canvas = this.surface.canvas;
      canvas.addEventListener("pointerdown", (event) => {
        canvas.setPointerCapture(event.pointerId);
        seek(event);
      });
      canvas.addEventListener("pointermove", (event) => {
        if (canvas.hasPointerCapture(event.pointerId)) seek(event);
      });
    }

    /** @param {?{label: string, points: number[][]}} ghost [seconds, share 0 to 1] each, times rising. */
    setGhost(ghost) {
      this.ghost = ghost && ghost.points.length ? ghost : null;
      this.known = "";
      this.legend.marks.ghost.hidden = !this.ghost;
      if (this.ghost) this.legend.marks.ghost.lastChild.textContent = ghost.label;
    }

    /** The width of the curves; the scrubber below is as wide. */
    get wide() {
      return Math.max(1, this.surface.width - GUTTER);
    }

    draw(state) {
      const { surface, player } = this;
      const ctx = surface.begin(HEIGHT);
      const n = player.trace.length;
      const key = [player.replica, n, surface.width, surface.ratio, Object.values(player.theme)].join();
      if (key !== this.known) {
        this.known = key;
        this.paintBack(n);
      }
      ctx.drawImage(this.back, 0, 0, surface.width, HEIGHT);
      this.paintChosen(ctx, n);
      const x = n > 1 ? (Math.max(0, state.seq) / (n - 1)) * this.wide : 0;
      ctx.fillStyle = player.theme.ink;
      ctx.fillRect(Math.max(0, Math.min(this.wide - 2, x - 1)), 0, 2, HEIGHT);
      this.tell(state);
    }

    paintBack(n) {
      const { width, ratio } = this.surface;
      this.back.width = Math.round(width * ratio);
      this.back.height = Math.round(HEIGHT * ratio);
      const ctx = this.back.getContext("2d");
      ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
      new RP.Curves(ctx, this.player, { width: this.wide, bottom: HEIGHT - CHOSEN - 2, n }).paint(this.ghost);
    }

    /** A stroke for each event of the selection, at most one a pixel. */
    paintChosen(ctx, n) {
      const list = this.player.chosenEvents;
      ctx.fillStyle = this.player.theme.ink;
      let last = -1;
      for (let i = 0; i < list.n; i++) {
        const x = Math.round((list.a[i] / Math.max(1, n - 1)) * (this.wide - 2));
        if (x > last) ctx.fillRect(x, HEIGHT - CHOSEN, 1.5, CHOSEN);
        last = x;
      }
    }

    tell(state) {
      const { player } = this;
      const { marks } = player.replay;
      const used = state.cachedPages + state.privatePages;
      const rate = RP.percent(state.total("cached_tokens"), state.total("prompt_tokens"));
      const recent = state.seq < 0 ? NaN : marks.recent.a[state.seq];
      const lately = Number.isNaN(recent) ? "" : `, lately ${Math.round(100 * recent)} %`;
      const end = player.trace.length ? player.trace.t.a[player.trace.length - 1] : 0;
      const last = this.ghost ? this.ghost.points[this.ghost.points.length - 1][0] : 0;
      const longer = last > end ? ` · ${this.ghost.label.split(":")[0]} goes on to ${RP.seconds(last)}` : "";
      this.legend.marks.mine.hidden = !player.selection;
      this.legend.marks.evict.hidden = !player.trace.has("eviction");
      this.legend.marks.retract.hidden = !player.trace.has("request.retracted");
      const words =
        `${RP.number(used)} of ${RP.count(state.pages, "page")} in use · hit rate ${rate}${lately}` +
        ` · ${RP.count(state.total("evictions"), "eviction")}${longer}`;
      this.panel.note.textContent = words;
      this.surface.canvas.setAttribute("aria-label", `Timeline: ${words} at the cursor.`);
    }
  }
  RP.Timeline = Timeline;
})(globalThis.RadixPlayer);
