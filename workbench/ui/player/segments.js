/** What each request did and when: waiting, prefill, decode, from event to event, and what befell it. */
(function (RP) {
  "use strict";

  const R = RP.R;
  const DECODE = RP.STATUS.indexOf("decode");

  /**
   * One request's life. `parts`: {sort, from, to, kept, again}, `to` is -1 while it lasts.
   * `stalls`: {from, to, by}: it was decoding, and a step ran without it because others' prefill did.
   * `idle`: its last step was a stall. `tokens`: {seq, source}: answer tokens that were not simply sampled.
   * `retracts`, `passed`: event numbers.
   */
  const newLane = () => ({ parts: [], stalls: [], idle: false, tokens: [], retracts: [], passed: [] });

  class Segments {
    constructor(trace) {
      this.trace = trace;
      /** lanes[request number] */
      this.lanes = [];
      /** Steps completed after each event. */
      this.steps = new RP.Growing(Int32Array);
      this.done = 0;
      /** The last step that was planned: events after it carry the number of a step that may never come. */
      this.planned = 0;
      /** Numbers of the requests that decode, and of those that a running step leaves out. */
      this.decoding = new Set();
      this.stalled = new Set();
      /** How many stalls there have been, and how many admissions that found something in the cache. */
      this.stalls = 0;
      this.founds = 0;
      /** Token sources other than sampled that occur in the trace. */
      this.sources = new Set();
    }

    open(number, sort, seq, more) {
      this.close(number, seq);
      this.lanes[number].parts.push({ sort, from: seq, to: -1, ...more });
    }

    close(number, seq) {
      const { parts } = this.lanes[number];
      if (parts.length && parts[parts.length - 1].to < 0) parts[parts.length - 1].to = seq;
      this.decoding.delete(number);
      this.resume(number, seq);
    }

    /** A stall is over. */
    resume(number, seq) {
      if (!this.stalled.delete(number)) return;
      const { stalls } = this.lanes[number];
      stalls[stalls.length - 1].to = seq;
    }

    /** A planned step prefills `by` and leaves out some that decode; two such steps in a row are one stall. */
    stall(number, seq, by) {
      const { stalls } = this.lanes[number];
      const last = stalls[stalls.length - 1];
      if (last && this.lanes[number].idle) {
        last.to = -1;
        for (const name of by) last.by.add(name);
      } else stalls.push({ from: seq, to: -1, by: new Set(by) });
      this.lanes[number].idle = true;
      this.stalls++;
      this.stalled.add(number);
    }

    /** Note the event that `state` has just folded. */
    note(state) {
      const seq = state.seq;
      const handler = FOLLOW[this.trace.kindOf(seq)];
      if (handler) handler(this, state, seq);
      const step = this.trace.step.a[seq];
      this.steps.push(this.done === step ? step : step - 1);
    }
  }

  const FOLLOW = {
    "request.arrived"(segments, state, seq) {
      segments.lanes.push(newLane());
      segments.open(segments.lanes.length - 1, "waiting", seq);
    },
    "request.admitted"(segments, state, seq) {
      const e = segments.trace.event(seq);
      const kept = e.first ? e.cached : e.recovered;
      if (kept) segments.founds++;
      segments.open(segments.trace.requestNumber(e.request), "prefill", seq, { kept, again: !e.first });
    },
    "request.passed_over"(segments, state, seq) {
      segments.lanes[numberOf(segments, seq)].passed.push(seq);
    },
    "request.retracted"(segments, state, seq) {
      const number = numberOf(segments, seq);
      segments.open(number, "waiting", seq, { again: true });
      segments.lanes[number].retracts.push(seq);
    },
    "step.planned"(segments, state, seq) {
      for (const number of segments.stalled) segments.resume(number, seq);
      segments.planned = segments.trace.step.a[seq];
      const e = segments.trace.tables[segments.trace.kind.a[seq]];
      const prefills = e.prefills.a[segments.trace.row.a[seq]];
      const joined = new Set(Array.from(state.planned.members, (name) => segments.trace.requestOf.get(name)));
      const by = prefills ? Array.from(state.planned.members.subarray(0, prefills), (name) => segments.trace.names.list[name]) : [];
      for (const number of segments.decoding)
        if (joined.has(number)) segments.lanes[number].idle = false;
        else if (prefills) segments.stall(number, seq, by);
    },
    "step.finished"(segments, state, seq) {
      segments.done = segments.trace.step.a[seq];
      for (const number of segments.stalled) segments.resume(number, seq);
      for (const name of state.members) {
        const number = segments.trace.requestOf.get(name);
        const { parts } = segments.lanes[number];
        const decoding = state.requestField(number, R.STATUS) === DECODE;
        if (!decoding || parts[parts.length - 1].sort !== "prefill") continue;
        segments.open(number, "decode", seq);
        segments.lanes[number].idle = false;
        segments.decoding.add(number);
      }
    },
    "token.emitted"(segments, state, seq) {
      const e = segments.trace.event(seq);
      if (e.source === "sampled") return;
      segments.sources.add(e.source);
      segments.lanes[segments.trace.requestNumber(e.request)].tokens.push({ seq, source: e.source });
    },
    "request.finished": ended,
    "request.aborted": ended,
    "request.refused": ended,
  };

  function ended(segments, state, seq) {
    segments.close(numberOf(segments, seq), seq);
  }

  function numberOf(segments, seq) {
    return segments.trace.requestNumber(segments.trace.event(seq).request);
  }

  RP.Segments = Segments;
})(globalThis.RadixPlayer);
