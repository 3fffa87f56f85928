/**
 * A run of one or several replicas. What comes in is split by `replica` into one trace each, whose events are numbered
 * anew from 0 (as `workbench.replicas.split` does), so that all that reads one engine's trace reads each of them.
 */
(function (RP) {
  "use strict";

  /** The place of the last number up to `wanted` in a `Growing` of rising numbers; -1: there is none. */
  const lastUpTo = (list, wanted) => {
    let low = 0;
    let high = list.n;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list.a[middle] <= wanted) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  };

  class Replica {
    constructor(number, trace) {
      this.number = number;
      this.trace = trace;
      /** The number that each of its events has in the run. */
      this.numbers = new RP.Growing(Int32Array);
      /** Its events that are router's decisions. */
      this.routed = new RP.Growing(Int32Array);
      /** Tokens whose KV had come from elsewhere with each of them and those before. */
      this.came = new RP.Growing(Float64Array);
      this.replay = new RP.Replay(trace);
      this.concerns = new RP.Concerns(trace);
      this.seen = 0;
    }

    /** Fold what was appended since the last call. */
    extend() {
      this.replay.extend();
      const routed = this.trace.kindIndex.get("request.routed");
      for (; this.seen < this.trace.length; this.seen++) {
        if (this.trace.kind.a[this.seen] !== routed) continue;
        const sum = this.came.n ? this.came.a[this.came.n - 1] : 0;
        this.routed.push(this.seen);
        this.came.push(sum + this.trace.tables[routed].transferred.a[this.trace.row.a[this.seen]]);
      }
    }

    /** Its newest event when the run stood at its event `moment`; -1: it had told nothing yet. */
    at(moment) {
      return lastUpTo(this.numbers, moment);
    }

    /** The run's number of its event `seq`; -1 before the first. */
    moment(seq) {
      return seq < 0 ? -1 : this.numbers.a[seq];
    }

    /** The router's last decision for it up to its event `seq`; null where there was none. */
    routing(seq) {
      const i = lastUpTo(this.routed, seq);
      return i < 0 ? null : this.trace.event(this.routed.a[i]);
    }

    /** Tokens whose KV has come from where they were prefilled, up to its event `seq`. */
    transferred(seq) {
      const i = lastUpTo(this.routed, seq);
      return i < 0 ? 0 : this.came.a[i];
    }
  }

  class Fleet {
    /** @param {Trace[]} traces one a replica, filled or to be filled. */
    constructor(traces) {
      const [first] = traces;
      this.header = first.header;
      this.texts = first.texts;
      this.replicas = [];
      for (const trace of traces) this.join(trace);
      /** Events of all replicas together. */
      this.length = 0;
    }

    static ofHeader(header) {
      const count = (header.config || {}).replicas || 1;
      return new Fleet(Array.from({ length: count }, () => new RP.Trace(header)));
    }

    /** A run from a trace file's text. */
    static parse(text) {
      return RP.parseJsonl(text, Fleet.ofHeader).extend();
    }

    /** A run from what `workbench.export.pack` writes. */
    static async unpack(base64) {
      const packed = await RP.unzip(base64);
      if (!Array.isArray(packed)) return Fleet.alone(RP.fromColumns(packed));
      const { header } = packed[0];
      const fleet = new Fleet(packed.map((part) => RP.fromColumns({ ...part, header })));
      packed.forEach(({ numbers }, i) => fleet.number(fleet.replicas[i], RP.undelta(RP.unrun(numbers))));
      return fleet.extend();
    }

    /** A run of one engine, whose trace is there. */
    static alone(trace) {
      const fleet = new Fleet([trace]);
      fleet.number(fleet.replicas[0], Array.from({ length: trace.length }, (_, i) => i));
      return fleet.extend();
    }

    /** All replicas have one header and its token texts. */
    join(trace) {
      trace.header = this.header;
      trace.texts = this.texts;
      this.replicas.push(new Replica(this.replicas.length, trace));
    }

    number(replica, numbers) {
      for (const n of numbers) replica.numbers.push(n);
      this.length += numbers.length;
    }

    /** Append the run's next event. */
    push(event) {
      const replica = this.replicas[event.replica || 0];
      replica.numbers.push(this.length++);
      replica.trace.push(event);
    }

    /** Fold what was pushed since the last call. */
    extend() {
      for (const replica of this.replicas) replica.extend();
      return this;
    }

    get several() {
      return this.replicas.length > 1;
    }

    /** The replica that told the run's event `moment`, by its number. */
    toldBy(moment) {
      return Math.max(0, this.replicas.findIndex((replica) => replica.moment(replica.at(moment)) === moment));
    }

    /** The number of the replica that a request came to; -1: to none. */
    homeOf(request) {
      return this.replicas.findIndex(({ trace }) => trace.requestNumber(request) !== undefined);
    }
  }

  RP.Fleet = Fleet;
})(globalThis.RadixPlayer);
