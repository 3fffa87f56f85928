"""The host tier: a second pool of pages that keeps what leaves the device, and the order in which it leaves that too.

Only bookkeeping is here: which host pages are free, and which leaves of the tree may go. What becomes of the
tree is `engine.cache.tiered`. Copying out takes no simulated time: it runs beside the forwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.cache.base import Copies
from engine.cache.eviction import EvictionQueue, KeyOf
from engine.pool import Pool


class HostTier:
    """Host pages, by the policy's own order. `only`: pages of nodes that nothing else holds.

    A host leaf is a node without device pages and without children: the first to go when room is short. `guarded`
    nodes are about to be loaded and stay.
    """

    def __init__(self, pages: int, page_size: int, copies: Copies, *, write_back: bool = False, threshold: int = 1) -> None:
        self.pool = Pool(pages, page_size)
        self.copies = copies
        self.write_back = write_back
        self.threshold = threshold
        """Uses from which write-through copies a node: 1 for being stored, and its hits."""
        self.only = 0
        self._guarded: set[Any] = set()
        self._queue: EvictionQueue

    def order(self, key: KeyOf) -> None:
        """Rank leaves by this key."""
        self._queue = EvictionQueue(key, self._is_leaf)

    def _is_leaf(self, node: Any) -> bool:
        return not (node.pages or node.children or node.removed or node in self._guarded)

    def rank(self, node: Any) -> None:
        """Enter a node, where it is a leaf, at its present key."""
        if self._is_leaf(node):
            self._queue.push(node)

    def room_for(self, pages: int) -> bool:
        """Whether so many host pages are free or can be had."""
        return pages <= self.pool.free + self.only - sum(len(node.host) for node in self._guarded)

    def take(self, pages: int, forget: Callable[[Any], None]) -> list[int]:
        """So many host pages; `forget` is called with each leaf that has to go. The caller knows that there is room."""
        while pages > self.pool.free:
            leaf = self._queue.pop()
            assert leaf is not None
            forget(leaf)
        return self.pool.allocate(pages)

    def guard(self, nodes: Sequence[Any]) -> None:
        """These stay until `unguard`."""
        self._guarded.update(nodes)

    def unguard(self) -> None:
        """All that was guarded is on the device by now."""
        self._guarded.clear()
