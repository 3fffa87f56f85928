/** Why in a saved page: the answers that it carries, as `workbench.explain.saved` makes them. */
(function (RP) {
  "use strict";

  /** The last [seq, answer] at or before `seq`; undefined where there is none. */
  const upTo = (list, seq) => list.findLast(([at]) => at <= seq);

  /** What `setWhy` takes; null where the page carries no answer. */
  RP.savedWhy = (replicas) => {
    const events = replicas.map((saved) => new Map(saved.events));
    return async (seq, selection, replica) => {
      if (!selection) return events[replica].get(seq) || null;
      const saved = replicas[replica];
      const [kept, who] = selection.node ? [saved.nodes, selection.node] : [saved.requests, selection.request];
      const told = Object.hasOwn(kept, who) ? upTo(kept[who], seq) : undefined;
      if (!told) return null;
      const [at, answer] = told;
      if (at === seq) return answer;
      const since = `So it stood after event ${RP.number(at)}, the last that names it; the app tells it for any moment.`;
      return { ...answer, detail: [...answer.detail, since], links: [...answer.links, { kind: "event", id: at, text: `event ${RP.number(at)}` }] };
    };
  };
})(globalThis.RadixPlayer);
