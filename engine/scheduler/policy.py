"""Scheduling policies: in which order a step looks at the queue.

Most are one function that gives every waiting request a key: the smallest is looked at first, ties in
queue order. Longest prefix first has an index instead (`engine.scheduler.longest`). What SGLang's policies
of these names do is stated in its schedule_policy module, as read in 2026-08 (facts, not code).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence
from typing import Protocol

from engine.cache.base import PrefixCache
from engine.config import EngineConfig
from engine.plugs import PlugError, Waiting
from engine.request import Request
from engine.scheduler.depth_first import depth_first
from engine.scheduler.fellows import behind_fellows
from engine.scheduler.longest import LongestPrefix
from engine.scheduler.queue import Queue

SORTS_UP_TO = 128
"""`lpm-as-shipped` sorts while at most so many wait: SGLang's own limit."""

Keys = Callable[[Sequence[Request], PrefixCache], Sequence[int]]


def longest_match(waiting: Sequence[Request], cache: PrefixCache) -> Sequence[int]:
    """Longest prefix first: most cached tokens first, in whichever tier."""
    return [-cache.match(r.packed_but_last(), r.namespace).known for r in waiting]


def longest_output(waiting: Sequence[Request], cache: PrefixCache) -> Sequence[int]:
    """Longest output first: by what each may produce at most."""
    return [-r.params.max_new_tokens for r in waiting]


def most_important(waiting: Sequence[Request], cache: PrefixCache) -> Sequence[int]:
    """The highest priority first."""
    return [-r.priority for r in waiting]


VICTIMS: dict[str, Callable[[Request], tuple[int, ...]]] = {
    "least-output": lambda r: (len(r.output), -len(r.prompt), -r.index),
    "newest": lambda r: (-r.index,),
    "priority": lambda r: (r.priority, len(r.output), -len(r.prompt), -r.index),
}
"""Whom to retract: the smallest key goes first. Ties: the longest prompt, then the latest arrival."""


class Policy(Protocol):
    """One step's order: `arrange` at its start, then `requests` as far as somebody asks."""

    fell_back: str | None
    """Why this step looks at the queue in plain order after all; None where it does not."""

    def arrange(self) -> None:
        """A step begins."""
        ...

    def requests(self) -> Generator[Request, None, None]:
        """The waiting requests in order; whoever was yielded may leave the queue meanwhile."""
        ...

    def head(self, count: int) -> tuple[list[Request], list[int]]:
        """The first `count` and their keys; no keys where the queue's own order holds."""
        ...

    def fellows(self, request: Request) -> list[Request]:
        """Those that `requests` passes over together with one that was not admitted."""
        ...


class InOrder:
    """fcfs: the queue as it is."""

    def __init__(self, queue: Queue, fell_back: str | None = None) -> None:
        self._queue = queue
        self.fell_back = fell_back

    def arrange(self) -> None:
        """Nothing to arrange."""

    def requests(self) -> Generator[Request, None, None]:
        """First come, first served."""
        yield from list(self._queue)

    def head(self, count: int) -> tuple[list[Request], list[int]]:
        """The first of the queue, without keys."""
        return [r for r, _ in zip(self._queue, range(count), strict=False)], []

    def fellows(self, request: Request) -> list[Request]:
        """Nobody: each is looked at by itself."""
        return []


class ByKey(InOrder):
    """A key for each, sorted anew at every step; above `limit` waiting the queue's own order holds."""

    def __init__(self, queue: Queue, cache: PrefixCache, keys: Keys, limit: int | None = None) -> None:
        super().__init__(queue)
        self._cache, self._keys, self._limit = cache, keys, limit
        self._ranked: list[tuple[int, Request]] | None = None

    def arrange(self) -> None:
        """Sort."""
        waiting = list(self._queue)
        self.fell_back, self._ranked = None, None
        if self._limit is not None and len(waiting) > self._limit:
            self.fell_back = f"{len(waiting)} wait, and it sorts only while at most {self._limit} do"
            return
        keys = self._keys(waiting, self._cache)
        self._ranked = sorted(zip(keys, waiting, strict=True), key=lambda pair: pair[0])

    def requests(self) -> Generator[Request, None, None]:
        """By key, ties in queue order."""
        if self._ranked is None:
            yield from super().requests()
        else:
            yield from [r for _, r in self._ranked]

    def head(self, count: int) -> tuple[list[Request], list[int]]:
        """The first by key."""
        if self._ranked is None:
            return super().head(count)
        return [r for _, r in self._ranked[:count]], [k for k, _ in self._ranked[:count]]


class Brought:
    """Keys by a function that the caller brought, which sees each request as `engine.plugs.Waiting`."""

    def __init__(self, order: Callable[[Waiting], int]) -> None:
        self._order = order
        self._waits: dict[str, int] = {}

    def __call__(self, waiting: Sequence[Request], cache: PrefixCache) -> Sequence[int]:
        """A key for each. Raises PlugError for what is no integer."""
        self._waits = {r.id: self._waits.get(r.id, -1) + 1 for r in waiting}
        keys = []
        for request in waiting:
            key = self._order(seen(request, cache.match(request.packed_but_last(), request.namespace).known, self._waits[request.id]))
            if isinstance(key, bool) or not isinstance(key, int):
                raise PlugError(f"order: {key!r} is no key; return an integer")
            keys.append(key)
        return keys


def seen(request: Request, matched: int, waits: int | None, needed: int = 0, free: int = 0) -> Waiting:
    """A waiting request as brought rules see it."""
    return Waiting(
        id=request.id, prompt=len(request.prompt), matched=matched, waits=waits, arrived=request.index, priority=request.priority,
        may_produce=request.params.max_new_tokens - len(request.output), pages_needed=needed, pages_free=free,
    )  # fmt: skip


def make_policy(config: EngineConfig, queue: Queue, cache: PrefixCache, seed: int, order: Callable[[Waiting], int] | None = None) -> Policy:
    """The policy that the configuration names, or by an `order` that was brought; policies that look at the cache need one."""
    if order is not None:
        return ByKey(queue, cache, Brought(order))
    if config.cache == "off" and config.policy in ("lpm", "lpm-as-shipped", "lpm-fair", "dfs-weight"):
        return InOrder(queue, fell_back="the cache is off, so nobody's prefix is longer")
    if config.policy in ("lpm", "lpm-fair") and config.in_batch != "sort":
        index = LongestPrefix(cache, config.page_size, queue)
        queue.watcher = index
        return index
    draw = random.Random(seed)
    keys: dict[str, Keys] = {
        "lpm": behind_fellows, "lpm-fair": behind_fellows,
        "lpm-as-shipped": behind_fellows if config.in_batch == "sort" else longest_match,
        "dfs-weight": depth_first, "lof": longest_output, "priority": most_important,
        "random": lambda waiting, _: [draw.getrandbits(31) for _ in waiting],
    }  # fmt: skip
    if config.policy == "fcfs":
        return InOrder(queue)
    return ByKey(queue, cache, keys[config.policy], SORTS_UP_TO if config.policy == "lpm-as-shipped" else None)
