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
 *     p.setView("icicle" | "tree" | "table")
 *     p.play(+1 | -1 | 0, speed)          // forwards, backwards, stop; 0.5 to 16 times
 *     p.setGhost({ label, points: [[t, share], ...] } | null)  // another arm's line: seconds, 0 to 1
 *     p.setWhy(async (seq, selection) => answer | null, without)  // `workbench.explain`'s, as JSON; null: its own sentence, and `without`
 *     p.state()                           // { run, seq, events, selection, view, following, playing }
 *     p.digest()                          // hash of the folded state at the cursor
 *     p.on("ready" | "seek" | "select" | "view" | "follow", fn)
 *     p.slot("top" | "side")              // empty elements for the host
 *     p.setTheme(theme); p.destroy()
 *
 * The root carries data-ready, data-run, data-seq, data-events, data-following and, once the cursor has
 * rested, data-digest (of event data-digest-seq).
 */
(function (RP) {
  "use strict";

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
      this.take(new RP.Trace({}));
      this.setTheme(options.theme || "auto");
      Object.assign(this, RP.buildScreen(this, element.clientWidth));
      this.stopKeys = RP.listenKeys(options.keys === "page" ? document : this.root, this);
      this.stopTheme = RP.watchTheme(this.root, () => this.setTheme(this.themeName));
      this.moveTo(-1);
    }

    // --- the trace

    async load(source) {
      if (source.packed) this.take(await RP.unpack(source.packed));
      else if (source.jsonl) this.take(RP.parseJsonl(source.jsonl));
      else {
        const trace = new RP.Trace(typeof source.header === "string" ? JSON.parse(source.header) : source.header);
        for (const event of asEvents(source.events)) trace.push(event);
        this.take(trace);
      }
      this.run = source.run || this.trace.header.scenario || "run";
      RP.describe(this);
      this.root.dataset.run = this.run;
      this.moveTo(this.following ? this.trace.length - 1 : Math.min(0, this.trace.length - 1));
      this.root.dataset.ready = "true";
      this.emit("ready");
    }

    take(trace) {
      this.trace = trace;
      this.replay = new RP.Replay(trace);
      this.concerns = new RP.Concerns(trace);
      this.selection = null;
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
      this.tree.words.clear();
      for (const text of this.selected.texts) text.known = null;
      this.redraw();
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

    /** Select a node or a request; null clears. */
    select(selection) {
      this.selection = selection;
      this.redraw();
      this.emit("select");
    }

    /** Escape: the whole tree, nothing selected, no card beside the pointer. */
    clear() {
      for (const tip of this.root.querySelectorAll(".rp-tip")) tip.hidden = true;
      this.tree.icicle.zoomTo(-1);
      this.select(null);
    }

    /** A page's owner as a selection; null while it is free. */
    ownerOf(page) {
      const code = this.now.owner.get(page);
      if (!code) return null;
      return code & 1 ? { request: this.trace.requests[code >> 1].name } : { node: code >> 1 };
    }

    /** The events that concern the selection, as a `Growing`. */
    get chosenEvents() {
      return this.concerns.of(this.selection);
    }

    /** What belongs to the selection at the cursor; see selection.js. */
    get lit() {
      const { litFor: had, selection, seq } = this;
      if (!had || had.selection !== selection || had.seq !== seq || had.now !== this.now || had.layout.moment !== had.moment) this.litFor = this.light();
      return this.litFor.lit;
    }

    light() {
      const { selection, seq, now } = this;
      const { layout } = this.tree.icicle;
      return { selection, seq, now, layout, moment: layout.moment, lit: RP.lit(now, layout, selection, this.replay.hits) };
    }

    setView(view) {
      this.tree.setView(view);
      this.redraw();
      this.emit("view");
    }

    play(direction, speed = this.scrubber.speed) {
      this.scrubber.setSpeed(speed);
      this.scrubber.toggle(direction !== 0, direction || 1);
    }

    setGhost(ghost) {
      this.timeline.setGhost(ghost);
      this.redraw();
    }

    setWhy(fn, without) {
      this.why.setAsk(fn, without);
      this.redraw();
    }

    state() {
      const { run, seq, selection, following } = this;
      return { run, seq, events: this.trace.length, selection, view: this.tree.view, following, playing: this.scrubber.playing };
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
      if (fresh) this.tree.take(state, now);
      const moving = this.tree.draw(now, elapsed);
      if (!dirty) return moving;
      this.tree.drawTable();
      for (const view of this.views) view.draw(state);
      for (const twin of this.twins) if (twin.shown) twin.holder.replaceChildren(twin.make());
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
      if (this.tree) this.redraw();
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
      this.why.destroy();
      this.queue.destroy();
      for (const { surface } of [this.tree.icicle, this.tree.graph, this.pool, this.lanes, this.timeline]) surface.observer.disconnect();
      this.root.remove();
    }
  }

  const asEvents = (events) => (typeof events === "string" ? JSON.parse(events) : events || []);

  RP.mount = (element, options = {}) => new Player(element, options);
})(globalThis.RadixPlayer);
