"""A node of the radix tree, and how far two token runs agree."""

from __future__ import annotations

from typing import Any

from engine.cache.base import WIDTH, plain
from engine.events import Namespace


class Node:
    """A run of tokens (`run`, packed) and their pages. The root has an empty run and id 0."""

    __slots__ = (
        "children", "count", "depth", "hits", "host", "id", "last_used", "locks", "ns", "pages", "parent",
        "pins", "priority", "removed", "resident", "run", "writer",
    )  # fmt: skip

    def __init__(self, id: int, parent: Node | None, run: bytes, pages: list[int], ns: Namespace | None) -> None:
        self.id = id
        self.parent = parent
        self.run = run
        self.pages = pages
        """Never changed in place: events show the same list. Empty: only the host tier holds it."""
        self.host: list[int] = []
        """Host pages that hold a copy; empty: none do."""
        self.ns = ns
        self.count = len(run) // WIDTH
        self.depth: int = parent.depth + parent.count if parent else 0
        self.children: dict[Any, Node] = {}
        self.resident = 0
        """Children that have device pages."""
        self.locks = 0
        self.hits = 0
        self.last_used = 0
        self.pins = 0
        self.priority = 0
        self.removed = False
        self.writer: str | None = None

    @property
    def evictable(self) -> bool:
        """A leaf of what lies on the device, that nothing holds."""
        return not (self.locks or self.resident or self.removed or self.pins) and bool(self.pages)

    @property
    def tier(self) -> str:
        """`device`, `host`, or `both`: copied, and still on the device."""
        return ("both" if self.pages else "host") if self.host else "device"

    def tokens(self) -> list[int]:
        """Its token ids."""
        return plain(self.run)


def common(edge: bytes, data: bytes, at: int, end: int) -> int:
    """Bytes that `edge` and data[at:end] share from their start, in whole tokens.

    Bisection over bulk compares: no Python loop a token.
    """
    low, high = 0, min(len(edge), end - at) // WIDTH
    if data.startswith(edge[: high * WIDTH], at):
        return high * WIDTH
    while low + 1 < high:
        middle = (low + high) // 2
        if data.startswith(edge[low * WIDTH : middle * WIDTH], at + low * WIDTH):
            low = middle
        else:
            high = middle
    return low * WIDTH
