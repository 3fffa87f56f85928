"""The radix tree against hand-worked cases: store, look up, split, hold, and say where a walk stopped.

What other engines' own tests say of a tree is in `test_ground_truth_radix`.
"""

from __future__ import annotations

import pytest

from engine.cache.base import CacheError, pack, unpack
from engine.cache.node import common
from tests.engine.grove import Asker, Grove

EIGHT = [1, 2, 3, 4, 5, 6, 7, 8]


# --- store and look up -------------------------------------------------------------------------


def test_ids_that_share_bytes_are_not_the_same_ids() -> None:
    assert common(pack([0x01020304, 5]), pack([0x01020305, 5]), 0, 8) == 0
    assert unpack(pack([0, 1, 255, 256, 65535, 2**31 - 1])) == [0, 1, 255, 256, 65535, 2**31 - 1]


def test_less_than_a_page_is_neither_stored_nor_found() -> None:
    grove = Grove(4)
    grove.insert([1, 2, 3])
    assert grove.tokens() == 0 and grove.length([1, 2, 3]) == 0
    grove.insert([1, 2, 3, 4, 5, 6])
    assert grove.tokens() == 4 and grove.length([1, 2, 3, 4, 5, 6]) == 4


# --- split -------------------------------------------------------------------------------------


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
