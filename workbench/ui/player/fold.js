/** Folding: one small function an event kind, `(state, table, row)`; the twin of `workbench.replay`. */
(function (RP) {
  "use strict";

  const N = RP.N;
  const R = RP.R;
  const WAITING = 0;
  const PREFILL = 1;
  const DECODE = 2;

  /** The number of the request named in a column. */
  const requestAt = (s, column, row) => {
    const number = s.trace.requestOf.get(column.a[row]);
    if (number === undefined || number >= s.requestCount)
      throw new RP.ReplayError(`request ${column.at(row)} has not arrived`);
    return number;
  };

  const leaveQueue = (s, number) => {
    const at = s.queue.indexOf(number);
    if (at < 0) throw new RP.ReplayError(`request ${s.trace.requests[number].name} is not in the queue`);
    s.queue.splice(at, 1);
  };

  const end = (s, number, status) => {
    if (s.requestField(number, R.STATUS) === WAITING && !s.requestField(number, R.HELD)) leaveQueue(s, number);
    s.setRequest(number, R.STATUS, RP.STATUS.indexOf(status));
    s.setRequest(number, R.ENDED, s.seq);
    s.setRequest(number, R.NODE, 0);
    s.count(status, 1);
  };

  /** Pages pass from a request to a node. */
  const givePages = (s, node, number, pages) => {
    s.requestPages.set(number, s.requestPages.get(number).without(new Set(pages)));
    for (let i = 0; i < pages.length; i++) s.setOwner(pages[i], 2 * node);
  };

  /** Split flat pieces [request, start, stop, ...] after `at` tokens. */
  const cut = (pieces, at) => {
    const front = [];
    const back = [];
    for (let i = 0; i < pieces.length; i += 3) {
      const [request, start, stop] = [pieces[i], pieces[i + 1], pieces[i + 2]];
      const middle = Math.min(Math.max(start + at, start), stop);
      if (middle > start) front.push(request, start, middle);
      if (stop > middle) back.push(request, middle, stop);
      at -= stop - start;
    }
    return [front, back];
  };

  const joined = (a, b) => {
    const out = new Int32Array(a.length + b.length);
    out.set(a);
    out.set(b, a.length);
    return out;
  };

  /** Call `each(slot)` for a node and all above it. */
  const path = (s, id, each) => {
    for (let slot = id ? s.slot(id) : -1; slot >= 0; slot = s.get(slot, N.PARENT)) each(slot);
  };

  /** What nobody holds joins the free queue (anew) with this event. */
  const join = (s, slot) => {
    if (!s.get(slot, N.LOCKS) && !s.get(slot, N.PINS)) s.set(slot, N.JOINED, s.seq);
  };

  /** A node goes: what is still below it can no longer be found. */
  const orphan = (s, parent) => {
    const id = s.get(parent, N.ID);
    for (let slot = 0; slot < s.slots; slot++) if (s.alive(slot) && s.get(slot, N.PARENT) === parent) s.set(slot, N.PARENT, -1 - id);
  };

  /** A node got device pages, or lost them all: its parent has so many more children that have some. */
  const resident = (s, slot, change) => {
    const parent = s.get(slot, N.PARENT);
    if (parent >= 0) s.node.add((parent << 4) | N.RESIDENT, change);
  };

  const raise = (s, slot, priority) => {
    if (priority > s.get(slot, N.PRIORITY)) s.set(slot, N.PRIORITY, priority);
  };

  RP.handlers = {
    "run.started"(s, e, row) {
      s.pages = e.pages.a[row];
      s.pageSize = e.page_size.a[row];
    },

    "request.arrived"(s, e, row) {
      const number = s.requestCount++;
      for (const field of [R.CACHED, R.COMPUTED, R.ADMITTED, R.FIRST, R.ENDED]) s.setRequest(number, field, -1);
      s.requestPages.set(number, RP.EMPTY_RUN);
      s.queue.push(number);
      s.count("arrived", 1);
    },

    "request.refused"(s, e, row) {
      end(s, requestAt(s, e.request, row), "refused");
    },
    "request.aborted"(s, e, row) {
      end(s, requestAt(s, e.request, row), "aborted");
    },
    "request.finished"(s, e, row) {
      end(s, requestAt(s, e.request, row), e.reason.at(row) === "error" ? "failed" : "finished");
    },

    "request.admitted"(s, e, row) {
      const number = requestAt(s, e.request, row);
      const prompt = s.trace.prompt(number).length;
      leaveQueue(s, number);
      s.setRequest(number, R.STATUS, PREFILL);
      s.setRequest(number, R.NODE, e.node.a[row]);
      s.setRequest(number, R.KV, e.length.a[row]);
      s.setRequest(number, R.TARGET, prompt + s.requestField(number, R.OUTPUT));
      if (e.first.a[row]) {
        s.setRequest(number, R.CACHED, e.cached.a[row]);
        s.setRequest(number, R.COMPUTED, e.computed.a[row]);
        s.setRequest(number, R.ADMITTED, s.seq);
        s.count("prompt_tokens", prompt);
        s.count("cached_tokens", e.cached.a[row]);
        s.count("computed_tokens", e.computed.a[row]);
      }
      s.addRequest(number, R.RECOVERED, e.recovered.a[row]);
      s.addRequest(number, R.RECOMPUTED, e.recomputed.a[row]);
      s.count("loaded_tokens", e.loaded.a[row]);
      s.count("recovered_tokens", e.recovered.a[row]);
      s.count("recomputed_tokens", e.recomputed.a[row]);
    },

    "request.first_token"(s, e, row) {
      s.setRequest(requestAt(s, e.request, row), R.FIRST, s.seq);
    },

    "request.retracted"(s, e, row) {
      const number = requestAt(s, e.request, row);
      s.setRequest(number, R.STATUS, WAITING);
      s.setRequest(number, R.NODE, 0);
      s.setRequest(number, R.KV, 0);
      s.setRequest(number, R.RETRACTIONS, e.times.a[row]);
      if (e.to.at(row) === "front") s.queue.unshift(number);
      else s.queue.push(number);
      s.count("retractions", 1);
    },

    "node.created"(s, e, row) {
      const id = e.node.a[row];
      const parent = e.parent.a[row] ? s.slot(e.parent.a[row]) : -1;
      const number = requestAt(s, e.request, row);
      const pages = e.pages.at(row);
      const slot = s.newSlot(id);
      s.set(slot, N.PARENT, parent);
      s.set(slot, N.COUNT, e.stop.a[row] - e.start.a[row]);
      s.set(slot, N.SPACE, s.trace.namespace(e.namespace.at(row)));
      s.set(slot, N.ORDER, id);
      s.set(slot, N.BORN, s.seq);
      const priority = s.trace.arrival(number, "priority");
      s.set(slot, N.PRIORITY, priority);
      path(s, e.parent.a[row], (above) => raise(s, above, priority));
      if (parent >= 0) {
        s.set(slot, N.DEPTH, s.get(parent, N.DEPTH) + s.get(parent, N.COUNT));
        s.node.add((parent << 4) | N.CHILDREN, 1);
        s.node.add((parent << 4) | N.RESIDENT, 1);
      }
      s.nodePieces.set(slot, [number, e.start.a[row], e.stop.a[row]]);
      s.nodePages.set(slot, pages.slice());
      givePages(s, id, number, pages);
    },

    "node.grown"(s, e, row) {
      const slot = s.slot(e.node.a[row]);
      const number = requestAt(s, e.request, row);
      const pages = e.pages.at(row);
      s.node.add((slot << 4) | N.COUNT, e.stop.a[row] - e.start.a[row]);
      s.nodePieces.set(slot, [...s.nodePieces.get(slot), number, e.start.a[row], e.stop.a[row]]);
      s.nodePages.set(slot, joined(s.nodePages.get(slot), pages));
      givePages(s, e.node.a[row], number, pages);
    },

    "node.split"(s, e, row) {
      const slot = s.slot(e.node.a[row]);
      const at = e.at.a[row];
      const id = e.front.a[row];
      const [front, back] = cut(s.nodePieces.get(slot), at);
      const pages = s.nodePages.get(slot);
      const kept = Math.floor(at / s.pageSize);
      const above = s.newSlot(id);
      for (const field of [N.PARENT, N.DEPTH, N.LOCKS, N.HITS, N.LAST, N.PINS, N.SPACE, N.ORDER, N.PRIORITY])
        s.set(above, field, s.get(slot, field));
      s.set(above, N.COUNT, at);
      s.set(above, N.CHILDREN, 1);
      s.set(above, N.RESIDENT, pages.length ? 1 : 0);
      s.set(above, N.BORN, s.seq);
      s.nodePieces.set(above, front);
      s.nodePages.set(above, pages.slice(0, kept));
      const host = s.host(slot);
      s.setHost(above, host.slice(0, kept));
      s.setHost(slot, host.slice(kept));
      s.set(slot, N.PARENT, above);
      s.node.add((slot << 4) | N.DEPTH, at);
      s.node.add((slot << 4) | N.COUNT, -at);
      s.nodePieces.set(slot, back);
      s.nodePages.set(slot, pages.slice(kept));
      for (let i = 0; i < Math.min(kept, pages.length); i++) s.setOwner(pages[i], 2 * id);
    },

    "node.touched"(s, e, row) {
      const tick = e.tick.a[row];
      const hit = e.hit.a[row];
      const priority = e.priority.at(row);
      s.tick = tick;
      path(s, e.node.a[row], (slot) => {
        s.set(slot, N.LAST, tick);
        join(s, slot);
        if (hit) s.node.add((slot << 4) | N.HITS, 1);
        if (priority !== null) raise(s, slot, priority);
      });
    },

    "node.locked"(s, e, row) {
      path(s, e.node.a[row], (slot) => s.node.add((slot << 4) | N.LOCKS, 1));
      if (e.request.at(row) !== null) s.setRequest(requestAt(s, e.request, row), R.NODE, e.node.a[row]);
    },

    "node.unlocked"(s, e, row) {
      path(s, e.node.a[row], (slot) => {
        s.node.add((slot << 4) | N.LOCKS, -1);
        join(s, slot);
      });
    },

    "node.trimmed"(s, e, row) {
      const slot = s.slot(e.node.a[row]);
      const pages = s.nodePages.get(slot);
      s.node.add((slot << 4) | N.COUNT, -e.tokens.a[row]);
      s.nodePieces.set(slot, cut(s.nodePieces.get(slot), s.get(slot, N.COUNT))[0]);
      s.nodePages.set(slot, pages.slice(0, pages.length - e.pages.at(row).length));
      s.count("evicted_tokens", e.tokens.a[row]);
    },

    "node.evicted"(s, e, row) {
      const slot = s.slot(e.node.a[row]);
      const parent = s.get(slot, N.PARENT);
      if (parent >= 0) s.node.add((parent << 4) | N.CHILDREN, -1);
      if (s.nodePages.get(slot).length) resident(s, slot, -1);
      if (s.get(slot, N.CHILDREN)) orphan(s, slot);
      s.dropSlot(slot);
      s.count("evicted_tokens", e.tokens.a[row]);
    },

    "node.demoted"(s, e, row) {
      const slot = s.slot(e.node.a[row]);
      s.setHost(slot, e.host_pages.at(row).slice());
      if (e.kept.a[row]) return;
      resident(s, slot, -1);
      s.nodePages.set(slot, new Int32Array(0));
      s.count("demoted_tokens", s.get(slot, N.COUNT));
    },

    "node.restored"(s, e, row) {
      const id = e.node.a[row];
      const pages = e.pages.at(row);
      const slot = s.slot(id);
      s.nodePages.set(slot, pages.slice());
      resident(s, slot, 1);
      if (e.request.at(row) !== null) givePages(s, id, requestAt(s, e.request, row), pages);
    },

    "node.pinned"(s, e, row) {
      path(s, e.node.a[row], (slot) => {
        s.set(slot, N.PINS, e.until.a[row]);
        join(s, slot);
      });
    },

    eviction(s) {
      s.count("evictions", 1);
    },

    "page.allocated"(s, e, row) {
      if (e.tier.at(row) !== "device") return; // node.demoted says whose they are
      const pages = e.pages.at(row);
      const counts = e.counts.at(row);
      let at = 0;
      e.owners.at(row).forEach((owner, i) => {
        const mine = pages.subarray(at, (at += counts[i]));
        const number = typeof owner === "string" ? s.trace.requestNumber(owner) : -1;
        const code = number >= 0 ? 2 * number + 1 : 2 * owner;
        for (let k = 0; k < mine.length; k++) s.setOwner(mine[k], code);
        if (number >= 0) s.requestPages.set(number, s.requestPages.get(number).append(mine));
      });
    },

    "page.freed"(s, e, row) {
      if (e.tier.at(row) !== "device") return;
      const pages = e.pages.at(row);
      const owner = e.owner.at(row);
      for (let i = 0; i < pages.length; i++) s.setOwner(pages[i], 0);
      if (typeof owner !== "string") return;
      const number = s.trace.requestNumber(owner);
      s.requestPages.set(number, s.requestPages.get(number).without(new Set(pages)));
    },

    "step.planned"(s, e, row) {
      s.planned = { members: e.members.at(row), tokens: e.tokens.at(row), drafted: e.drafted.at(row) };
    },

    "step.started"(s, e, row) {
      const { members, tokens, drafted } = s.planned;
      const dropped = new Set(e.dropped.at(row));
      const runs = Array.from(members.keys()).filter((m) => !dropped.has(members[m]));
      s.members = runs.map((m) => members[m]);
      s.memberTokens = runs.map((m) => tokens[m]);
      s.memberDrafted = runs.map((m) => drafted[m] || 0);
      s.count("forward_passes", 1);
    },

    "step.finished"(s, e, row) {
      const emitted = e.emitted.at(row);
      for (let m = 0; m < emitted.length; m++) {
        const number = s.trace.requestOf.get(s.members[m]);
        if (s.requestField(number, R.STATUS) > DECODE) continue;
        s.addRequest(number, R.KV, s.memberTokens[m] - s.memberDrafted[m]);
        s.addRequest(number, R.OUTPUT, emitted[m]);
        if (s.requestField(number, R.STATUS) === PREFILL && s.requestField(number, R.KV) >= s.requestField(number, R.TARGET))
          s.setRequest(number, R.STATUS, DECODE);
        s.addRequest(number, R.KV, Math.max(emitted[m] - 1, 0));
      }
      s.count("output_tokens", e.ids.at(row).length);
      s.count("steps", 1);
    },

    "token.emitted"(s, e, row) {
      const source = e.source.at(row);
      if (source === "sampled") return;
      s.count(`${source}_tokens`, 1);
      const number = requestAt(s, e.request, row);
      if (s.requestField(number, R.GRAMMAR)) s.addRequest(number, source === "forced" ? R.FORCED : R.JUMPED, 1);
    },

    "grammar.waiting"(s, e, row) {
      const number = requestAt(s, e.request, row);
      leaveQueue(s, number);
      s.setRequest(number, R.HELD, 1);
    },

    "grammar.compiled"(s, e, row) {
      const number = requestAt(s, e.request, row);
      s.setRequest(number, R.GRAMMAR, e.start.a[row] + 2);
      if (!s.requestField(number, R.HELD)) return;
      s.setRequest(number, R.HELD, 0);
      s.queue.push(number);
    },

    "grammar.masked"(s, e, row) {
      const number = requestAt(s, e.request, row);
      if (s.requestField(number, R.GRAMMAR)) s.setRequest(number, R.GRAMMAR, e.target.a[row] + 2);
    },

    "grammar.jumped"(s, e, row) {
      const number = requestAt(s, e.request, row);
      const gain = e.after.at(row).length - e.before.at(row).length;
      s.addRequest(number, R.OUTPUT, gain);
      s.addRequest(number, R.EDITS, 1);
      s.setRequest(number, R.KV, e.kv.a[row]);
      s.count("output_tokens", gain);
      s.count("jumped_tokens", gain);
      if (!s.requestField(number, R.GRAMMAR)) return;
      s.setRequest(number, R.GRAMMAR, e.target.a[row] + 2);
      s.addRequest(number, R.JUMPED, gain);
    },

    "grammar.rolled_back"(s, e, row) {
      const number = requestAt(s, e.request, row);
      if (s.requestField(number, R.GRAMMAR)) s.addRequest(number, R.ROLLED_BACK, e.tokens.at(row).length);
    },
  };

  const NUMBERED = Object.keys(RP.schema).map((kind) => RP.handlers[kind]);

  /** Fold the next event into `state`. Throws ReplayError when it does not fit. */
  RP.apply = (state) => {
    const seq = state.seq + 1;
    const trace = state.trace;
    const k = trace.kind.a[seq];
    state.seq = seq;
    const handler = NUMBERED[k];
    if (!handler) return;
    try {
      handler(state, trace.tables[k], trace.row.a[seq]);
    } catch (error) {
      throw new RP.ReplayError(`event ${seq} (${trace.kindNames[k]}) does not fit what came before: ${error.message}`);
    }
  };
})(globalThis.RadixPlayer);
