"""Eviction policies: one key function each; the leaf with the smallest key goes first.

Ties fall to the node that was created first. Creation order is the node's id; when a node is split, its
front is the new one, so `fifo` and `filo` see the front as younger than its tail. Semantics: SGLang's
evict_policy module, as read in 2026-08 (facts, not code); `size` is our own, and `belady` needs more than
a node to go by (`engine.cache.future`).
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import Any

Key = tuple[float | int, ...]
KeyOf = Callable[[Any], Key]
Entry = tuple[Key, int, Any]

PROTECTED = 2
"""Hits from which `slru` takes a node only after all that have fewer."""


def lru(node: Any) -> Key:
    """Least recently used first: the smallest tick."""
    return (node.last_used,)


def lfu(node: Any) -> Key:
    """Least frequently used first: the fewest hits, among those the oldest date."""
    return (node.hits, node.last_used)


def fifo(node: Any) -> Key:
    """First in, first out, whatever was used since."""
    return (node.id,)


def mru(node: Any) -> Key:
    """Most recently used first: right for a cyclic scan that is larger than the cache."""
    return (-node.last_used,)


def filo(node: Any) -> Key:
    """First in, last out: the newest node goes first."""
    return (-node.id,)


def slru(node: Any) -> Key:
    """Segmented lru: on probation until the second hit, then protected; each part by date."""
    return (int(node.hits >= PROTECTED), node.last_used)


def priority(node: Any) -> Key:
    """The lowest request priority first (a node has the highest of those who stored it), then the oldest date."""
    return (node.priority, node.last_used)


def size(node: Any) -> Key:
    """The leaf with the most tokens first, among equals the oldest date: few long tails go, many short stay."""
    return (-node.count, node.last_used)


POLICIES: dict[str, KeyOf] = {
    "lru": lru, "lfu": lfu, "fifo": fifo, "mru": mru, "filo": filo, "slru": slru, "priority": priority, "size": size,
}  # fmt: skip


class EvictionQueue:
    """A heap of evictable leaves, kept in order lazily: O(log n) a change, no scan of the tree.

    A leaf is pushed whenever it becomes evictable and whenever its key changes while it is, be it up or
    down. Entries whose key is no longer the leaf's own, or whose leaf is locked, a parent or gone, are
    dropped when they come up: so a stale one never wins, whichever way a policy's keys move.
    """

    def __init__(self, key: KeyOf, may_go: Callable[[Any], bool] = attrgetter("evictable")) -> None:
        self.key = key
        self._may_go = may_go
        self._heap: list[Entry] = []
        self._limit = 1024

    def push(self, node: Any) -> None:
        """Enter a leaf that may be evicted, at its present key."""
        heappush(self._heap, (self.key(node), node.id, node))
        if len(self._heap) > self._limit:
            self._tidy()

    def pop(self) -> Any | None:
        """The next leaf to go, or None."""
        heap = self._heap
        while heap:
            key, _, node = heappop(heap)
            if self._may_go(node) and key == self.key(node):
                return node
        return None

    def head(self, count: int) -> list[tuple[Key, Any]]:
        """The next `count` leaves in order and their keys, left where they are."""
        near = sorted(self._heap[: 2**count - 1])[:count]  # the least of a heap stand at its top
        before = None
        for key, _, node in near:
            if node is before or not self._may_go(node) or key != self.key(node):
                near = self._fresh(count)
                break
            before = node
        return [(key, node) for key, _, node in near]

    def _fresh(self, count: int) -> list[Entry]:
        """The first entries that hold, each leaf once; what does not hold is dropped on the way."""
        heap = self._heap
        found: list[Entry] = []
        while heap and len(found) < count:
            entry = heappop(heap)
            key, _, node = entry
            if self._may_go(node) and key == self.key(node) and not (found and node is found[-1][2]):
                found.append(entry)
        for entry in found:
            heappush(heap, entry)
        return found

    def _tidy(self) -> None:
        """Drop stale entries; again only after the heap has doubled, so that a push stays O(log n)."""
        fresh = {n.id: (k, i, n) for k, i, n in self._heap if self._may_go(n) and k == self.key(n)}
        self._heap = list(fresh.values())
        heapify(self._heap)
        self._limit = 2 * len(self._heap) + 1024
