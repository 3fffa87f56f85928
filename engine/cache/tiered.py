"""The radix tree over two tiers: what leaves the device may stay in host pages and come back.

A node lies on the `device`, on the `host`, or on `both` (copied, and its device pages kept). Whatever is on the
host alone stands below whatever is on the device, so a look-up walks through the one into the other.

Source of the idea: SGLang's HiCache (facts: reference engines.md 1.10). Different here: a load may be partial, and
it is weighed against computing (`engine.scheduler.loading`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from engine import events as ev
from engine.cache import telling
from engine.cache.base import WIDTH, Evicted, Holder, Inserted, Match, Pinned
from engine.cache.host import HostTier
from engine.cache.node import Node
from engine.cache.radix import RadixCache
from engine.cache.stops import stop
from engine.events import Namespace
from engine.totals import Totals


class TieredCache(RadixCache):
    """A radix tree with a host tier. `evictable`, `held` and `pinned` count device pages, as ever."""

    def __init__(
        self, page_size: int, eviction: str, unit: str, trace: ev.Trace, pin_budget: int, host: HostTier, totals: Totals
    ) -> None:
        super().__init__(page_size, eviction, unit, trace, pin_budget)
        self.host = host
        self.host_pool = host.pool
        self._totals = totals
        host.order(self._queue.key)

    # --- look-up -------------------------------------------------------------------------------

    def match(self, tokens: bytes, ns: Namespace | None = None) -> Match:
        """The longest prefix on the device, and what the host knows beyond. Changes nothing."""
        path, at, inside = self._descend(tokens, ns)

        def explain() -> Any:
            return stop(self.root, self.page_size, tokens, path, at, inside, ns)

        near = [node for node in path if node.pages]
        if len(near) == len(path):
            return Match(at // WIDTH, path, inside, explain)
        far = path[len(near) :]
        length = far[0].depth
        return Match(length, near, near[-1].count if near else 0, explain, at // WIDTH - length, far, inside)

    def acquire(self, match: Match, request: Holder) -> Match:
        """As in one tier; a hit may be the use that makes a node worth a copy."""
        held = super().acquire(match, request)
        self._copy_used(held.node)
        return held

    def pin(self, tokens: bytes, ns: Namespace | None, until: int, request: Holder) -> Pinned:
        """Hold what the device has of a sequence; the host's part has no pages to hold."""
        return super().pin(tokens[: self.match(tokens, ns).length * WIDTH], ns, until, request)

    # --- storing -------------------------------------------------------------------------------

    def insert(self, tokens: bytes, pages: Sequence[int], ns: Namespace | None, request: Holder) -> Inserted:
        """As in one tier; what the host alone had, and the request has computed again, takes the request's pages."""
        path, _, inside = self._descend(tokens, ns)
        for node in path:
            if node.pages:
                continue
            if node is path[-1] and inside < node.count:
                node = self._split(node, inside)
            first = node.depth // self.page_size
            self._bring(node, list(pages[first : first + len(node.host)]))
            self._emit(ev.NodeRestored, node=node.id, pages=node.pages, request=request.id)
        stored = super().insert(tokens, pages, ns, request)
        self._copy_used(stored.node)
        return stored

    def _copy_used(self, end: Node | None) -> None:
        """Write-through: copy what has been used often enough on the path to `end`, parents first.

        A copied node's parent is copied too: the first that has to wait, for uses or for room, ends it.
        """
        if self.host.write_back or end is None:
            return
        path = []
        while end is not None and end is not self.root:
            path.append(end)
            end = end.parent
        for node in reversed(path):
            if not node.host:
                if 1 + node.hits < self.host.threshold or not self.host.room_for(len(node.pages)):
                    return
                self._copy(node)
                self._emit(ev.NodeDemoted, node=node.id, host_pages=node.host, kept=True)

    def _copy(self, node: Node) -> None:
        """Write a node's pages to host pages, of which there are enough."""
        node.host = self.host.take(len(node.pages), self._forget)
        self._emit(ev.PageAllocated, pages=node.host, owners=[node.id], counts=[len(node.host)], tier="host")
        self.host.copies.demote(node.pages, node.host)

    def _split(self, node: Node, at: int) -> Node:
        front = super()._split(node, at)
        k = at // self.page_size
        front.host, node.host = node.host[:k], node.host[k:]
        self.host.rank(node)
        return front

    # --- coming back ---------------------------------------------------------------------------

    def restore(
        self, match: Match, take: Callable[[int], list[int]], seconds: tuple[float, float], request: Holder
    ) -> Match:
        """Load what the host holds of a match, page for page, into pages that `take` finds; the longer match."""
        path: list[Node] = match.host_path
        if match.host_inside < path[-1].count:
            path = [*path[:-1], self._split(path[-1], match.host_inside)]
        self.host.guard(path)
        self._lock(match, request, 1)
        pages = take(match.host_length // self.page_size)
        self._lock(match, request, -1)
        self.host.unguard()
        counts = [len(node.host) for node in path]
        self._emit(ev.PageAllocated, pages=pages, owners=[node.id for node in path], counts=counts)
        self.host.copies.restore([page for node in path for page in node.host], pages)
        for node, count in zip(path, counts, strict=True):
            self._bring(node, pages[:count])
            pages = pages[count:]
            load, compute = (round(node.count * each, 9) for each in seconds)
            self._emit(ev.NodeRestored, node=node.id, pages=node.pages, seconds=load, recompute_seconds=compute)
        self._queue.push(path[-1])
        return Match(match.known, [*match.path, *path], path[-1].count, match.explain)

    def _lock(self, match: Match, request: Holder, change: int) -> None:
        """Hold what the device has of a match while room is made for the rest, or let go of it."""
        for node in match.path:
            before, node.locks = node.locks, node.locks + change
            if not (node.pins or (before and node.locks)):
                self._locked += change * len(node.pages)
        if match.path and self._trace.on:
            tell = telling.locked if change > 0 else telling.unlocked
            tell(self._trace, match.node.id, request.id)

    def _bring(self, node: Node, pages: list[int]) -> None:
        """Give a node of the host device pages; its copy stays."""
        assert node.parent is not None
        node.pages = pages
        node.parent.resident += 1
        self._held += len(pages)
        self.host.only -= len(pages)

    # --- leaving -------------------------------------------------------------------------------

    def _trim(self, node: Node, pages: int) -> Evicted:
        """Take `pages` pages from the end of a leaf: what has a copy, or gets one, stays on the host."""
        with self._telling_later() as told:
            copied = node.host or (self.host.write_back and self.host.room_for(pages))
            gone = self._demote(node, pages) if copied else self._drop(node, pages)
        gone.told = told
        return gone

    @contextmanager
    def _telling_later(self) -> Iterator[list[tuple[type[ev.Event], dict[str, Any]]]]:
        """Collect what is told, as the eviction that it belongs to is told first."""
        told: list[tuple[type[ev.Event], dict[str, Any]]] = []
        emit = self._emit
        self._emit = lambda event, **fields: told.append((event, fields))
        yield told
        self._emit = emit

    def _demote(self, node: Node, pages: int) -> Evicted:
        """The last `pages` pages of a leaf leave the device and stay on the host: the whole of it, or its tail."""
        assert node.parent is not None
        if pages < len(node.pages):
            self._split(node, node.count - pages * self.page_size)
        if not node.host:
            self._copy(node)
        gone, node.pages = node.pages, []
        node.parent.resident -= 1
        self._held -= len(gone)
        self.host.only += len(gone)
        self._totals.demoted_tokens += node.count
        self._emit(ev.NodeDemoted, node=node.id, host_pages=node.host)
        self._rank([node])
        self._rank([node.parent])
        return Evicted(node.id, node.count, gone, whole=True, demoted=True)

    def _drop(self, node: Node, pages: int) -> Evicted:
        """The last `pages` pages of a leaf leave for good, and with them all that continues them on the host."""
        below = list(node.children.values())
        for child in below:
            below += child.children.values()
        for child in reversed(below):
            self._forget(child)
        return super()._trim(node, pages)

    def _forget(self, node: Node) -> None:
        """A leaf of the host leaves the tree."""
        parent = node.parent
        assert parent is not None
        self._remove(node)
        if self._future is not None:
            self._future.forget(node)
        self.host.pool.give_back(node.host)
        self.host.only -= len(node.host)
        self._totals.evicted_tokens += node.count
        self._emit(ev.NodeEvicted, node=node.id, tokens=node.count, pages=[])
        self._emit(ev.PageFreed, pages=node.host, owner=node.id, tier="host")
        for listener in self._listeners:
            listener.removed(node)
        self._rank([parent])

    def _rank(self, path: list[Node]) -> None:
        """A path's end may be a leaf now, of the device or of the host, or its key may have changed."""
        near = [node for node in path if node.pages]
        super()._rank(near)
        if path and path[-1] is not self.root:
            self.host.rank(path[-1])
