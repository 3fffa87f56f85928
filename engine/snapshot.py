"""The engine's state, found by walking tree, pool, queue and running set; the trace plays no part.

`workbench.replay.State.canonical()` folds the same shape from events; the tests hold them equal. Also
here: the invariant, checked by the same walk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from engine.cache.base import PrefixCache, pack
from engine.events import ROOT, Owner
from engine.grammar.door import Walk
from engine.pool import Pool
from engine.request import Request
from engine.totals import Totals


def snapshot(
    pool: Pool, cache: PrefixCache, waiting: Iterable[Request], running: list[Request], totals: Totals,
    held: Iterable[Request] = (),
) -> dict[str, Any]:
    """Queue order, live requests (`held`: those that wait for a grammar), tree, owner of each page, totals."""
    owners: list[Owner] = [None] * pool.pages
    for page, owner in holders(cache, running):
        owners[page] = owner
    return {
        "queue": [r.id for r in waiting],
        "requests": {r.id: _request(r) for r in [*waiting, *running, *held]},
        "nodes": {str(n.id): _node(n) for n in cache.walk()},
        "owners": owners,
        "totals": asdict(totals),
    }


def holders(cache: PrefixCache, running: Iterable[Request]) -> Iterator[tuple[int, str | int]]:
    """Every (page, owner): nodes hold the tree's pages, requests their private ones."""
    for node in cache.walk():
        for page in node.pages:
            yield page, node.id
    for request in running:
        for page in request.pages[request.shared :]:
            yield page, request.id


def _request(r: Request) -> dict[str, Any]:
    return {
        "status": str(r.status),
        "prompt": len(r.prompt),
        "cached": r.cached,
        "computed": r.computed,
        "recovered": r.recovered,
        "recomputed": r.recomputed,
        "kv": r.kv,
        "output": list(r.output),
        "pages": r.pages[r.shared :],
        "node": r.node.id if r.node else ROOT,
        "retractions": r.retractions,
        "grammar": None if r.walk is None else _grammar(r, r.walk),
    }


def _grammar(r: Request, walk: Walk) -> dict[str, int]:
    return {"state": walk.state, "forced": r.forced, "jumped": r.jumped, "rolled_back": r.rolled_back}


def _node(n: Any) -> dict[str, Any]:
    return {
        "parent": n.parent.id,
        "namespace": list(n.ns) if n.ns else None,
        "run": [n.depth, n.count, fnv1a(pack(n.tokens()))],
        "pages": list(n.pages),
        "host": list(n.host),
        "locks": n.locks,
        "hits": n.hits,
        "last_used": n.last_used,
        "pins": n.pins,
        "tier": n.tier,
    }


def fnv1a(data: bytes) -> str:
    """FNV-1a, 64 bits, as 16 hex digits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


@dataclass(slots=True)
class Breach:
    """One broken rule: what, and for a page who claims it and who held it at the last two looks."""

    what: str
    page: int | None = None
    owners: list[str | int] | None = None
    last_owners: list[Owner] | None = None


class Checker:
    """The pool invariant: one owner a page, free + cached + private = all, a slot for every token that has KV,
    locks never negative and equal to what the running requests hold, nothing private or locked at idle; the same of
    the host's pages, and a whole copy or none."""

    def __init__(self, pool: Pool, cache: PrefixCache) -> None:
        self._pool = pool
        self._cache = cache
        self._history: list[tuple[Owner, Owner]] = [(None, None)] * pool.pages
        self.seen: list[Breach] = []
        """Breaches found elsewhere since the last walk; `check` reports them with its own."""

    def check(self, running: list[Request], idle: bool) -> list[Breach]:
        """Walk everything once. Empty when all is well."""
        breaches, self.seen = self.seen, []
        claims: dict[int, list[str | int]] = {}
        for page, owner in holders(self._cache, running):
            claims.setdefault(page, []).append(owner)
        free = self._pool.free_pages()
        free_set = set(free)
        if len(free_set) != len(free):
            breaches.append(Breach("the free list names a page twice"))
        for page in range(self._pool.pages):
            owners = claims.get(page, [])
            if len(owners) + (page in free_set) != 1:
                what = "has no owner and is not free" if not owners else "has more than one owner"
                if len(owners) == 1:
                    what = "is free and owned"
                breaches.append(Breach(f"page {page} {what}", page, owners, list(self._history[page])))
            now = owners[0] if owners else None
            if now != self._history[page][0]:
                self._history[page] = (now, self._history[page][0])
        stray = [p for p in claims if not 0 <= p < self._pool.pages]
        breaches += [Breach(f"page {p} does not exist", p, claims[p]) for p in stray]
        for request in running:
            if request.kv > len(request.pages) * self._pool.page_size:
                pages = f"{len(request.pages)} page{'' if len(request.pages) == 1 else 's'}"
                breaches.append(Breach(f"{request.id} has KV of {request.kv} tokens in {pages} of {self._pool.page_size}"))
        breaches += self._locks(running, idle)
        if self._cache.host_pool is not None:
            breaches += self._host(self._cache.host_pool)
        return breaches

    def _host(self, pool: Pool) -> list[Breach]:
        """One owner a host page or free, a node's copy is all of it, and nothing on the host alone is above the device."""
        claims = Counter(page for node in self._cache.walk() for page in node.host)
        free = Counter(pool.free_pages())
        breaches = [
            Breach(f"host page {page} has {claims[page]} owners and is {free[page]} times free")
            for page in sorted({*range(pool.pages), *claims, *free})
            if claims[page] + free[page] != 1 or not 0 <= page < pool.pages
        ]
        for node in self._cache.walk():
            if node.host and len(node.host) * pool.page_size != node.count:
                breaches.append(Breach(f"node {node.id} has {node.count} tokens in {len(node.host)} host pages"))
            if node.pages and node.parent.tier == "host":
                breaches.append(Breach(f"node {node.id} has device pages, node {node.parent.id} above it has none"))
        return breaches

    def _locks(self, running: list[Request], idle: bool) -> list[Breach]:
        held: dict[int, int] = {}
        for request in running:
            at = request.node
            while at is not None and at.parent is not None:
                held[at.id] = held.get(at.id, 0) + 1
                at = at.parent
        breaches: list[Breach] = []
        evictable = 0
        for node in self._cache.walk():
            if node.locks != held.get(node.id, 0):
                breaches.append(
                    Breach(f"node {node.id} has {node.locks} locks, running requests hold {held.get(node.id, 0)}")
                )
            if not (node.locks or node.pins):
                evictable += len(node.pages)
            if len(node.pages or node.host) * self._pool.page_size != node.count or len(node.run) != len(pack([0])) * node.count:
                breaches.append(Breach(f"node {node.id} has {node.count} tokens in {len(node.pages)} pages"))
        if evictable != self._cache.evictable:
            breaches.append(Breach(f"{evictable} tree pages are neither locked nor pinned, the cache counts {self._cache.evictable}"))
        if idle and held:
            breaches.append(Breach(f"idle, but locks are held on nodes {sorted(held)}"))
        return breaches
