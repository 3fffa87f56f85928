/**
 * The player: one element that shows (trace, position, selection).
 *
 *     const p = RadixPlayer.mount(el, { theme: "auto" | "light" | "dark", compact, title, note, recorded, keys });
 *     await p.load({ packed })            // base64 of `workbench.export.pack`
 *     await p.load({ jsonl })             // a trace file's text
 *     await p.load({ header, events })    // header object; events as objects or as one JSON string
 *     p.append(events)                    // objects or JSON string; returns the next seq it wants (a gap: unchanged)
 *     p.addTexts({ 318: " the" })         // token texts that came after the header (live)
 *     p.follow(true)                      // stay at the newest event
 *     p.seek(seq); p.step(+1); p.select({ node: 9 } | { request: "R1" } | null)
 *     p.state()                           // { run, seq, events, selection, following, playing }
 *     p.digest()                          // hash of the folded state at the cursor
 *     p.on("ready" | "seek" | "select" | "follow", fn)
 *     p.slot("top" | "side")              // empty elements for the host
 *     p.setTheme(theme); p.destroy()
 *
 * The root carries data-ready, data-run, data-seq, data-events, data-following and, once the cursor has
 * rested, data-digest (of event data-digest-seq).
 */
(function (RP) {
  "use strict";

  const FULL = { height: 292, pool: 56, lanes: 7 };
  const PHONE = { height: 290, pool: 56, lanes: 4 };
  const COMPACT = { height: 232, pool: 32, lanes: 5 };
  /** The digest costs a walk over all tokens: it waits until the cursor rests, in milliseconds. */
  const REST = 120;

  class Player {
    constructor(element, options) {
      this.options = options;
      this.listeners = new Map();
      this.selection = null;
      this.following = false;
      this.seq = -1;
      this.frame = 0;
      this.motion = matchMedia("(prefers-reduced-motion: reduce)");
      this.root = RP.el("div", { class: "radix-player", tabindex: "-1", "data-ready": "false" });
      if (options.compact) this.root.classList.add("rp-compact");
      element.replaceChildren(this.root);
      this.trace = new RP.Trace({});
      this.replay = new RP.Replay(this.trace);
      this.setTheme(options.theme || "auto");
      this.build(options.compact ? COMPACT : element.clientWidth < 600 ? PHONE : FULL);
      this.stopKeys = RP.listenKeys(options.keys === "page" ? document : this.root, this);
      this.stopTheme = RP.watchTheme(this.root, () => this.setTheme(this.themeName));
      this.moveTo(-1);
    }

    build(size) {
      this.head = RP.el("header", { class: "rp-title", hidden: "" });
      this.slots = { top: RP.el("div", { class: "rp-slot" }), side: RP.el("div", { class: "rp-slot" }) };
      this.icicle = new RP.Icicle(this, size);
      this.pool = new RP.Pool(this, size);
      this.lanes = new RP.Lanes(this, size);
      this.timeline = new RP.Timeline(this);
      this.scrubber = new RP.Scrubber(this);
      this.why = new RP.Why(this);
      this.eviction = new RP.LastEviction(this);
      this.selected = new RP.Selection(this);
      this.twins = [
        this.twin(this.icicle, "tree", this.treeTable()),
        this.twin(this.pool, "pages", { make: () => RP.poolTable(this) }),
        this.twin(this.lanes, "requests", { make: () => RP.requestTable(this) }),
        this.twin(this.timeline, "events", { make: () => RP.eventTable(this) }),
      ];
      this.root.append(
        this.head,
        this.slots.top,
        RP.el(
          "div",
          { class: "rp-main" },
          RP.el("div", { class: "rp-col" }, ...[this.icicle, this.pool, this.lanes, this.timeline].map((p) => p.panel.root), this.scrubber.root),
          RP.el("div", { class: "rp-col rp-side" }, ...[this.why, this.eviction, this.selected].map((p) => p.panel.root), this.slots.side),
        ),
      );
    }

    /** The tree's twin keeps its rows' focus, so it is filled and not made anew. */
    treeTable() {
      const grid = new RP.TreeGrid(this);
      return {
        make: () => {
          grid.draw(this.now, this.icicle.layout);
          return grid.root;
        },
      };
    }

    /** A picture and its table; only the one that is shown is drawn. */
    twin(view, what, table) {
      const twin = { shown: false, table, holder: RP.el("div", { hidden: "" }), view };
      view.panel.body.prepend(twin.holder);
      view.panel.tools.append(
        RP.twinSwitch(what, (shown) => {
          twin.shown = shown;
          twin.holder.hidden = !shown;
          view.frame.hidden = shown;
          this.redraw();
        }),
      );
      return twin;
    }

    // --- the trace

    async load(source) {
      if (source.packed) this.trace = await RP.unpack(source.packed);
      else if (source.jsonl) this.trace = RP.parseJsonl(source.jsonl);
      else {
        this.trace = new RP.Trace(typeof source.header === "string" ? JSON.parse(source.header) : source.header);
        for (const event of asEvents(source.events)) this.trace.push(event);
      }
      this.run = source.run || this.trace.header.scenario || "run";
      this.replay = new RP.Replay(this.trace);
      this.selection = null;
      this.describe();
      this.root.dataset.run = this.run;
      this.moveTo(this.following ? this.trace.length - 1 : Math.min(0, this.trace.length - 1));
      this.root.dataset.ready = "true";
      this.emit("ready");
    }

    append(events) {
      const wanted = this.trace.length;
      for (const event of asEvents(events)) {
        if (event.seq < this.trace.length) continue;
        if (event.seq > this.trace.length) break;
        this.trace.push(event);
      }
      if (this.trace.length > wanted) {
        this.replay.extend();
        if (this.following) this.moveTo(this.trace.length - 1);
        else this.redraw();
      }
      return this.trace.length;
    }

    addTexts(texts) {
      Object.assign(this.trace.texts, texts);
      this.icicle.texts.clear();
      this.redraw();
    }

    /** Title, where the run was made, and that it is a recording. */
    describe() {
      const { title, note, recorded } = this.options;
      const h = this.trace.header;
      const made = [h.model, h.device, h.dtype].filter(Boolean).join(" · ") || h.executor;
      this.head.hidden = !title;
      this.head.replaceChildren(
        RP.el("h1", { text: title || "" }),
        ...[made, RP.clockWords(h), recorded ? "recorded run" : null].filter(Boolean).map((text) => RP.el("span", { class: "rp-chip", text })),
        RP.el("p", { class: "rp-lead", text: note || "" }),
      );
    }

    // --- the position

    /** Go to an event; stops playing and following. Returns true (the key was of use). */
    seek(seq) {
      if (this.scrubber.playing) this.scrubber.toggle(false);
      const to = Math.max(Math.min(0, this.trace.length - 1), Math.min(this.trace.length - 1, Math.round(seq)));
      if (this.following && to < this.trace.length - 1) this.follow(false);
      this.moveTo(to);
      return true;
    }

    step(by) {
      return this.seek(this.seq + by);
    }

    /** Put the cursor after event `seq` and show it. */
    moveTo(seq) {
      this.seq = seq;
      this.now = this.replay.at(seq);
      this.stale = true;
      this.root.dataset.seq = String(seq);
      this.root.dataset.events = String(this.trace.length);
      this.redraw();
      this.emit("seek");
    }

    follow(on) {
      this.following = on;
      this.root.dataset.following = String(on);
      if (on) this.moveTo(this.trace.length - 1);
      this.emit("follow");
    }

    select(selection) {
      this.selection = selection;
      this.redraw();
      this.emit("select");
    }

    state() {
      const { run, seq, selection, following } = this;
      return { run, seq, events: this.trace.length, selection, following, playing: this.scrubber.playing };
    }

    digest() {
      return RP.digest(this.now);
    }

    // --- drawing

    /** Whether movement is unwelcome. */
    get still() {
      return this.motion.matches;
    }

    /** Draw in the next frame; all changes before it are shown together. */
    redraw() {
      this.dirty = true;
      this.schedule();
    }

    /** The same moment again in another width. */
    relayout() {
      this.stale = true;
      this.redraw();
    }

    schedule() {
      if (!this.frame) this.frame = requestAnimationFrame((now) => this.tick(now));
    }

    tick(now) {
      this.frame = 0;
      const elapsed = this.last === undefined ? 16 : Math.min(100, now - this.last);
      if (this.scrubber.playing) this.scrubber.advance(elapsed);
      const moving = this.draw(now, elapsed);
      this.last = moving || this.scrubber.playing ? now : undefined;
      if (moving || this.scrubber.playing) this.schedule();
    }

    /** Draw now: everything when something changed, else only the moving tree. Returns whether it still moves. */
    draw(now = performance.now(), elapsed = 16) {
      const state = this.now;
      const { stale: fresh, dirty } = this;
      this.stale = this.dirty = false;
      if (fresh) this.icicle.take(state, now);
      const moving = this.icicle.draw(now, elapsed);
      if (!dirty) return moving;
      for (const view of [this.pool, this.lanes, this.timeline, this.scrubber, this.why, this.eviction, this.selected]) view.draw(state);
      for (const twin of this.twins) if (twin.shown) twin.holder.replaceChildren(twin.table.make());
      if (fresh) this.restDigest();
      return moving;
    }

    restDigest() {
      clearTimeout(this.digestTimer);
      this.digestTimer = setTimeout(() => {
        this.root.dataset.digestSeq = String(this.seq);
        this.root.dataset.digest = this.digest();
      }, REST);
    }

    setTheme(name) {
      this.themeName = name;
      if (name === "auto") delete this.root.dataset.theme;
      else if (this.root.dataset.theme !== name) this.root.dataset.theme = name;
      this.theme = RP.readTheme(this.root);
      if (this.icicle) this.redraw();
    }

    // --- the host

    slot(name) {
      return this.slots[name];
    }

    on(name, fn) {
      if (!this.listeners.has(name)) this.listeners.set(name, new Set());
      this.listeners.get(name).add(fn);
      return () => this.listeners.get(name).delete(fn);
    }

    emit(name) {
      for (const fn of this.listeners.get(name) || []) fn(this.state());
    }

    destroy() {
      cancelAnimationFrame(this.frame);
      clearTimeout(this.digestTimer);
      this.stopKeys();
      this.stopTheme();
      for (const view of [this.icicle, this.pool, this.lanes, this.timeline]) view.surface.observer.disconnect();
      this.root.remove();
    }
  }

  const asEvents = (events) => (typeof events === "string" ? JSON.parse(events) : events || []);

  RP.mount = (element, options = {}) => new Player(element, options);
})(globalThis.RadixPlayer);
