"""What the scheduler tells: the queue's order, matches, and who was passed over; each when it changes."""

from __future__ import annotations

from collections.abc import Sequence

from engine import events as ev
from engine.cache.base import WIDTH, Match
from engine.request import Request

HEAD = 16
"""How much of the queue's order an event shows."""


class Telling:
    """Turns decisions into events and remembers what was told last."""

    def __init__(self, policy: str, trace: ev.Trace) -> None:
        self._policy = policy
        self._trace = trace
        self._order: tuple[list[str], list[int], str | None] = ([], [], None)
        self._over: dict[str, tuple[str, int | str | None]] = {}

    @property
    def on(self) -> bool:
        """Whether anybody listens."""
        return self._trace.on

    def forget(self, request: Request) -> None:
        """It no longer waits."""
        self._over.pop(request.id, None)

    def order(
        self, waiting: int, head: Sequence[Request], keys: Sequence[int], fell_back: bool = False, why: str | None = None
    ) -> None:
        """The order in which this step looks at the queue."""
        told = ([r.id for r in head], list(keys), why)
        if (keys or why) and told != self._order:
            self._order = told
            self._trace.emit(
                ev.QueueOrdered, policy=self._policy, waiting=waiting, head=told[0], keys=told[1], fell_back=fell_back, why=why
            )

    def passed_over(
        self, request: Request, limit: str, needed: int, available: int, overtaken: int, behind: str | None = None
    ) -> None:
        """Not admitted, and why."""
        # Many wait behind one prefix: each is told once, not at every step anew.
        told = (limit, overtaken if behind is None and limit != "leader room" else behind)
        if self._over.get(request.id) != told:
            self._over[request.id] = told
            self._trace.emit(
                ev.RequestPassedOver, request=request.id, limit=limit, needed=needed, available=available,
                overtaken=overtaken, behind=behind,
            )  # fmt: skip

    def matched(self, request: Request, match: Match, running: Sequence[Request]) -> None:
        """How far the cache knew its tokens."""
        stop = match.stop
        kind, writer = stop.kind, None
        if kind in ("no child", "parted", "page", "end"):
            writer = _writer(request, stop.raw_length, running)
            kind = "not written yet" if writer else kind
        self._trace.emit(
            ev.RequestMatched, request=request.id, length=match.length, raw_length=stop.raw_length,
            path=[n.id for n in match.path], stop=kind, host_length=match.host_length, at_node=stop.at_node,
            offset=stop.offset, stored=stop.stored, wanted=stop.wanted, writer=writer,
        )  # fmt: skip


def _writer(request: Request, known: int, running: Sequence[Request]) -> str | None:
    """A running request that is computing the tokens where this one's match ended."""
    want = request.packed_but_last()[: (known + 1) * WIDTH]
    if len(want) < (known + 1) * WIDTH:
        return None
    for other in running:
        if other.namespace == request.namespace and other.store and other.begins_with(want):
            return other.id
    return None
