"""What the tree tells of every request, one function an event: built in one go, not handed through `Trace.emit`.

Called only while the trace is on.
"""

from __future__ import annotations

from engine import events as ev
from engine.cache.base import Evicted
from engine.events import Namespace, Ranked, Trace


def touched(trace: Trace, node: int, tick: int, hit: bool, priority: int | None = None) -> None:
    """A path was dated."""
    trace.tell(
        ev.NodeTouched(
            seq=trace.seq, t=trace.t, step=trace.step, replica=trace.replica, node=node, tick=tick, hit=hit, priority=priority
        )
    )  # fmt: skip


def locked(trace: Trace, node: int, request: str) -> None:
    """A path is held."""
    trace.tell(
        ev.NodeLocked(seq=trace.seq, t=trace.t, step=trace.step, replica=trace.replica, node=node, request=request)
    )


def unlocked(trace: Trace, node: int, request: str) -> None:
    """A path is held once less."""
    trace.tell(
        ev.NodeUnlocked(seq=trace.seq, t=trace.t, step=trace.step, replica=trace.replica, node=node, request=request)
    )


def created(
    trace: Trace, node: int, parent: int, request: str, start: int, stop: int, pages: list[int], ns: Namespace | None
) -> None:
    """A new leaf."""
    trace.tell(
        ev.NodeCreated(
            seq=trace.seq, t=trace.t, step=trace.step, replica=trace.replica, node=node, parent=parent, request=request,
            start=start, stop=stop, pages=pages, namespace=ns,
        )
    )  # fmt: skip


def eviction(
    trace: Trace, asked: int, freed: int, policy: str, unit: str, ranking: list[Ranked], evictable: int, locked: int,
    request: str | None,
) -> None:  # fmt: skip
    """One call for pages and the ranking that it followed."""
    trace.tell(
        ev.Eviction(
            seq=trace.seq, t=trace.t, step=trace.step, replica=trace.replica, asked=asked, freed=freed, policy=policy,
            unit=unit, ranking=ranking, evictable=evictable, locked=locked, request=request,
        )
    )  # fmt: skip


def evicted(trace: Trace, gone: Evicted) -> None:
    """Pages left a leaf, or the leaf left the tree or the device; before it, what else that took."""
    for event, fields in gone.told:
        trace.emit(event, **fields)
    if gone.demoted:
        return
    kind = ev.NodeEvicted if gone.whole else ev.NodeTrimmed
    trace.tell(
        kind(
            seq=trace.seq, t=trace.t, step=trace.step, replica=trace.replica, node=gone.node, tokens=gone.tokens, pages=gone.pages
        )
    )  # fmt: skip
