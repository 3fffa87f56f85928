"""The answers that a saved page carries, so that its Why says what the app would say.

To each event its own answer; of each request and node how it stands after every event that names it, and at the
end. Between two of those the page tells the earlier one and says so.
"""

from __future__ import annotations

import msgspec

from engine import events as ev
from workbench.explain.answer import Answer, ExplainError
from workbench.explain.explainer import Explainer
from workbench.explain.whole import RunExplainer

LONGEST = 2_000
"""Events of a run that is answered throughout; a longer one's page would grow too large, and carries its opening moment only."""


class Opening(msgspec.Struct, frozen=True):
    """The moment that a page opens at, and what is selected there. `seq` None: the end."""

    seq: int | None = None
    node: int | None = None
    request: str | None = None
    replica: int = 0
    """The one that is shown, whose events `seq` counts."""


class Saved(msgspec.Struct):
    """Answers by what they are about, each with the event it was given at, rising."""

    whole: bool
    """Whether every event has an answer."""
    events: list[tuple[int, Answer]]
    requests: dict[str, list[tuple[int, Answer]]]
    nodes: dict[int, list[tuple[int, Answer]]]


def saved(trace: ev.Trace, opening: Opening) -> list[Saved]:
    """The answers, replica by replica; `opening` is answered in any case, as is what the other replicas told last by then.

    Raises ExplainError for an opening that the trace does not hold.
    """
    run = RunExplainer(trace.header, trace)
    which, at = run.place(run.last(opening.replica) if opening.seq is None else opening.seq, replica=opening.replica)
    last = run.last(which)
    if not 0 <= at <= last:
        raise ExplainError(f"seq: must be 0 to {last}; got {at}")
    chosen = [who for who in (opening.node, opening.request) if who is not None]
    for who in chosen:
        if who not in run.replicas[which].named():
            raise ExplainError(f"{who!r} is no node and no request of this run")
    whole = len(trace) <= LONGEST
    return [
        _saved(one, at, chosen, whole) if i == which else _saved(one, run.at(at, which, i), [], whole)
        for i, one in enumerate(run.replicas)
    ]


def _saved(explainer: Explainer, at: int, chosen: list[int | str], whole: bool) -> Saved:
    """The answers of one replica, which stands at its event `at`; of those `chosen` in any case."""
    last = len(explainer) - 1
    named = explainer.named()
    if whole:
        moments = {who: sorted({*seqs, last, max(at, seqs[0])}) for who, seqs in named.items()}
    else:
        moments = {who: [max(at, named[who][0])] for who in chosen}
    return Saved(
        whole=whole,
        events=[(seq, explainer.event(seq)) for seq in (range(last + 1) if whole else [at]) if seq >= 0],
        requests={id: [(seq, explainer.request(seq, id)) for seq in seqs] for id, seqs in moments.items() if isinstance(id, str)},
        nodes={id: [(seq, explainer.node(seq, id)) for seq in seqs] for id, seqs in moments.items() if isinstance(id, int)},
    )
