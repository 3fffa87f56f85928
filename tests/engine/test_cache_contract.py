"""Contract 4: what a radix tree, blocks and a cache that is off do alike, as the scheduler sees it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import events as ev
from engine.cache.base import CacheError, pack
from tests.engine.grove import Asker, Grove

EIGHT = [1, 2, 3, 4, 5, 6, 7, 8]
KEEPING = [("radix", 1), ("radix", 2), ("radix", 4), ("blocks", 1), ("blocks", 2), ("blocks", 4), ("unused tier", 1), ("unused tier", 4)]
ALL = [*KEEPING, ("off", 1), ("off", 4)]

keeping = pytest.mark.parametrize(("kind", "size"), KEEPING)
every = pytest.mark.parametrize(("kind", "size"), ALL)


@every
def test_what_was_stored_is_found_in_its_own_pages_in_whole_pages(kind: str, size: int) -> None:
    grove = Grove(size, kind)
    stored = grove.insert([*EIGHT, 9, 10])
    whole = 10 // size * size if kind != "off" else 0
    assert (stored.already_there, stored.duplicates, stored.length) == (0, [], whole)
    found = grove.match([*EIGHT, 9, 10])
    assert (found.length, found.pages) == (whole, list(range(whole // size)))
    assert grove.match([1, 2, 3, 4, 99]).length == min(whole, 4)
    assert grove.cache.held == grove.cache.evictable == whole // size


@every
def test_a_look_up_changes_nothing(kind: str, size: int) -> None:
    grove = Grove(size, kind)
    grove.insert(EIGHT)
    before, told = grove.shape(), len(grove.trace.events + grove.trace._open)
    for asked in (EIGHT, [1, 2, 3, 4, 9, 9, 9, 9], [7], [], [1, 2, 9]):
        assert grove.match(asked).stop is not None
        grove.cache.to_lock(grove.match(asked))
    assert (grove.shape(), len(grove.trace.events + grove.trace._open)) == (before, told)


@every
def test_namespaces_share_nothing_and_their_parts_are_not_joined(kind: str, size: int) -> None:
    grove = Grove(size, kind)
    spaces = [None, ("key", None, None), (None, "key", None), (None, None, "key"), ("a", "bc", None)]
    for ns in spaces:
        assert grove.insert(EIGHT, ns).already_there == 0
    pages = [grove.match(EIGHT, ns).pages for ns in spaces]
    n = 8 // size if kind != "off" else 0
    assert pages == [list(range(k * n, (k + 1) * n)) for k in range(5)]
    assert grove.length(EIGHT, ("ab", "c", None)) == grove.length(EIGHT, ("other", None, None)) == 0


@every
def test_holding_takes_pages_from_eviction_and_releasing_gives_them_back(kind: str, size: int) -> None:
    grove = Grove(size, kind)
    grove.insert(EIGHT)
    pages = grove.cache.held
    assert grove.cache.to_lock(grove.match(EIGHT)) == pages
    one, two = grove.hold(EIGHT, Asker("R1")), grove.hold(EIGHT, Asker("R2"))
    assert grove.cache.evictable == 0 == grove.cache.to_lock(grove.match(EIGHT))
    assert grove.evicted(99) == []
    grove.cache.release(one, Asker("R1"))
    assert grove.cache.evictable == 0
    grove.cache.release(two, Asker("R2"))
    assert grove.cache.evictable == pages
    assert len(grove.evicted(99)) == pages and grove.cache.held == 0


@keeping
def test_a_lock_too_few_is_refused_and_spoils_no_count(kind: str, size: int) -> None:
    grove = Grove(size, kind)
    grove.insert(EIGHT)
    node = grove.hold(EIGHT)
    grove.cache.release(node, Asker())
    with pytest.raises(CacheError, match="holds no lock"):
        grove.cache.release(node, Asker())
    assert [n.locks for n in grove.cache.walk()] == [0] * len(list(grove.cache.walk()))
    assert grove.cache.evictable == 8 // size


@keeping
def test_holding_a_front_locks_that_front_only(kind: str, size: int) -> None:
    grove = Grove(size, kind)
    grove.insert(EIGHT)
    assert grove.cache.to_lock(grove.match([1, 2, 3, 4, 9])) == 4 // size
    grove.hold([1, 2, 3, 4, 9])
    assert grove.cache.evictable == 4 // size
    assert sorted(grove.evicted(99)) == list(range(4 // size, 8 // size))
    assert grove.length(EIGHT) == 4


@keeping
def test_tokens_that_are_there_come_back_as_duplicates(kind: str, size: int) -> None:
    grove = Grove(size, kind)
    grove.insert(EIGHT)
    n = 8 // size
    again = grove.insert([*EIGHT, 9, 9, 9, 9])
    assert (again.already_there, again.duplicates, again.length) == (8, list(range(n, 2 * n)), 12)
    assert grove.match([*EIGHT, 9, 9, 9, 9]).pages == [*range(n), *range(2 * n, 2 * n + 4 // size)]
    held = grove.match(EIGHT).pages
    assert (
        grove.cache.insert(pack([*EIGHT, 8, 8, 8, 8]), [*held, *range(90, 90 + 4 // size)], None, Asker()).duplicates
        == []
    )


@keeping
def test_a_hit_is_counted_on_the_path_at_first_admission_only(kind: str, size: int) -> None:
    grove = Grove(size, kind)
    grove.insert(EIGHT)
    grove.insert(EIGHT)
    assert {n.hits for n in grove.cache.walk()} == {0}
    grove.hold([1, 2, 3, 4, 9], Asker(cached=None))
    grove.hold([1, 2, 3, 4, 9], Asker(cached=4))
    assert sorted((n.depth, n.hits) for n in grove.cache.walk() if n.depth in (0, 4)) == [(0, 1), (4, 0)]


@keeping
def test_one_tick_dates_a_whole_path_and_no_parent_is_older_than_its_child(kind: str, size: int) -> None:
    grove = Grove(size, kind)
    grove.insert(EIGHT)
    grove.insert([1, 2, 3, 4, 9, 9, 9, 9])
    grove.hold(EIGHT)
    grove.match(EIGHT)
    assert grove.cache.tick == 3
    dates = {n.last_used for n in grove.match(EIGHT).path}
    assert dates == {3} and {n.last_used for n in grove.match([1, 2, 3, 4, 9, 9, 9, 9]).path} == {2, 3}
    assert all(n.parent.id == ev.ROOT or n.parent.last_used >= n.last_used for n in grove.cache.walk())


@keeping
def test_storing_raises_the_priority_of_its_path(kind: str, size: int) -> None:
    grove = Grove(size, kind)
    grove.insert(EIGHT, by=Asker(priority=1))
    grove.insert([1, 2, 3, 4, 9, 9, 9, 9], by=Asker(priority=5))
    grove.insert(EIGHT, by=Asker(priority=0))
    assert {n.priority for n in grove.match([1, 2, 3, 4, 9, 9, 9, 9]).path} == {5}
    assert grove.match(EIGHT).node.priority == 1


@keeping
def test_asked_for_so_many_pages_it_frees_so_many_the_end_of_the_oldest_first(kind: str, size: int) -> None:
    grove = Grove(size, kind)
    grove.insert(EIGHT)
    grove.insert([11, 12, 13, 14])
    assert [grove.evicted(1)[0] for _ in range(8 // size)] == list(reversed(range(8 // size)))
    assert grove.length(EIGHT) == 0 and grove.length([11, 12, 13, 14]) == 4
    assert len(grove.evicted(99)) == 4 // size and grove.evicted(1) == [] and list(grove.cache.walk()) == []


@keeping
def test_an_evicted_page_is_not_found_under_its_old_tokens(kind: str, size: int) -> None:
    grove = Grove(size, kind)
    grove.insert([1, 2, 3, 4])
    assert len(grove.evicted(99)) == 4 // size
    grove.next_page = 0
    grove.insert([5, 6, 7, 8])
    assert grove.length([1, 2, 3, 4]) == 0 and grove.match([5, 6, 7, 8]).pages == list(range(4 // size))


@every
def test_a_look_up_says_where_it_stopped(kind: str, size: int) -> None:
    grove = Grove(size, kind)
    asked = [EIGHT, [*EIGHT, 9, 9, 9, 9], [7, 7, 7, 7], [1, 2, 3, 4, 9, 9, 9, 9]]
    assert {grove.match(a).stop.kind for a in asked} == {"off" if kind == "off" else "no child"}
    grove.insert(EIGHT)
    found = [grove.match(a).stop for a in asked]
    if kind == "off":
        assert [(s.kind, s.raw_length) for s in found] == [("off", 0)] * 4
        return
    assert [s.raw_length for s in found] == [8, 8, 0, 4]
    assert [s.kind for s in found[:3]] == ["last token", "end", "no child"]
    assert found[3].kind == ("no child" if kind == "blocks" else "parted")
    assert [(s.stored, s.wanted) for s in found] == [(None, None), (None, None), (1, 7), (5, 9)]


@pytest.mark.parametrize("kind", ["radix", "blocks"])
@pytest.mark.parametrize(("asked", "raw", "stop"), [
    ([1, 2, 9, 9, 9], 2, ("page", 3, 9)), ([1, 2, 3, 4, 5, 6, 9, 9], 6, ("page", 7, 9)),
    ([1, 2, 3, 4, 5, 6], 6, ("last token", None, None)), ([1, 2], 2, ("last token", None, None)),
])  # fmt: skip
def test_inside_a_page_it_says_at_which_token_it_parted(
    kind: str, asked: list[int], raw: int, stop: tuple[Any, ...]
) -> None:
    grove = Grove(4, kind)
    grove.insert([1, 8, 8, 8])
    grove.insert(EIGHT)
    found = grove.match(asked).stop
    assert (found.raw_length, (found.kind, found.stored, found.wanted)) == (raw, stop)
    where = next(n for n in grove.cache.walk() if n.id == found.at_node)
    assert found.offset is not None and where.depth + found.offset == raw


@keeping
def test_listeners_hear_of_all_that_can_be_found_and_of_all_that_no_longer_can(kind: str, size: int) -> None:
    known: dict[int, Any] = {}

    class Ear:
        def split(self, node: Any, front: Any) -> None:
            known[front.id] = front

        def grown(self, node: Any) -> None:
            known[node.id] = node

        def removed(self, node: Any) -> None:
            if node not in grove.cache.walk():  # a tree's leaf may only be shorter
                del known[node.id]

    grove = Grove(size, kind)
    grove.cache.subscribe(Ear())
    grove.insert(EIGHT)
    grove.insert([1, 2, 3, 4, 9, 9, 9, 9])
    assert sorted(known) == sorted(n.id for n in grove.cache.walk())
    grove.evicted(8 // size)
    assert sorted(known) == sorted(n.id for n in grove.cache.walk())
    grove.evicted(99)
    assert known == {}


TOKENS = st.lists(st.integers(1, 3), max_size=14)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_while_nothing_is_evicted_a_tree_and_blocks_find_the_same(size: int) -> None:
    @settings(max_examples=100, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(TOKENS, max_size=12), st.lists(TOKENS, max_size=12))
    def run(stored: list[list[int]], asked: list[list[int]]) -> None:
        tree, blocks = Grove(size, "radix"), Grove(size, "blocks")
        for tokens in stored:
            a, b = tree.insert(tokens), blocks.insert(tokens)
            assert (a.already_there, a.duplicates, a.length) == (b.already_there, b.duplicates, b.length)
        for tokens in [*stored, *asked]:
            a, b = tree.match(tokens), blocks.match(tokens)
            assert (a.length, a.pages, a.stop.raw_length) == (b.length, b.pages, b.stop.raw_length)
        assert tree.cache.held == blocks.cache.held

    run()
