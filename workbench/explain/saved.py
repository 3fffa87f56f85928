"""The answers that a saved page carries, so that its Why says what the app would say.

To each event its own answer; of each request and node how it stands after every event that names it, and at the
end. Between two of those the page tells the earlier one and says so.
"""

from __future__ import annotations

import msgspec

from engine import events as ev
from workbench.explain.answer import Answer, ExplainError
from workbench.explain.explainer import Explainer

LONGEST = 2_000
"""Events of a run that is answered throughout; a longer one's page would grow too large, and carries its opening moment only."""


class Opening(msgspec.Struct, frozen=True):
    """The moment that a page opens at, and what is selected there. `seq` None: the end."""

    seq: int | None = None
    node: int | None = None
    request: str | None = None


class Saved(msgspec.Struct):
    """Answers by what they are about, each with the event it was given at, rising."""

    whole: bool
    """Whether every event has an answer."""
    events: list[tuple[int, Answer]]
    requests: dict[str, list[tuple[int, Answer]]]
    nodes: dict[int, list[tuple[int, Answer]]]


def saved(trace: ev.Trace, opening: Opening) -> Saved:
    """The answers for one trace; `opening` is answered in any case. Raises ExplainError for one that the trace does not hold."""
    explainer = Explainer(trace)
    last = len(trace) - 1
    at = last if opening.seq is None else opening.seq
    if not 0 <= at <= last:
        raise ExplainError(f"seq: must be 0 to {last}; got {at}")
    named = explainer.named()
    chosen = [who for who in (opening.node, opening.request) if who is not None]
    for who in chosen:
        if who not in named:
            raise ExplainError(f"{who!r} is no node and no request of this run")
    whole = len(trace) <= LONGEST
    if whole:
        moments = {who: sorted({*seqs, last, max(at, seqs[0])}) for who, seqs in named.items()}
    else:
        moments = {who: [max(at, named[who][0])] for who in chosen}
    return Saved(
        whole=whole,
        events=[(seq, explainer.event(seq)) for seq in (range(len(trace)) if whole else [at])],
        requests={id: [(seq, explainer.request(seq, id)) for seq in seqs] for id, seqs in moments.items() if isinstance(id, str)},
        nodes={id: [(seq, explainer.node(seq, id)) for seq in seqs] for id, seqs in moments.items() if isinstance(id, int)},
    )
