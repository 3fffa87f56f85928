/** The page pool: one cell a page (or a few, when there are many), in its owner's colour. */
(function (RP) {
  "use strict";

  const N = RP.N;
  const R = RP.R;
  const PREFILL = RP.STATUS.indexOf("prefill");
  const DECODE = RP.STATUS.indexOf("decode");
  /** Admission looks at most so many tokens ahead. */
  const LOOKS_AHEAD = 4096;
  const FREE = 0;
  const CACHED = 1;
  const LOCKED = 2;
  const PRIVATE = 3;
  /** Cell sizes in pixels, gap included: the largest that gives each page a cell of its own. */
  const SIZES = [16, 13, 10, 8];
  const STATES = ["free", "cached, can be evicted", "cached, locked: a running request uses it, so that it cannot go", "private to a running request"];
  /** Owners told of one cell. */
  const OWNERS = 4;

  class Pool {
    constructor(player, options) {
      this.player = player;
      this.height = options.pool;
      this.panel = RP.panel("pool", "Pages");
      this.frame = RP.el("div", { class: "rp-frame" });
      this.panel.body.append(this.frame);
      this.surface = new RP.Surface(this.frame, "page pool", () => player.redraw());
      this.panel.explain(
        RP.legend([["locked", "locked: in use"], ["cached", "cached, can go"], ["private", "private"], ["free", "free"], ["chosen", "selected"]]),
      );
      this.count = new Int32Array(4);
      this.grid = { cell: SIZES[0], columns: 1, per: 1 };
      this.tip = new RP.Tip(this.frame, this.surface);
      this.tip.watch((event) => this.told(this.pagesAt(event)));
      this.surface.canvas.addEventListener("click", (event) => player.select(this.ownerOf(this.pagesAt(event))));
    }

    /** [first page, one after the last] of the cell under the pointer; null beside the cells. */
    pagesAt(event) {
      const { cell, columns, per } = this.grid;
      const [x, y] = this.surface.point(event);
      const column = Math.floor(x / cell);
      const from = (Math.floor(y / cell) * columns + column) * per;
      const { pages } = this.player.now;
      return column < columns && from >= 0 && from < pages ? [from, Math.min(pages, from + per)] : null;
    }

    /** The selection that a cell stands for: whoever owns its first page that is not free. */
    ownerOf(cell) {
      if (!cell) return null;
      for (let page = cell[0]; page < cell[1]; page++) {
        const owner = this.player.ownerOf(page);
        if (owner) return owner;
      }
      return null;
    }

    /** What a pointer over a cell reads: its pages and who owns them. */
    told(cell) {
      if (!cell) return null;
      const state = this.player.now;
      const held = new Map();
      for (let page = cell[0]; page < cell[1]; page++) held.set(state.owner.get(page), (held.get(state.owner.get(page)) || 0) + 1);
      const many = cell[1] - cell[0] > 1;
      const lines = [...held].slice(0, OWNERS).map(([code, pages]) => {
        const kind = STATES[this.stateOf(state, code)];
        const who = code === 0 ? "" : code & 1 ? RP.requestName(state.trace, code >> 1) : RP.nodeName(state, code >> 1);
        return `${many ? `${RP.count(pages, "page")}: ` : ""}${[who, kind].filter(Boolean).join(", ")}`;
      });
      if (held.size > OWNERS) lines.push(`and ${RP.number(held.size - OWNERS)} more owners`);
      return { head: many ? `pages ${RP.number(cell[0])} to ${RP.number(cell[1] - 1)}` : `page ${RP.number(cell[0])}`, lines };
    }

    /** One of the four states, from an owner's code. */
    stateOf(state, code) {
      if (code === 0) return FREE;
      if (code & 1) return PRIVATE;
      const slot = state.slotOfNode.get(code >> 1) - 1;
      return slot >= 0 && state.get(slot, N.LOCKS) > 0 ? LOCKED : CACHED;
    }

    draw(state) {
      const { surface, player } = this;
      const width = Math.max(1, surface.available);
      const room = (size) => Math.max(1, Math.floor(width / size)) * Math.floor(this.height / size);
      const cell = SIZES.find((size) => room(size) >= state.pages) || SIZES[SIZES.length - 1];
      const columns = Math.max(1, Math.floor(width / cell));
      const per = Math.max(1, Math.ceil(state.pages / room(cell)));
      const cells = Math.ceil(state.pages / per);
      const rows = Math.max(1, Math.ceil(cells / columns));
      const ctx = surface.begin(rows * cell + 2);
      this.grid = { cell, columns, per };
      const chosen = new Set();
      for (const page of player.lit.pages) chosen.add(Math.floor(page / per));
      this.count.fill(0);
      let [code, kind] = [0, FREE];
      const inside = new Int32Array(4);
      const add = (owner, pages) => {
        if (owner !== code) [code, kind] = [owner, this.stateOf(state, owner)];
        inside[kind] += pages;
      };
      for (let i = 0; i < cells; i++) {
        inside.fill(0);
        const end = Math.min(state.pages, (i + 1) * per);
        state.owner.runs(i * per, end, add);
        for (let k = 0; k < 4; k++) this.count[k] += inside[k];
        this.paint(ctx, (i % columns) * cell, Math.floor(i / columns) * cell, cell - 2, inside, end - i * per);
      }
      this.paintChosen(ctx, chosen);
      this.tell(state, per);
    }

    /** One cell, its pages' states stacked from the bottom; each state has a mark of its own. */
    paint(ctx, x, y, size, inside, pages) {
      const theme = this.player.theme;
      const dot = size < 8 ? 2 : 3;
      let bottom = y + size;
      for (const kind of [LOCKED, CACHED, PRIVATE, FREE]) {
        if (!inside[kind]) continue;
        const h = (size * inside[kind]) / pages;
        bottom -= h;
        ctx.globalAlpha = kind === CACHED ? 0.5 : kind === FREE ? 0.55 : 1;
        ctx.fillStyle = kind === FREE ? theme.wait : kind === PRIVATE ? theme.computed : theme.cached;
        ctx.fillRect(x, bottom, size, h);
        ctx.globalAlpha = 1;
        if (h < size) continue;
        ctx.fillStyle = theme.panel;
        if (kind === PRIVATE) RP.hatch(ctx, x, y, size, size, theme.panel, 5);
        else if (kind === LOCKED) ctx.fillRect(x + size / 2 - dot / 2, y + size / 2 - dot / 2, dot, dot);
        else if (kind === FREE) ctx.fillRect(x + 2, y + 2, size - 4, size - 4);
      }
    }

    /** One line around neighbouring cells that are selected. */
    paintChosen(ctx, chosen) {
      const { cell, columns } = this.grid;
      ctx.fillStyle = this.player.theme.ink;
      for (const i of chosen) {
        const column = i % columns;
        const [x, y] = [column * cell - 1, Math.floor(i / columns) * cell - 1];
        if (!column || !chosen.has(i - 1)) ctx.fillRect(Math.max(0, x - 0.5), y, 2, cell + 1);
        if (column === columns - 1 || !chosen.has(i + 1)) ctx.fillRect(x + cell - 1, y, 2, cell + 1);
        if (!chosen.has(i - columns)) ctx.fillRect(x, Math.max(0, y - 0.5), cell + 1, 2);
        if (!chosen.has(i + columns)) ctx.fillRect(x, y + cell - 1, cell + 1, 2);
      }
    }

    /** Pages held back for what the running requests may still answer, by the last planned step's reserve. */
    promised(state) {
      const { trace, replay } = this.player;
      const seq = replay.marks.next("schedule", state.seq + 1, -1);
      const reserve = seq === null ? 0 : trace.event(seq).reserve;
      if (!reserve) return 0;
      let pages = 0;
      for (let number = 0; number < state.requestCount; number++) {
        const status = state.requestField(number, R.STATUS);
        if (status !== PREFILL && status !== DECODE) continue;
        const left = trace.arrival(number, "max_new_tokens") - state.requestField(number, R.OUTPUT);
        pages += Math.ceil((reserve * Math.min(left, LOOKS_AHEAD)) / state.pageSize);
      }
      return pages;
    }

    tell(state, per) {
      const tokens = per * state.pageSize;
      this.panel.note.textContent =
        `one cell = ${per > 1 ? `${RP.count(per, "page")} = ` : state.pageSize > 1 ? "1 page = " : ""}${RP.count(tokens, "token")}` +
        ` · ${RP.number(this.count[FREE])} of ${RP.count(state.pages, "page")} free`;
      const { host_pages: host, cache } = state.trace.header.config || {};
      if (host && cache === "radix") this.panel.note.textContent += ` · on the host ${RP.number(state.hostPages)} of ${RP.count(host, "page")}`;
      const promised = this.promised(state);
      if (promised) this.panel.note.textContent += ` · ${RP.number(promised)} promised`;
      this.panel.note.title = promised ? "Promised: what admission holds back for the answers of those that run (reserve x tokens to come)." : "";
      const words = STATES.map((name, i) => `${RP.number(this.count[i])} ${name}`).join(", ");
      this.surface.canvas.setAttribute("aria-label", `Page pool, in pages: ${words}.`);
    }
  }
  RP.Pool = Pool;
})(globalThis.RadixPlayer);
