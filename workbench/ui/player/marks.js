/** What the trace is known for, seq by seq: marks to jump between, and the curves of the timeline. */
(function (RP) {
  "use strict";

  /** Where a run is worth stopping at. */
  const MARK_OF = {
    eviction: "eviction",
    "step.planned": "schedule",
    "request.retracted": "retract",
    "queue.ordered": "ordered",
  };
  /** The windowed hit rate looks at this many admissions. */
  const WINDOW = 8;

  class Marks {
    constructor(trace) {
      this.trace = trace;
      this.eviction = new RP.Growing(Int32Array);
      this.miss = new RP.Growing(Int32Array);
      this.schedule = new RP.Growing(Int32Array);
      this.retract = new RP.Growing(Int32Array);
      this.ordered = new RP.Growing(Int32Array);
      /** After each event: pages in the tree, pages of running requests, prompt tokens cached and in all. */
      this.cached = new RP.Growing(Int32Array);
      this.private = new RP.Growing(Int32Array);
      this.hits = new RP.Growing(Float64Array);
      this.prompts = new RP.Growing(Float64Array);
      /** Hit rate of the last few first admissions; NaN before the first. */
      this.recent = new RP.Growing(Float32Array);
      this.window = [];
      this.rate = NaN;
    }

    /** Note the event that `state` has just folded. */
    note(state) {
      const i = state.seq;
      const kind = this.trace.kindOf(i);
      const mark = MARK_OF[kind];
      if (mark) this[mark].push(i);
      else if (kind === "request.matched" && RP.isMiss(this.trace.event(i))) this.miss.push(i);
      if (kind === "request.admitted") this.admitted(this.trace.event(i));
      this.cached.push(state.cachedPages);
      this.private.push(state.privatePages);
      this.hits.push(state.total("cached_tokens"));
      this.prompts.push(state.total("prompt_tokens"));
      this.recent.push(this.rate);
    }

    admitted(event) {
      if (!event.first) return;
      this.window.push([event.cached, event.cached + event.computed]);
      if (this.window.length > WINDOW) this.window.shift();
      const [cached, all] = this.window.reduce(([a, b], [x, y]) => [a + x, b + y], [0, 0]);
      this.rate = all ? cached / all : 0;
    }

    /** The nearest mark of a sort after `seq`, or before it when `direction` is -1; null: none. */
    next(sort, seq, direction) {
      return RP.nearest(this[sort], seq, direction);
    }
  }
  Marks.WINDOW = WINDOW;

  /** In a `Growing` of rising numbers, the nearest after `seq`, or before it when `direction` is -1; null: none. */
  RP.nearest = (list, seq, direction) => {
    let low = 0;
    let high = list.n;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (direction > 0 ? list.a[middle] <= seq : list.a[middle] < seq) low = middle + 1;
      else high = middle;
    }
    const at = direction > 0 ? low : low - 1;
    return at >= 0 && at < list.n ? list.a[at] : null;
  };

  /** A match that ended before the prompt did: something had to be computed for want of an entry. */
  RP.isMiss = (event) => event.stop !== "last token";

  RP.Marks = Marks;
})(globalThis.RadixPlayer);
