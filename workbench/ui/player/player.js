/**
 * The player: one element that shows (trace, position, selection).
 *
 *     const p = RadixPlayer.mount(el, { theme: "auto" | "light" | "dark", compact, title, note, recorded, keys });
 *     await p.load({ packed })            // base64 of `workbench.export.pack`
 *     await p.load({ jsonl })             // a trace file's text
 *     await p.load({ header, events })    // header object; events as objects or as one JSON string
 *     p.append(events)                    // objects or JSON string; returns the next seq it wants, of the whole run (a gap: unchanged)
 *     p.addTexts({ 318: " the" })         // token texts that came after the header (live)
 *     p.follow(true)                      // stay at the newest event
+' *     p.seek(seq); p.step(+1); p.select({ node: 9 } | { request: "R1" } | null)
 *     p.show(replica)                     // of a run of several replicas this one, at the same moment; `seq` counts its own events
 *     p.seekMoment(n)                     // to event n of the whole run
 *     p.setView("icicle" | "tree" | "table")
 *     p.play(+1 | -1 | 0, speed)          // forwards, backwards, stop; 0.5 to 16 times
 *     p.setGhost({ label, points: [[t, share], ...] } | null)  // another arm's line: seconds, 0 to 1
 *     p.setWhy(async (seq, selection, replica) => answer | null, without)  // `workbench.explain`'s, as JSON; null: its own sentence, and `without`
 *     p.state()                           // { run, replica, seq, moment, events, selection, view, following, playing }
 *     p.digest()                          // hash of the folded state at the cursor
 *     p.on("ready" | "seek" | "select" | "view" | "follow", fn)
 *     p.slot("top" | "side")              // empty elements for the host
 *     p.setTheme(theme); p.destroy()
 *
 * The root carries data-ready, data-run, data-replica, data-seq, data-events (of the whole run), data-following and,
 * once the cursor has rested, data-digest (of event data-digest-seq).
 *
 * `trace`, `replay`, `concerns` and `seq` are those of the replica that is shown; `fleet` holds them all. `moment` is
 * the event of the whole run at which the others are looked at.
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
      this.take(RP.Fleet.ofHeader({}));
      this.setTheme(options.theme || "auto");
      Object.assign(this, RP.buildScreen(this, element.clientWidth));
      this.stopKeys = RP.listenKeys(options.keys === "page" ? document : this.root, this);
      this.stopTheme = RP.watchTheme(this.root, () => this.setTheme(this.themeName));
      this.moveTo(-1);
    }

    // --- the trace

    async load(source) {
      if (source.packed) this.take(await RP.Fleet.unpack(source.packed));
      else if (source.jsonl) this.take(RP.Fleet.parse(source.jsonl));
      else {
        const fleet = RP.Fleet.ofHeader(typeof source.header === "string" ? JSON.parse(source.header) : source.header);
        for (const event of asEvents(source.events)) fleet.push(event);
        this.take(fleet.extend());
      }
      this.run = source.run || this.trace.header.scenario || "run";
      RP.describe(this);
      this.root.dataset.run = this.run;
      if (this.following) this.moveToNewest();
      else this.moveTo(Math.min(0, this.trace.length - 1));
      this.root.dataset.ready = "true";
      this.emit("ready");
    }

    take(fleet) {
      this.fleet = fleet;
      this.use(0);
    }

    get replicas() {
      return this.fleet.replicas;
    }

    /** The replica that is shown. */
    get shown() {
      return this.replicas[this.replica];
    }

    /** Let all views be of replica `number`; nothing of another is kept. */
    use(number) {
      this.replica = number;
      const { trace, replay, concerns } = this.shown;
      Object.assign(this, { trace, replay, concerns, selection: null });
      this.root.dataset.replica = String(number);
      if (!this.tree) return;
      this.tree.icicle.shown = -2; // from another tree nothing moves over
      for (const text of this.selected.texts) text.known = null;
      RP.tellReplica(this);
    }

    append(events) {
      const { fleet } = this;
      const wanted = fleet.length;
      for (const event of asEvents(events)) {
        if (event.seq < fleet.length) continue;
        if (event.seq > fleet.length) break;
        fleet.push(event);
      }
      if (fleet.length > wanted) {
        fleet.extend();
        if (this.following) this.moveToNewest();
        else this.redraw();
      }
      return fleet.length;
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
      if (this.following) this.moveToNewest();
      else this.moveTo(to);
      return true;
    }

    /** Go to the run's event `n`: to the newest that the shown replica had told by then. */
    seekMoment(n) {
      const moment = Math.max(0, Math.min(this.fleet.length - 1, Math.round(n) || 0));
      this.seek(Math.max(0, this.shown.at(moment)));
      if (!this.following) this.moveTo(this.seq, moment);
    }

    /** Show another replica, at the same moment. */
    show(number) {
      if (number === this.replica || !this.replicas[number]) return;
      const { moment } = this;
      this.use(number);
      this.moveTo(this.shown.at(moment), moment);
    }

    step(by) {
      return this.seek(this.seq + by);
    }

    /** Put the cursor after event `seq` and show it; the other replicas are shown as they were at the run's event `moment`. */
    moveTo(seq, moment = this.shown.moment(seq)) {
      this.seq = seq;
      this.moment = moment;
      this.now = this.replay.at(seq);
      this.stale = true;
      this.root.dataset.seq = String(seq);
      this.root.dataset.events = String(this.fleet.length);
      this.redraw();
      this.emit("seek");
    }

    moveToNewest() {
      this.moveTo(this.trace.length - 1, this.fleet.length - 1);
    }

    follow(on) {
      this.following = on;
      this.root.dataset.following = String(on);
      if (on) this.moveToNewest();
      this.emit("follow");
    }

    /** Select a node of the replica that is shown, or a request, whose replica is shown then; null clears. */
    select(selection) {
      if (selection && selection.request) this.show(this.fleet.homeOf(selection.request));
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
      const { run, replica, seq, moment, selection, following } = this;
      return { run, replica, seq, moment, events: this.fleet.length, selection, view: this.tree.view, following, playing: this.scrubber.playing };
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
      this.cards.destroy();
      for (const { surface } of [this.tree.icicle, this.tree.graph, this.pool, this.lanes, this.timeline]) surface.observer.disconnect();
      this.root.remove();
    }
  }

  const asEvents = (events) => (typeof events === "string" ? JSON.parse(events) : events || []);

  RP.mount = (element, options = {}) => new Player(element, options);
})(globalThis.RadixPlayer);
