"""Longest prefix first without matching the queue again at every step.

Waiting requests hang in groups by shared path: their queries form a radix tree of their own (`Group`), and
each group knows how many of its tokens the cache holds (`known`). All requests below a group that is not
wholly known have the same match, so one heap entry stands for them all. The cache tells of every node that
grew, was split or left (`Listener`); each moves the few groups that lie on that node's path, not the
requests in them. A step then takes the best entry, however many wait.

Own design; what it replaces is sorting by a fresh match of every waiting request, which SGLang gives up
above 128 waiting (engines.md 2.1).
"""

from __future__ import annotations

from collections.abc import Generator
from heapq import heapify, heappop, heappush
from typing import Any

from engine.cache.base import WIDTH, PrefixCache
from engine.cache.node import common
from engine.request import Request
from engine.scheduler.queue import Queue

Entry = tuple[int, int, int, "Group"]


class Group:
    """Waiting requests that share tokens [start, end) of their queries; a leaf is one request.

    `known` tokens, counted from the root, are in the cache: between `start` and `end`.
    """

    __slots__ = (
        "best", "children", "end", "entry", "heap", "key", "known", "parent", "request", "run", "serial", "start", "tips",
    )  # fmt: skip

    def __init__(
        self, parent: Group | None, key: Any, run: bytes, start: int, serial: int, request: Request | None
    ) -> None:
        self.parent = parent
        self.key = key
        """What it hangs under at its parent."""
        self.run = run
        self.start = start
        self.end = start + len(run) // WIDTH
        self.known = start
        self.serial = serial
        self.request = request
        self.best: int | None = request.seat if request else None
        """The least seat in it."""
        self.children: dict[Any, Group] = {}
        self.heap: list[tuple[int, int, Group]] = []
        """Children by their best seat; entries that no longer hold are dropped when they come up."""
        self.entry: tuple[int, int] | None = None
        """Its live entry in the index's heap: (-known, best)."""
        self.tips: set[Any] = set()
        """Cache nodes whose path ends here, as far as the queue follows it."""

    @property
    def wholly_known(self) -> bool:
        """Whether the cache knows it to its end; a leaf never counts as such: its last token must run."""
        return self.request is None and self.known == self.end

    @property
    def open(self) -> bool:
        """Whether its requests have one common match: all before it is known, and it is not wholly known."""
        return self.parent is not None and self.parent.wholly_known and not self.wholly_known

    def first(self) -> Group | None:
        """The child with the least seat."""
        heap = self.heap
        while heap and not (heap[0][2].parent is self and heap[0][2].best == heap[0][0]):
            heappop(heap)
        return heap[0][2] if heap else None

    def adopt(self, child: Group) -> None:
        """Hang a child."""
        child.parent = self
        self.children[child.key] = child


class LongestPrefix:
    """The queue in order of the longest match, kept while queue and cache change. A `Policy` and a `Watcher`."""

    fell_back: str | None = None

    def __init__(self, cache: PrefixCache, page_size: int, queue: Queue) -> None:
        self._cache = cache
        self._page = page_size * WIDTH
        self._queue = queue
        self._root = Group(None, None, b"", 0, 0, None)
        self._leaf: dict[Request, Group] = {}
        self._tips: dict[Any, tuple[Group, int]] = {}
        """For a cache node: the group in which its path leaves the queue's tree, and after how many tokens."""
        self._heap: list[Entry] = []
        self._serial = 0
        self.updates = 0
        """Keys written so far, in any heap."""
        cache.subscribe(self)

    # --- the policy ----------------------------------------------------------------------------

    def arrange(self) -> None:
        """Nothing to sort: the index is up to date."""

    def requests(self) -> Generator[Request, None, None]:
        """Longest match first, as the cache stands at each moment; ties in queue order.

        Whoever was not admitted is passed over together with those that share its next page.
        """
        aside: list[Group] = []
        try:
            while (group := self._pop()) is not None:
                aside.append(group)
                request = self._first_of(group)
                yield request
                if request not in self._queue:
                    aside.pop()
        finally:
            for group in aside:
                self._push(group)

    def head(self, count: int) -> tuple[list[Request], list[int]]:
        """The first `count` requests and their keys (minus the matched tokens)."""
        groups: list[Group] = []
        while len(groups) < count and (group := self._pop()) is not None:
            groups.append(group)
        for group in groups:
            self._push(group)
        ahead: list[tuple[int, int, int, Group, list[Any], int]] = [
            (-g.known, g.best or 0, n, g, [], 0) for n, g in enumerate(groups)
        ]
        heapify(ahead)
        found: list[Request] = []
        keys: list[int] = []
        seen: set[int] = set()
        drawn = len(ahead)
        while ahead and len(found) < count:
            key, _, _, group, rest, at = heappop(ahead)
            for later in (2 * at + 1, 2 * at + 2):  # the next two of the heap that it stood in
                if later < len(rest):
                    heappush(ahead, (key, rest[later][0], drawn := drawn + 1, rest[later][2], rest, later))
            stale = rest and not (group.parent and group.parent.heap is rest and group.best == rest[at][0])
            if stale or group.serial in seen:
                continue
            seen.add(group.serial)
            if group.request is not None:
                found.append(group.request)
                keys.append(key)
            elif (child := group.first()) is not None:
                assert child.best is not None
                heappush(ahead, (key, child.best, drawn := drawn + 1, child, group.heap, 0))
        return found, keys

    def fellows(self, request: Request) -> list[Request]:
        """The others with the same next page."""
        group = self._leaf[request]
        while not group.open and group.parent is not None:
            group = group.parent
        found: list[Request] = []
        stack = [group]
        while stack:
            at = stack.pop()
            if at.request is not None and at.request is not request:
                found.append(at.request)
            stack.extend(at.children.values())
        return found

    def _first_of(self, group: Group) -> Request:
        while group.request is None:
            child = group.first()
            assert child is not None
            group = child
        return group.request

    def _pop(self) -> Group | None:
        heap = self._heap
        while heap:
            key, seat, _, group = heappop(heap)
            if group.entry != (key, seat):
                continue
            group.entry = None
            if group.open and key == -group.known and seat == group.best:
                return group
        return None

    def _push(self, group: Group) -> None:
        """Enter a group at its present match and best seat, where it has one of its own."""
        if group.open and group.best is not None and group.entry != (-group.known, group.best):
            self.updates += 1
            group.entry = (-group.known, group.best)
            heappush(self._heap, (-group.known, group.best, group.serial, group))

    # --- the queue -----------------------------------------------------------------------------

    def joined(self, request: Request) -> None:
        """Hang a request where its query leaves what others ask for."""
        query, ns = request.packed_but_last(), request.namespace
        end = len(query) // self._page * self._page
        match = self._cache.match(query, ns)
        group, at = self._root, 0
        split = None
        while at < end:
            child = group.children.get(self._key(group, query, at, ns))
            if child is None:
                break
            shared = self._common(child.run, query, at, end)
            at += shared
            if shared == len(child.run) and child.request is None:
                group = child
                continue
            group = split = self._split(child, shared)
            break
        key = self._key(group, query, at, ns) if at < end else request
        leaf = self._new(key, query[at:end], at // WIDTH, request)
        leaf.known = max(leaf.start, min(match.known, leaf.end))
        group.adopt(leaf)
        self._leaf[request] = leaf
        for node in reversed(match.whole_path):
            if match.known <= leaf.start or node.depth + node.count <= leaf.start:
                break
            self._set_tip(node, leaf, min(match.known, node.depth + node.count))
        self._push(leaf)
        if split is not None:
            self._push(split)
        self._enter(leaf)
        self._tidy()

    def left(self, request: Request) -> None:
        """Take a request out."""
        leaf = self._leaf.pop(request)
        group = leaf.parent
        assert group is not None
        self._detach(leaf)
        self._renew(group)

    def _new(self, key: Any, run: bytes, start: int, request: Request | None) -> Group:
        self._serial += 1
        return Group(None, key, run, start, self._serial, request)

    def _key(self, group: Group, data: bytes, at: int, ns: Any) -> Any:
        """What a child of `group` that goes on with data[at:] hangs under."""
        page = data[at : at + self._page]
        return page if group is not self._root or ns is None else (ns, page)

    def _common(self, run: bytes, data: bytes, at: int, end: int) -> int:
        """Bytes that a run shares with data[at:end], in whole pages."""
        return common(run, data, at, end) // self._page * self._page

    def _split(self, group: Group, at: int) -> Group:
        """Give the first `at` bytes of a group's run a group of their own; `group` keeps the tail."""
        parent = group.parent
        assert parent is not None
        front = self._new(group.key, group.run[:at], group.start, None)
        parent.adopt(front)
        group.run = group.run[at:]
        group.start = front.end
        group.key = group.run[: self._page] or group.request
        front.adopt(group)
        front.known = min(group.known, front.end)
        group.known = max(group.known, front.end)
        for node in [n for n in group.tips if self._tips[n][1] <= front.end]:
            self._set_tip(node, front, self._tips[node][1])
        front.best = group.best
        assert group.best is not None
        heappush(front.heap, (group.best, group.serial, group))
        if parent is not self._root:
            heappush(parent.heap, (group.best, front.serial, front))
        self.updates += 2
        return front

    def _enter(self, child: Group) -> None:
        """A child is new, or its best seat is: let those above know, as far as it matters to them."""
        group = child.parent
        while group is not None and group is not self._root:
            assert child.best is not None
            heappush(group.heap, (child.best, child.serial, child))
            self.updates += 1
            if group.best is not None and group.best <= child.best:
                return
            group.best = child.best
            self._push(group)
            child, group = group, group.parent

    def _renew(self, group: Group) -> None:
        """Someone below has left: find the best seat anew, upwards as long as it changes."""
        while group is not self._root:
            parent = group.parent
            assert parent is not None
            first = group.first()
            if first is None:
                self._detach(group)
                group = parent
                continue
            if first.best == group.best:
                return
            group.best = first.best
            self._push(group)
            if parent is not self._root:
                assert group.best is not None
                heappush(parent.heap, (group.best, group.serial, group))
                self.updates += 1
            if len(group.heap) > 2 * len(group.children) + 16:
                group.heap = [(c.best, c.serial, c) for c in group.children.values() if c.best is not None]
                heapify(group.heap)
            group = parent

    def _detach(self, group: Group) -> None:
        """Nobody is left in a group: it goes, and what the cache knew of it ends at its parent."""
        parent = group.parent
        assert parent is not None
        del parent.children[group.key]
        for node in list(group.tips):
            self._set_tip(node, parent, parent.end)
        group.parent = None

    def _tidy(self) -> None:
        """Drop entries that no longer hold once they outnumber those that may."""
        if len(self._heap) > 4 * len(self._leaf) + 1024:
            self._heap = [entry for entry in self._heap if entry[3].entry == entry[:2] and entry[3].open]
            heapify(self._heap)

    # --- the cache -----------------------------------------------------------------------------

    def grown(self, node: Any) -> None:
        """A cache node is new or longer: what it adds is known to those whose queries go on that way."""
        group, at = self._tips.get(node) or self._end_of(node.parent)
        if group is None:
            return
        run, offset = node.run, (at - node.depth) * WIDTH
        while offset < len(run):
            if at == group.end:
                if group.request is not None:
                    break
                child = group.children.get(self._key(group, run, offset, node.ns))
                if child is None:
                    break
                group = child
            rest = group.run[(at - group.start) * WIDTH :]
            shared = self._common(rest, run, offset, len(run))
            if not shared:
                break
            at += shared // WIDTH
            offset += shared
            self._learn(group, at)
            if at < group.end:
                break
        if at > node.depth:
            self._set_tip(node, group, at)

    def split(self, node: Any, front: Any) -> None:
        """A cache node gave its front away: what ended in the front now belongs to that."""
        tip = self._tips.get(node)
        if tip is None:
            return
        group, at = tip
        end = front.depth + front.count
        if at <= end:
            self._drop_tip(node)
            self._set_tip(front, group, at)
            return
        while group.start >= end and group.parent is not None:
            group = group.parent
        self._set_tip(front, group, end)

    def removed(self, node: Any) -> None:
        """A cache node lost its end, or went whole: so do those below it, where a cache leaves any."""
        end = node.depth if node.removed else node.depth + node.count
        stack = [node]
        while stack:
            at = stack.pop()
            self._forget(at, end)
            stack.extend(at.children.values())

    def _end_of(self, node: Any) -> tuple[Group | None, int]:
        """The group and token count at a cache node's end; no group where no query reaches it."""
        if node.parent is None:
            return self._root, 0
        group, at = self._tips.get(node, (None, 0))
        return (group, at) if at == node.depth + node.count else (None, 0)

    def _learn(self, group: Group, known: int) -> None:
        """The cache knows `known` tokens along a group's path."""
        if known <= group.known:
            return
        group.known = known
        if group.wholly_known:
            for child in group.children.values():
                self._push(child)
        else:
            self._push(group)

    def _forget(self, node: Any, end: int) -> None:
        """Along a cache node's path, only `end` tokens are known from now on."""
        tip = self._tips.get(node)
        if tip is None or tip[1] <= end:
            return
        group: Group = tip[0]
        self._drop_tip(node)
        highest = None
        while group.parent is not None and group.known > end:
            highest = group
            group.known = max(group.start, end)
            if group.start < end:
                break
            group = group.parent
        if highest is not None:
            self._push(highest)
        if end > node.depth:
            self._set_tip(node, group, end)

    def _set_tip(self, node: Any, group: Group, at: int) -> None:
        self._drop_tip(node)
        if at > node.depth and group.parent is not None:
            self._tips[node] = (group, at)
            group.tips.add(node)

    def _drop_tip(self, node: Any) -> None:
        tip = self._tips.pop(node, None)
        if tip is not None:
            tip[0].tips.discard(node)
