"""What a router believes each replica to hold: one approximate tree a replica, of what was sent there.

A router does not see evictions, nor whether a request was stored. It remembers prompts, forgets the least recently used
beyond a replica's own capacity, and is wrong in both directions. (SGLang's gateway keeps such a tree of characters.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.cache.radix import RadixCache
from engine.events import Namespace
from engine.request import Request


@dataclass(slots=True)
class _Sender:
    """All that the tree wants to know of who stores."""

    id: str
    prompt: list[int] = field(default_factory=list)
    priority: int = 0
    cached: int | None = None
    node: None = None


class Guess:
    """The prompts that one replica was sent, in a tree of at most `capacity` tokens."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._tree = RadixCache(1)

    def match(self, tokens: bytes, ns: Namespace | None) -> int:
        """Tokens of a prompt that this replica was sent before."""
        return self._tree.match(tokens, ns).length

    def sent(self, request: Request, tokens: bytes) -> None:
        """A prompt goes to this replica."""
        pages = range(len(request.prompt))
        self._tree.insert(tokens, pages, request.namespace, _Sender(request.id))
        over = self._tree.evictable - self._capacity
        if over > 0:
            self._tree.evict(over)
