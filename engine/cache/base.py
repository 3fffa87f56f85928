"""Contract 4: the prefix cache interface. Radix, blocks and off implement it alike.

Tokens travel packed (`pack`): little-endian 32-bit ids in `bytes`, so that runs compare in bulk. The
caller passes all but a prompt's last token to `match`, because the last one must run.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from engine.events import Event, Namespace, Ranked
from engine.pool import Pool

WIDTH = 4
"""Bytes a packed token takes."""
PLAIN = (1 << 20) - 1
"""A token id's own bits. Above them a packed token may carry what it stands for: the same placeholder with other
content is another token to the cache."""


def pack(tokens: Sequence[int]) -> bytes:
    """Token ids as little-endian 32-bit integers."""
    packed = array("i", tokens)
    if array("i", [1]).tobytes()[0] != 1:
        packed.byteswap()
    return packed.tobytes()


def unpack(data: bytes) -> list[int]:
    """The ids that `pack` packed."""
    ids: array[int] = array("i")
    ids.frombytes(data)
    if array("i", [1]).tobytes()[0] != 1:
        ids.byteswap()
    return list(ids)


def plain(data: bytes) -> list[int]:
    """The ids that were packed, without what they stand for."""
    return [i & PLAIN for i in unpack(data)]


@dataclass(slots=True)
class Stop:
    """Where and why a match ended; see `engine.events.RequestMatched` for the fields' meaning."""

    kind: str
    raw_length: int
    at_node: int | None = None
    offset: int | None = None
    stored: int | None = None
    wanted: int | None = None


class Match(msgspec.Struct):
    """A look-up's result: `length` tokens (whole pages) are known along `path`.

    The last node of the path may be matched only in part: `inside` of its tokens, else all of it.
    Nothing is held until `acquire`.
    """

    length: int
    path: list[Any]
    inside: int
    explain: Callable[[], Stop]
    host_length: int = 0
    """Tokens after those that the host tier holds, in whole pages,"""
    host_path: list[Any] = []
    """and their nodes, none of which has device pages;"""
    host_inside: int = 0
    """of the last one so many tokens."""

    @property
    def known(self) -> int:
        """Tokens that either tier holds."""
        return self.length + self.host_length

    @property
    def whole_path(self) -> list[Any]:
        """The nodes of both tiers, in order."""
        return [*self.path, *self.host_path] if self.host_path else self.path

    @property
    def node(self) -> Any:
        """The deepest node reached; None where nothing matched."""
        return self.path[-1] if self.path else None

    @property
    def pages(self) -> list[int]:
        """Page ids of the matched tokens, in order."""
        if not self.path:
            return []
        out: list[int] = []
        for node in self.path[:-1]:
            out += node.pages
        last = self.path[-1]
        inside: list[int] = last.pages[: self.inside * len(last.pages) // last.count]
        return out + inside

    @property
    def stop(self) -> Stop:
        """Where the walk stopped; worked out only when asked for."""
        return self.explain()


class Inserted(msgspec.Struct):
    """What an insert did: tokens that were `already_there`, and the caller's pages that are not needed."""

    node: Any
    already_there: int
    duplicates: list[int]
    length: int
    """Tokens of the sequence that the cache now holds."""


class Evicted(msgspec.Struct):
    """Pages that left one node; the caller gives them to the pool."""

    node: int
    tokens: int
    pages: list[int]
    whole: bool
    demoted: bool = False
    """The host tier keeps the tokens."""
    told: list[tuple[type[Event], dict[str, Any]]] = []
    """What has to be told before: what else changed for it."""


@dataclass(slots=True)
class Eviction:
    """One call's outcome and the ranking that it followed (computed only when a sink listens)."""

    taken: list[Evicted]
    ranking: list[Ranked] = field(default_factory=list)


@dataclass(slots=True)
class Pinned:
    """What a pin came to: the path to `node` (None: nothing) is held, `refused` pages were over the budget."""

    node: Any
    refused: int = 0


class Holder(Protocol):
    """What the cache needs to know of a request."""

    id: str
    priority: int
    cached: int | None
    node: Any
    prompt: list[int]


class Listener(Protocol):
    """Told of every change of the tree's shape; all that a longest-prefix index needs."""

    def split(self, node: Any, front: Any) -> None: ...
    def grown(self, node: Any) -> None: ...
    def removed(self, node: Any) -> None: ...


class Copies(Protocol):
    """What moves KV between the tiers: an executor. Both act at once, in order with its forwards."""

    def demote(self, pages: Sequence[int], host_pages: Sequence[int]) -> None: ...
    def restore(self, host_pages: Sequence[int], pages: Sequence[int]) -> None: ...


class PrefixCache(Protocol):
    """One small interface with several implementations."""

    host_pool: Pool | None
    """The pages of the host tier; None without one."""

    @property
    def evictable(self) -> int:
        """Pages that eviction could free now."""
        ...

    @property
    def held(self) -> int:
        """Pages in the cache, locked or not."""
        ...

    def match(self, tokens: bytes, ns: Namespace | None) -> Match:
        """The longest known prefix in whole pages. Changes nothing."""
        ...

    def to_lock(self, match: Match) -> int:
        """Evictable pages that acquiring this match would lock."""
        ...

    def acquire(self, match: Match, request: Holder) -> Match:
        """Split at its end, date and lock its path; a hit each at the request's first admission."""
        ...

    def release(self, node: Any, request: Holder) -> None:
        """Take one lock off each node of the path. Raises CacheError below zero."""
        ...

    def insert(self, tokens: bytes, pages: Sequence[int], ns: Namespace | None, request: Holder) -> Inserted:
        """Store a sequence, one id a whole page; what is already there keeps the cache's pages."""
        ...

    def evict(self, pages: int, why: Holder | None = None) -> list[Evicted]:
        """Free up to `pages` unlocked pages, leaves first, in the policy's order."""
        ...

    def restore(
        self, match: Match, take: Callable[[int], list[int]], seconds: tuple[float, float], request: Holder
    ) -> Match:
        """Bring what the host holds of a match back for `request`, into pages that `take` finds; the longer match.

        Nothing of the match leaves meanwhile. `seconds`: what a token costs to load, and to compute again.
        """
        ...

    @property
    def pinned(self) -> int:
        """Pages that pins hold."""
        ...

    def pin(self, tokens: bytes, ns: Namespace | None, until: int, request: Holder) -> Pinned:
        """Hold what is known of a sequence up to and including step `until`, from its beginning as far as
        the budget allows. Pinned pages are not evictable."""
        ...

    def unpin(self, step: int) -> None:
        """Let go of the pins whose last step lies before `step`."""
        ...

    def give_way(self, request: Holder) -> bool:
        """Let go of the pin that ends first, so that `request` can be served; False where there is none."""
        ...

    def expect(self, request: Holder, tokens: bytes, ns: Namespace | None) -> None:
        """`request` is still to come, after those named before it, and will look these tokens up.

        Only an eviction policy that looks ahead listens.
        """
        ...

    def ended(self, request: Holder) -> None:
        """A request that was expected will not look anything up any more."""
        ...

    def walk(self) -> Iterator[Any]:
        """Every node, parents before children, the root excluded."""
        ...

    def subscribe(self, listener: Listener) -> None:
        """Tell `listener` of every split, growth and removal from now on."""
        ...


class OneTier:
    """Part of a cache that keeps everything on the device."""

    host_pool: Pool | None = None

    def restore(
        self, match: Match, take: Callable[[int], list[int]], seconds: tuple[float, float], request: Holder
    ) -> Match:
        """There is nothing to bring back."""
        return match


class CacheError(RuntimeError):
    """The cache was asked for something that would break its counts."""
