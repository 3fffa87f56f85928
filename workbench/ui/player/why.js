/** One plain sentence for an event: who it is about, then what happened. */
(function (RP) {
  "use strict";

  const { count } = RP;

  const STOPS = {
    end: "the tree has nothing further down this path",
    "no child": "no branch goes on with its next token",
    page: "it parts from the tree inside a page, and only whole pages are shared",
    "not written yet": "another request is still computing the next tokens",
    "last token": "only the last token must run",
    off: "the cache is off",
  };
  const LIMITS = {
    pages: (e) => `it needs ${count(e.needed, "page")} and ${count(e.available, "page")} can be had`,
    budget: (e) => `it needs ${count(e.needed, "token")} and the step has room for ${RP.number(e.available)}`,
    "running cap": (e) => `${count(e.available, "request")} may run at a time`,
    chunk: () => "the step's chunk is used up",
    "prefix in flight": (e) => `${e.behind || "another request"} is computing its start; waiting is cheaper`,
    "leader room": () => "the tree has no room for one more new prefix",
  };

  /** A match that parted: the token that stood there, and the one that was wanted. */
  const parted = (trace, e) =>
    `it parts at token ${RP.number(e.raw_length)}: the tree has “${RP.tokenMark(trace, e.stored)}”, ` +
    `it wants “${RP.tokenMark(trace, e.wanted)}”`;

  const SAY = {
    "run.started": (e) => ["The run starts", ` with ${count(e.pages, "free page")} of ${count(e.page_size, "token")} each.`],
    "run.ended": (e, trace) => [e.stopped ? "The run was stopped" : "The run is over", `${reused(trace)}.`],
    "clock.jumped": (e) => [
      "The engine was idle",
      ` and went on to the next arrival (step ${RP.number(e.to_step)}, ${RP.seconds(e.to_t)}).`,
    ],
    "request.arrived": (e) => [
      e.request,
      ` arrives with ${count(e.prompt.length, "prompt token")} and may answer ${count(e.max_new_tokens, "token")}.`,
    ],
    "request.refused": (e) => {
      if (e.reason === "grammar") return [e.request, ` is refused: its grammar cannot be used (${e.error}).`];
      const unit = e.reason === "pages" ? "page" : "token";
      return [e.request, ` is refused: it needs ${count(e.needed, unit)}, there are ${RP.number(e.available)} in all.`];
    },
    "request.routed": (e) => [e.request, ` goes to replica ${e.chosen}: ${e.reason}.${e.transferred ? ` Its KV came from replica ${e.source} in ${RP.seconds(e.seconds)}.` : ""}`],
    "request.matched": (e, trace) => {
      const why = e.stop === "parted" ? parted(trace, e) : STOPS[e.stop] || e.stop;
      const host = e.host_length ? `, ${RP.number(e.host_length)} more on the host` : "";
      return [e.request, ` finds ${count(e.length, "prompt token")} in the cache${host}; ${why}.`];
    },
    "request.admitted": (e) => [
      e.request,
      e.first
        ? ` is let in: ${count(e.cached, "token")} from the cache, ${RP.number(e.computed)} to compute${decided(e)}.`
        : ` is let in again: ${count(e.recovered, "token")} found again, ${RP.number(e.recomputed)} to compute again${decided(e)}.`,
    ],
    "request.first_token": (e) => [e.request, ` has its first token, ${RP.seconds(e.ttft)} after it arrived.`],
    "request.remapped": (e) => [
      e.request,
      ` gives up ${count(e.old.length, "page")}: the tree already holds the same tokens, so it uses those.`,
    ],
    "request.retracted": (e) => [
      e.request,
      ` is sent back to the queue: pages ran out. It gives back ${count(e.freed, "page")} and keeps its ${count(e.outputs, "answer token")}.`,
    ],
    "request.aborted": (e) => [e.request, ` was taken back by its sender (it was in state ${e.was}).`],
    "request.finished": (e) => [
      e.request,
      ` ends after ${count(e.outputs, "token")}: ` +
        ({ stop: "it was done", length: "it reached its limit", capacity: "no more room in the pool", error: "its step failed" }[
          e.reason
        ] || e.reason) +
        (e.incomplete ? "; its document is not whole." : "."),
    ],
    "queue.ordered": (e) => [
      "The queue",
      ` is put in order by ${e.policy}: ${e.head.slice(0, 3).join(", ")} first, ${count(e.waiting, "request")} waiting.` +
        (e.fell_back && e.why ? ` It fell back: ${e.why}.` : ""),
    ],
    "request.passed_over": (e) => [e.request, ` waits: ${(LIMITS[e.limit] || (() => e.limit))(e)}.`],
    "node.created": (e) => [`Node #${e.node}`, ` now keeps ${count(e.stop - e.start, "token")} of ${e.request} for others.`],
    "node.split": (e) => [
      `Node #${e.node}`,
      ` is split after ${count(e.at, "token")}: the shared start becomes #${e.front}, the rest stays #${e.node}.`,
    ],
    "node.grown": (e) => [`Node #${e.node}`, ` grows by ${count(e.stop - e.start, "token")} as ${e.request} is computed.`],
    "node.touched": (e) => [
      `The path to #${e.node}`,
      e.hit ? ` is used again: a hit, dated tick ${RP.number(e.tick)}.` : ` is dated tick ${RP.number(e.tick)}.`,
    ],
    "node.locked": (e) => [`The path to #${e.node}`, ` is locked${e.request ? ` for ${e.request}` : ""}: it cannot be evicted.`],
    "node.unlocked": (e) => [`The path to #${e.node}`, ` loses one lock${e.request ? `, that of ${e.request}` : ""}.`],
    "node.trimmed": (e) => [`Node #${e.node}`, ` loses its last ${count(e.tokens, "token")}: pages were needed.`],
    "node.evicted": (e) => [
      `Node #${e.node}`,
      e.pages.length ? ` is evicted: its ${count(e.tokens, "token")} are gone from the cache.` : ` leaves the host too: its ${count(e.tokens, "token")} are gone.`,
    ],
    "node.demoted": (e) => [
      `Node #${e.node}`,
      e.kept
        ? ` is copied to ${count(e.host_pages.length, "host page")}; its device pages stay.`
        : ` leaves the device and lies on the host only, in ${count(e.host_pages.length, "host page")}.`,
    ],
    "node.restored": (e) => [
      `Node #${e.node}`,
      e.request
        ? `, which lay on the host only, has been computed again by ${e.request}: it takes over ${count(e.pages.length, "page")}.`
        : ` comes back from the host: ${count(e.pages.length, "page")} in ${RP.seconds(e.seconds)}, where computing takes ${RP.seconds(e.recompute_seconds)}.`,
    ],
    "node.pinned": (e) => {
      const over = e.refused ? `${count(e.refused, "page")} refused, the pin budget is used up` : "";
      if (!e.node) return [e.request || "A pin", `: nothing is pinned, ${over}.`];
      if (e.until) return [`The path to #${e.node}`, ` is pinned up to step ${RP.number(e.until)}${over ? `; ${over}` : ""}.`];
      return [`The pin on #${e.node}`, e.request ? ` gives way before its time: ${e.request} could not be served otherwise.` : " is over."];
    },
    eviction: (e) => [
      e.request ? `${e.request} needs pages` : "Pages are needed",
      `: ${count(e.asked, "page")} asked, ${RP.number(e.freed)} freed by ${RP.evictionName(e.policy)}.` +
        (e.ranking.length ? ` #${e.ranking[0].node} goes first, idle for ${count(e.ranking[0].age, "tick")}.` : ""),
    ],
    "page.allocated": (e) => [count(e.pages.length, pageOf(e)), ` taken from the free list for ${listed(e.owners)}.`],
    "page.freed": (e) => [count(e.pages.length, pageOf(e)), ` of ${holder(e.owner)} back on the free list.`],
    "step.planned": (e) => [
      "The next step",
      ` runs ${count(e.members.length, "request")} in ${e.mode}: ${count(
        e.tokens.reduce((a, b) => a + b, 0),
        "token",
      )}, ${count(e.waiting, "request")} waiting.`,
    ],
    "step.started": () => ["The forward pass", " begins."],
    "step.finished": (e) => [
      "The step",
      ` is done in ${RP.seconds((e.ahead ? 0 : e.plan_seconds) + e.forward_seconds + e.sample_seconds)}` +
        `${e.plan_seconds ? `, ${RP.seconds(e.plan_seconds)} ${e.ahead ? "planning beside the step before" : "of it planning"}` : ""}` +
        `: ${count(e.ids.length, "new token")}.${e.late.length ? ` One pass too many for ${listed(e.late)}.` : ""}`,
    ],
    "token.emitted": (e) => [e.request, `: answer token ${RP.number(e.position + 1)} was ${e.source}.`],
    "tokens.scored": (e) => [e.request, `: ${count(e.logprobs.length, "prompt token")} scored.`],
    "grammar.compiled": (e) => [e.request, `: grammar ready, ${count(e.states, "state")} in ${RP.seconds(e.seconds)}.`],
    "grammar.waiting": (e) => [e.request, " waits for its grammar."],
    "grammar.masked": (e) => [e.request, `: the grammar allows ${count(e.allowed, "token")} here.`],
    "grammar.jumped": (e) => [e.request, ` jumps ${count(e.after.length, "forced token")} ahead without a pass.`],
    "grammar.verified": (e) => [e.request, `: the model agreed with ${e.accepted} of ${count(e.drafted, "forced token")}.`],
    "grammar.rolled_back": (e) => [e.request, ` takes back ${count(e.tokens.length, "token")}.`],
    "draft.verified": (e) => [e.request, `: what followed the same words before is drafted, the model says ${e.accepted} of ${count(e.drafted, "token")} itself.`],
    "executor.failed": (e) => ["The forward pass failed", `: ${e.error}. ${listed(e.members)} end with an error.`],
    "invariant.broken": (e) => ["The pool is inconsistent", `: ${e.what}.`],
  };

  /** Load or compute what the host holds, and by which two figures; "" where there was nothing to decide. */
  const decided = (e) => {
    if (!e.host) return "";
    const time = (s) => (s === null ? "an unknown time" : RP.seconds(s));
    return e.loaded
      ? `; ${count(e.loaded, "token")} of it loaded from the host: ${time(e.load_seconds)}, where computing takes ${time(e.recompute_seconds)}`
      : `; the host's ${count(e.host, "token")} are computed again: ${time(e.recompute_seconds)}, where loading takes ${time(e.load_seconds)}`;
  };

  /** What came from the cache in the whole run, once something was admitted. */
  const reused = (trace) => {
    const table = trace.tables[trace.kindIndex.get("request.admitted")];
    let [cached, all] = [0, 0];
    for (let row = 0; row < table.first.n; row++) {
      if (!table.first.at(row)) continue;
      cached += table.cached.at(row);
      all += table.cached.at(row) + table.computed.at(row);
    }
    return all ? `: ${RP.number(cached)} of ${count(all, "prompt token")} came from the cache (${RP.percent(cached, all)})` : "";
  };

  const pageOf = (e) => (e.tier === "device" ? "page" : `${e.tier} page`);
  const holder = (owner) => (typeof owner === "number" ? `node #${owner}` : owner);
  const listed = (owners) => {
    const names = owners.slice(0, 3).map(holder).join(", ");
    return owners.length > 3 ? `${names} and ${RP.number(owners.length - 3)} more` : names;
  };

  /** [subject, rest] for event `seq`. */
  RP.why = (trace, seq) => {
    if (seq < 0) return ["Nothing has happened yet.", ""];
    const event = trace.event(seq);
    const say = SAY[event.kind];
    return say ? say(event, trace) : [event.kind, ""];
  };
})(globalThis.RadixPlayer);
