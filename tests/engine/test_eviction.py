"""What leaves the tree, in which order, and what is told about it. Field notes D are in `test_field_notes_d`."""

from __future__ import annotations

import random
from typing import Any

import pytest

from engine import events as ev
from engine.cache.eviction import POLICIES
from tests.engine.grove import Asker, Grove
from tests.engine.lab import Lab


def test_the_least_recently_used_leaf_goes_first() -> None:
    grove = Grove()
    for token in (1, 2, 3):
        grove.insert([token])
    grove.cache.release(grove.hold([1]), Asker())
    assert grove.evicted(3) == [1, 2, 0]


def test_entries_that_no_longer_hold_do_not_pile_up_where_nothing_is_ever_evicted() -> None:
    grove = Grove()
    grove.trace.keep = False
    for token in range(100):
        grove.insert([token])
    for turn in range(20_000):
        grove.cache.release(grove.hold([turn % 100]), Asker())
    assert len(grove.cache._queue._heap) <= 2 * 100 + 1024 + 1


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
    for token in (1, 2, 3, 4, 5):
        grove.insert([token, token])
    grove.evicted(3)
    told = next(e for e in grove.trace._open if isinstance(e, ev.Eviction))
    assert [(r.node, r.key, r.taken, r.age) for r in told.ranking] == [(1, [1], 2, 4), (2, [2], 1, 3), (3, [3], 0, 2), (4, [4], 0, 1)]


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


# --- the policies ------------------------------------------------------------------------------


def filled(policy: str, **options: Any) -> Grove:
    """Four leaves: A stored first, hit twice, of low priority; B large; C hit once and lately; D new and important."""
    grove = Grove(eviction=policy, **options)
    for token, length, important in ((1, 2, -1), (2, 5, 0), (3, 2, 0), (4, 2, 3)):
        grove.insert([token] * length, by=Asker(priority=important))
    for token in (1, 1, 3):
        grove.cache.release(grove.hold([token] * 2), Asker())
    return grove


@pytest.mark.parametrize(("policy", "order"), [
    ("lru", "BDAC"), ("mru", "CADB"), ("fifo", "ABCD"), ("filo", "DCBA"), ("lfu", "BDCA"), ("slru", "BDCA"),
    ("priority", "ABCD"), ("size", "BDAC"),
])  # fmt: skip
@pytest.mark.parametrize("unit", ["page", "leaf"])
def test_each_policy_has_its_order(policy: str, unit: str, order: str) -> None:
    grove = filled(policy, unit=unit)
    went: list[str] = []
    while gone := grove.cache.evict(100 if unit == "page" else 1):
        went += [" ABCD"[e.node] for e in gone if e.whole]
    assert "".join(went) == order


def test_slru_spares_what_was_hit_twice_until_nothing_else_is_left() -> None:
    grove = Grove(eviction="slru")
    for token in (1, 2, 3):
        grove.insert([token])
    for token in (1, 1, 2):
        grove.cache.release(grove.hold([token]), Asker())
    grove.insert([3])
    assert grove.evicted(3) == [1, 2, 0]


def test_a_split_front_is_younger_than_its_tail_for_fifo() -> None:
    grove = Grove(eviction="fifo")
    grove.insert([1, 2, 3])
    grove.insert([7])
    grove.insert([1, 2, 9])
    assert [e.node for e in grove.cache.evict(9)] == [1, 2, 4, 3]


def test_size_looks_at_what_is_left_after_a_split_and_after_a_trim() -> None:
    grove = Grove(eviction="size")
    grove.insert([1, 1, 1, 1, 1])
    grove.insert([2, 2, 2, 2])
    grove.cache.release(grove.hold([1, 1, 1, 7]), Asker())
    assert grove.evicted(1) == [8], "the tail of the split has two tokens, fewer than the other leaf's four"
    assert [grove.evicted(1)[0] for _ in range(3)] == [7, 4, 6]


def test_a_higher_priority_raises_the_path_and_the_leafs_place() -> None:
    grove = Grove(eviction="priority")
    grove.insert([1, 2])
    grove.insert([3])
    grove.insert([1, 2], by=Asker(priority=2))
    assert [e.priority for e in grove.trace._open if isinstance(e, ev.NodeTouched)] == [None, None, 2]
    assert grove.evicted(3) == [2, 0, 1]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("unit", ["page", "leaf"])
def test_the_lazy_heap_takes_what_a_scan_of_all_leaves_would(policy: str, unit: str) -> None:
    """Random storing, hitting, holding, pinning and evicting; each eviction against a scan for the smallest key."""
    chance = random.Random(f"{policy} {unit}")
    for _ in range(30):
        grove = Grove(eviction=policy, unit=unit, pin_budget=6)
        held: list[Any] = []
        for step in range(80):
            tokens = [chance.randrange(1, 4) for _ in range(chance.randrange(1, 8))]
            by = Asker(priority=chance.randrange(3))
            match chance.randrange(7):
                case 0 | 1 | 2:
                    grove.insert(tokens, by=by)
                case 3 if grove.length(tokens):
                    held.append(grove.hold(tokens, by))
                case 4 if held:
                    grove.cache.release(held.pop(chance.randrange(len(held))), by)
                case 5:
                    grove.cache.pin(b"".join(t.to_bytes(4, "little") for t in tokens), None, step + 9, by)
                case _:
                    leaves = [n for n in grove.cache.walk() if n.evictable]
                    want = min(leaves, key=lambda n: (*POLICIES[policy](n), n.id), default=None)
                    gone = grove.cache.evict(1)
                    assert [e.node for e in gone] == ([want.id] if want else [])
            grove.cache.unpin(step)
            grove.trace.commit()
