"""Parts that a caller brings in place of the engine's own: a learner's exercise, or a researcher's idea.

Each is one plain function. What it returns is checked, so a wrong one fails with a sentence that names it; a run's header lists
what was brought.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from engine.config import ConfigError, EngineConfig
from engine.events import Namespace

OWN = "own"
"""What events and headers call an eviction or scheduling policy that was brought."""
FIRST_HASH = 0
"""What stands for the parent of a sequence's first block."""


class PlugError(RuntimeError):
    """A part that was brought returned what the engine cannot use."""


class TreeNode:
    """A radix tree's node as a brought function sees it: nothing of it can be changed."""

    def __init__(self, node: Any) -> None:
        self.node = node
        """The engine's own node."""

    @cached_property
    def tokens(self) -> list[int]:
        """Its run of token ids; the root's is empty."""
        return list(self.node.tokens())

    @cached_property
    def children(self) -> Mapping[int, TreeNode]:
        """First token of a child's run -> the child."""
        below = [TreeNode(child) for child in self.node.children.values() if child.ns is None]
        return {child.tokens[0]: child for child in below}

    @property
    def id(self) -> int:
        """Its number: they rise in order of creation."""
        return int(self.node.id)

    @property
    def depth(self) -> int:
        """Tokens before its first one."""
        return int(self.node.depth)

    @property
    def hits(self) -> int:
        """Requests that found it at their first admission."""
        return int(self.node.hits)

    @property
    def last_used(self) -> int:
        """Tick of the cache at which it was last looked up or stored."""
        return int(self.node.last_used)

    def __repr__(self) -> str:
        return f"TreeNode({self.id}: {' '.join(map(str, self.tokens))})"


@dataclass(frozen=True)
class Waiting:
    """A request that waits, as a brought rule sees it. Counts are tokens unless they say otherwise."""

    id: str
    prompt: int
    matched: int
    """Of its prompt, what the cache knows now."""
    waits: int | None
    """Planned steps that have left it waiting; None where an admission rule asks, which is not told."""
    arrived: int
    """Its place in the order of arrival, from 0."""
    priority: int
    may_produce: int
    """Its `max_new_tokens`, less what it has produced."""
    pages_needed: int = 0
    """Admission alone: pages for what of it the cache does not know,"""
    pages_free: int = 0
    """and pages that are free or could be evicted for it."""


@dataclass(frozen=True)
class Running:
    """A running request as an admission rule sees it, in tokens."""

    id: str
    held: int
    """Whose KV it has."""
    may_produce: int
    """Its `max_new_tokens`, less what it has produced."""


@dataclass(frozen=True)
class Plugs:
    """The functions brought; None: the engine's own.

    `match(root, tokens)` -> (deepest node reached, tokens known): radix, page size 1, no host tier. The root counts as reached.
    `eviction(node)` -> a number or a tuple of numbers, the leaf with the smallest goes first; it depends on the node alone (radix).
    `hasher(parent, tokens, salt)` -> an integer; `parent` is the hash of the block before, `FIRST_HASH` for the first (blocks).
    `order(waiting)` -> an integer, the smallest is looked at first, ties in queue order.
    `admit(waiting, running)` -> whether it may enter beside those that run; asked only when the pages it needs now are there.
    """

    match: Callable[[TreeNode, list[int]], tuple[TreeNode, int]] | None = None
    eviction: Callable[[TreeNode], Any] | None = None
    hasher: Callable[[int, list[int], Namespace | None], int] | None = None
    order: Callable[[Waiting], int] | None = None
    admit: Callable[[Waiting, list[Running]], bool] | None = None

    @property
    def names(self) -> list[str]:
        """What was brought, each with its function's name."""
        brought = [(field.name, getattr(self, field.name)) for field in fields(self)]
        return [f"{name}: {getattr(given, '__name__', type(given).__name__)}" for name, given in brought if given is not None]

    def check(self, config: EngineConfig) -> None:
        """Raises ConfigError for a part that this configuration has no place for."""
        tree = config.cache == "radix" and not config.second_tier
        if self.match and not (tree and config.page_size == 1):
            raise ConfigError("match: a look-up can be brought for cache: radix with page_size: 1 and host_pages: 0 alone")
        if self.eviction and not tree:
            raise ConfigError("eviction: a policy can be brought for cache: radix with host_pages: 0 alone")
        if self.order and config.policy == "priority":
            raise ConfigError("order: takes the place of a policy, and priority also preempts by its own; choose another policy beside it")
        if self.hasher and config.cache != "blocks":
            raise ConfigError("hasher: a hash can be brought for cache: blocks alone")
        if config.replicas > 1 and self.names:
            raise ConfigError("plugs: brought functions serve one engine; set replicas: 1")


NOTHING = Plugs()


def node_key(policy: Callable[[TreeNode], Any]) -> Callable[[Any], tuple[float | int, ...]]:
    """An eviction policy that was brought as the engine's own: always a tuple of numbers."""

    def key(node: Any) -> tuple[float | int, ...]:
        given = policy(TreeNode(node))
        parts = given if isinstance(given, tuple) else (given,)
        if not parts or any(not isinstance(part, (int, float)) or part != part for part in parts):
            raise PlugError(f"eviction: {given!r} is no key; return a number or a tuple of numbers")
        return tuple(int(part) if isinstance(part, bool) else part for part in parts)

    return key


def block_hash(hasher: Callable[[int, list[int], Namespace | None], int], ids: Callable[[bytes], list[int]]) -> Callable[[Any, bytes], int]:
    """A hash that was brought as the block cache's own, where a first block's parent is its namespace."""
    salts: dict[int, Namespace | None] = {}

    def hashed(above: Any, page: bytes) -> int:
        first = not isinstance(above, int)
        salt = above if first else salts.get(above)
        given = hasher(FIRST_HASH if first else above, ids(page), salt)
        if isinstance(given, bool) or not isinstance(given, int):
            raise PlugError(f"hasher: {given!r} is no hash; return an integer")
        salts[given] = salt
        return given

    return hashed
