"""Pins: paths of a cache that are held until a step, within a budget of pages.

A pin ends at one node and holds everything above it too. A node on several pinned paths is held until the
last of them is over. Pins are promises of second rank: they guard against eviction by others' traffic, but
where a request could not be served at all for the pages that they hold, they give way (`soonest`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from engine import events as ev
from engine.cache.base import Holder


def budget(share: float, pages: int) -> int:
    """Pages that pins may hold: a share of all, rounded down."""
    return math.floor(share * pages + 1e-9)


class Pins:
    """Which nodes are pinned. `kept` tells the cache of a node's first pin, `freed` of those of one path, its end
    first, that no pin holds any more.

    Nodes have `id`, `parent` (None: the root), `children`, `pages` and `pins` (the last step, 0: none).
    """

    def __init__(
        self, budget: int, trace: ev.Trace, kept: Callable[[Any], None], freed: Callable[[list[Any]], None]
    ) -> None:
        self.budget = budget
        self.pages = 0
        """Pages held by pins, each counted once."""
        self._emit = trace.emit
        self._kept = kept
        self._freed = freed
        self._until: dict[Any, int] = {}
        """The node at each pin's end -> its last step."""
        self._first_end: float = math.inf

    def __bool__(self) -> bool:
        return bool(self._until)

    def room(self, path: Sequence[Any], pages: int) -> int:
        """How many of a path's first `pages` pages may be pinned; those that are so already cost nothing."""
        left = self.budget - self.pages
        fit = 0
        for node in path:
            here = min(len(node.pages), pages - fit)
            if not node.pins:
                if here > left:
                    return fit + left
                left -= here
            fit += here
        return fit

    def hold(self, end: Any | None, until: int, refused: int, request: Holder) -> None:
        """Pin the path to `end` (None: nothing fits) up to and including step `until`."""
        if end is None:
            if refused:
                self._emit(ev.NodePinned, node=ev.ROOT, until=0, refused=refused, request=request.id)
            return
        self._until[end] = max(self._until.get(end, 0), until)
        self._first_end = min(self._first_end, until)
        node = end
        while node.parent is not None:
            if not node.pins:
                self.pages += len(node.pages)
                self._kept(node)
            node.pins = max(node.pins, until)
            node = node.parent
        self._tell(end, refused, request)

    def expire(self, step: int) -> None:
        """Let go of the pins whose last step lies before `step`."""
        if self._first_end < step:
            for end in [n for n, until in self._until.items() if until < step]:
                self._let_go(end, None)

    def give_way(self, request: Holder) -> bool:
        """Let go of the pin that ends first (of equals, the older one) for `request`'s sake."""
        if not self._until:
            return False
        self._let_go(min(self._until, key=self._until.__getitem__), request)
        return True

    def _let_go(self, end: Any, request: Holder | None) -> None:
        del self._until[end]
        self._first_end = min(self._until.values(), default=math.inf)
        free: list[Any] = []
        node = end
        while node.parent is not None:
            pins = max((child.pins for child in node.children.values()), default=0)
            pins = max(pins, self._until.get(node, 0))
            if pins == node.pins:
                break
            node.pins = pins
            if not pins:
                self.pages -= len(node.pages)
                free.append(node)
            node = node.parent
        self._freed(free)
        self._tell(end, 0, request)

    def _tell(self, end: Any, refused: int, request: Holder | None) -> None:
        """How long the path to `end` is held; told again from every node above that is held for longer."""
        node, told = end, None
        while node.parent is not None:
            if node.pins != told:
                told = node.pins
                self._emit(
                    ev.NodePinned, node=node.id, until=told, refused=refused if node is end else 0,
                    request=request.id if request is not None and node is end else None,
                )  # fmt: skip
            node = node.parent
