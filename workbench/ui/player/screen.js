/** The player's panels: which there are, where they stand, and the table behind each picture. */
(function (RP) {
  "use strict";

  const FULL = { height: 236, pool: 50, lanes: 7 };
  const PHONE = { height: 236, pool: 56, lanes: 4 };
  const COMPACT = { height: 206, pool: 32, lanes: 5 };
  const NARROW = 600;

  /** A picture and its table; only the one that is shown is drawn. */
  const twin = (player, view, what, make) => {
    const pair = { shown: false, make, holder: RP.el("div", { hidden: "" }) };
    view.panel.body.prepend(pair.holder);
    view.panel.tools.append(
      RP.twinSwitch(what, (shown) => {
        pair.shown = shown;
        pair.holder.hidden = !shown;
        view.frame.hidden = shown;
        player.redraw();
      }),
    );
    return pair;
  };

  /** Make all panels and put them on the page; returns the player's parts by name. */
  RP.buildScreen = (player, width) => {
    const size = player.options.compact ? COMPACT : width < NARROW ? PHONE : FULL;
    const parts = {
      head: RP.el("header", { class: "rp-title", hidden: "" }),
      slots: { top: RP.el("div", { class: "rp-slot" }), side: RP.el("div", { class: "rp-slot" }) },
      cards: new RP.ReplicaCards(player),
      tree: new RP.TreeView(player, size),
      pool: new RP.Pool(player, size),
      lanes: new RP.Lanes(player, size),
      timeline: new RP.Timeline(player),
      scrubber: new RP.Scrubber(player),
      why: new RP.Why(player),
      queue: new RP.Queue(player),
      eviction: new RP.LastEviction(player),
      selected: new RP.Selection(player),
      find: new RP.Find(player),
      help: new RP.Help(player),
    };
    const { cards, tree, pool, lanes, timeline, scrubber, why, queue, eviction, selected } = parts;
    const twins = [
      twin(player, cards, "replicas", () => RP.replicaTable(player)),
      twin(player, pool, "pages", () => RP.poolTable(player)),
      twin(player, lanes, "requests", () => RP.requestTable(player)),
      twin(player, timeline, "events", () => RP.eventTable(player)),
    ];
    const column = RP.el("div", { class: "rp-col" }, ...[tree, pool, lanes].map((p) => p.panel.root));
    const side = RP.el("div", { class: "rp-col rp-side" }, why.panel.root, parts.slots.side, queue.panel.root, selected.panel.root, eviction.panel.root);
    const dock = RP.el("div", { class: "rp-dock" }, timeline.panel.root, scrubber.root);
    const main = RP.el("div", { class: "rp-main" }, column, side, dock);
    main.addEventListener("click", (event) => {
      if ([main, column, side].includes(event.target)) player.select(null);
    });
    player.root.append(parts.head, parts.slots.top, main, parts.find.root, parts.help.root);
    return { ...parts, twins, views: [cards, pool, lanes, timeline, scrubber, why, queue, eviction, selected] };
  };

  /** Where there are several replicas: their panel above the tree, and over each other panel which replica it is of. */
  RP.tellReplica = (player) => {
    const { several } = player.fleet;
    if (several) player.tree.panel.root.before(player.cards.panel.root);
    else player.cards.panel.root.remove();
    for (const { panel } of [player.tree, ...player.views]) {
      if (!panel || panel === player.cards.panel) continue;
      panel.whose.hidden = !several;
      panel.whose.textContent = `replica ${player.replica}`;
    }
  };

  /** Title, where the run was made, and that it is a recording. */
  RP.describe = (player) => {
    const { title, note, recorded } = player.options;
    const h = player.trace.header;
    const made = [h.model, h.device, h.dtype].filter(Boolean).join(" · ") || h.executor;
    player.head.hidden = !title;
    player.head.replaceChildren(
      RP.el("h1", { text: title || "" }),
      ...[made, RP.clockWords(h), recorded ? "recorded run" : null, ...(h.plugs || []).map((own) => `brought: ${own}`)].filter(Boolean).map((text) => RP.el("span", { class: "rp-chip", text })),
      RP.el("p", { class: "rp-lead", text: note || "" }),
    );
  };
})(globalThis.RadixPlayer);
