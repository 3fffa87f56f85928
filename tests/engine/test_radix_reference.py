"""The radix tree against a brute-force reference: a table of whole-page prefixes, walked without any tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.cache.base import pack
from tests.engine.grove import Asker, Grove

Key = tuple[Any, tuple[int, ...]]


class Table:
    """(namespace, prefix) -> its last page; no sharing, no nodes, nothing clever."""

    def __init__(self, size: int) -> None:
        self.size, self.pages, self.dates, self.holds = size, dict[Key, int](), dict[Key, int](), list[list[Key]]()

    def prefixes(self, ns: Any, tokens: Sequence[int]) -> list[Key]:
        """The known whole-page prefixes of a sequence, shortest first."""
        keys = [(ns, tuple(tokens[:n])) for n in range(self.size, len(tokens) + 1, self.size)]
        return [k for i, k in enumerate(keys) if all(before in self.pages for before in keys[: i + 1])]

    def insert(self, ns: Any, tokens: Sequence[int], pages: Sequence[int], tick: int) -> list[int]:
        """Store; returns the pages that were not needed."""
        spare = []
        for i, page in enumerate(pages):
            key = (ns, tuple(tokens[: (i + 1) * self.size]))
            if key in self.pages:
                spare.append(page)
            else:
                self.pages[key] = page
            self.dates[key] = tick
        return spare

    def loose_ends(self) -> list[Key]:
        """Prefixes that may go: nothing continues them, nobody holds them."""
        held = {k for hold in self.holds for k in hold}
        parents = {(ns, p[: -self.size]) for ns, p in self.pages}
        return [k for k in self.pages if k not in parents and k not in held]


TOKENS = st.lists(st.integers(1, 3), min_size=0, max_size=14)
SPACES = st.sampled_from([None, None, ("s", None, None)])
STEPS = st.lists(
    st.tuples(st.just("insert"), TOKENS, SPACES)
    | st.tuples(st.just("match"), TOKENS, SPACES)
    | st.tuples(st.just("hold"), TOKENS, SPACES)
    | st.tuples(st.just("release"), st.integers(0, 9), st.none())
    | st.tuples(st.just("evict"), st.integers(1, 6), st.none()),
    max_size=40,
)


def replay(page_size: int, steps: list[tuple[str, Any, Any]]) -> None:
    grove, table = Grove(page_size), Table(page_size)
    nodes: list[Any] = []
    for what, arg, ns in steps:
        if what == "insert":
            first = grove.next_page
            stored = grove.insert(arg, ns)
            spare = table.insert(ns, arg, range(first, grove.next_page), grove.cache.tick)
            assert (stored.duplicates, stored.already_there) == (spare, len(spare) * page_size)
        elif what == "hold" and table.prefixes(ns, arg):
            nodes.append(grove.hold(arg, Asker(), ns))
            table.holds.append(table.prefixes(ns, arg))
            table.dates.update(dict.fromkeys(table.holds[-1], grove.cache.tick))
        elif what == "release" and nodes:
            grove.cache.release(nodes.pop(arg % len(nodes)), Asker())
            table.holds.pop(arg % len(table.holds))
        elif what == "evict":
            evict(grove, table, arg)
        elif what == "match":
            known = table.prefixes(ns, arg)
            found = grove.match(arg, ns)
            assert (found.length, found.pages) == (len(known) * page_size, [table.pages[k] for k in known])
        agree(grove, table)


def evict(grove: Grove, table: Table, asked: int) -> None:
    """Exactly what was asked and could go, each the least recently used loose end of its moment."""
    held = {k for hold in table.holds for k in hold}
    could = sum(k not in held for k in table.pages)
    gone = grove.cache.evict(asked)
    assert sum(len(e.pages) for e in gone) == min(asked, could)
    for taken in gone:
        for page in reversed(taken.pages):
            key = next(k for k, p in table.pages.items() if p == page)
            ends = table.loose_ends()
            assert key in ends and table.dates[key] == min(table.dates[k] for k in ends)
            del table.pages[key]


def agree(grove: Grove, table: Table) -> None:
    held = {k for hold in table.holds for k in hold}
    assert grove.cache.held == len(table.pages)
    assert grove.cache.evictable == len(table.pages) - len(held)
    in_tree = sorted(p for n in grove.cache.walk() for p in n.pages)
    assert in_tree == sorted(table.pages.values())
    for key, page in table.pages.items():
        found = grove.match(key[1], key[0])
        assert found.length == len(key[1]) and found.pages[-1] == page
        locks = sum(key in hold for hold in table.holds)
        assert found.node.locks == locks and found.node.last_used == table.dates[key]


@pytest.mark.parametrize("page_size", [1, 2, 4])
def test_the_tree_is_what_a_table_of_prefixes_is(page_size: int) -> None:
    @settings(max_examples=120, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(STEPS)
    def run(steps: list[tuple[str, Any, Any]]) -> None:
        replay(page_size, steps)

    run()


def test_the_table_itself_finds_a_wrong_tree() -> None:
    grove, table = Grove(), Table(1)
    grove.insert([1, 2])
    table.insert(None, [1, 2], [0, 1], 1)
    agree(grove, table)
    grove.cache.insert(pack([3]), [9], None, Asker())
    with pytest.raises(AssertionError):
        agree(grove, table)
