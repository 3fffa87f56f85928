"""Ground truth for the radix tree, case by case: what the tests of the trade's engines say of theirs.

The numbers are those of the project's list of facts, 1 to 15 and 18 to 22. Cases 8, 16 and 17 do not apply:
8 is about keys of token pairs, which only speculative decoding needs; 16 merges neighbouring messages of an
event queue, where this trace has one event a change; 17 hashes them, where this tree compares tokens (that
salted and unsalted sequences are apart is case 10). In 13 to 15 pages stand for the hashes of pages. 21 is
told in hits: here a hit is a request's first look-up, not a storing, so each storing there is a request here.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from engine import events as ev
from engine.cache.base import CacheError, pack
from engine.cache.eviction import POLICIES
from engine.cache.node import common
from engine.cache.off import NoCache
from tests.engine.grove import Asker, Grove
from tests.engine.lab import Lab, ids

EIGHT = [1, 2, 3, 4, 5, 6, 7, 8]


def told(grove: Grove, kind: type[Any]) -> list[Any]:
    return [e for e in grove.trace._open if isinstance(e, kind)]


def served(grove: Grove, tokens: list[int]) -> None:
    """What a request does to the tree: look up and hold, store, let go."""
    by = Asker()
    by.node = grove.hold(tokens, by)
    grove.insert(tokens, by=by)
    grove.cache.release(by.node, by)


def test_01_what_was_stored_is_found_in_the_slots_it_was_stored_in() -> None:
    grove = Grove()
    assert grove.insert([1, 2, 3]).already_there == 0
    assert (grove.tokens(), grove.cache.evictable) == (3, 3)
    assert (grove.match([1, 2, 3]).length, grove.match([1, 2, 3]).pages) == (3, [0, 1, 2])
    assert (grove.match([1, 2]).length, grove.match([1, 2]).pages) == (2, [0, 1])


def test_02_a_cache_that_is_off_keeps_and_finds_nothing() -> None:
    off = NoCache()
    kept = off.insert(pack([1, 2, 3]), [0, 1, 2], None, Asker())
    assert (kept.already_there, kept.duplicates, kept.length, off.held, off.evictable) == (0, [], 0, 0, 0)
    found = off.match(pack([1, 2, 3]))
    assert (found.length, found.pages, found.stop.kind) == (0, [], "off")
    assert off.evict(3) == [] and list(off.walk()) == []


def test_03_the_tree_counts_the_tokens_it_holds() -> None:
    grove = Grove()
    grove.insert([1, 2, 3])
    assert grove.tokens() == 3
    grove.insert([4, 5])
    assert grove.tokens() == 5


@pytest.mark.parametrize("page_size", [1, 2])
def test_04_sequences_that_part_share_their_front(page_size: int) -> None:
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
def test_05_two_runs_share_as_many_tokens_as_they_begin_with(a: list[int], b: list[int], shared: int) -> None:
    assert common(pack(a), pack(b), 0, len(pack(b))) == 4 * shared


@pytest.mark.parametrize(("differs_at", "found"), [(6, 4), (4, 4), (1, 0), (None, 8)])
def test_06_with_pages_of_four_a_match_is_whole_pages(differs_at: int | None, found: int) -> None:
    grove = Grove(4)
    grove.insert(EIGHT)
    asked = [99 if i == differs_at else t for i, t in enumerate(EIGHT)]
    assert grove.length(asked) == found


def test_06_three_equal_tokens_are_less_than_a_page_of_four() -> None:
    grove = Grove(4)
    grove.insert([1, 2, 3])
    assert grove.length([1, 2, 3]) == 0


@pytest.mark.parametrize("page_size", [1, 4, 64])
@pytest.mark.parametrize("at", [1, 2, 63, 64, 65, 127, 128, 511, 512, 513, 1234, 1999])
def test_07_a_long_run_parts_exactly_where_it_parts(page_size: int, at: int) -> None:
    tokens = random.Random(at).sample(range(50_000), 2000)
    grove = Grove(page_size)
    grove.insert(tokens)
    other = [*tokens[:at], 60_000, *tokens[at + 1 :]]
    assert grove.length(other) == at // page_size * page_size
    assert grove.length(tokens) == 2000 // page_size * page_size


@pytest.mark.parametrize(("page_size", "tokens", "found"), [(2, 5, 4), (4, 6, 4), (16, 40, 32), (1, 7, 7)])
def test_09_what_is_stored_and_found_is_cut_to_whole_pages(page_size: int, tokens: int, found: int) -> None:
    grove = Grove(page_size)
    grove.insert(list(range(tokens)))
    assert grove.tokens() == found == grove.length(list(range(tokens)))
    for stop in range(tokens):
        assert grove.length([*range(stop), 99, 99, 99, 99]) == stop // page_size * page_size


def test_10_the_same_ids_in_other_namespaces_are_other_entries() -> None:
    grove = Grove()
    spaces = [("key1", None, None), ("key2", None, None), None, (None, "key1", None), (None, None, "key1")]
    for ns in spaces:
        assert grove.insert([1, 2, 3], ns).already_there == 0
    assert grove.tokens() == 15
    assert [grove.match([1, 2, 3], ns).pages for ns in spaces] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11], [12, 13, 14]]
    assert grove.length([1, 2, 3], ("unknown", None, None)) == 0


def test_10_parts_of_a_namespace_are_not_joined() -> None:
    grove = Grove()
    grove.insert([1], ("a", "bc", None))
    assert grove.length([1], ("ab", "c", None)) == 0


def test_11_holding_moves_tokens_from_evictable_to_locked_and_back() -> None:
    grove = Grove()
    grove.insert([1, 2, 3])
    assert grove.cache.to_lock(grove.match([1, 2, 3])) == 3
    node = grove.hold([1, 2, 3])
    assert grove.cache.evictable == 0 and grove.cache.to_lock(grove.match([1, 2, 3])) == 0
    grove.cache.release(node, Asker())
    assert grove.cache.evictable == 3


def test_12_evicting_gives_pages_back_and_a_leaf_taken_whole_may_be_more_than_was_asked() -> None:
    for unit, asked, freed in (("leaf", 2, 2), ("leaf", 1, 2), ("leaf", 3, 4), ("page", 1, 1), ("page", 3, 3)):
        grove = Grove(unit=unit)
        grove.insert([1, 2])
        grove.insert([8, 9])
        grove.insert([5, 6, 7])
        node = grove.hold([5, 6, 7])
        assert len(grove.evicted(asked)) == freed and grove.tokens() == 7 - freed
        assert len(grove.evicted(99)) == 4 - freed and grove.length([5, 6, 7]) == 3
        grove.cache.release(node, Asker())


def test_13_what_was_told_as_stored_is_told_as_removed_once_and_in_the_same_order() -> None:
    grove = Grove(2)
    grove.insert([1, 2, 3, 4])
    assert grove.evicted(2) == [0, 1]
    (stored,), (removed,) = told(grove, ev.NodeCreated), told(grove, ev.NodeEvicted)
    assert stored.pages == removed.pages == [0, 1] and told(grove, ev.NodeTrimmed) == []


def test_14_the_same_tokens_further_on_are_another_page() -> None:
    grove = Grove(4)
    grove.insert([1, 2, 3, 4, 1, 2, 3, 4])
    (stored,) = told(grove, ev.NodeCreated)
    assert (stored.pages, stored.parent) == ([0, 1], ev.ROOT)
    assert grove.match([1, 2, 3, 4]).pages == [0]
    assert grove.insert([1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]).already_there == 8


def test_15_a_split_deals_the_pages_out_and_leaves_the_tail_its_identity() -> None:
    grove = Grove(2)
    grove.insert([1, 2, 3, 4])
    tail = grove.match([1, 2, 3, 4]).node
    grove.insert([1, 2, 5, 6])
    front = grove.match([1, 2]).node
    assert (front.pages, front.depth, front.tokens()) == ([0], 0, [1, 2])
    assert (tail.pages, tail.depth, tail.tokens()) == ([1], 2, [3, 4])
    assert tail.parent is front and front.pages + tail.pages == [0, 1]


def test_18_whoever_computed_what_was_stored_meanwhile_goes_on_with_the_trees_pages() -> None:
    lab = Lab(pages=20)
    lab.ask("R1", "A3", 4)
    lab.ask("R2", "A3", 4)
    lab.step()
    one, two = lab.live("R1"), lab.live("R2")
    (moved,) = lab.events(ev.RequestRemapped)
    assert (moved.request, moved.start, moved.old, moved.new) == ("R2", 0, [3, 4, 5], [0, 1, 2])
    assert one.pages[:3] == two.pages[:3] == [0, 1, 2]
    assert [e.pages for e in lab.events(ev.PageFreed)] == [[3, 4, 5]]
    assert lab.engine.pool.free == 20 - 3 and set(lab.engine.pool.free_pages()) >= {3, 4, 5}


def test_19_a_reference_too_few_is_an_error() -> None:
    grove = Grove()
    grove.insert([1, 2, 3])
    node = grove.hold([1, 2, 3])
    grove.cache.release(node, Asker())
    with pytest.raises(CacheError, match="holds no lock"):
        grove.cache.release(node, Asker())
    assert node.locks == 0 and grove.cache.evictable == 3


def leaf(id: int, hits: int = 0, used: int = 0, priority: int = 0) -> Any:
    node = Grove().cache.root.__class__(id, None, b"", [], None)
    node.hits, node.last_used, node.priority = hits, used, priority
    return node


@pytest.mark.parametrize(("policy", "leaves", "order"), [
    ("lru", [leaf(1, used=5), leaf(2, used=1), leaf(3, used=3)], [2, 3, 1]),
    ("lfu", [leaf(1, hits=100, used=1), leaf(2, hits=1, used=10)], [2, 1]),
    ("lfu", [leaf(1, hits=1, used=10), leaf(2, hits=1, used=9)], [2, 1]),
    ("fifo", [leaf(2, used=1), leaf(1, used=9)], [1, 2]),
    ("filo", [leaf(1, used=1), leaf(2, used=9)], [2, 1]),
    ("mru", [leaf(1, used=1), leaf(2, used=9)], [2, 1]),
    ("priority", [leaf(1, priority=5), leaf(2, priority=1)], [2, 1]),
    ("slru", [leaf(1, hits=5, used=1), leaf(2, used=10), leaf(3, used=2), leaf(4, hits=3, used=8)], [3, 2, 1, 4]),
])  # fmt: skip
def test_20_the_smallest_key_goes_first(policy: str, leaves: list[Any], order: list[int]) -> None:
    assert [n.id for n in sorted(leaves, key=POLICIES[policy])] == order


def test_21_slru_keeps_what_was_asked_for_again_through_a_scan() -> None:
    grove = Grove(eviction="slru", unit="leaf")
    for tokens in ([1, 2], [1, 2], [1, 2], [5, 6], [10], [11], [12], [13], [14], [15], [16], [10]):
        served(grove, tokens)
    assert len(grove.evicted(4)) >= 4
    assert grove.length([1, 2]) == 2 and grove.length([5, 6]) == 0


@pytest.mark.parametrize("page_size", [1, 2, 4, 16])
def test_22_each_turn_of_a_chat_finds_the_turns_before_it(page_size: int) -> None:
    lab = Lab(pages=1024 // page_size, page_size=page_size)
    chat, known = [], 0
    for turn in range(8):
        chat = chat + ids(f"M{chr(97 + turn)}9")
        answer = lab.serve(f"R{turn}", chat, 5)
        assert lab.hit(f"R{turn}") == known // page_size * page_size
        known = len(chat) + len(answer) - 1  # the last id was sampled and has no KV
        chat = chat + answer
