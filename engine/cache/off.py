"""No cache, behind the same interface: nothing is ever found, nothing is ever kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from engine.cache.base import Evicted, Holder, Inserted, Listener, Match, OneTier, Pinned, Stop
from engine.events import Namespace


class NoCache(OneTier):
    """Contract 4 with the cache off."""

    evictable = 0
    held = 0
    pinned = 0

    def match(self, tokens: bytes, ns: Namespace | None = None) -> Match:
        """Nothing is known."""
        return Match(0, [], 0, lambda: Stop("off", 0))

    def to_lock(self, match: Match) -> int:
        """Nothing to lock."""
        return 0

    def acquire(self, match: Match, request: Holder) -> Match:
        """Nothing to hold."""
        return match

    def release(self, node: Any, request: Holder) -> None:
        """Nothing was held."""

    def insert(self, tokens: bytes, pages: Sequence[int], ns: Namespace | None, request: Holder) -> Inserted:
        """Keeps nothing: every page stays with its request."""
        return Inserted(None, 0, [], 0)

    def evict(self, pages: int, why: Holder | None = None) -> list[Evicted]:
        """Nothing to evict."""
        return []

    def pin(self, tokens: bytes, ns: Namespace | None, until: int, request: Holder) -> Pinned:
        """Nothing to pin."""
        return Pinned(None)

    def unpin(self, step: int) -> None:
        """Nothing was pinned."""

    def give_way(self, request: Holder) -> bool:
        """Nothing was pinned."""
        return False

    def expect(self, request: Holder, tokens: bytes, ns: Namespace | None) -> None:
        """Nothing to plan for."""

    def ended(self, request: Holder) -> None:
        """Nothing was planned for."""

    def walk(self) -> Iterator[Any]:
        """No nodes."""
        return iter(())

    def subscribe(self, listener: Listener) -> None:
        """Nothing ever changes."""
