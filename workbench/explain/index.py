"""What a question needs from far away in the trace, gathered once, event by event.

Events by request, node and page; which eviction a removal belongs to; and at each match how much of the
prompt had been known before.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from engine import events as ev
from workbench.explain.remembered import Gone, Remembered
from workbench.replay import State, pack


@dataclass(slots=True)
class Past:
    """How much of a sequence was known at the moment it was looked up."""

    stored: int = 0
    """Tokens of it that its own namespace had held at some time."""
    gone: list[Gone] = field(default_factory=list)
    """What of that is gone, beyond the match."""
    seen: int = 0
    """Tokens that some earlier request began with as well, in any namespace, stored or not."""
    seen_by: str | None = None


@dataclass(slots=True, frozen=True)
class Wanted:
    """A later look-up (event `seq`) that would have found `tokens` tokens of what was evicted."""

    seq: int
    request: str
    tokens: int
    removed: int
    """The event that removed them."""


class Index:
    """Grows by one event at a time; `see` gets each event and the state before it."""

    def __init__(self) -> None:
        self.requests: dict[str, dict[type[ev.Event], list[int]]] = defaultdict(lambda: defaultdict(list))
        self.nodes: dict[int, list[int]] = defaultdict(list)
        self.pages: list[array[int]] = []
        self.eviction_of: dict[int, int] = {}
        """Removal -> the eviction event that it follows; a trace of another engine may have none."""
        self.past: dict[int, Past] = {}
        self.wanted: dict[int, list[Wanted]] = defaultdict(list)
        self.born: dict[int, int] = {}
        """Node -> the tick it was stored at; a split front is as old as its tail."""
        self.lost: dict[int, int] = {}
        """Node -> the event that took what stood above it, so that no look-up can find it any more."""
        self._tick_seqs: array[int] = array("q")
        self._ticks: array[int] = array("q")
        self._unborn: list[int] = []
        self._orders: list[int] = []
        self._eviction = self._removal = -2
        self._stored: dict[ev.Namespace | None, Remembered] = defaultdict(Remembered)
        self._storing: tuple[str, int, int] | None = None
        """A run that is being stored node by node, not yet remembered: request, start, stop."""
        self._seen = Remembered()
        self._contents: dict[str, int] = {}
        """What tokens stand for -> its number."""

    def see(self, event: ev.Event, before: State) -> None:
        """Take in the next event."""
        name = getattr(event, "request", None)
        if name is not None:
            self.requests[name][type(event)].append(event.seq)
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event, before)

    def packed(self, s: State, request: str, stop: int) -> bytes:
        """Tokens [0, stop) of a request, packed; the first that stands for content says which."""
        r, ids = s.requests[request], s.sequence(request, 0, stop)
        if r.content is not None and r.content_at < stop:
            ids[r.content_at] += self._contents.setdefault(r.content, len(self._contents) + 1) << 20
        return pack(ids)

    def last(self, request: str, kind: type[ev.Event], seq: int) -> int | None:
        """The last event of a kind about a request, at or before `seq`."""
        seqs = self.requests[request].get(kind, []) if request in self.requests else []
        i = bisect_right(seqs, seq)
        return seqs[i - 1] if i else None

    def ordered(self, seq: int) -> int | None:
        """The last event up to `seq` that put the queue in order."""
        i = bisect_right(self._orders, seq)
        return self._orders[i - 1] if i else None

    def tick(self, seq: int) -> int:
        """The cache's tick after event `seq`."""
        i = bisect_right(self._tick_seqs, seq)
        return self._ticks[i - 1] if i else 0

    def page_changes(self, page: int, seq: int, limit: int) -> list[int]:
        """The last events up to `seq` that gave a page another owner, newest first."""
        seqs = self.pages[page]
        i = bisect_right(seqs, seq)
        return list(reversed(seqs[max(0, i - limit) : i]))

    def page_next(self, page: int, seq: int) -> int | None:
        """The first event after `seq` that gives a page another owner."""
        seqs = self.pages[page]
        i = bisect_left(seqs, seq + 1)
        return seqs[i] if i < len(seqs) else None

    # --- one function an event kind ------------------------------------------------------------

    def _started(self, e: ev.RunStarted, s: State) -> None:
        self.pages = [array("q") for _ in range(e.pages)]

    def _moved(self, pages: list[int], seq: int) -> None:
        for page in pages:
            self.pages[page].append(seq)

    def _tick(self, seq: int, tick: int) -> None:
        self._tick_seqs.append(seq)
        self._ticks.append(tick)

    def _matched(self, e: ev.RequestMatched, s: State) -> None:
        if e.stop != "off" and not e.path:
            self._tick(e.seq, self.tick(e.seq) + 1)  # a look-up that finds nothing dates nothing, but it counts
        self._remember(s)
        r = s.requests[e.request]
        size = len(r.prompt) + len(r.output)
        tokens = self.packed(s, e.request, size - 1)
        stored, seen = self._stored[r.namespace], self._seen.find(tokens)
        found = stored.find(tokens)
        past = Past(found[-1][2] if found else 0, stored.gone(tokens, e.length))
        if seen:
            past.seen, past.seen_by = seen[-1][2], seen[-1][0].writer
        self.past[e.seq] = past
        reusable = past.stored // s.page_size * s.page_size
        for gone in past.gone:
            lost = min(gone.stop, reusable) - gone.start
            if lost > 0:
                self.wanted[gone.node].append(Wanted(e.seq, e.request, lost, gone.seq))

    def _admitted(self, e: ev.RequestAdmitted, s: State) -> None:
        self._computed(e.request, s)

    def _ended(self, e: ev.RequestFinished | ev.RequestAborted, s: State) -> None:
        if s.requests[e.request].cached is not None:
            self._computed(e.request, s)

    def _computed(self, request: str, s: State) -> None:
        r = s.requests[request]
        self._seen.mark(self.packed(s, request, len(r.prompt) + len(r.output)), writer=request)

    def _stored_run(self, e: ev.NodeCreated | ev.NodeGrown, s: State) -> None:
        self.nodes[e.node].append(e.seq)
        self._moved(e.pages, e.seq)
        if self._storing is not None and self._storing[::2] == (e.request, e.start):
            self._storing = (e.request, self._storing[1], e.stop)
        else:
            self._remember(s)
            self._storing = (e.request, e.start, e.stop)
        if isinstance(e, ev.NodeCreated):
            self._unborn.append(e.node)

    def _remember(self, s: State) -> None:
        """Remember the run that was being stored."""
        if self._storing is not None:
            request, start, stop = self._storing
            self._stored[s.requests[request].namespace].mark(self.packed(s, request, stop), start, writer=request)
            self._storing = None

    def _split(self, e: ev.NodeSplit, s: State) -> None:
        self._follow(e.seq)
        self.nodes[e.node].append(e.seq)
        self.nodes[e.front].append(e.seq)
        self._moved(s.nodes[e.node].pages[: e.at // s.page_size], e.seq)
        if e.node in self.born:
            self.born[e.front] = self.born[e.node]

    def _touched(self, e: ev.NodeTouched, s: State) -> None:
        if e.tick != self.tick(e.seq):
            self._tick(e.seq, e.tick)
        for node in self._unborn:
            self.born[node] = e.tick
        self._unborn = []

    def _order(self, e: ev.QueueOrdered, s: State) -> None:
        self._orders.append(e.seq)

    def _evicting(self, e: ev.Eviction, s: State) -> None:
        self._eviction = self._removal = e.seq

    def _removed(self, e: ev.NodeTrimmed | ev.NodeEvicted, s: State) -> None:
        self.nodes[e.node].append(e.seq)
        self._follow(e.seq)
        self._remember(s)
        if e.node not in self.lost:
            self._gone(s, e.node, e.tokens, e.seq)
            for below in s.below(e.node) if s.nodes[e.node].children else ():
                self.lost[below] = e.seq
                self._gone(s, below, s.nodes[below].count, e.seq)

    def _follow(self, seq: int) -> None:
        """What comes right behind an eviction, event by event, belongs to it."""
        if seq == self._removal + 1:
            self.eviction_of[seq] = self._eviction
            self._removal = seq

    def _gone(self, s: State, id: int, tokens: int, seq: int) -> None:
        """The last `tokens` tokens of a node can no longer be found."""
        node = s.nodes[id]
        stop = node.depth + node.count
        path = self.packed(s, node.pieces[-1][0], stop)
        self._stored[node.namespace].mark(path, stop - tokens, gone=(seq, id))

    def _named(self, e: ev.NodeDemoted | ev.NodeRestored | ev.NodePinned, s: State) -> None:
        self.nodes[e.node].append(e.seq)
        if isinstance(e, ev.NodeDemoted):
            self._follow(e.seq)
        elif isinstance(e, ev.NodeRestored) and e.request is not None:
            self._moved(e.pages, e.seq)

    def _paged(self, e: ev.PageAllocated | ev.PageFreed, s: State) -> None:
        if e.tier == "device":
            self._moved(e.pages, e.seq)
        else:
            self._follow(e.seq)


_HANDLERS: dict[type[ev.Event], Callable[[Index, Any, State], None]] = {
    ev.RunStarted: Index._started,
    ev.QueueOrdered: Index._order,
    ev.RequestMatched: Index._matched,
    ev.RequestAdmitted: Index._admitted,
    ev.RequestFinished: Index._ended,
    ev.RequestAborted: Index._ended,
    ev.NodeCreated: Index._stored_run,
    ev.NodeGrown: Index._stored_run,
    ev.NodeSplit: Index._split,
    ev.NodeTouched: Index._touched,
    ev.Eviction: Index._evicting,
    ev.NodeTrimmed: Index._removed,
    ev.NodeEvicted: Index._removed,
    ev.NodeDemoted: Index._named,
    ev.NodeRestored: Index._named,
    ev.NodePinned: Index._named,
    ev.PageAllocated: Index._paged,
    ev.PageFreed: Index._paged,
}
