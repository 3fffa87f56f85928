/** Any moment of a trace in bounded time: the nearest keyframe, then at most `EVERY` events. */
(function (RP) {
  "use strict";

  const EVERY = 512;

  class Replay {
    constructor(trace) {
      this.trace = trace;
      this.marks = new RP.Marks(trace);
      this.segments = new RP.Segments(trace);
      this.hits = new RP.Hits(trace);
      /** frames[k] is the state before event k x EVERY. */
      this.frames = [];
      this.head = new RP.State(trace);
      this.cursor = this.head.fork();
      this.extend();
    }

    /** Fold what was appended to the trace since the last call. */
    extend() {
      const head = this.head;
      while (head.seq + 1 < this.trace.length) {
        if ((head.seq + 1) % EVERY === 0) this.frames.push(head.fork());
        RP.apply(head);
        this.marks.note(head);
        this.segments.note(head);
        this.hits.note(head);
      }
    }

    /** The state after event `seq` (-1: before the first); good until the next call. */
    at(seq) {
      if (!(seq >= -1 && seq <= this.head.seq)) throw new RangeError(`seq: must be -1 to ${this.head.seq}; got ${seq}`);
      const cursor = this.cursor;
      if (cursor.seq > seq || seq - cursor.seq > EVERY) {
        const nearest = seq === this.head.seq ? this.head : this.frames[Math.floor((seq + 1) / EVERY)];
        this.cursor = nearest.fork();
      }
      while (this.cursor.seq < seq) RP.apply(this.cursor);
      return this.cursor;
    }
  }

  Replay.EVERY = EVERY;
  RP.Replay = Replay;
})(globalThis.RadixPlayer);
