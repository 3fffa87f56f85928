"""How requests come to hold pages, share them with the cache, and give them back.

The one place where pool and cache meet; every page that changes hands does so here.
"""

from __future__ import annotations

from engine import events as ev
from engine.cache.base import Match, PrefixCache
from engine.pool import Pool
from engine.request import Request
from engine.totals import Totals


class Holdings:
    """Moves pages between the free list, requests and the cache, telling the trace."""

    def __init__(self, pool: Pool, cache: PrefixCache, trace: ev.Trace, totals: Totals) -> None:
        self.pool = pool
        self.cache = cache
        self._emit = trace.emit
        self._totals = totals

    @property
    def obtainable(self) -> int:
        """Pages that are free or could be evicted."""
        return self.pool.free + self.cache.evictable

    def evict(self, pages: int, why: Request | None = None) -> None:
        """Evict up to `pages` pages from the cache into the free list."""
        taken = self.cache.evict(pages, why)
        self._totals.evictions += 1
        for gone in taken:
            if not gone.demoted:
                self._totals.evicted_tokens += gone.tokens
            self.pool.give_back(gone.pages)
            self._emit(ev.PageFreed, pages=gone.pages, owner=gone.node)

    def take(self, wants: list[tuple[Request, int]]) -> None:
        """Give each request so many new pages, evicting what is short. The caller made sure they fit."""
        total = sum(count for _, count in wants)
        if not total:
            return
        if total > self.pool.free:
            self.evict(total - self.pool.free, wants[0][0] if len(wants) == 1 else None)
        pages = self.pool.allocate(total)
        at = 0
        for request, count in wants:
            request.pages += pages[at : at + count]
            at += count
        self._emit(ev.PageAllocated, pages=pages, owners=[r.id for r, _ in wants], counts=[c for _, c in wants])

    def slots(self, request: Request) -> int:
        """Tokens for which the request has, or could get, a slot without anybody's being retracted."""
        return (len(request.pages) + self.obtainable) * self.pool.page_size

    def cover(self, request: Request, size: int) -> None:
        """Take the pages that so many tokens need beyond those it has."""
        short = self.pool.pages_for(size) - len(request.pages)
        if short > 0:
            self.take([(request, short)])

    def load(self, request: Request, match: Match, seconds: tuple[float, float]) -> Match:
        """Bring what the host holds of a match back for a request; `seconds` a token: to load, and to compute."""

        def take(pages: int) -> list[int]:
            if pages > self.pool.free:
                self.evict(pages - self.pool.free, request)
            return self.pool.allocate(pages)

        self._totals.loaded_tokens += match.host_length
        return self.cache.restore(match, take, seconds, request)

    def receive(self, request: Request) -> None:
        """Store the KV that has come with a request, in whole pages; where there is no room for it, it is computed again."""
        size = self.pool.page_size
        whole = request.received // size
        if not request.store or not 0 < whole <= self.obtainable:
            return
        self.take([(request, whole)])
        stored = self.cache.insert(request.packed(whole * size), request.pages, request.namespace, request)
        self._free_duplicates(request, stored.duplicates)
        request.pages = []

    def adopt(self, request: Request, match: Match) -> None:
        """Hold a match for a request that is being admitted: its sequence begins with the tree's pages."""
        held = self.cache.acquire(match, request)
        request.node = held.node
        request.pages = held.pages
        request.shared = len(request.pages)
        request.kv = held.length

    def share(self, request: Request) -> None:
        """Make the whole pages that a live request has written findable, and go on with the tree's pages."""
        size = self.pool.page_size
        whole = min(request.kv, request.target) // size
        if not request.store or whole <= request.shared:
            return
        tokens = request.packed(whole * size)
        inserted = self.cache.insert(tokens, request.pages[:whole], request.namespace, request)
        self._free_duplicates(request, inserted.duplicates)
        old_node = request.node
        held = self.cache.acquire(self.cache.match(tokens, request.namespace), request)
        self.cache.release(old_node, request)
        request.node = held.node
        pages = held.pages
        old = request.pages
        request.pages = pages + old[len(pages) :]
        request.shared = len(pages)
        if inserted.duplicates:
            start = old.index(inserted.duplicates[0])
            new = pages[start : start + len(inserted.duplicates)]
            self._emit(ev.RequestRemapped, request=request.id, start=start * size, old=inserted.duplicates, new=new)

    def finish(self, request: Request) -> None:
        """Store what an ended request has computed, then give everything back."""
        size = self.pool.page_size
        whole = request.kv // size
        kept = 0
        if request.store and whole > request.shared:
            inserted = self.cache.insert(
                request.packed(whole * size), request.pages[:whole], request.namespace, request
            )
            self._free_duplicates(request, inserted.duplicates)
            kept = inserted.length // size
        self._drop_pages(request, max(kept, request.shared))

    def shrink(self, request: Request, keep: int) -> list[int]:
        """Give back the request's pages from the `keep`-th on, all of them its own; returns them."""
        spare = request.pages[keep:]
        if spare:
            del request.pages[keep:]
            self.pool.give_back(spare)
            self._emit(ev.PageFreed, pages=spare, owner=request.id)
        return spare

    def drop(self, request: Request) -> int:
        """Give everything back and store nothing; returns how many private pages that freed."""
        return self._drop_pages(request, request.shared)

    def _drop_pages(self, request: Request, keep: int) -> int:
        """Free the pages from the `keep`-th on; unlock the path."""
        private = request.pages[keep:]
        if private:
            self.pool.give_back(private)
            self._emit(ev.PageFreed, pages=private, owner=request.id)
        self.cache.release(request.node, request)
        request.node, request.pages, request.shared, request.kv = None, [], 0, 0
        return len(private)

    def _free_duplicates(self, request: Request, pages: list[int]) -> None:
        if pages:
            self.pool.give_back(pages)
            self._emit(ev.PageFreed, pages=pages, owner=request.id)
