"""The radix tree prefix cache: token runs on edges, split where sequences part, evicted leaf by leaf.

Source of the idea: RadixAttention (SGLang, Zheng et al. 2024, section 3). Nodes hold packed tokens and
page ids only; the KV itself never moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from engine import events as ev
from engine.cache import telling
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
)  # fmt: skip
from engine.cache.eviction import POLICIES, EvictionQueue, Key, KeyOf
from engine.cache.future import Future
from engine.cache.node import Node, common
from engine.cache.pins import Pins
from engine.cache.stops import stop
from engine.events import Namespace, Ranked
from engine.plugs import OWN

RANKED = 8
"""How many of the leaves that went an eviction event shows,"""
RUNNERS_UP = 2
"""and how many of those that would have gone next."""


class RadixCache(OneTier):
    """Contract 4 as a radix tree, to the token (page size 1) or to whole pages."""

    def __init__(
        self,
        page_size: int,
        eviction: str | KeyOf = "lru",
        unit: str = "page",
        trace: ev.Trace | None = None,
        pin_budget: int = 0,
    ) -> None:
        self.page_size = page_size
        self.policy = eviction if isinstance(eviction, str) else OWN
        self.unit = unit
        self.root = Node(ev.ROOT, None, b"", [], None)
        self.tick = 0
        self._trace = ev.Trace(keep=False) if trace is None else trace
        self._emit = self._trace.emit
        self._page_bytes = page_size * WIDTH
        self._future = Future(page_size, unit == "leaf") if eviction == "belady" else None
        self._queue = EvictionQueue(self._future.key if self._future else POLICIES[eviction] if isinstance(eviction, str) else eviction)
        self._pins = Pins(pin_budget, self._trace, self._pin_kept, self._pin_freed)
        self._next_id = 1
        self._held = 0
        self._locked = 0
        """Pages that a lock or a pin holds."""
        self._listeners: list[Listener] = []

    @property
    def evictable(self) -> int:
        """Pages that nothing holds: all of them can be reached by evicting leaves."""
        return self._held - self._locked

    @property
    def held(self) -> int:
        """Pages in the tree."""
        return self._held

    @property
    def pinned(self) -> int:
        """Pages that pins hold."""
        return self._pins.pages

    def subscribe(self, listener: Listener) -> None:
        """Tell `listener` of every split, growth and removal from now on."""
        self._listeners.append(listener)

    def walk(self) -> Iterator[Node]:
        """Every node, parents before children."""
        stack = list(self.root.children.values())
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children.values())

    # --- look-up -------------------------------------------------------------------------------

    def match(self, tokens: bytes, ns: Namespace | None = None) -> Match:
        """The longest known prefix, in whole pages. Changes nothing."""
        path, at, inside = self._descend(tokens, ns)
        return Match(at // WIDTH, path, inside, lambda: stop(self.root, self.page_size, tokens, path, at, inside, ns))

    def _descend(self, tokens: bytes, ns: Namespace | None) -> tuple[list[Node], int, int]:
        """Walk down from the root: the path, the bytes matched, and tokens into the last node."""
        page = self._page_bytes
        at = inside = 0
        path: list[Node] = []
        child = self.root.children.get(self._key(tokens, ns))
        while child is not None:
            path.append(child)
            edge = child.run
            if not tokens.startswith(edge, at):
                shared = common(edge, tokens, at, len(tokens)) // page * page
                return path, at + shared, shared // WIDTH
            at += len(edge)
            inside = child.count
            child = child.children.get(tokens[at : at + page])
        return path, at, inside

    def _key(self, tokens: bytes, ns: Namespace | None) -> Any:
        """What a sequence's first node hangs under at the root; below it is the next page alone."""
        page = tokens[: self._page_bytes]
        return page if ns is None else (ns, page)

    def _hang(self, parent: Node, child: Node) -> None:
        """Enter a child at its parent."""
        if parent is self.root:
            parent.children[self._key(child.run, child.ns)] = child
        else:
            parent.children[child.run[: self._page_bytes]] = child

    def to_lock(self, match: Match) -> int:
        """Evictable pages that acquiring this match would lock."""
        pages = sum(len(n.pages) for n in match.path if not (n.locks or n.pins))
        last = match.node
        if last is not None and not (last.locks or last.pins):
            pages -= len(last.pages) - match.inside // self.page_size
        return pages

    # --- holding -------------------------------------------------------------------------------

    def acquire(self, match: Match, request: Holder) -> Match:
        """Split at the match's end, date and lock its path for `request`."""
        self.tick += 1
        if not match.path:
            return match
        last: Node = match.path[-1]
        if match.inside < last.count:
            last = self._split(last, match.inside)
            match = Match(match.length, [*match.path[:-1], last], last.count, match.explain, match.host_length)
        hit = request.cached is None
        tick, root = self.tick, self.root
        node = last
        while node is not root:
            node.last_used = tick
            node.hits += hit
            if not (node.locks or node.pins):
                self._locked += len(node.pages)
            node.locks += 1
            node = node.parent  # type: ignore[assignment]
        if self._trace.on:
            telling.touched(self._trace, last.id, tick, hit)
            telling.locked(self._trace, last.id, request.id)
        return match

    def release(self, node: Node | None, request: Holder) -> None:
        """Take one lock off each node of the path. Raises CacheError below zero."""
        if node is None:
            return
        root = self.root
        at = node
        while at is not root:
            if at.locks <= 0:
                raise CacheError(f"node {at.id} is unlocked by {request.id} but holds no lock")
            at.locks -= 1
            if not (at.locks or at.pins):
                self._locked -= len(at.pages)
            at = at.parent  # type: ignore[assignment]
        if node.evictable:
            self._queue.push(node)
        if self._trace.on:
            telling.unlocked(self._trace, node.id, request.id)

    def _split(self, node: Node, at: int) -> Node:
        """Give the first `at` tokens of `node` a node of their own; `node` keeps the tail."""
        parent = node.parent
        assert parent is not None and at % self.page_size == 0 and 0 < at < node.count
        k = at // self.page_size
        front = Node(self._next_id, parent, node.run[: at * WIDTH], node.pages[:k], node.ns)
        self._next_id += 1
        front.locks, front.hits, front.last_used = node.locks, node.hits, node.last_used
        front.pins, front.priority, front.writer = node.pins, node.priority, node.writer
        self._hang(parent, front)
        node.run, node.pages = node.run[at * WIDTH :], node.pages[k:]
        node.count -= at
        node.depth += at
        node.parent = front
        self._hang(front, node)
        front.resident = int(bool(node.pages))
        if node.evictable:
            self._queue.push(node)
        self._emit(ev.NodeSplit, node=node.id, front=front.id, at=at)
        for listener in self._listeners:
            listener.split(node, front)
        return front

    # --- pinning, and what is to come ----------------------------------------------------------

    def pin(self, tokens: bytes, ns: Namespace | None, until: int, request: Holder) -> Pinned:
        """Hold what is known of a sequence up to and including step `until`, as far as the budget allows."""
        path, at, inside = self._descend(tokens, ns)
        known = at // self._page_bytes
        fit = self._pins.room(path, known)
        if fit < known:
            path, at, inside = self._descend(tokens[: fit * self._page_bytes], ns)
        end = path[-1] if path else None
        if end is not None and inside < end.count:
            end = self._split(end, inside)
        self._pins.hold(end, until, known - fit, request)
        return Pinned(end, known - fit)

    def unpin(self, step: int) -> None:
        """Let go of the pins whose last step lies before `step`."""
        self._pins.expire(step)

    def give_way(self, request: Holder) -> bool:
        """Let go of the pin that ends first, so that `request` can be served; False where there is none."""
        return self._pins.give_way(request)

    def _pin_kept(self, node: Node) -> None:
        if not node.locks:
            self._locked += len(node.pages)

    def _pin_freed(self, path: list[Node]) -> None:
        self._locked -= sum(len(node.pages) for node in path if not node.locks)
        if path and path[0].evictable:
            self._queue.push(path[0])

    def expect(self, request: Holder, tokens: bytes, ns: Namespace | None) -> None:
        """`request` is still to come and will look these tokens up; farthest next use goes by that."""
        if self._future is not None:
            self._future.expect(request.id, tokens, ns)

    def ended(self, request: Holder) -> None:
        """A request that was expected is over: what only it still wanted is wanted later, or never."""
        expected = self._future.ended(request.id) if self._future is not None else None
        if expected is None:
            return
        query, ns = expected
        self._rank(self._descend(query, ns)[0])

    def _rank(self, path: list[Node]) -> None:
        """The key of a path's end may have changed."""
        if path and path[-1].evictable:
            self._queue.push(path[-1])

    # --- storing -------------------------------------------------------------------------------

    def insert(self, tokens: bytes, pages: Sequence[int], ns: Namespace | None, request: Holder) -> Inserted:
        """Store whole pages of a sequence; `pages[i]` holds its i-th page of tokens.

        As far as `request` holds a path, its pages are the tree's own.
        """
        end = len(tokens) // self._page_bytes * self._page_bytes
        self.tick += 1
        path, at, inside = self._descend(tokens, ns)
        if not end:
            return Inserted(None, 0, [], 0)
        node = path[-1] if path else self.root
        duplicates = self._duplicates(path, inside, pages, request)
        if inside < node.count:
            node = self._split(node, inside)
        if at < end:
            added = pages[at // self._page_bytes : end // self._page_bytes]
            node = self._extend(node, tokens[at:end], added if isinstance(added, list) else list(added), ns, request)
        self._date(node, request.priority)
        return Inserted(node, at // WIDTH, duplicates, end // WIDTH)

    def _date(self, node: Node, priority: int) -> None:
        """One tick for the whole path, and at least this priority."""
        tick, root = self.tick, self.root
        raised = None
        at = node
        while at is not root:
            at.last_used = tick
            if at.priority < priority:
                raised = at.priority = priority
            at = at.parent  # type: ignore[assignment]
        if node.evictable:
            self._queue.push(node)
        if self._trace.on:
            telling.touched(self._trace, node.id, tick, False, raised)

    def _duplicates(self, path: list[Node], inside: int, pages: Sequence[int], request: Holder) -> list[int]:
        """The caller's pages for tokens that the tree already holds in other pages."""
        own: Node | None = request.node
        shared = own.depth + own.count if own is not None else 0
        out: list[int] = []
        for node in path:
            if node.depth + node.count <= shared:
                continue
            held = node.pages if node is not path[-1] else node.pages[: inside // self.page_size]
            at = node.depth // self.page_size
            mine = pages[at : at + len(held)]
            if mine != held:
                out += [m for m, h in zip(mine, held, strict=True) if m != h]
        return out

    def _extend(self, parent: Node, run: bytes, pages: list[int], ns: Namespace | None, request: Holder) -> Node:
        start = parent.depth + parent.count
        stop = start + len(run) // WIDTH
        self._held += len(pages)
        # A prompt that is written chunk by chunk stays one node: its own leaf grows, where nobody else
        # holds or continues it. The answer becomes a child of its own.
        own: Node | None = request.node
        if (
            own is parent
            and parent.locks == 1
            and not (parent.children or parent.pins or parent.host)
            and parent.writer == request.id
            and start < len(request.prompt)
        ):
            parent.run += run
            parent.pages = parent.pages + pages
            parent.count += len(run) // WIDTH
            self._locked += len(pages)
            self._emit(ev.NodeGrown, node=parent.id, request=request.id, start=start, stop=stop, pages=pages)
            for listener in self._listeners:
                listener.grown(parent)
            return parent
        node = Node(self._next_id, parent, run, pages, ns)
        self._next_id += 1
        node.writer, node.priority = request.id, request.priority
        self._hang(parent, node)
        parent.resident += 1
        if self._trace.on:
            telling.created(self._trace, node.id, parent.id, request.id, start, stop, pages, ns)
        for listener in self._listeners:
            listener.grown(node)
        return node

    # --- evicting ------------------------------------------------------------------------------

    def evict(self, pages: int, why: Holder | None = None) -> list[Evicted]:
        """Free up to `pages` unlocked pages: leaves by key, each trimmed from its end."""
        asked, evictable = pages, self.evictable
        taken: list[Evicted] = []
        ranking: list[Ranked] = []
        tracing = self._trace.on
        while pages > 0 and (node := self._queue.pop()) is not None:
            take = self._share(node, pages)
            pages -= take
            if tracing and len(ranking) < RANKED:
                ranking.append(self._ranked(node, self._queue.key(node), take * self.page_size))
            taken.append(self._trim(node, take))
        if tracing:
            if len(taken) <= RANKED:
                rest = taken[-1].node if taken and not taken[-1].whole else None
                head = self._queue.head(RUNNERS_UP + (rest is not None))
                ranking += [self._ranked(n, key, 0) for key, n in head if n.id != rest]
            telling.eviction(
                self._trace, asked, asked - pages, self.policy, self.unit, ranking, evictable, self._locked,
                why.id if why else None,
            )  # fmt: skip
            for gone in taken:
                telling.evicted(self._trace, gone)
        return taken

    def _share(self, node: Node, asked: int) -> int:
        """How many pages to take from the leaf that goes next."""
        if self.unit == "leaf":
            return len(node.pages)
        return min(asked, len(node.pages) if self._future is None else self._future.alike(node))

    def _ranked(self, node: Node, key: Key, taken: int) -> Ranked:
        age = self.tick - node.last_used
        return Ranked(node=node.id, key=list(key), tokens=node.count, age=age, hits=node.hits, taken=taken)

    def _trim(self, node: Node, pages: int) -> Evicted:
        """Take `pages` pages from the end of a leaf; an emptied leaf leaves the tree."""
        keep = len(node.pages) - pages
        self._held -= pages
        if keep:
            gone = node.pages[keep:]
            node.pages = node.pages[:keep]
            node.count = keep * self.page_size
            node.run = node.run[: node.count * WIDTH]
            self._queue.push(node)
        else:
            gone = node.pages
            self._remove(node)
        if self._future is not None and not keep:
            self._future.forget(node)
        for listener in self._listeners:
            listener.removed(node)
        return Evicted(node.id, pages * self.page_size, gone, not keep)

    def _remove(self, node: Node) -> None:
        """Take a leaf out of the tree; its parent may be the next leaf to go."""
        parent = node.parent
        assert parent is not None
        node.removed = True
        parent.resident -= bool(node.pages)
        if parent is self.root:
            del parent.children[self._key(node.run, node.ns)]
            return
        del parent.children[node.run[: self._page_bytes]]
        if parent.evictable:
            self._queue.push(parent)
