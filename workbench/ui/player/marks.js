/** What the trace is known for, seq by seq: marks to jump between, and the curves of the timeline. */
(function (RP) {
  "use strict";

  /** Where a run is worth stopping at. */
  const MARK_OF = {
    eviction: "eviction",
    "step.planned": "schedule",
    "request.retracted": "retraction",
  };

  class Marks {
    constructor(trace) {
      this.trace = trace;
      this.eviction = new RP.Growing(Int32Array);
      this.miss = new RP.Growing(Int32Array);
      this.schedule = new RP.Growing(Int32Array);
      this.retraction = new RP.Growing(Int32Array);
      /** After each event: pages in the tree, pages of running requests, prompt tokens cached and in all. */
      this.cached = new RP.Growing(Int32Array);
      this.private = new RP.Growing(Int32Array);
      this.hits = new RP.Growing(Float64Array);
      this.prompts = new RP.Growing(Float64Array);
    }

    /** Note the event that `state` has just folded. */
    note(state) {
      const i = state.seq;
      const kind = this.trace.kindOf(i);
      const mark = MARK_OF[kind];
      if (mark) this[mark].push(i);
      else if (kind === "request.matched" && RP.isMiss(this.trace.event(i))) this.miss.push(i);
      this.cached.push(state.cachedPages);
      this.private.push(state.privatePages);
      this.hits.push(state.total("cached_tokens"));
      this.prompts.push(state.total("prompt_tokens"));
    }

    /** The nearest mark of a sort after `seq`, or before it when `direction` is -1; null: none. */
    next(sort, seq, direction) {
      const list = this[sort];
      let low = 0;
      let high = list.n;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (direction > 0 ? list.a[middle] <= seq : list.a[middle] < seq) low = middle + 1;
        else high = middle;
      }
      const at = direction > 0 ? low : low - 1;
      return at >= 0 && at < list.n ? list.a[at] : null;
    }
  }

  /** A match that ended before the prompt did: something had to be computed for want of an entry. */
  RP.isMiss = (event) => event.stop !== "last token";

  RP.Marks = Marks;
})(globalThis.RadixPlayer);
