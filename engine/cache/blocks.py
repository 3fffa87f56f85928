"""A prefix cache of blocks found by chained hashes, behind the same interface as the tree.

A block is one page of tokens. Its hash is made of its parent's hash and its own tokens (the first
block's: its namespace), so a look-up needs one step a block and no tree; every find is checked against
the parent itself and the tokens themselves, so that two blocks with one hash are never mistaken for
each other. Every block that nothing holds stands in one free queue, and eviction takes from its front.

Source of the idea: PagedAttention with automatic prefix caching (vLLM; Kwon et al. 2023), as read in
2026-08. Two things differ. vLLM keeps duplicates, two blocks of equal tokens, until their requests let
them go; here `insert` returns them, as the interface wants, and their request goes on with the pages
that were there. And vLLM trusts the hash alone, so what was cut off from its beginning would be found
again once that beginning is stored anew; here it is not, because its parent is another block.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from engine import events as ev
from engine.cache.base import (
    WIDTH,
    CacheError,
    Evicted,
    Holder,
    Inserted,
    Listener,
    Match,
    OneTier,
    Pinned,
    Stop,
    plain,
)  # fmt: skip
from engine.cache.node import common
from engine.cache.pins import Pins
from engine.cache.radix import RANKED
from engine.events import Namespace, Ranked

Hash = Callable[[Any, bytes], int]


def chained(above: Any, page: bytes) -> int:
    """A block's hash, from its parent's (the first block: from its namespace) and its own tokens."""
    return hash((above, page))


class Block:
    """One page of tokens (`run`, packed). The root has an empty run and id 0."""

    tier = "device"
    host: tuple[int, ...] = ()
    __slots__ = (
        "children", "count", "depth", "hash", "hits", "id", "last_used", "locks", "ns", "pages", "parent", "pins",
        "priority", "removed", "run", "turn", "writer",
    )  # fmt: skip

    def __init__(
        self, id: int, parent: Block | None, run: bytes, pages: list[int], ns: Namespace | None, key: Any
    ) -> None:
        self.id = id
        self.parent = parent
        self.run = run
        self.pages = pages
        self.ns = ns
        self.hash = key
        self.count = len(run) // WIDTH
        self.depth: int = parent.depth + parent.count if parent else 0
        self.children: dict[int, Block] = {}
        """By id; look-ups do without, it tells only where one stopped and what goes with a lost parent."""
        self.locks = 0
        self.hits = 0
        self.last_used = 0
        self.pins = 0
        self.priority = 0
        self.turn = 0
        """The release or touch with which it last joined the free queue."""
        self.removed = False
        """Whether no look-up can reach it any more: it has left, or something above it has."""
        self.writer: str | None = None

    def tokens(self) -> list[int]:
        """Its token ids."""
        return plain(self.run)


class BlockCache(OneTier):
    """Contract 4 as blocks in one dictionary and one free queue.

    `order` says how a released chain joins the queue. `tail-first`: its last block goes first, so what is
    left is always a beginning. `head-first` is block-wise LRU done naively: the beginning goes first, and
    the rest keeps its pages though no look-up can reach it, until the queue has moved that far.
    """

    def __init__(
        self,
        page_size: int,
        order: str = "tail-first",
        trace: ev.Trace | None = None,
        hasher: Hash = chained,
        pin_budget: int = 0,
    ) -> None:
        self.page_size = page_size
        self.order = order
        self.root = Block(ev.ROOT, None, b"", [], None, None)
        self.tick = 0
        self._trace = ev.Trace(keep=False) if trace is None else trace
        self._emit = self._trace.emit
        self._pins = Pins(pin_budget, self._trace, self._pin_kept, self._pin_freed)
        self._hash = hasher
        self._page_bytes = page_size * WIDTH
        self._blocks: dict[int, Block] = {}
        self._table: dict[int, list[Block]] = {}
        self._free: OrderedDict[int, Block] = OrderedDict()
        self._turn = 0
        self._next_id = 1
        self._listeners: list[Listener] = []

    @property
    def evictable(self) -> int:
        """Blocks in the free queue, a page each."""
        return len(self._free)

    @property
    def held(self) -> int:
        """Blocks, a page each."""
        return len(self._blocks)

    @property
    def pinned(self) -> int:
        """Blocks that pins hold."""
        return self._pins.pages

    def subscribe(self, listener: Listener) -> None:
        """Tell `listener` of every new block, and of every one that leaves: what follows it is lost with it."""
        self._listeners.append(listener)

    def walk(self) -> Iterator[Block]:
        """Every block, also one that no look-up can reach; parents before children, because ids rise."""
        return iter(list(self._blocks.values()))

    # --- look-up -------------------------------------------------------------------------------

    def match(self, tokens: bytes, ns: Namespace | None = None) -> Match:
        """The longest known prefix, in whole blocks. Changes nothing."""
        path = self._descend(tokens, ns)
        return Match(
            length=len(path) * self.page_size,
            path=path,
            inside=self.page_size if path else 0,
            explain=lambda: self._stop(tokens, path, ns),
        )

    def _descend(self, tokens: bytes, ns: Namespace | None) -> list[Block]:
        """The known blocks that a sequence begins with."""
        path: list[Block] = []
        parent, size = self.root, self._page_bytes
        above: Any = ns
        for at in range(0, len(tokens) - size + 1, size):
            page = tokens[at : at + size]
            key = self._hash(above, page)
            for block in self._table.get(key, ()):
                if block.parent is parent and block.run == page and block.ns == ns:
                    break
            else:
                break
            path.append(block)
            parent = block
            above = key
        return path

    def _stop(self, tokens: bytes, path: list[Block], ns: Namespace | None) -> Stop:
        """Why the look-up ended; looks at single tokens of what follows the last block found."""
        last = path[-1] if path else self.root
        at = len(path) * self._page_bytes
        if at == len(tokens):
            return Stop("last token", at // WIDTH, last.id or None, last.count)
        children = [b for b in last.children.values() if b.ns == ns]
        if not children:
            return Stop("end" if path else "no child", at // WIDTH, last.id or None, last.count)
        first = tokens[at : at + WIDTH]  # few begin with the query's token; only those are looked at closely
        close = [b for b in children if b.run.startswith(first)] or children[:1]
        near = max(close, key=lambda b: common(b.run, tokens, at, len(tokens)))
        extra = common(near.run, tokens, at, len(tokens))
        raw = (at + extra) // WIDTH
        if at + extra == len(tokens):
            return Stop("last token", raw, near.id, extra // WIDTH)
        wanted = plain(tokens[at + extra : at + extra + WIDTH])[0]
        stored = plain(near.run[extra : extra + WIDTH])[0]
        if extra:
            return Stop("page", raw, near.id, extra // WIDTH, stored, wanted)
        return Stop("no child", raw, last.id or None, last.count, stored, wanted)

    def to_lock(self, match: Match) -> int:
        """Pages in the free queue that acquiring this match would take out of it."""
        return sum(not (block.locks or block.pins) for block in match.path)

    # --- holding -------------------------------------------------------------------------------

    def acquire(self, match: Match, request: Holder) -> Match:
        """Date and lock the match's blocks for `request`; what is locked leaves the free queue."""
        self.tick += 1
        if match.path:
            self._date(match.path, request.cached is None)
            for block in match.path:
                if not (block.locks or block.pins):
                    del self._free[block.id]
                block.locks += 1
            self._emit(ev.NodeLocked, node=match.node.id, request=request.id)
        return match

    def release(self, node: Block | None, request: Holder) -> None:
        """Take one lock off each block of the path; those that nobody holds now join the free queue.

        Raises CacheError below zero.
        """
        if node is None:
            return
        if node.locks <= 0:
            raise CacheError(f"node {node.id} is unlocked by {request.id} but holds no lock")
        path = self._path(node)
        for block in path:
            block.locks -= 1
        self._queue(path)
        self._emit(ev.NodeUnlocked, node=node.id, request=request.id)

    def _path(self, block: Block) -> list[Block]:
        """From a block up to the first of its chain."""
        path: list[Block] = []
        at: Block | None = block
        while at is not None and at is not self.root:
            path.append(at)
            at = at.parent
        return path

    def _date(self, path: list[Block], hit: bool) -> None:
        for block in path:
            block.last_used = self.tick
            block.hits += hit
        self._emit(ev.NodeTouched, node=path[-1].id, tick=self.tick, hit=hit)

    def _queue(self, path: list[Block]) -> None:
        """Move those blocks of one path, given from its end, that nothing holds to the end of the free queue."""
        self._turn += 1
        for block in path if self.order == "tail-first" else reversed(path):
            if not (block.locks or block.pins):
                block.turn = self._turn
                self._free[block.id] = block
                self._free.move_to_end(block.id)

    # --- pinning, and what is to come ----------------------------------------------------------

    def pin(self, tokens: bytes, ns: Namespace | None, until: int, request: Holder) -> Pinned:
        """Hold what is known of a sequence up to and including step `until`, as far as the budget allows."""
        path = self._descend(tokens, ns)
        fit = self._pins.room(path, len(path))
        end = path[fit - 1] if fit else None
        self._pins.hold(end, until, len(path) - fit, request)
        return Pinned(end, len(path) - fit)

    def unpin(self, step: int) -> None:
        """Let go of the pins whose last step lies before `step`."""
        self._pins.expire(step)

    def give_way(self, request: Holder) -> bool:
        """Let go of the pin that ends first, so that `request` can be served; False where there is none."""
        return self._pins.give_way(request)

    def _pin_kept(self, block: Block) -> None:
        if not block.locks:
            del self._free[block.id]

    def _pin_freed(self, path: list[Block]) -> None:
        self._queue(path)

    def expect(self, request: Holder, tokens: bytes, ns: Namespace | None) -> None:
        """The free queue does not look ahead."""

    def ended(self, request: Holder) -> None:
        """The free queue does not look ahead."""

    # --- storing -------------------------------------------------------------------------------

    def insert(self, tokens: bytes, pages: Sequence[int], ns: Namespace | None, request: Holder) -> Inserted:
        """Store the whole pages of a sequence, a block each; `pages[i]` holds its i-th page of tokens."""
        size = self._page_bytes
        whole = len(tokens) // size
        self.tick += 1
        path = self._descend(tokens, ns)
        known = len(path)
        duplicates = [mine for mine, block in zip(pages, path, strict=False) if mine != block.pages[0]]
        for i in range(known, whole):
            above = path[-1] if path else self.root
            path.append(self._store(above, tokens[i * size : (i + 1) * size], pages[i], ns, request))
        for block in path:
            block.priority = max(block.priority, request.priority)
        if path:
            self._date(path, hit=False)
            self._queue(path[::-1])
        return Inserted(path[-1] if path else None, known * self.page_size, duplicates, whole * self.page_size)

    def _store(self, parent: Block, run: bytes, page: int, ns: Namespace | None, request: Holder) -> Block:
        key = self._hash(ns if parent is self.root else parent.hash, run)
        block = Block(self._next_id, parent, run, [page], ns, key)
        self._next_id += 1
        block.writer = request.id
        self._blocks[block.id] = block
        self._table.setdefault(key, []).append(block)
        parent.children[block.id] = block
        self._emit(
            ev.NodeCreated, node=block.id, parent=parent.id, request=request.id, start=block.depth,
            stop=block.depth + block.count, pages=block.pages, namespace=ns,
        )  # fmt: skip
        for listener in self._listeners:
            listener.grown(block)
        return block

    # --- evicting ------------------------------------------------------------------------------

    def evict(self, pages: int, why: Holder | None = None) -> list[Evicted]:
        """Free up to `pages` pages from the front of the free queue."""
        evictable, locked = self.evictable, self.held - self.evictable
        taken: list[Block] = []
        while len(taken) < pages and self._free:
            taken.append(self._free.popitem(last=False)[1])
        for block in taken:
            self._remove(block)
        if self._trace.on:
            ranking = [self._ranked(block, self.page_size) for block in taken[:RANKED]]
            ranking += [self._ranked(block, 0) for block in islice(self._free.values(), RANKED - len(ranking))]
            self._emit(
                ev.Eviction, asked=pages, freed=len(taken), policy="lru", unit="block", ranking=ranking,
                evictable=evictable, locked=locked, request=why.id if why else None,
            )  # fmt: skip
            for block in taken:
                self._emit(ev.NodeEvicted, node=block.id, tokens=block.count, pages=block.pages)
        return [Evicted(block.id, block.count, block.pages, True) for block in taken]

    def _ranked(self, block: Block, taken: int) -> Ranked:
        along = -block.depth if self.order == "tail-first" else block.depth
        return Ranked(
            node=block.id, key=[block.turn, along], tokens=block.count, age=self.tick - block.last_used,
            hits=block.hits, taken=taken,
        )  # fmt: skip

    def _remove(self, block: Block) -> None:
        """Drop one block. What follows it in its chain keeps its pages, but no look-up reaches it any more."""
        del self._blocks[block.id]
        assert block.parent is not None
        block.parent.children.pop(block.id, None)
        if block.removed:
            return
        lost = [block]
        while lost:
            at = lost.pop()
            lost += at.children.values()
            at.removed = True
            bucket = self._table[at.hash]
            bucket.remove(at)
            if not bucket:
                del self._table[at.hash]
        for listener in self._listeners:
            listener.removed(block)
