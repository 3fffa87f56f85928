"""Blocks against a brute-force reference: every stored prefix in a table, and the free queue as a plain list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from engine.cache.blocks import Hash, chained
from tests.engine.grove import Asker, Grove
from tests.engine.test_radix_reference import STEPS, Key


@dataclass(eq=False)
class Row:
    """One stored page: the prefix that it ends, and how many hold it."""

    key: Key
    page: int
    holds: int = 0


class Shelf:
    """No hashes, no chains: prefixes as tuples, and a list whose first goes first."""

    def __init__(self, size: int, order: str) -> None:
        self.size, self.order = size, order
        self.known: dict[Key, Row] = {}
        self.queue: list[Row] = []

    def chain(self, ns: Any, tokens: Sequence[int]) -> list[Row]:
        """The known prefixes of a sequence, shortest first."""
        found: list[Row] = []
        for stop in range(self.size, len(tokens) + 1, self.size):
            row = self.known.get((ns, tuple(tokens[:stop])))
            if row is None:
                break
            found.append(row)
        return found

    def rejoin(self, rows: list[Row]) -> None:
        """What nobody holds goes to the end of the queue."""
        loose = [row for row in rows if not row.holds]
        self.queue = [row for row in self.queue if row not in loose]
        self.queue += reversed(loose) if self.order == "tail-first" else loose

    def insert(self, ns: Any, tokens: Sequence[int], pages: Sequence[int]) -> list[int]:
        """Store; returns the pages that were not needed."""
        rows = self.chain(ns, tokens)
        spare = list(pages[: len(rows)])
        for i in range(len(rows), len(pages)):
            key = (ns, tuple(tokens[: (i + 1) * self.size]))
            rows.append(Row(key, pages[i]))
            self.known[key] = rows[-1]
        self.rejoin(rows)
        return spare

    def hold(self, rows: list[Row]) -> list[Row]:
        """Take a chain out of the queue."""
        for row in rows:
            row.holds += 1
        self.queue = [row for row in self.queue if not row.holds]
        return rows

    def release(self, rows: list[Row]) -> None:
        """Let a chain go."""
        for row in rows:
            row.holds -= 1
        self.rejoin(rows)

    def evict(self, count: int) -> list[int]:
        """The first of the queue go, and with a prefix all that went on from it can no longer be found."""
        gone, self.queue = self.queue[:count], self.queue[count:]
        for row in gone:
            if self.known.get(row.key) is row:
                ns, prefix = row.key
                self.known = {k: r for k, r in self.known.items() if k[0] != ns or k[1][: len(prefix)] != prefix}
        return [row.page for row in gone]


def replay(page_size: int, order: str, hasher: Hash, steps: list[tuple[str, Any, Any]]) -> None:
    grove, shelf = Grove(page_size, "blocks", order=order, hasher=hasher), Shelf(page_size, order)
    nodes: list[Any] = []
    held: list[list[Row]] = []
    for what, arg, ns in steps:
        if what == "insert":
            first = grove.next_page
            stored = grove.insert(arg, ns)
            assert stored.duplicates == shelf.insert(ns, arg, range(first, grove.next_page))
        elif what == "hold" and shelf.chain(ns, arg):
            nodes.append(grove.hold(arg, Asker(), ns))
            held.append(shelf.hold(shelf.chain(ns, arg)))
        elif what == "release" and nodes:
            grove.cache.release(nodes.pop(arg % len(nodes)), Asker())
            shelf.release(held.pop(arg % len(held)))
        elif what == "evict":
            assert grove.evicted(arg) == shelf.evict(arg)
        elif what == "match":
            found, known = grove.match(arg, ns), shelf.chain(ns, arg)
            assert (found.length, found.pages) == (len(known) * page_size, [row.page for row in known])
        agree(grove, shelf, held)


def agree(grove: Grove, shelf: Shelf, held: list[list[Row]]) -> None:
    cache = grove.cache
    assert [block.pages[0] for block in cache._free.values()] == [row.page for row in shelf.queue]
    locked = {row for rows in held for row in rows}
    assert (cache.evictable, cache.held) == (len(shelf.queue), len(shelf.queue) + len(locked))
    assert {n.pages[0]: n.locks for n in cache.walk()} == {row.page: row.holds for row in [*shelf.queue, *locked]}
    assert {n.pages[0] for n in cache.walk() if n.removed} == {
        r.page for r in shelf.queue if shelf.known.get(r.key) is not r
    }
    for (ns, prefix), row in shelf.known.items():
        assert grove.match(prefix, ns).pages[-1:] == [row.page]


def narrow(above: Any, page: bytes) -> int:
    """Hashes of one bit: nearly every find is a collision."""
    return sum(page) % 2


@pytest.mark.parametrize("hasher", [chained, narrow])
@pytest.mark.parametrize("order", ["tail-first", "head-first"])
@pytest.mark.parametrize("page_size", [1, 2, 4])
def test_blocks_are_what_a_list_of_prefixes_is(page_size: int, order: str, hasher: Hash) -> None:
    @settings(max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(STEPS)
    def run(steps: list[tuple[str, Any, Any]]) -> None:
        replay(page_size, order, hasher, steps)

    run()
