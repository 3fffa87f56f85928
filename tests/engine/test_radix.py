"""The radix tree against hand-worked cases: store, look up, split, hold, and say where a walk stopped."""

from __future__ import annotations

import random

import pytest

from engine.cache.base import CacheError, pack, unpack
from engine.cache.off import NoCache
from engine.cache.radix import common
from tests.engine.grove import Asker, Grove

EIGHT = [1, 2, 3, 4, 5, 6, 7, 8]


# --- store and look up -------------------------------------------------------------------------


def test_what_was_stored_is_found_in_the_pages_it_was_stored_in() -> None:
    grove = Grove()
    assert grove.insert([1, 2, 3]).already_there == 0
    assert (grove.tokens(), grove.cache.evictable) == (3, 3)
    assert (grove.match([1, 2, 3]).length, grove.match([1, 2, 3]).pages) == (3, [0, 1, 2])
    assert (grove.match([1, 2]).length, grove.match([1, 2]).pages) == (2, [0, 1])


def test_a_cache_that_is_off_keeps_and_finds_nothing() -> None:
    off = NoCache()
    kept = off.insert(pack([1, 2, 3]), [0, 1, 2], None, Asker())
    assert (kept.already_there, kept.duplicates, kept.length, off.held, off.evictable) == (0, [], 0, 0, 0)
    found = off.match(pack([1, 2, 3]))
    assert (found.length, found.pages, found.stop.kind) == (0, [], "off")
    assert off.evict(3) == [] and list(off.walk()) == []


def test_the_tree_counts_the_tokens_it_holds() -> None:
    grove = Grove()
    grove.insert([1, 2, 3])
    assert grove.tokens() == 3
    grove.insert([4, 5])
    assert grove.tokens() == 5


@pytest.mark.parametrize("page_size", [1, 2])
def test_sequences_that_part_share_their_front(page_size: int) -> None:
    grove = Grove(page_size)
    grove.insert(EIGHT)
    assert grove.insert([1, 2, 9, 10]).already_there == 2
    assert grove.tokens() == 10
    assert grove.length([1, 2, 3, 4, 999, 1000]) == 4
    assert grove.tokens() == 10
    whole = grove.match(EIGHT)
    assert (whole.length, whole.pages) == (8, list(range(8 // page_size)))
    assert grove.length([1, 2, 3, 4, 5, 6, 777, 888]) == 6
    assert grove.length([1, 2, 9, 10]) == 4


@pytest.mark.parametrize(("a", "b", "shared"), [
    ([1, 2, 3, 4], [1, 2, 9, 9], 2), ([9, 2, 3], [1, 2, 3], 0), ([1, 2, 3, 4], [1, 2, 3], 3), ([1, 2], [], 0), ([], [1], 0),
])  # fmt: skip
def test_two_runs_share_as_many_tokens_as_they_begin_with(a: list[int], b: list[int], shared: int) -> None:
    assert common(pack(a), pack(b), 0, len(pack(b))) == 4 * shared


def test_ids_that_share_bytes_are_not_the_same_ids() -> None:
    assert common(pack([0x01020304, 5]), pack([0x01020305, 5]), 0, 8) == 0
    assert unpack(pack([0, 1, 255, 256, 65535, 2**31 - 1])) == [0, 1, 255, 256, 65535, 2**31 - 1]


@pytest.mark.parametrize(("differs_at", "found"), [(6, 4), (4, 4), (1, 0), (None, 8)])
def test_a_match_is_whole_pages(differs_at: int | None, found: int) -> None:
    grove = Grove(4)
    grove.insert(EIGHT)
    asked = [99 if i == differs_at else t for i, t in enumerate(EIGHT)]
    assert grove.length(asked) == found


def test_less_than_a_page_is_neither_stored_nor_found() -> None:
    grove = Grove(4)
    grove.insert([1, 2, 3])
    assert grove.tokens() == 0 and grove.length([1, 2, 3]) == 0
    grove.insert([1, 2, 3, 4, 5, 6])
    assert grove.tokens() == 4 and grove.length([1, 2, 3, 4, 5, 6]) == 4


@pytest.mark.parametrize(("page_size", "tokens", "found"), [(2, 5, 4), (4, 6, 4), (16, 40, 32)])
def test_what_is_stored_is_cut_to_whole_pages(page_size: int, tokens: int, found: int) -> None:
    grove = Grove(page_size)
    grove.insert(list(range(tokens)))
    assert grove.length(list(range(tokens))) == found


@pytest.mark.parametrize("page_size", [1, 4, 64])
@pytest.mark.parametrize("at", [1, 2, 63, 64, 65, 127, 128, 511, 512, 513, 1234, 1999])
def test_a_long_run_parts_exactly_where_it_parts(page_size: int, at: int) -> None:
    tokens = random.Random(at).sample(range(50_000), 2000)
    grove = Grove(page_size)
    grove.insert(tokens)
    other = [*tokens[:at], 60_000, *tokens[at + 1 :]]
    assert grove.length(other) == at // page_size * page_size
    assert grove.length(tokens) == 2000 // page_size * page_size


# --- namespaces --------------------------------------------------------------------------------


def test_the_same_ids_in_other_namespaces_are_other_entries() -> None:
    grove = Grove()
    spaces = [("key1", None, None), ("key2", None, None), None, (None, "key1", None), (None, None, "key1")]
    for ns in spaces:
        assert grove.insert([1, 2, 3], ns).already_there == 0
    assert grove.tokens() == 15
    assert [grove.match([1, 2, 3], ns).pages for ns in spaces] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11], [12, 13, 14]]
    assert grove.length([1, 2, 3], ("unknown", None, None)) == 0


def test_parts_of_a_namespace_are_not_joined() -> None:
    grove = Grove()
    grove.insert([1], ("a", "bc", None))
    assert grove.length([1], ("ab", "c", None)) == 0


# --- split -------------------------------------------------------------------------------------


def test_a_split_gives_the_front_its_pages_and_leaves_the_tail_its_identity() -> None:
    grove = Grove(2)
    grove.insert([1, 2, 3, 4])
    tail = grove.match([1, 2, 3, 4]).node
    grove.insert([1, 2, 5, 6])
    front = grove.match([1, 2]).node
    assert (front.pages, front.depth, front.tokens()) == ([0], 0, [1, 2])
    assert (tail.pages, tail.depth, tail.tokens()) == ([1], 2, [3, 4])
    assert tail.parent is front and front.pages + tail.pages == [0, 1]


def test_a_split_dates_the_front_like_its_tail_and_copies_locks_and_hits() -> None:
    grove = Grove()
    grove.insert(EIGHT)
    grove.hold(EIGHT, Asker("R1"))
    tail = grove.match(EIGHT).node
    tail_date = tail.last_used
    grove.cache._split(tail, 4)
    front = tail.parent
    assert (front.last_used, front.hits, front.locks) == (tail_date, 1, 1) == (tail.last_used, tail.hits, tail.locks)


def test_a_lock_taken_before_a_split_is_released_after_it() -> None:
    grove = Grove()
    grove.insert(EIGHT)
    node = grove.hold(EIGHT)
    grove.insert([1, 2, 3, 9])
    assert [n.locks for n in (grove.match([1, 2, 3]).node, node)] == [1, 1]
    assert grove.match([1, 2, 3, 9]).node.locks == 0
    grove.cache.release(node, Asker())
    assert all(n.locks == 0 for n in grove.cache.walk())
    assert grove.cache.evictable == grove.cache.held == 9


# --- hold and release --------------------------------------------------------------------------


def test_looking_up_changes_nothing() -> None:
    grove = Grove(2)
    grove.insert(EIGHT)
    grove.insert([1, 2, 3, 4, 9, 9])
    before, tick = grove.shape(), grove.cache.tick
    for asked in ([1, 2, 3, 9], EIGHT, [7], [], [1, 2, 3, 4, 9]):
        assert grove.match(asked).stop is not None
        grove.cache.to_lock(grove.match(asked))
    assert grove.shape() == before and grove.cache.tick == tick


def test_holding_moves_tokens_from_evictable_to_locked_and_back() -> None:
    grove = Grove()
    grove.insert([1, 2, 3])
    assert grove.cache.to_lock(grove.match([1, 2, 3])) == 3
    node = grove.hold([1, 2, 3])
    assert grove.cache.evictable == 0 and grove.cache.to_lock(grove.match([1, 2, 3])) == 0
    grove.cache.release(node, Asker())
    assert grove.cache.evictable == 3


def test_holding_part_of_a_node_locks_that_part_only() -> None:
    grove = Grove(2)
    grove.insert(EIGHT)
    assert grove.cache.to_lock(grove.match([1, 2, 3, 4, 9])) == 2
    grove.hold([1, 2, 3, 4, 9])
    assert grove.cache.evictable == 2


def test_a_second_release_is_refused_and_spoils_no_count() -> None:
    grove = Grove()
    grove.insert([1, 2, 3])
    node = grove.hold([1, 2, 3])
    grove.cache.release(node, Asker())
    with pytest.raises(CacheError, match="holds no lock"):
        grove.cache.release(node, Asker())
    assert node.locks == 0 and grove.cache.evictable == 3


def test_a_hit_is_counted_on_the_whole_path_at_first_admission_only() -> None:
    grove = Grove()
    grove.insert([1, 2, 3, 4])
    grove.insert([1, 2, 9])
    grove.hold([1, 2, 3, 4], Asker(cached=None))
    assert [grove.match(k).node.hits for k in ([1, 2], [1, 2, 3, 4], [1, 2, 9])] == [1, 1, 0]
    grove.hold([1, 2, 3, 4], Asker(cached=2))
    assert grove.match([1, 2]).node.hits == 1


def test_storing_counts_no_hit() -> None:
    grove = Grove()
    for _ in range(3):
        grove.insert([1, 2, 3])
    assert grove.match([1, 2, 3]).node.hits == 0


def test_one_tick_dates_the_whole_path_and_a_parent_is_never_older_than_its_child() -> None:
    grove = Grove()
    grove.insert([1, 2, 3, 4])
    grove.insert([1, 2, 9])
    assert grove.cache.tick == 2
    grove.hold([1, 2, 3, 4])
    nodes = [grove.match(k).node for k in ([1, 2], [1, 2, 3, 4], [1, 2, 9])]
    assert [n.last_used for n in nodes] == [3, 3, 2]
    assert all(n.parent.id == 0 or n.parent.last_used >= n.last_used for n in grove.cache.walk())


def test_storing_raises_the_priority_of_its_path() -> None:
    grove = Grove()
    grove.insert([1, 2, 3], by=Asker(priority=1))
    grove.insert([1, 2, 9], by=Asker(priority=5))
    grove.insert([1, 2, 3], by=Asker(priority=0))
    assert [grove.match(k).node.priority for k in ([1, 2], [1, 2, 3], [1, 2, 9])] == [5, 1, 5]


# --- duplicates --------------------------------------------------------------------------------


@pytest.mark.parametrize("page_size", [1, 2, 4])
def test_pages_for_tokens_that_are_there_already_come_back_as_duplicates(page_size: int) -> None:
    grove = Grove(page_size)
    grove.insert(EIGHT)
    held = grove.cache.held
    again = grove.insert([*EIGHT, 9, 9, 9, 9])
    n = 8 // page_size
    assert again.already_there == 8
    assert again.duplicates == list(range(n, 2 * n))
    assert grove.match([*EIGHT, 9, 9, 9, 9]).pages == [*range(n), *range(2 * n, 2 * n + 4 // page_size)]
    assert grove.cache.held == held + 4 // page_size


def test_pages_that_are_the_trees_own_are_no_duplicates() -> None:
    grove = Grove()
    grove.insert([1, 2, 3])
    assert grove.cache.insert(pack([1, 2, 3, 4]), [0, 1, 2, 77], None, Asker()).duplicates == []


# --- where a walk stopped ----------------------------------------------------------------------


@pytest.mark.parametrize(("page_size", "asked", "stop"), [
    (1, [1, 2, 3, 4], ("last token", 4, None, None)),
    (1, [1, 2, 9, 9], ("parted", 2, 3, 9)),
    (1, [7, 7], ("no child", 0, 1, 7)),
    (1, [*EIGHT, 9, 9], ("end", 8, None, None)),
    (4, [1, 2, 3, 4, 5, 6, 9, 9], ("page", 6, 7, 9)),
    (4, [1, 2, 9, 9, 9], ("page", 2, 3, 9)),
    (4, [1, 2, 3, 4, 9, 9, 9, 9], ("parted", 4, 5, 9)),
    (4, [1, 2, 3, 4, 5, 6], ("last token", 6, None, None)),
])  # fmt: skip
def test_a_match_says_why_it_ended_and_at_which_tokens(page_size: int, asked: list[int], stop: tuple[object, ...]) -> None:
    grove = Grove(page_size)
    grove.insert(EIGHT)
    found = grove.match(asked).stop
    assert (found.kind, found.raw_length, found.stored, found.wanted) == stop


def test_an_empty_tree_has_no_child() -> None:
    found = Grove().match([1, 2]).stop
    assert (found.kind, found.raw_length, found.at_node, found.stored) == ("no child", 0, None, None)


# --- what listeners hear -----------------------------------------------------------------------


def test_listeners_hear_of_every_split_growth_and_removal() -> None:
    heard: list[tuple[str, int]] = []

    class Ear:
        def split(self, node: object, front: object) -> None:
            heard.append(("split", node.id))  # type: ignore[attr-defined]

        def grown(self, node: object) -> None:
            heard.append(("grown", node.id))  # type: ignore[attr-defined]

        def removed(self, node: object) -> None:
            heard.append(("removed", node.id))  # type: ignore[attr-defined]

    grove = Grove()
    grove.cache.subscribe(Ear())
    grove.insert([1, 2, 3])
    grove.insert([1, 2, 9])
    grove.cache.evict(1)
    assert heard == [("grown", 1), ("split", 1), ("grown", 3), ("removed", 1)]
