"""The order in which a step looks at the queue: one sort key a policy, smallest first, ties by queue order."""

from __future__ import annotations

from collections.abc import Callable

from engine.cache.base import PrefixCache
from engine.request import Request


def longest_match(request: Request, cache: PrefixCache) -> int:
    """Longest prefix first: most cached tokens first."""
    return -cache.match(request.packed_but_last(), request.namespace).length


KEYS: dict[str, Callable[[Request, PrefixCache], int]] = {"lpm": longest_match}
"""Policies that reorder; `fcfs` leaves the queue as it is."""


VICTIMS: dict[str, Callable[[Request], tuple[int, ...]]] = {
    "least-output": lambda r: (len(r.output), -len(r.prompt), -r.index),
    "newest": lambda r: (-r.index,),
    "priority": lambda r: (r.priority, len(r.output), -len(r.prompt), -r.index),
}
"""Whom to retract: the smallest key goes first. Ties: the longest prompt, then the latest arrival."""


def order(waiting: list[Request], policy: str, cache: PrefixCache) -> tuple[list[Request], list[int]]:
    """The waiting requests in the policy's order, and their keys (empty for fcfs)."""
    key = KEYS.get(policy)
    if key is None or len(waiting) < 2:
        return waiting, []
    keys = [key(r, cache) for r in waiting]
    ranks = sorted(range(len(waiting)), key=keys.__getitem__)
    return [waiting[i] for i in ranks], [keys[i] for i in ranks]
