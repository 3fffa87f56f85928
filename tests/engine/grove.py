"""A cache by itself: contract 4 called by hand, with page ids handed out in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from engine import events as ev
from engine.cache.base import Inserted, Match, pack
from engine.cache.blocks import BlockCache
from engine.cache.off import NoCache
from engine.cache.radix import RadixCache

KINDS: dict[str, Any] = {"radix": RadixCache, "blocks": BlockCache, "off": lambda page_size, trace: NoCache()}


@dataclass
class Asker:
    """What the cache needs to know of a request."""

    id: str = "R"
    priority: int = 0
    cached: int | None = None
    node: Any = None
    prompt: list[int] = field(default_factory=list)


class Grove:
    """A cache of one page size, and short ways to fill and ask it."""

    def __init__(self, page_size: int = 1, kind: str = "radix", **options: Any) -> None:
        self.trace = ev.Trace()
        self.cache = KINDS[kind](page_size, trace=self.trace, **options)
        self.page_size = page_size
        self.next_page = 0

    def insert(self, tokens: Sequence[int], ns: ev.Namespace | None = None, by: Asker | None = None) -> Inserted:
        """Store a sequence in fresh pages."""
        count = len(tokens) // self.page_size
        pages = list(range(self.next_page, self.next_page + count))
        self.next_page += count
        return self.cache.insert(pack(tokens), pages, ns, by or Asker(prompt=list(tokens)))

    def match(self, tokens: Sequence[int], ns: ev.Namespace | None = None) -> Match:
        """Look a sequence up."""
        return self.cache.match(pack(tokens), ns)

    def length(self, tokens: Sequence[int], ns: ev.Namespace | None = None) -> int:
        """How much of it is known."""
        return self.match(tokens, ns).length

    def hold(self, tokens: Sequence[int], by: Asker | None = None, ns: ev.Namespace | None = None) -> Any:
        """Match and lock; returns the node to release."""
        return self.cache.acquire(self.match(tokens, ns), by or Asker()).node

    def tokens(self) -> int:
        """Tokens in the tree."""
        return self.cache.held * self.page_size

    def evicted(self, pages: int) -> list[int]:
        """Evict; the page ids that came free, in order."""
        return [p for e in self.cache.evict(pages) for p in e.pages]

    def shape(self) -> list[tuple[Any, ...]]:
        """Everything a look-up could have changed."""
        nodes = self.cache.walk()
        return sorted((n.id, n.depth, n.run, tuple(n.pages), n.locks, n.hits, n.last_used, n.priority) for n in nodes)
