"""Eviction policies: one key function each; the leaf with the smallest key goes first.

Ties fall to the node that was created first. Semantics: SGLang's evict_policy module, as read in
2026-08 (facts, not code).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any

Key = tuple[float | int, ...]


def lru(node: Any) -> Key:
    """Least recently used first: the smallest tick."""
    return (node.last_used,)


POLICIES: dict[str, Callable[[Any], Key]] = {"lru": lru}


class EvictionQueue:
    """A heap of evictable leaves, kept in order lazily: O(log n) a change, no scan of the tree.

    A leaf is pushed whenever it becomes evictable or its key changes; entries whose key is no longer
    the leaf's own, or whose leaf is locked, a parent or gone, are dropped when they come up.
    """

    def __init__(self, policy: str) -> None:
        self.key = POLICIES[policy]
        self._heap: list[tuple[Key, int, Any]] = []

    def push(self, node: Any) -> None:
        """Enter a leaf that may be evicted, at its present key."""
        heapq.heappush(self._heap, (self.key(node), node.id, node))

    def pop(self) -> Any | None:
        """The next leaf to go, or None."""
        heap = self._heap
        while heap:
            key, _, node = heapq.heappop(heap)
            if node.evictable and key == self.key(node):
                return node
        return None

    def head(self, count: int) -> Iterator[Any]:
        """The next `count` leaves in order, left where they are."""
        seen: list[Any] = []
        while len(seen) < count and (node := self.pop()) is not None:
            if node not in seen:
                seen.append(node)
        for node in seen:
            self.push(node)
        return iter(seen)

    def shrink(self, leaves: int) -> None:
        """Drop stale entries once they outnumber the `leaves` that can be evicted."""
        if len(self._heap) > 4 * leaves + 1024:
            fresh = {n.id: (k, i, n) for k, i, n in self._heap if n.evictable and k == self.key(n)}
            self._heap = list(fresh.values())
            heapq.heapify(self._heap)
