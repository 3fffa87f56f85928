/** What each request did and when: waiting, prefill, decode, from event to event. */
(function (RP) {
  "use strict";

  const R = RP.R;
  const DECODE = RP.STATUS.indexOf("decode");

  class Segments {
    constructor(trace) {
      this.trace = trace;
      /** lanes[request number] = [{sort, from, to, kept, computed, again}]; `to` is -1 while it lasts. */
      this.lanes = [];
      /** Steps completed after each event. */
      this.steps = new RP.Growing(Int32Array);
      this.done = 0;
    }

    open(number, sort, seq, more) {
      this.close(number, seq);
      this.lanes[number].push({ sort, from: seq, to: -1, ...more });
    }

    close(number, seq) {
      const lane = this.lanes[number];
      if (lane.length && lane[lane.length - 1].to < 0) lane[lane.length - 1].to = seq;
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
      segments.lanes.push([]);
      segments.open(segments.lanes.length - 1, "waiting", seq);
    },
    "request.admitted"(segments, state, seq) {
      const e = segments.trace.event(seq);
      segments.open(segments.trace.requestNumber(e.request), "prefill", seq, {
        kept: e.first ? e.cached : e.recovered,
        computed: e.first ? e.computed : e.recomputed,
        again: !e.first,
      });
    },
    "request.retracted"(segments, state, seq) {
      segments.open(numberOf(segments, seq), "waiting", seq, { again: true });
    },
    "step.finished"(segments, state, seq) {
      segments.done = segments.trace.step.a[seq];
      for (const name of state.members) {
        const number = segments.trace.requestOf.get(name);
        const lane = segments.lanes[number];
        const decoding = state.requestField(number, R.STATUS) === DECODE;
        if (decoding && lane[lane.length - 1].sort === "prefill") segments.open(number, "decode", seq);
      }
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
