"""Farthest next use (`belady`): the key of a node is the next request, in file order, that runs through it.

It needs every request before the first step, and the order in which they are served (fcfs). The node
whose next request is farthest goes first; one that nobody wants again goes first of all. What of a leaf's
end has the same next use goes together: the rest of the leaf is asked again.

All queries are sorted once, so those that begin with a node's path lie side by side; where, is found by
bisection inside its parent's place. The least request number still to come among them is a range minimum
over a tree of minima. No key looks at every request.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import groupby
from typing import Any

from engine.cache.base import WIDTH
from engine.events import Namespace

UNKNOWN = (-1, 0, 0)


class Future:
    """Requests that are still to come. A request is to come until it has ended: a retracted one comes again.

    `whole`: leaves are taken whole (`eviction_unit: leaf`), so a node is wanted by whoever wants its first
    page; else by whoever runs through it to its end.
    """

    def __init__(self, page_size: int, whole: bool) -> None:
        self._page_size = page_size
        self._whole = whole
        self._expected: dict[str, int] = {}
        self._queries: list[tuple[Namespace | None, bytes]] = []
        self._sorted: list[bytes] | None = None
        self._places: dict[Namespace | None, tuple[int, int]] = {}
        self._seats: list[int] = []
        """Request number -> where its query stands in sorted order."""
        self._minima: list[int] = []
        self._spans: dict[int, tuple[int, int, int]] = {}

    @property
    def never(self) -> int:
        """What stands for the next request of a node that nobody wants again."""
        return len(self._queries)

    def expect(self, request: str, query: bytes, ns: Namespace | None) -> None:
        """One more request to come, after those named before it; `query` is what it will look up."""
        self._expected[request] = len(self._queries)
        self._queries.append((ns, query))

    def ended(self, request: str) -> tuple[bytes, Namespace | None] | None:
        """A request is over. Returns its query and namespace; None where it was not expected."""
        number = self._expected.pop(request, None)
        if number is None:
            return None
        if self._sorted is None:
            self._sort()
        size = len(self._queries)
        at = size + self._seats[number]
        self._minima[at] = size
        while at > 1:
            at //= 2
            self._minima[at] = min(self._minima[2 * at], self._minima[2 * at + 1])
        space, query = self._queries[number]
        return query, space

    def key(self, node: Any) -> tuple[int]:
        """Minus the number of the next request that wants the node."""
        if self._whole:
            return (-self._next(*self._inside(node, self._page_size)),)
        return (-self._next(*self._span(node)),)

    def alike(self, node: Any) -> int:
        """How many pages at the node's end have the node's own next use."""
        wanted = self._next(*self._span(node))
        few, many = 1, len(node.pages)
        while few < many:  # the longer the path, the later its next use
            middle = (few + many + 1) // 2
            if self._next(*self._inside(node, node.count - (middle - 1) * self._page_size)) == wanted:
                few = middle
            else:
                many = middle - 1
        return few

    def forget(self, node: Any) -> None:
        """A node has left the tree."""
        self._spans.pop(node.id, None)

    def _sort(self) -> None:
        order = sorted(range(len(self._queries)), key=lambda i: (repr(self._queries[i][0]), self._queries[i][1]))
        self._sorted = [self._queries[i][1] for i in order]
        for space, group in groupby(range(len(order)), key=lambda place: self._queries[order[place]][0]):
            places = list(group)
            self._places[space] = (places[0], places[-1] + 1)
        self._seats = [0] * len(order)
        for place, number in enumerate(order):
            self._seats[number] = place
        self._minima = [len(order)] * len(order) + order
        for at in range(len(order) - 1, 0, -1):
            self._minima[at] = min(self._minima[2 * at], self._minima[2 * at + 1])

    def _next(self, low: int, high: int) -> int:
        """The least request number to come among the places [low, high)."""
        size = len(self._queries)
        found = size
        low, high = low + size, high + size
        while low < high:
            if low & 1:
                found = min(found, self._minima[low])
                low += 1
            if high & 1:
                high -= 1
                found = min(found, self._minima[high])
            low //= 2
            high //= 2
        return found

    def _span(self, node: Any) -> tuple[int, int]:
        """Where the queries stand that run through the node to its end; remembered until the end moves."""
        fresh = []
        at = node
        while at.parent is not None and self._spans.get(at.id, UNKNOWN)[0] != at.depth + at.count:
            fresh.append(at)
            at = at.parent
        for at in reversed(fresh):
            self._spans[at.id] = (at.depth + at.count, *self._inside(at, at.count))
        return self._spans[node.id][1:]

    def _inside(self, node: Any, tokens: int) -> tuple[int, int]:
        """Where the queries stand that run through the node's first `tokens` tokens."""
        if self._sorted is None:
            self._sort()
        assert self._sorted is not None
        if node.depth:
            low, high = self._span(node.parent)
        else:
            low, high = self._places.get(node.ns, (0, 0))
        run = node.run[: tokens * WIDTH]
        start, stop = node.depth * WIDTH, node.depth * WIDTH + len(run)

        def part(query: bytes) -> bytes:
            return query[start:stop]

        low = bisect_left(self._sorted, run, low, high, key=part)
        return low, bisect_right(self._sorted, run, low, high, key=part)
