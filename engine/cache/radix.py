"""The radix tree prefix cache: token runs on edges, split where sequences part, evicted leaf by leaf.

Source of the idea: RadixAttention (SGLang, Zheng et al. 2024, section 3). Nodes hold packed tokens and
page ids only; the KV itself never moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    Pinned,
    Stop,
    unpack,
)  # fmt: skip
from engine.cache.eviction import POLICIES, EvictionQueue
from engine.cache.future import Future
from engine.cache.pins import Pins
from engine.events import Namespace, Ranked

RANKED = 8
"""How many candidates an eviction event shows."""


class Node:
    """A run of tokens (`run`, packed) and their pages. The root has an empty run and id 0."""

    __slots__ = (
        "children", "count", "depth", "hits", "id", "last_used", "locks", "ns", "pages", "parent",
        "pins", "priority", "removed", "run", "writer",
    )  # fmt: skip

    def __init__(self, id: int, parent: Node | None, run: bytes, pages: list[int], ns: Namespace | None) -> None:
        self.id = id
        self.parent = parent
        self.run = run
        self.pages = pages
        self.ns = ns
        self.count = len(run) // WIDTH
        self.depth: int = parent.depth + parent.count if parent else 0
        self.children: dict[Any, Node] = {}
        self.locks = 0
        self.hits = 0
        self.last_used = 0
        self.pins = 0
        self.priority = 0
        self.removed = False
        self.writer: str | None = None

    @property
    def evictable(self) -> bool:
        """A leaf that nothing holds."""
        return not (self.locks or self.children or self.removed or self.pins)

    def tokens(self) -> list[int]:
        """Its token ids."""
        return unpack(self.run)


def common(edge: bytes, data: bytes, at: int, end: int) -> int:
    """Bytes that `edge` and data[at:end] share from their start, in whole tokens.

    Bisection over bulk compares: no Python loop a token.
    """
    low, high = 0, min(len(edge), end - at) // WIDTH
    if edge[: high * WIDTH] == data[at : at + high * WIDTH]:
        return high * WIDTH
    while low + 1 < high:
        middle = (low + high) // 2
        if edge[low * WIDTH : middle * WIDTH] == data[at + low * WIDTH : at + middle * WIDTH]:
            low = middle
        else:
            high = middle
    return low * WIDTH


class RadixCache:
    """Contract 4 as a radix tree, to the token (page size 1) or to whole pages."""

    def __init__(
        self,
        page_size: int,
        eviction: str = "lru",
        unit: str = "page",
        trace: ev.Trace | None = None,
        pin_budget: int = 0,
    ) -> None:
        self.page_size = page_size
        self.policy = eviction
        self.unit = unit
        self.root = Node(ev.ROOT, None, b"", [], None)
        self.tick = 0
        self._trace = ev.Trace(keep=False) if trace is None else trace
        self._emit = self._trace.emit
        self._page_bytes = page_size * WIDTH
        self._future = Future(page_size, unit == "leaf") if eviction == "belady" else None
        self._queue = EvictionQueue(self._future.key if self._future else POLICIES[eviction])
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
        end = len(tokens) // self._page_bytes * self._page_bytes
        path, at, inside = self._descend(tokens, end, ns)
        return Match(
            length=at // WIDTH,
            path=path,
            inside=inside,
            explain=lambda: self._stop(tokens, path, at, inside, ns),
        )

    def _key(self, node: Node, tokens: bytes, at: int, ns: Namespace | None) -> Any:
        page = tokens[at : at + self._page_bytes]
        return page if node is not self.root or ns is None else (ns, page)

    def _descend(self, tokens: bytes, end: int, ns: Namespace | None) -> tuple[list[Node], int, int]:
        """Walk down from the root: the path, the bytes matched, and tokens into the last node."""
        node, at, inside = self.root, 0, 0
        path: list[Node] = []
        while at < end:
            child = node.children.get(self._key(node, tokens, at, ns))
            if child is None:
                break
            edge = child.run
            path.append(child)
            if at + len(edge) <= end and tokens.startswith(edge, at):
                at += len(edge)
                inside = child.count
                node = child
                continue
            shared = common(edge, tokens, at, end) // self._page_bytes * self._page_bytes
            at += shared
            inside = shared // WIDTH
            break
        return path, at, inside

    def _stop(self, tokens: bytes, path: list[Node], at: int, inside: int, ns: Namespace | None) -> Stop:
        """Why the walk ended at byte `at`; looks at single tokens, also inside a page."""
        last = path[-1] if path else self.root
        if at == len(tokens):
            return Stop("last token", at // WIDTH, last.id or None, inside)
        whole = inside == last.count
        if not whole:
            node, offset = last, inside
        else:
            near = self._nearest(last, tokens, at, ns)
            if near is None:
                return Stop("end" if path else "no child", at // WIDTH, last.id or None, inside)
            node, offset = near, 0
        rest = node.run[offset * WIDTH :]
        extra = common(rest, tokens, at, len(tokens))
        raw = (at + extra) // WIDTH
        offset += extra // WIDTH
        if at + extra == len(tokens):
            return Stop("last token", raw, node.id, offset)
        wanted = unpack(tokens[at + extra : at + extra + WIDTH])[0]
        stored = unpack(rest[extra : extra + WIDTH])[0] if extra < len(rest) else None
        if extra:
            return Stop("page", raw, node.id, offset, stored, wanted)
        if whole:
            return Stop("no child", raw, last.id or None, inside, stored, wanted)
        return Stop("parted", raw, node.id, offset, stored, wanted)

    def _nearest(self, node: Node, tokens: bytes, at: int, ns: Namespace | None) -> Node | None:
        """The child that shares most tokens with the query; with one-token pages none shares any."""
        children = (c for c in node.children.values() if node is not self.root or c.ns == ns)
        if self.page_size == 1:
            return next(children, None)
        return max(children, key=lambda c: common(c.run, tokens, at, len(tokens)), default=None)

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
        path, inside = match.path, match.inside
        if path and inside < path[-1].count:
            path = [*path[:-1], self._split(path[-1], inside)]
        self.tick += 1
        if path:
            hit = request.cached is None
            self._touch(path[-1], hit)
            self._lock(path[-1], request.id)
        return Match(match.length, path, path[-1].count if path else 0, match.explain, match.host_length)

    def release(self, node: Node | None, request: Holder) -> None:
        """Take one lock off each node of the path. Raises CacheError below zero."""
        if node is None:
            return
        bottom = node
        at: Node | None = node
        while at is not None and at is not self.root:
            if at.locks <= 0:
                raise CacheError(f"node {at.id} is unlocked by {request.id} but holds no lock")
            at.locks -= 1
            if at.locks == 0 and not at.pins:
                self._locked -= len(at.pages)
            at = at.parent
        if bottom.evictable:
            self._queue.push(bottom)
        self._emit(ev.NodeUnlocked, node=bottom.id, request=request.id)

    def _touch(self, node: Node, hit: bool, priority: int | None = None) -> None:
        at: Node | None = node
        while at is not None and at is not self.root:
            at.last_used = self.tick
            at.hits += hit
            at = at.parent
        if node.evictable:
            self._queue.push(node)
        self._emit(ev.NodeTouched, node=node.id, tick=self.tick, hit=hit, priority=priority)

    def _lock(self, node: Node, request: str) -> None:
        at: Node | None = node
        while at is not None and at is not self.root:
            if at.locks == 0 and not at.pins:
                self._locked += len(at.pages)
            at.locks += 1
            at = at.parent
        self._emit(ev.NodeLocked, node=node.id, request=request)

    def _split(self, node: Node, at: int) -> Node:
        """Give the first `at` tokens of `node` a node of their own; `node` keeps the tail."""
        parent = node.parent
        assert parent is not None and at % self.page_size == 0 and 0 < at < node.count
        k = at // self.page_size
        front = Node(self._next_id, parent, node.run[: at * WIDTH], node.pages[:k], node.ns)
        self._next_id += 1
        front.locks, front.hits, front.last_used = node.locks, node.hits, node.last_used
        front.pins, front.priority, front.writer = node.pins, node.priority, node.writer
        parent.children[self._key(parent, front.run, 0, node.ns)] = front
        node.run, node.pages = node.run[at * WIDTH :], node.pages[k:]
        node.count -= at
        node.depth += at
        node.parent = front
        front.children[self._key(front, node.run, 0, node.ns)] = node
        if node.evictable:
            self._queue.push(node)
        self._emit(ev.NodeSplit, node=node.id, front=front.id, at=at)
        for listener in self._listeners:
            listener.split(node, front)
        return front

    # --- pinning, and what is to come ----------------------------------------------------------

    def pin(self, tokens: bytes, ns: Namespace | None, until: int, request: Holder) -> Pinned:
        """Hold what is known of a sequence up to and including step `until`, as far as the budget allows."""
        path, at, inside = self._descend(tokens, len(tokens) // self._page_bytes * self._page_bytes, ns)
        known = at // self._page_bytes
        fit = self._pins.room(path, known)
        if fit < known:
            path, at, inside = self._descend(tokens, fit * self._page_bytes, ns)
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

    def _pin_freed(self, node: Node) -> None:
        if not node.locks:
            self._locked -= len(node.pages)
        if node.evictable:
            self._queue.push(node)

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
        path, _, _ = self._descend(query, len(query), ns)
        if path and path[-1].evictable:
            self._queue.push(path[-1])

    # --- storing -------------------------------------------------------------------------------

    def insert(self, tokens: bytes, pages: Sequence[int], ns: Namespace | None, request: Holder) -> Inserted:
        """Store whole pages of a sequence; `pages[i]` holds its i-th page of tokens."""
        end = len(tokens) // self._page_bytes * self._page_bytes
        self.tick += 1
        path, at, inside = self._descend(tokens, end, ns)
        duplicates = self._duplicates(path, inside, pages, request)
        if path and inside < path[-1].count:
            path[-1] = self._split(path[-1], inside)
        node = path[-1] if path else self.root
        already = at // WIDTH
        if at < end:
            node = self._extend(
                node, tokens[at:end], list(pages[at // self._page_bytes : end // self._page_bytes]), ns, request
            )
        raised = None
        for n in path:
            if n.priority < request.priority:
                raised = n.priority = request.priority
        if node is not self.root:
            self._touch(node, hit=False, priority=raised)
        return Inserted(node if node is not self.root else None, already, duplicates, end // WIDTH)

    def _duplicates(self, path: list[Node], inside: int, pages: Sequence[int], request: Holder) -> list[int]:
        """The caller's pages for tokens that the tree already holds in other pages.

        As far as the request holds a path, its pages are the tree's own.
        """
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
            and not (parent.children or parent.pins)
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
        parent.children[self._key(parent, run, 0, ns)] = node
        self._emit(
            ev.NodeCreated, node=node.id, parent=parent.id, request=request.id,
            start=start, stop=stop, pages=pages, namespace=ns,
        )  # fmt: skip
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
                ranking.append(self._ranked(node, take * self.page_size))
            taken.append(self._trim(node, take))
        if tracing:
            went = {r.node for r in ranking}
            ranking += [self._ranked(n, 0) for n in self._queue.head(RANKED - len(ranking)) if n.id not in went]
            self._emit(
                ev.Eviction, asked=asked, freed=sum(len(e.pages) for e in taken), policy=self.policy,
                unit=self.unit, ranking=ranking, evictable=evictable, locked=self._locked,
                request=why.id if why else None,
            )  # fmt: skip
            for e in taken:
                self._emit(ev.NodeEvicted if e.whole else ev.NodeTrimmed, node=e.node, tokens=e.tokens, pages=e.pages)
        return taken

    def _share(self, node: Node, asked: int) -> int:
        """How many pages to take from the leaf that goes next."""
        if self.unit == "leaf":
            return len(node.pages)
        return min(asked, len(node.pages) if self._future is None else self._future.alike(node))

    def _ranked(self, node: Node, taken: int) -> Ranked:
        return Ranked(
            node=node.id, key=list(self._queue.key(node)), tokens=node.count,
            age=self.tick - node.last_used, hits=node.hits, taken=taken,
        )  # fmt: skip

    def _trim(self, node: Node, pages: int) -> Evicted:
        """Take `pages` pages from the end of a leaf; an emptied leaf leaves the tree."""
        keep = len(node.pages) - pages
        gone = node.pages[keep:]
        tokens = pages * self.page_size
        self._held -= pages
        parent = node.parent
        assert parent is not None
        if keep:
            node.pages = node.pages[:keep]
            node.count = keep * self.page_size
            node.run = node.run[: node.count * WIDTH]
            self._queue.push(node)
        else:
            node.removed = True
            del parent.children[self._key(parent, node.run, 0, node.ns)]
            if self._future is not None:
                self._future.forget(node)
            if parent is not self.root and parent.evictable:
                self._queue.push(parent)
        for listener in self._listeners:
            listener.removed(node)
        return Evicted(node.id, tokens, gone, not keep)
