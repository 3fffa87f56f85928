"""The host tier by hand: what is copied and when, what leaves for where, and what comes back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import EngineConfig
from engine import events as ev
from engine.config import ConfigError, config_from
from tests.engine.grove import Asker, Grove

EIGHT = [1, 2, 3, 4, 5, 6, 7, 8]
OTHER = [11, 12, 13, 14]


def grove(page_size: int = 1, **options: Any) -> Grove:
    return Grove(page_size, "tiered", **options)


def tiers(g: Grove) -> dict[int, tuple[str, int]]:
    """Node -> its tier and its tokens."""
    return {n.id: (n.tier, n.count) for n in g.cache.walk()}


def lengths(g: Grove, tokens: list[int]) -> tuple[int, int]:
    """How much of a sequence the device has, and the host beyond."""
    found = g.match(tokens)
    return found.length, found.host_length


# --- copying out -------------------------------------------------------------------------------


@pytest.mark.parametrize(("threshold", "after"), [(1, ["both", "both", "both"]), (2, ["device", "both", "both"]), (3, ["device", "device", "both"])])
def test_write_through_copies_a_node_with_the_use_that_reaches_the_threshold(threshold: int, after: list[str]) -> None:
    g = grove(2, threshold=threshold)
    g.insert(EIGHT)
    seen = [g.match(EIGHT).node.tier]
    for _ in range(2):
        g.cache.release(g.hold(EIGHT), Asker())
        seen.append(g.match(EIGHT).node.tier)
    assert seen == after
    assert [(e.node, e.kept, len(e.host_pages)) for e in g.told(ev.NodeDemoted)] == [(1, True, 4)]


def test_being_found_again_after_a_retraction_is_no_use() -> None:
    g = grove(threshold=2)
    g.insert(EIGHT)
    g.cache.release(g.hold(EIGHT, Asker(cached=3)), Asker())
    assert g.match(EIGHT).node.tier == "device"


def test_parents_are_copied_first_and_what_has_no_copied_parent_waits() -> None:
    g = grove(host_pages=6, threshold=2)
    g.insert(EIGHT)
    g.insert([*EIGHT[:4], 9, 9])
    g.cache.release(g.hold([*EIGHT[:4], 9, 9]), Asker())
    front, tail, branch = (g.match(k).node for k in (EIGHT[:4], EIGHT, [*EIGHT[:4], 9, 9]))
    assert (front.tier, branch.tier, tail.tier) == ("both", "both", "device")
    assert [e.node for e in g.told(ev.NodeDemoted)] == [front.id, branch.id]
    g.cache.release(g.hold(EIGHT), Asker())
    assert tail.tier == "device" and g.cache.host_pool.free == 0  # no room: both of the others are on the device


def test_write_back_copies_nothing_until_it_is_evicted() -> None:
    g = grove(2, host_policy="write-back")
    g.insert(EIGHT)
    g.cache.release(g.hold(EIGHT), Asker())
    assert g.match(EIGHT).node.tier == "device" and not g.told(ev.NodeDemoted)
    assert sorted(g.evicted(99)) == [0, 1, 2, 3]
    assert [(e.node, e.kept, len(e.host_pages)) for e in g.told(ev.NodeDemoted)] == [(1, False, 4)]


def test_a_copy_is_split_with_its_node_and_a_copied_leaf_does_not_grow() -> None:
    g = grove(2)
    by = Asker("R1", prompt=list(range(40)))
    g.insert(EIGHT, by=by)
    by.node = g.hold(EIGHT, by)
    g.insert([*EIGHT, 9, 9], by=by)
    assert tiers(g) == {1: ("both", 8), 2: ("both", 2)}
    g.insert([1, 2, 3, 4, 9, 9])
    front = g.match([1, 2, 3, 4]).node
    assert (len(front.host), len(g.match(EIGHT).node.host)) == (2, 2) and not set(front.host) & set(g.match(EIGHT).node.host)


# --- leaving the device ------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["write-through", "write-back"])
def test_what_is_evicted_gives_its_device_pages_and_is_still_known(policy: str) -> None:
    g = grove(2, host_policy=policy)
    g.insert(EIGHT)
    g.insert([*EIGHT[:4], 9, 9])
    assert len(g.evicted(99)) == 5 and g.cache.held == g.cache.evictable == 0
    assert {tier for tier, _ in tiers(g).values()} == {"host"}
    assert lengths(g, EIGHT) == (0, 8) and lengths(g, [*EIGHT[:4], 9, 9, 9]) == (0, 6)
    assert g.match(EIGHT).pages == [] and g.match(EIGHT).node is None
    assert (g.cache._totals.demoted_tokens, g.cache._totals.evicted_tokens) == (10, 0)
    assert all(gone.tokens for e in g.told(ev.Eviction) for gone in e.ranking)


def test_asked_for_a_few_pages_a_leaf_is_cut_and_its_tail_goes_to_the_host_under_its_own_name() -> None:
    g = grove(2)
    g.insert(EIGHT)
    assert g.evicted(1) == [3]
    tail, front = g.match(EIGHT).host_path[0], g.match(EIGHT).node
    assert (tail.id, tail.count, tail.depth) == (1, 2, 6) and (front.id, front.count) == (2, 6)
    kinds = [type(e) for e in g.told(ev.Event) if isinstance(e, ev.Eviction | ev.NodeSplit | ev.NodeDemoted | ev.NodeTrimmed)]
    assert kinds == [ev.NodeDemoted, ev.Eviction, ev.NodeSplit, ev.NodeDemoted]
    assert lengths(g, EIGHT) == (6, 2)


def test_a_node_above_the_hosts_is_a_leaf_of_the_device_and_one_above_the_devices_is_none() -> None:
    g = grove()
    g.insert(EIGHT)
    g.insert([*EIGHT[:4], 9])
    front = g.match(EIGHT[:4]).node
    assert not front.evictable
    assert len(g.evicted(5)) == 5 and {tiers(g)[n.id][0] for n in front.children.values()} == {"host"}
    assert front.evictable and g.cache.evictable == 4
    assert len(g.evicted(99)) == 4 and front.tier == "host"


def test_what_is_held_or_pinned_stays_on_the_device_and_a_pin_holds_nothing_of_the_host() -> None:
    g = grove(pin_budget=4)
    g.insert(EIGHT)
    g.evicted(5)
    assert lengths(g, EIGHT) == (3, 5)
    pinned = g.cache.pin(b"".join(i.to_bytes(4, "little") for i in EIGHT), None, 9, Asker())
    assert (pinned.node.count, pinned.refused, g.cache.pinned) == (3, 0, 3)
    assert g.evicted(99) == [] and lengths(g, EIGHT) == (3, 5)


# --- leaving the host --------------------------------------------------------------------------


@pytest.mark.parametrize(("eviction", "left"), [("lru", [1]), ("mru", [2]), ("filo", [2]), ("size", [2])])
def test_where_the_host_is_full_its_leaves_go_in_the_policys_order(eviction: str, left: list[int]) -> None:
    g = grove(eviction=eviction, host_pages=9)
    g.insert([1, 2, 3])
    g.insert([4, 5, 6, 7])
    g.evicted(99)
    g.insert([8, 9])
    assert sorted(tiers(g)) == [1, 2, 3] and g.cache.host_pool.free == 0
    g.insert([10])
    gone = [e for e in g.told(ev.NodeEvicted)]
    assert [e.node for e in gone] == left and all(e.pages == [] for e in gone)
    assert g.cache._totals.evicted_tokens == sum(e.tokens for e in gone)
    freed = [e for e in g.told(ev.PageFreed) if e.tier == "host"]
    assert [e.owner for e in freed] == left


def test_without_room_write_through_leaves_a_node_uncopied_and_touches_nothing() -> None:
    g = grove(host_pages=6)
    g.insert([1, 2, 3])
    g.evicted(99)
    g.insert([4, 5, 6, 7, 8, 9, 10])
    assert tiers(g) == {1: ("host", 3), 2: ("device", 7)}
    assert len(g.evicted(99)) == 7 and tiers(g) == {1: ("host", 3)}
    assert (g.cache._totals.demoted_tokens, g.cache._totals.evicted_tokens) == (3, 0)  # the caller counts what it got back


def test_without_room_write_back_evicts_for_good_and_what_continues_it_on_the_host_goes_too() -> None:
    g = grove(host_policy="write-back", host_pages=3)
    g.insert(EIGHT)
    g.insert([*EIGHT[:6], 9])
    g.evicted(3)
    assert sorted(tiers(g).values()) == [("device", 6), ("host", 1), ("host", 2)]
    assert len(g.evicted(99)) == 6 and tiers(g) == {} and g.cache.host_pool.free == 3
    assert [e.node for e in g.told(ev.NodeEvicted)][-1] == g.told(ev.NodeSplit)[0].front


# --- coming back -------------------------------------------------------------------------------


def test_a_load_brings_back_page_for_page_what_was_there_and_the_copy_stays() -> None:
    g = grove(2)
    g.insert(EIGHT)
    g.insert([*EIGHT, 9, 9])
    carrier = g.cache.host.copies
    carrier.host = {page: f"of {page}" for page in range(64)}
    g.evicted(99)
    hosts = [page for n in g.match([*EIGHT, 9, 9]).host_path for page in n.host]
    found = g.load([*EIGHT, 9, 9])
    assert (found.length, found.host_length, found.pages) == (10, 0, list(range(9, 14)))
    assert [carrier.device[p] for p in found.pages] == [f"of {h}" for h in hosts]
    assert set(tiers(g).values()) == {("both", 8), ("both", 2)} and g.cache.held == g.cache.evictable == 5
    told = g.told(ev.NodeRestored)
    assert [(len(e.pages), e.seconds, e.recompute_seconds, e.request) for e in told] == [(4, 4.0, 16.0, None), (1, 1.0, 4.0, None)]
    assert sorted(g.evicted(99)) == list(range(9, 14))


def test_a_match_that_ends_inside_a_node_of_the_host_loads_its_matched_pages_only() -> None:
    g = grove(2)
    g.insert(EIGHT)
    g.evicted(99)
    assert lengths(g, [1, 2, 3, 4, 5, 9]) == (0, 4)
    found = g.load([1, 2, 3, 4, 5, 9])
    assert found.length == 4 and lengths(g, EIGHT) == (4, 4)
    assert sorted(tiers(g).values()) == [("both", 4), ("host", 4)]


def test_what_is_about_to_be_loaded_is_not_pushed_off_the_host_by_what_makes_room_for_it() -> None:
    g = grove(host_policy="write-back", host_pages=4)
    g.insert([1, 2, 3, 4])
    g.evicted(99)
    g.insert(OTHER)
    g.spare = lambda count: g.evicted(count)
    found = g.load([1, 2, 3, 4])
    assert found.length == 4 and sorted(found.pages) == [4, 5, 6, 7]
    assert tiers(g) == {1: ("both", 4)}  # the other found no room beside it


def test_what_lies_above_on_the_device_is_not_evicted_by_what_makes_room_below_it() -> None:
    g = grove()
    g.insert(EIGHT)
    g.evicted(4)
    g.insert(OTHER)
    g.cache.release(g.hold(OTHER), Asker())
    g.spare = lambda count: g.evicted(count)
    found = g.load(EIGHT)
    assert found.length == 8 and lengths(g, OTHER) == (0, 4) and len(set(found.pages)) == 8
    assert g.cache.evictable == 8 and all(n.locks == 0 for n in g.cache.walk())


def test_what_a_request_computed_again_goes_to_the_hosts_node_with_its_pages() -> None:
    g = grove(2)
    g.insert(EIGHT)
    g.evicted(99)
    again = g.cache.insert(b"".join(i.to_bytes(4, "little") for i in [*EIGHT[:6], 9, 9]), [70, 71, 72, 73], None, Asker("R2"))
    assert (again.already_there, again.duplicates) == (6, [])
    assert g.match([*EIGHT[:6], 9, 9]).pages == [70, 71, 72, 73] and lengths(g, EIGHT) == (6, 2)
    assert [(e.request, e.pages, e.seconds) for e in g.told(ev.NodeRestored)] == [("R2", [70, 71, 72], 0.0)]
    assert g.match(EIGHT[:6]).node.tier == "both"


# --- whatever happens --------------------------------------------------------------------------

TOKENS = st.lists(st.integers(1, 3), max_size=14)
MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), TOKENS), st.tuples(st.just("evict"), st.integers(1, 9)), st.tuples(st.just("load"), TOKENS)
    ),
    max_size=30,
)  # fmt: skip


@pytest.mark.parametrize("policy", ["write-through", "write-back"])
@pytest.mark.parametrize("size", [1, 2])
def test_with_room_enough_on_the_host_nothing_that_was_stored_is_ever_forgotten(size: int, policy: str) -> None:
    @settings(max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(MOVES, st.sampled_from(["lru", "mru", "lfu", "size", "filo"]), st.sampled_from(["page", "leaf"]))
    def run(moves: list[tuple[str, Any]], eviction: str, unit: str) -> None:
        two, endless = grove(size, host_pages=500, host_policy=policy, eviction=eviction, unit=unit), Grove(size)
        for move, what in moves:
            if move == "insert":
                two.insert(what)
                endless.insert(what)
            elif move == "evict":
                asked = min(what, two.cache.evictable)
                freed = len(two.evicted(what))
                assert freed == asked if unit == "page" else freed >= asked
            elif two.match(what).host_length:
                known = two.match(what).known
                found = two.load(what)
                assert (found.length, found.host_length) == (known, 0)
            assert two.match([1, 2, 3, 1, 2]).known == endless.length([1, 2, 3, 1, 2])
            consistent(two)
        for _, what in (m for m in moves if m[0] != "evict"):
            assert two.match(what).known == endless.length(what)

    run()


def consistent(g: Grove) -> None:
    """Nothing on the host alone above the device, counts that hold, copies that are whole."""
    nodes = list(g.cache.walk())
    assert g.cache.held == g.cache.evictable == sum(len(n.pages) for n in nodes)
    assert g.cache.host.only == sum(len(n.host) for n in nodes if not n.pages)
    assert g.cache.host_pool.free == g.cache.host_pool.pages - sum(len(n.host) for n in nodes)
    for n in nodes:
        assert n.count == g.page_size * len(n.pages or n.host) and (not n.host or len(n.host) * g.page_size == n.count)
        assert n.resident == sum(1 for c in n.children.values() if c.pages)
        assert n.pages == [] or n.parent.id == ev.ROOT or n.parent.pages
        assert g.cache.host.write_back or not n.host or n.parent.id == ev.ROOT or n.parent.host


# --- the knobs ---------------------------------------------------------------------------------


def test_a_second_tier_needs_the_tree_and_is_of_no_use_with_the_cache_off() -> None:
    with pytest.raises(ConfigError, match=r"^host_pages: 8 needs cache: radix; blocks have no second tier"):
        config_from({"cache": "blocks", "host_pages": 8})
    for key, value in (("host_pages", -1), ("host_threshold", 0), ("host_bandwidth", 0), ("host_policy", "write-around")):
        with pytest.raises(ConfigError, match=rf"^{key}: "):
            config_from({key: value})
    assert EngineConfig(host_pages=8).second_tier == 8 and EngineConfig(host_pages=8, cache="off").second_tier == 0
