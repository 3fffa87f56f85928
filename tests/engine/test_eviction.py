"""What leaves the tree, in which order, and what is told about it."""

from __future__ import annotations

import pytest

from engine import events as ev
from tests.engine.grove import Asker, Grove
from tests.engine.lab import Lab


def test_the_least_recently_used_leaf_goes_first() -> None:
    grove = Grove()
    for token in (1, 2, 3):
        grove.insert([token])
    grove.cache.release(grove.hold([1]), Asker())
    assert grove.evicted(3) == [1, 2, 0]


def test_d1_a_hit_saves_from_eviction() -> None:
    lab = Lab(pages=11)
    for name, prompt in (("A", "A3"), ("B", "B3"), ("C", "C3"), ("A again", "A3"), ("D", "D3")):
        lab.serve(name, prompt)
    assert [lab.found(p) for p in ("A3", "B3", "C3", "D3")] == [3, 2, 3, 3]


def test_d3_a_chain_goes_from_its_end() -> None:
    grove = Grove(4)
    for end in (4, 8, 12):
        grove.insert(list(range(end)))
    assert [grove.evicted(1) for _ in range(3)] == [[5], [2], [0]]
    assert list(grove.cache.walk()) == []


def test_d5_locking_and_unlocking_a_leaf_a_hundred_times_leaves_one_leaf_to_evict() -> None:
    grove = Grove()
    grove.insert([1, 2])
    grove.insert([3, 4])
    for _ in range(100):
        grove.cache.release(grove.hold([1, 2]), Asker())
    assert [grove.evicted(n) for n in (3, 3, 3)] == [[2, 3, 1], [0], []]


def test_d6_of_ten_leaves_one_page_is_taken_when_one_is_asked_for() -> None:
    grove = Grove()
    for k in range(10):
        grove.insert([10 * k + 1, 10 * k + 2, 10 * k + 3])
    assert grove.evicted(1) == [2]
    told = [e for e in grove.trace.events + grove.trace._open if isinstance(e, ev.Eviction)]
    assert [(e.asked, e.freed, e.evictable, e.ranking[0].taken) for e in told] == [(1, 1, 30, 1)]


@pytest.mark.parametrize(("unit", "gone"), [("page", [2]), ("leaf", [0, 1, 2])])
def test_a_leaf_is_trimmed_from_its_end_or_taken_whole(unit: str, gone: list[int]) -> None:
    grove = Grove(unit=unit)
    grove.insert([1, 2, 3])
    grove.insert([4])
    assert grove.evicted(1) == gone
    assert grove.length([1, 2, 3]) == 3 - len(gone)


def test_a_trimmed_leaf_keeps_its_id_its_hits_and_its_date() -> None:
    grove = Grove()
    grove.insert([1, 2, 3])
    grove.cache.release(grove.hold([1, 2, 3]), Asker())
    node = grove.match([1, 2, 3]).node
    grove.evicted(1)
    after = grove.match([1, 2]).node
    assert after is node and (after.hits, after.last_used, after.count) == (1, 2, 2)


def test_what_a_request_holds_is_never_evicted_whatever_is_asked() -> None:
    grove = Grove()
    grove.insert([1, 2, 3, 4])
    grove.insert([1, 2, 9])
    grove.hold([1, 2, 9])
    assert sorted(grove.evicted(100)) == [2, 3]
    assert grove.length([1, 2, 9]) == 3 and grove.cache.evictable == 0


def test_leaves_of_the_same_date_go_in_the_order_in_which_they_were_made() -> None:
    grove = Grove()
    grove.insert([1])
    grove.insert([2])
    for node in grove.cache.walk():
        node.last_used = 7
        grove.cache._queue.push(node)
    assert grove.evicted(2) == [0, 1]


def test_what_was_evicted_is_not_found_and_its_page_serves_others() -> None:
    grove = Grove(2)
    grove.insert([1, 2, 3, 4])
    assert grove.evicted(1) == [1]
    assert grove.length([1, 2, 3, 4]) == 2
    grove.next_page = 1
    grove.insert([7, 8])
    assert grove.match([7, 8]).pages == [1]
    assert grove.length([1, 2, 3, 4]) == 2


def test_an_eviction_ranks_what_went_and_the_runners_up_by_the_policys_key() -> None:
    grove = Grove()
    for token in (1, 2, 3, 4):
        grove.insert([token, token])
    grove.evicted(3)
    told = next(e for e in grove.trace._open if isinstance(e, ev.Eviction))
    assert [(r.node, r.key, r.taken, r.age) for r in told.ranking] == [(1, [1], 2, 3), (2, [2], 1, 2), (3, [3], 0, 1), (4, [4], 0, 0)]


def test_the_cap_is_kept_after_every_step_and_spares_what_is_locked() -> None:
    lab = Lab(pages=40, cache_pages=4)
    lab.ask("R1", "A10", 6)
    lab.ask("R2", "B10", 2)
    while lab.step():
        assert lab.engine.cache.evictable <= 4
        if "R1" not in lab.reasons:
            assert lab.found("A10") == 10
    assert lab.found("A10") == 4 and lab.found("B10") == 0


def test_the_cap_is_kept_after_a_step_that_failed() -> None:
    lab = Lab(pages=40, cache_pages=4)
    lab.ask("R1", "A10", 6, fail_at_step=3)
    lab.run()
    assert lab.reasons == {"R1": "error"} and lab.engine.cache.evictable == 4
