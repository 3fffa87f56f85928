/**
 * All replicas of a run at one moment, a card each: the tree, who waits and runs, pages, reuse, and why the last request
 * came here. A card that is pressed makes its replica the one that the other panels show.
 */
(function (RP) {
  "use strict";

  const N = RP.N;
  const TALL = 64;
  /** Least and most height of a row of the small tree, in pixels. */
  const LIMITS = { row: 8, tall: 21 };
  /** Waiting requests that are named. */
  const NAMED = 4;
  /** Milliseconds between two looks while the run moves. */
  const READABLE = 120;
  const STEPS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };

  /** What a card and its row in the table tell of a replica after its event `state.seq`. */
  const factsOf = (replica, state) => {
    const running = [];
    for (let i = 0; i < state.requestCount; i++) if (["prefill", "decode"].includes(state.status(i))) running.push(i);
    return {
      waiting: state.queue.map((number) => state.trace.requests[number].name),
      running: running.length,
      used: state.cachedPages + state.privatePages,
      pages: state.pages,
      cached: state.total("cached_tokens"),
      prompts: state.total("prompt_tokens"),
      routing: replica.routing(state.seq),
      transferred: replica.transferred(state.seq),
    };
  };

  const queueWords = ({ waiting }) => {
    const more = waiting.length > NAMED ? ` and ${RP.number(waiting.length - NAMED)} more` : "";
    return waiting.length ? `queue: ${waiting.slice(0, NAMED).join(", ")}${more}` : "queue: empty";
  };

  /** KV that came over a link spared nobody computing it: that is said beside what was found. */
  const reuseWords = ({ cached, prompts, transferred }) =>
    `${transferred ? "found" : "reused"} ${RP.number(cached)} of ${RP.count(prompts, "prompt token")} (${RP.percent(cached, prompts)})` +
    (transferred ? `, the KV of ${RP.number(transferred)} came over the link` : "");

  const routingWords = ({ routing }) => (routing ? `${routing.request} came here: ${routing.reason}` : "nothing came here yet");

  /** A tree too small for words: only how it branches, how recent its nodes are, and which are locked. */
  class SmallTree {
    constructor(player, number) {
      this.player = player;
      this.frame = RP.el("span", { class: "rp-frame rp-small-tree" });
      this.surface = new RP.Surface(this.frame, `tree of replica ${number}`, () => player.redraw());
      this.layout = new RP.Layout();
      this.view = new RP.View();
    }

    draw(state) {
      const { surface, layout, view } = this;
      const ctx = surface.begin(TALL);
      layout.run(state);
      view.fit(layout, layout, state, surface.width, TALL, LIMITS);
      for (const cell of RP.cells(layout, layout, view, surface.width)) this.paint(ctx, state, cell);
      surface.canvas.setAttribute("aria-label", `its tree: ${RP.count(layout.n, "node")}, ${RP.count(layout.tokens, "token")};`);
    }

    paint(ctx, state, cell) {
      const { theme } = this.player;
      const { slot, x, y, w, h, nodes } = cell;
      const wide = Math.max(0.6, w > 4 ? w - 1 : w);
      ctx.fillStyle = theme.ramp[RP.recency(state.tick, this.layout.oldest, nodes > 1 ? cell.newest : state.get(slot, N.LAST))];
      ctx.fillRect(x, y, wide, h - 2);
      if (nodes > 1 && w > 4) RP.hatch(ctx, x, y, wide, h - 2, theme.panel, 4);
      if (nodes > 1 ? !cell.locked : !this.layout.locks[slot]) return;
      ctx.fillStyle = theme.ink;
      ctx.fillRect(x, y, wide, h < 12 ? 1 : 2);
    }
  }

  class Card {
    constructor(player, number, go) {
      this.number = number;
      this.tree = new SmallTree(player, number);
      this.mark = RP.el("span", { class: "rp-card-mark", text: "shown" });
      this.lines = Array.from({ length: 4 }, () => RP.el("span", { class: "rp-card-line" }));
      const head = RP.el("span", { class: "rp-card-head" }, RP.el("b", { text: `Replica ${number}` }), this.mark);
      this.root = RP.el("button", { type: "button", class: "rp-card", on: { click: go } }, head, this.tree.frame, ...this.lines);
    }

    draw(replica, state, shown) {
      this.root.setAttribute("aria-pressed", String(shown));
      this.root.tabIndex = shown ? 0 : -1;
      this.mark.hidden = !shown;
      this.tree.draw(state);
      const facts = factsOf(replica, state);
      const words = [
        `${RP.number(facts.running)} running · ${RP.number(facts.waiting.length)} waiting · ${RP.number(facts.used)} of ${RP.count(facts.pages, "page")}`,
        queueWords(facts),
        reuseWords(facts),
        routingWords(facts),
      ];
      words.forEach((text, i) => {
        this.lines[i].textContent = text;
        this.lines[i].title = text;
      });
    }
  }

  class ReplicaCards {
    constructor(player) {
      this.player = player;
      this.panel = RP.panel("replicas", "Replicas");
      this.frame = RP.el("div", { class: "rp-cards", role: "group", "aria-label": "replica to show", on: { keydown: (event) => this.key(event) } });
      this.panel.body.append(this.frame);
      this.cards = [];
      this.drawn = 0;
    }

    /** Arrows go to the next card and show its replica. */
    key(event) {
      const by = STEPS[event.key];
      if (!by || event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      const { player, cards } = this;
      const to = (player.replica + by + cards.length) % cards.length;
      player.show(to);
      cards[to].root.tabIndex = 0;
      cards[to].root.focus();
    }

    /** While the run moves by itself, no more often than one can follow. */
    draw() {
      const { player } = this;
      clearTimeout(this.timer);
      if (!player.fleet.several || this.frame.hidden) return;
      const left = player.following || player.scrubber.playing ? this.drawn + READABLE - performance.now() : 0;
      if (left > 0 && this.cards.length) this.timer = setTimeout(() => this.show(), left);
      else this.show();
    }

    show() {
      const { player } = this;
      const { replicas, length, header } = player.fleet;
      this.drawn = performance.now();
      if (this.cards.length !== replicas.length) this.make(replicas.length);
      this.cards.forEach((card, i) => card.draw(replicas[i], RP.stateThen(player, i), i === player.replica));
      this.bring(this.cards[player.replica].root);
      const { router } = header.config || {};
      const at = player.moment < 0 ? "before the first event" : `at event ${RP.number(player.moment)} of all ${RP.number(length - 1)}`;
      this.panel.note.textContent = `${RP.number(replicas.length)}${router ? `, ${router} router` : ""} · ${at}`;
    }

    /** Where the cards do not all fit, the shown one is brought into their window, once. */
    bring(card) {
      if (card === this.brought) return;
      this.brought = card;
      const { frame } = this;
      const [inner, outer] = [card.getBoundingClientRect(), frame.getBoundingClientRect()];
      frame.scrollLeft += inner.left < outer.left ? inner.left - outer.left - 3 : Math.max(0, inner.right - outer.right + 3);
      frame.scrollTop += inner.top < outer.top ? inner.top - outer.top - 3 : Math.max(0, inner.bottom - outer.bottom + 3);
    }

    make(count) {
      this.destroy();
      const { player } = this;
      this.cards = Array.from({ length: count }, (_, i) => new Card(player, i, () => player.show(i)));
      this.frame.replaceChildren(...this.cards.map((card) => card.root));
    }

    destroy() {
      clearTimeout(this.timer);
      for (const card of this.cards) card.tree.surface.observer.disconnect();
    }
  }
  RP.ReplicaCards = ReplicaCards;

  /** The state of replica `i` at the moment that is shown. */
  RP.stateThen = (player, i) => {
    if (i === player.replica) return player.now;
    const replica = player.replicas[i];
    return replica.replay.at(replica.at(player.moment));
  };

  /** The cards as rows. */
  RP.replicaTable = (player) => {
    const rows = player.replicas.map((replica, i) => {
      const state = RP.stateThen(player, i);
      const facts = factsOf(replica, state);
      return {
        cells: [
          `replica ${i}`, RP.number(facts.running), RP.number(facts.waiting.length), facts.waiting.slice(0, NAMED).join(", ") || "–",
          RP.number(state.live), `${RP.number(facts.used)} of ${RP.number(facts.pages)}`, RP.number(facts.cached), RP.number(facts.prompts),
          RP.percent(facts.cached, facts.prompts), routingWords(facts),
        ],
        current: i === player.replica,
        pick: () => player.show(i),
      };
    });
    return RP.table("Replicas at this moment; a press on one shows it",
      [["replica"], ["running", true], ["waiting", true], ["next in the queue"], ["nodes", true], ["pages in use", true], ["reused, tokens", true],
        ["prompts, tokens", true], ["share", true], ["last came"]], rows);
  };
})(globalThis.RadixPlayer);
