"""Answers every "why" about a trace, at any moment, from the trace alone."""

from __future__ import annotations

from collections.abc import Iterable

from engine import events as ev
from workbench.explain import events, nodes, pages, requests
from workbench.explain.answer import Answer, ExplainError
from workbench.explain.index import Index
from workbench.explain.moment import Moment
from workbench.explain.sentences import sentence
from workbench.replay import Replay


class Explainer:
    """Built once over a trace, or along a live run with `extend`; one thread at a time.

    An answer costs a few look-ups and the fold from the nearest keyframe, whatever the trace's length.
    """

    def __init__(self, trace: ev.Trace | Iterable[ev.Event], header: ev.Header | None = None, every: int = 512) -> None:
        self.header = header or (trace.header if isinstance(trace, ev.Trace) else ev.Header())
        self._replay = Replay(every=every)
        self._index = Index()
        self.extend(trace)

    def extend(self, events: Iterable[ev.Event]) -> None:
        """Go on by further events. Raises ReplayError where they do not fit what came before."""
        for event in events:
            self._index.see(event, self._replay.last)
            self._replay.append(event)

    def __len__(self) -> int:
        return len(self._replay.events)

    def sentence(self, seq: int) -> str:
        """One plain sentence for one event."""
        return sentence(self._replay.events[seq], self._replay.at(seq), self.header.texts)

    def event(self, seq: int) -> Answer:
        """The event at `seq`: its sentence, the ranking behind it, what lost and by how much."""
        return events.explain(self._moment(seq))

    def request(self, seq: int, id: str) -> Answer:
        """A request as it stands after event `seq`."""
        return requests.explain(self._moment(seq), id)

    def node(self, seq: int, id: int) -> Answer:
        """A tree node as it stands after event `seq`, or why it is gone."""
        return nodes.explain(self._moment(seq), id)

    def page(self, seq: int, page: int) -> Answer:
        """Who holds a page after event `seq`, and who held it before."""
        return pages.explain(self._moment(seq), page)

    def knows(self, request: str) -> bool:
        """Whether a request of this name has arrived."""
        return request in self._index.requests and ev.RequestArrived in self._index.requests[request]

    def named(self) -> dict[str | int, list[int]]:
        """Every request (by its name) and every node (by its number) with the events that name it, rising."""
        requests: dict[str | int, list[int]] = {
            id: sorted(seq for seqs in kinds.values() for seq in seqs)
            for id, kinds in self._index.requests.items() if ev.RequestArrived in kinds
        }  # fmt: skip
        return requests | {node: list(seqs) for node, seqs in self._index.nodes.items()}

    def _moment(self, seq: int) -> Moment:
        if not 0 <= seq < len(self):
            raise ExplainError(f"seq: must be 0 to {len(self) - 1}; got {seq}")
        replay = self._replay
        return Moment(seq, replay.at(seq), replay.events, self._index, self.header, replay.at)
