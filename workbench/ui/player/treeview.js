/** The radix tree in one of three ways: icicle, node-link or table. They share words, marks and selection. */
(function (RP) {
  "use strict";

  const N = RP.N;
  const VIEWS = ["icicle", "tree", "table"];
  /** The node-link picture is drawn up to this many nodes. */
  const MOST = 60;
  const NODE_NAMES = ["node", "front", "at_node"];

  /** The nodes that the event at the cursor is about. */
  const nodesOf = (state) => {
    const out = new Set();
    if (state.seq < 0) return out;
    const event = state.trace.event(state.seq);
    for (const name of NODE_NAMES) if (event[name]) out.add(event[name]);
    for (const id of event.path || []) out.add(id);
    return out;
  };

  class TreeView {
    constructor(player, size) {
      this.player = player;
      this.view = "icicle";
      this.panel = RP.panel("tree", "Radix tree");
      this.words = new RP.NodeWords();
      this.icicle = new RP.Icicle(player, this, size);
      this.graph = new RP.Graph(player, this, size);
      this.grid = new RP.TreeGrid(player);
      this.table = RP.el("div", { hidden: "" }, this.grid.root);
      this.panel.body.append(this.icicle.frame, this.graph.frame, this.table);
      this.legend = RP.legend([
        ["ramp", "used … idle"], ["lock", "locked: in use"], ["pin", "pinned"], ["host", "on the host only"], ["copy", "copied to the host"], ["next", "next to go"],
        ["event", "this event"], ["chosen", "selected"],
      ]);
      this.buttons = VIEWS.map((view) => {
        const button = RP.el("button", { type: "button", class: "rp-twin", text: view, on: { click: () => player.setView(view) } });
        button.setAttribute("aria-label", view === "table" ? "tree as a table" : `tree as ${view === "icicle" ? "an icicle" : "node and link"}`);
        return button;
      });
      const choice = RP.el("span", { class: "rp-choice", role: "group", "aria-label": "the tree as" }, ...this.buttons);
      this.panel.explain(this.legend);
      this.panel.tools.append(choice);
    }

    /** What is really shown: a tree too large for node-link is an icicle. */
    get shown() {
      return this.view === "tree" && this.large ? "icicle" : this.view;
    }

    get large() {
      return this.icicle.layout.n > MOST;
    }

    setView(view) {
      if (VIEWS.includes(view)) this.view = view;
    }

    /** Take a new moment. */
    take(state, now) {
      if (state.trace !== (this.state && this.state.trace)) this.words.clear();
      this.state = state;
      this.name(RP.treeName(state.trace));
      this.marked = nodesOf(state);
      this.next = RP.nextToGo(state);
      this.icicle.take(state, now);
      if (!this.large) this.graph.take(state, now);
      this.legend.marks.pin.hidden = !state.trace.has("node.pinned");
      for (const mark of ["host", "copy"]) this.legend.marks[mark].hidden = !state.trace.has("node.demoted");
      this.legend.marks.next.hidden = !RP.knowsEviction(state.trace);
      this.legend.marks.next.lastChild.textContent = `next to go (${RP.evictionOf(state.trace)})`;
    }

    name(text) {
      this.panel.root.setAttribute("aria-label", text);
      this.panel.root.querySelector("h2").textContent = text;
      this.grid.body.parentElement.setAttribute("aria-label", text);
    }

    /** Draw; returns whether something still moves. */
    draw(now, elapsed) {
      const { shown } = this;
      this.icicle.frame.hidden = shown !== "icicle";
      this.graph.frame.hidden = shown !== "tree";
      this.table.hidden = shown !== "table";
      if (shown !== "icicle") this.icicle.out.hidden = true;
      this.buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(VIEWS[i] === shown)));
      const tree = this.buttons[1];
      tree.disabled = this.large;
      tree.title = this.large ? `up to ${MOST} nodes; this tree has ${RP.number(this.icicle.layout.n)}` : "";
      this.tell(shown);
      if (shown === "icicle") return this.icicle.draw(now, elapsed);
      if (shown === "tree") return this.graph.draw(now, elapsed);
      return false;
    }

    /** The table is filled only when something changed, not for each frame. */
    drawTable() {
      if (this.shown === "table") this.grid.draw(this.state, this.icicle.layout);
    }

    tell(shown) {
      const { layout } = this.icicle;
      const lost = RP.lostWords(this.state, layout);
      const words = `${RP.count(layout.n, "node")}, ${RP.count(layout.tokens, "token")}${lost && `, ${lost}`}`;
      const how = {
        icicle: `width ${layout.widened ? "≈" : "="} tokens · `,
        tree: "root at the left · ",
        table: "",
      }[shown];
      const why = this.view === "tree" && this.large ? ` · node and link up to ${MOST} nodes` : "";
      this.panel.note.textContent = `${how}${words}${why}`;
      this.panel.note.title = shown === "icicle" && layout.widened ? "Nodes too narrow to read are shown wider than their tokens." : "";
      const surface = shown === "tree" ? this.graph.surface : this.icicle.surface;
      surface.canvas.setAttribute("aria-label", `${RP.treeName(this.state.trace)}: ${words}. The table shows the same.`);
    }

    /** What a pointer over a node reads. */
    tip(slot) {
      const { state, words } = this;
      return { head: `#${state.get(slot, N.ID)} ${words.text(state, slot)}`, lines: [words.facts(state, slot).join(" · ")] };
    }
  }

  RP.TreeView = TreeView;
  RP.VIEWS = VIEWS;
})(globalThis.RadixPlayer);
