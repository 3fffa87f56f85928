"""A cache by itself: contract 4 called by hand, with page ids handed out in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine import events as ev
from engine.cache.base import Inserted, Match, pack
from engine.cache.blocks import BlockCache
from engine.cache.host import HostTier
from engine.cache.off import NoCache
from engine.cache.radix import RadixCache
from engine.cache.tiered import TieredCache
from engine.totals import Totals


class Carrier:
    """Stands for the executor: what each page of either tier holds, by its tokens' page number."""

    def __init__(self) -> None:
        self.device: dict[int, Any] = {}
        self.host: dict[int, Any] = {}

    def demote(self, pages: Sequence[int], host_pages: Sequence[int]) -> None:
        self.host.update({h: self.device.get(p) for p, h in zip(pages, host_pages, strict=True)})

    def restore(self, host_pages: Sequence[int], pages: Sequence[int]) -> None:
        self.device.update({p: self.host.get(h) for p, h in zip(pages, host_pages, strict=True)})


def tiered(
    page_size: int, trace: ev.Trace, host_pages: int = 64, host_policy: str = "write-through", threshold: int = 1,
    eviction: str = "lru", unit: str = "page", pin_budget: int = 0,
) -> TieredCache:  # fmt: skip
    """A tree over two tiers."""
    host = HostTier(host_pages, page_size, Carrier(), write_back=host_policy == "write-back", threshold=threshold)
    return TieredCache(page_size, eviction, unit, trace, pin_budget, host, Totals())


def unused(page_size: int, trace: ev.Trace) -> TieredCache:
    """A tree over two tiers of which one is never used."""
    return tiered(page_size, trace, threshold=10**9)


KINDS: dict[str, Any] = {
    "radix": RadixCache, "blocks": BlockCache, "off": lambda page_size, trace: NoCache(), "tiered": tiered, "unused tier": unused,
}  # fmt: skip


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
        self.spare: Callable[[int], list[int]] = self._fresh

    def insert(self, tokens: Sequence[int], ns: ev.Namespace | None = None, by: Asker | None = None) -> Inserted:
        """Store a sequence in fresh pages."""
        pages = self._fresh(len(tokens) // self.page_size)
        return self.cache.insert(pack(tokens), pages, ns, by or Asker(prompt=list(tokens)))

    def _fresh(self, count: int) -> list[int]:
        pages = list(range(self.next_page, self.next_page + count))
        self.next_page += count
        return pages

    def load(self, tokens: Sequence[int]) -> Match:
        """Bring back what the host holds of a sequence, into pages from `spare`."""
        return self.cache.restore(self.match(tokens), lambda count: self.spare(count), (0.5, 2.0), Asker())

    def told(self, kind: type[Any]) -> list[Any]:
        """The events of one kind so far."""
        return [e for e in self.trace.events + self.trace._open if isinstance(e, kind)]

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
