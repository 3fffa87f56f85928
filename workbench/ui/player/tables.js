/** The table twins: whatever a picture shows, as rows of text. */
(function (RP) {
  "use strict";

  const R = RP.R;
  /** Rows of the event list around the cursor; more would be slow to build and to read. */
  const AROUND = 40;
  const MOST = 300;

  /** A table. Columns: [heading, unit or "", alignment]; rows: {cells, current, pick, picks}: a press on cell `picks` picks. */
  RP.table = (caption, columns, rows) => {
    const head = RP.el("tr", {}, ...columns.map(([name, right]) => RP.el("th", { scope: "col", class: right ? "rp-num" : null, text: name })));
    const body = rows.map(({ cells, current, pick, picks = 0 }) => {
      const tr = RP.el(
        "tr",
        { "aria-current": current ? "true" : null },
        ...cells.map((text, i) => RP.el("td", { class: columns[i][1] ? "rp-num" : null, text: String(text) })),
      );
      if (pick) {
        const cell = tr.children[picks];
        cell.replaceChildren(RP.el("button", { type: "button", class: "rp-link", text: cell.textContent, on: { click: pick } }));
      }
      return tr;
    });
    return RP.el(
      "div",
      { class: "rp-scroll", tabindex: "0", role: "region", "aria-label": caption },
      RP.el("table", { class: "rp-table" }, RP.el("caption", { text: caption }), RP.el("thead", {}, head), RP.el("tbody", {}, ...body)),
    );
  };

  /** Events around the cursor. */
  RP.eventTable = (player) => {
    const { trace, seq, replay } = player;
    const from = Math.max(0, seq - AROUND);
    const to = Math.min(trace.length, from + 2 * AROUND);
    const rows = [];
    const step = (i) => (trace.step.a[i] <= replay.segments.planned ? RP.number(trace.step.a[i]) : "–");
    for (let i = from; i < to; i++)
      rows.push({
        cells: [RP.number(i), step(i), RP.seconds(trace.t.a[i]), trace.kindOf(i), RP.why(trace, i).join("")],
        current: i === seq,
        pick: () => player.seek(i),
      });
    return RP.table(`Events ${RP.number(from)} to ${RP.number(to - 1)} of ${RP.number(trace.length - 1)}`,
      [["event", true], ["step", true], ["time", true], ["kind"], ["what happened"]], rows);
  };

  /** Requests that have arrived, newest first. */
  RP.requestTable = (player) => {
    const { trace, now: state } = player;
    const rows = [];
    const none = (v) => (v < 0 ? "–" : RP.number(v));
    for (let i = state.requestCount - 1; i >= 0 && rows.length < MOST; i--) {
      const field = (f) => state.requestField(i, f);
      const first = field(R.FIRST);
      rows.push({
        cells: [
          RP.requestName(trace, i), state.status(i), RP.number(trace.prompt(i).length), none(field(R.CACHED)),
          none(field(R.COMPUTED)), RP.number(field(R.OUTPUT)), first < 0 ? "–" : RP.seconds(trace.event(first).ttft),
          RP.oneLine(RP.tokensText(trace, state.output(i).subarray(-40))),
        ],
        current: player.selection && player.selection.request === trace.requests[i].name,
        pick: () => player.select({ request: trace.requests[i].name }),
      });
    }
    return RP.table(`Requests: ${RP.number(rows.length)} of ${RP.number(state.requestCount)}`,
      [["request"], ["status"], ["prompt, tokens", true], ["cached, tokens", true], ["computed, tokens", true],
        ["answer, tokens", true], ["time to first token", true], ["answer"]], rows);
  };

  /** The pool's pages by owner. */
  RP.poolTable = (player) => {
    const { now: state } = player;
    const held = new Map();
    for (let page = 0; page < state.pages; page++) {
      const code = state.owner.get(page);
      held.set(code, (held.get(code) || 0) + 1);
    }
    const name = (code) =>
      code === 0 ? "free" : code & 1 ? state.trace.requests[code >> 1].name : RP.nodeName(state, code >> 1);
    const kind = (code) => (code === 0 ? "free" : code & 1 ? "running request" : "tree");
    const rows = [...held].sort((a, b) => b[1] - a[1]).slice(0, MOST).map(([code, pages]) => ({
      cells: [name(code), kind(code), RP.number(pages), RP.number(pages * state.pageSize)],
      pick: code === 0 ? null : () => player.select(code & 1 ? { request: name(code) } : { node: code >> 1 }),
    }));
    return RP.table(`Pages by owner: ${RP.number(rows.length)} of ${RP.number(held.size)} owners`,
      [["owner"], ["sort"], ["pages", true], ["room, tokens", true]], rows);
  };
})(globalThis.RadixPlayer);
