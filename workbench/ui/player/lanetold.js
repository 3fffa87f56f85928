/** What a pointer over a lane reads: the request, what it is at, and for a stall whose prefill it was. */
(function (RP) {
  "use strict";

  const R = RP.R;
  const CULPRITS = 4;

  /** {head, lines} of request `number`; `gap` is the stall under the pointer, if there is one. */
  RP.laneTold = (player, number, gap) => {
    const { trace, now } = player;
    const field = (f) => now.requestField(number, f);
    const lines = [now.status(number)];
    if (gap) lines.unshift(stalled(trace, gap.stall));
    if (field(R.CACHED) >= 0) lines.push(`${RP.count(field(R.CACHED), "token")} cached, ${RP.number(field(R.COMPUTED))} computed`);
    if (field(R.RECOMPUTED)) lines.push(`${RP.count(field(R.RECOMPUTED), "token")} computed again`);
    if (field(R.OUTPUT)) lines.push(`${RP.count(field(R.OUTPUT), "token")} answered`);
    if (field(R.RETRACTIONS)) lines.push(`sent back ${RP.count(field(R.RETRACTIONS), "time")}`);
    return { head: RP.requestName(trace, number), lines };
  };

  const stalled = (trace, { from, to, by }) => {
    const until = to < 0 ? trace.length - 1 : to;
    const names = [...by].slice(0, CULPRITS).map((name) => RP.requestName(trace, trace.requestNumber(name)));
    const more = by.size > CULPRITS ? ` and ${RP.number(by.size - CULPRITS)} more` : "";
    return `stalled for ${RP.seconds(trace.t.a[until] - trace.t.a[from])}: the prefill of ${names.join(", ")}${more} ran instead`;
  };
})(globalThis.RadixPlayer);
