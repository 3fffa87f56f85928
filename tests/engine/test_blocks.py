"""Blocks found by chained hashes: what is peculiar to them, and what becomes of a chain whose beginning goes first."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import Engine, EngineConfig
from engine import events as ev
from engine.cache.base import pack
from engine.config import ConfigError, config_from
from tests.engine.grove import Asker, Grove
from tests.engine.lab import Lab
from tests.engine.traffic import Case, cases
from workbench.replay import State, fold

EIGHT = [1, 2, 3, 4, 5, 6, 7, 8]
TWELVE = [*EIGHT, 9, 10, 11, 12]


def blocks(page_size: int = 4, **options: Any) -> Grove:
    return Grove(page_size, "blocks", **options)


def told(grove: Grove, kind: type[Any]) -> list[Any]:
    return [e for e in grove.trace.events + grove.trace._open if isinstance(e, kind)]


# --- a block is a page and a node ---------------------------------------------------------------


def test_each_block_is_a_node_below_the_block_before() -> None:
    grove = blocks()
    grove.insert(TWELVE)
    grove.insert([1, 2, 3, 4, 6, 6, 6, 6])
    made = [(e.node, e.parent, e.start, e.stop, e.pages) for e in told(grove, ev.NodeCreated)]
    assert made == [(1, 0, 0, 4, [0]), (2, 1, 4, 8, [1]), (3, 2, 8, 12, [2]), (4, 1, 4, 8, [4])]
    assert [(e.node, e.tick) for e in told(grove, ev.NodeTouched)] == [(3, 1), (4, 2)]


@pytest.mark.parametrize("reused", [(0, 6, 7), (0, 4, 4)])
def test_the_walkthrough(reused: tuple[int, ...]) -> None:
    lab = Lab(pages=32, cache="radix") if reused[1] == 6 else Lab(pages=8, page_size=4, cache="blocks")
    front = [10, 11, 12, 13, 14, 15]
    for name, end in (("R1", [20, 21]), ("R2", [30, 31]), ("R3", [20, 40])):
        lab.serve(name, front + end, 2)
    assert tuple(lab.hit(r) for r in ("R1", "R2", "R3")) == reused


@pytest.mark.parametrize(("cache", "page_size"), [("radix", 1), ("blocks", 16), ("radix", 16), ("off", 16)])
def test_the_handbook_row(cache: str, page_size: int) -> None:
    lab = Lab(fold=False, cache=cache, page_size=page_size, pages=8192 // page_size)
    for i in range(64):
        section = range(2000 + 300 * (i % 4), 2256 + 300 * (i % 4))
        lab.ask(
            f"R{i}",
            [*range(1024), *section, *range(4000 + 64 * i, 4064 + 64 * i)],
            0,
            **({"after": f"R{i - 1}"} if i else {}),
        )
    lab.run()
    totals = lab.engine.totals
    assert (totals.prompt_tokens, totals.computed_tokens) == (86_016, 86_016 if cache == "off" else 6_144)


# --- the table ----------------------------------------------------------------------------------


def one_for_all(above: Any, page: bytes) -> int:
    return 7


def test_blocks_with_one_hash_are_told_apart_by_their_tokens_their_parent_and_their_namespace() -> None:
    grove = blocks(2, hasher=one_for_all)
    grove.insert([1, 2, 1, 2, 3, 4])
    grove.insert([3, 4, 1, 2])
    grove.insert([1, 2], ("salt", None, None))
    assert grove.match([1, 2, 1, 2, 3, 4]).pages == [0, 1, 2]
    assert grove.match([3, 4, 1, 2]).pages == [3, 4]
    assert grove.match([1, 2], ("salt", None, None)).pages == [5]
    assert [grove.length(t) for t in ([1, 2, 3, 4], [3, 4, 3, 4], [1, 2, 1, 2, 1, 2])] == [2, 2, 4]
    assert grove.length([3, 4], ("salt", None, None)) == 0
    assert len(grove.evicted(99)) == 6 and grove.cache._table == {}


def test_the_same_tokens_further_on_are_another_block() -> None:
    grove = blocks()
    grove.insert([1, 2, 3, 4, 1, 2, 3, 4])
    assert grove.cache.held == 2 and grove.match([1, 2, 3, 4, 1, 2, 3, 4]).pages == [0, 1]
    first, second = grove.cache.walk()
    assert first.hash != second.hash


def test_a_look_up_asks_the_table_once_a_block() -> None:
    asked: list[bytes] = []

    def counting(above: Any, page: bytes) -> int:
        asked.append(page)
        return hash((above, page))

    grove = blocks(2, hasher=counting)
    for k in range(50):
        grove.insert([1, 2, 3, 4, 10 * k + 5, 10 * k + 6])
    asked.clear()
    assert grove.length([1, 2, 3, 4, 495, 496, 7, 8, 9, 9]) == 6
    assert len(asked) == 4


# --- the free queue -----------------------------------------------------------------------------


def test_a_released_chain_joins_the_queue_from_its_end() -> None:
    grove = blocks()
    grove.insert(TWELVE)
    grove.cache.release(grove.hold(TWELVE), Asker())
    assert grove.evicted(99) == [2, 1, 0]


def test_what_was_let_go_first_goes_first_though_it_was_used_last() -> None:
    grove = blocks()
    grove.insert([1, 1, 1, 1])
    grove.insert([2, 2, 2, 2])
    one, two = grove.hold([1, 1, 1, 1], Asker("R1")), grove.hold([2, 2, 2, 2], Asker("R2"))
    grove.cache.release(two, Asker("R2"))
    grove.cache.release(one, Asker("R1"))
    assert one.last_used < two.last_used and grove.evicted(2) == [1, 0]


def test_what_is_stored_again_goes_to_the_end_of_the_queue() -> None:
    grove = blocks()
    grove.insert(EIGHT)
    grove.insert([9, 9, 9, 9])
    grove.insert([1, 2, 3, 4, 7, 7, 7, 7])
    assert grove.evicted(99) == [1, 2, 4, 0]  # 3 was a duplicate and stayed with its caller


def test_a_block_that_others_hold_stays_when_one_lets_go() -> None:
    grove = blocks()
    grove.insert(TWELVE)
    long, short = grove.hold(TWELVE, Asker("R1")), grove.hold([1, 2, 3, 4], Asker("R2"))
    grove.cache.release(long, Asker("R1"))
    assert grove.evicted(99) == [2, 1]
    grove.cache.release(short, Asker("R2"))
    assert grove.evicted(99) == [0]


@pytest.mark.parametrize("order", ["tail-first", "head-first"])
def test_the_rankings_keys_rise_in_the_order_in_which_blocks_really_go(order: str) -> None:
    grove = blocks(1, order=order)
    grove.insert([1, 2, 3, 4])
    grove.insert([1, 2, 8, 9])
    grove.cache.release(grove.hold([1, 2, 3]), Asker())
    grove.insert([5, 6])
    before = [b.id for b in grove.cache._free.values()]
    keys = {r.node: r.key for r in grove.cache.evict(3) and told(grove, ev.Eviction)[0].ranking}
    assert list(keys) == before and list(keys.values()) == sorted(keys.values())
    ranking = told(grove, ev.Eviction)[0].ranking
    assert [r.taken for r in ranking] == [1, 1, 1, 0, 0, 0, 0, 0]
    assert [e.node for e in told(grove, ev.NodeEvicted)] == before[:3]


def test_pages_that_are_free_are_taken_before_any_block_goes() -> None:
    lab = Lab(pages=8, page_size=4, cache="blocks")
    lab.serve("R1", "A12")
    lab.serve("R2", "B16")
    assert lab.events(ev.Eviction) == []
    assert lab.engine.pool.free == 1  # of eight, three keep A and four keep B
    lab.serve("R3", "C12")
    assert [(e.asked, e.freed, e.unit, e.policy) for e in lab.events(ev.Eviction)] == [(2, 2, "block", "lru")]
    assert (lab.found("A12"), lab.found("B16")) == (4, 16)


# --- head first: unreachable ends ---------------------------------------------------------------


def headless() -> Grove:
    """Three blocks of which the first is gone."""
    grove = blocks(order="head-first")
    grove.insert(TWELVE)
    assert grove.evicted(1) == [0]
    return grove


def test_head_first_the_beginning_goes_and_the_rest_keeps_its_pages_unfindable() -> None:
    grove = headless()
    assert grove.length(TWELVE) == 0
    assert [(n.id, n.parent.id, n.depth, n.pages, n.removed) for n in grove.cache.walk()] == [
        (2, 1, 4, [1], True),
        (3, 2, 8, [2], True),
    ]
    assert grove.cache.held == grove.cache.evictable == 2


def test_a_beginning_stored_anew_does_not_bring_its_old_end_back() -> None:
    grove = headless()
    grove.next_page = 10
    assert grove.insert([1, 2, 3, 4]).already_there == 0
    assert grove.length(TWELVE) == 4
    assert grove.insert(TWELVE).already_there == 4
    assert grove.match(TWELVE).pages == [10, 12, 13]
    assert [n.id for n in grove.cache.walk()] == [2, 3, 4, 5, 6]


def test_what_is_unreachable_is_never_held_and_goes_in_its_turn() -> None:
    grove = headless()
    grove.insert([7, 7, 7, 7])
    grove.hold(TWELVE)
    assert [n.locks for n in grove.cache.walk()] == [0, 0, 0]
    assert grove.evicted(99) == [1, 2, 3]


def test_tail_first_nothing_is_ever_unreachable() -> None:
    grove = blocks()
    grove.insert(TWELVE)
    grove.insert([1, 2, 3, 4, 7, 7, 7, 7])
    grove.cache.release(grove.hold(EIGHT), Asker())
    while grove.cache.held:
        assert not any(n.removed for n in grove.cache.walk())
        grove.evicted(1)


def test_listeners_hear_of_the_block_that_leaves_and_not_again_of_what_went_with_it() -> None:
    gone: list[int] = []

    class Ear:
        def split(self, node: Any, front: Any) -> None:
            raise AssertionError("blocks are never split")

        def grown(self, node: Any) -> None:
            assert node.id not in gone

        def removed(self, node: Any) -> None:
            gone.append(node.id)

    grove = blocks(order="head-first")
    grove.cache.subscribe(Ear())
    grove.insert(TWELVE)
    grove.insert([1, 2, 3, 4, 7, 7, 7, 7])
    grove.evicted(1)
    assert gone == [2]
    grove.evicted(99)
    assert gone == [2, 1]


@pytest.mark.parametrize("order", ["tail-first", "head-first"])
def test_a_run_with_unreachable_blocks_folds_and_keeps_the_invariant(order: str) -> None:
    lab = Lab(pages=8, page_size=4, cache="blocks", block_order=order)
    for name, prompt in (("R1", "A16+Ea4"), ("R2", "B14"), ("R3", "A16+Fa4"), ("R4", "C14"), ("R5", "A16+Ga4")):
        lab.serve(name, prompt, 2)
    assert lab.idle()
    states = [fold(lab.trace.events[: e.seq + 1]) for e in lab.trace if e.commit]
    lost = [[n for n in state.nodes if not state.reachable(n)] for state in states]
    assert any(lost) is (order == "head-first")
    assert [lab.hit(r) for r in ("R1", "R3", "R5")] == ([0, 16, 16] if order == "tail-first" else [0, 0, 0])


# --- configuration ------------------------------------------------------------------------------


def test_another_eviction_than_lru_is_refused_in_one_sentence() -> None:
    assert config_from({"cache": "blocks", "eviction_unit": "leaf"}).block_order == "tail-first"
    for eviction in ("lfu", "belady"):
        with pytest.raises(ConfigError, match=f"^eviction: .*{eviction}") as caught:
            config_from({"cache": "blocks", "eviction": eviction})
        assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"^block_order: must be 'tail-first' or 'head-first'; got 'middle'$"):
        config_from({"cache": "blocks", "block_order": "middle"})


def test_a_request_goes_on_with_the_blocks_that_another_stored_first() -> None:
    lab = Lab(pages=16, page_size=4, cache="blocks")
    lab.ask("R1", "A8+B1", 3)
    lab.ask("R2", "A8+C1", 3)
    lab.run()
    remapped = lab.events(ev.RequestRemapped, "R2")
    assert [(e.start, len(e.old), len(e.new)) for e in remapped] == [(0, 2, 2)]
    assert lab.engine.cache.held == sum(len(e.pages) for e in lab.events(ev.NodeCreated))
    assert lab.found("A8+C1") == 8 and lab.engine.cache.match(pack(EIGHT), None).length == 0


@pytest.mark.parametrize("order", ["tail-first", "head-first"])
def test_a_chain_that_is_no_longer_pinned_joins_the_queue_as_a_released_one_does(order: str) -> None:
    grove = blocks(order=order, pin_budget=9)
    grove.insert(TWELVE)
    grove.insert([7, 7, 7, 7])
    for tokens, until in ((TWELVE, 5), (EIGHT, 3)):
        grove.cache.pin(pack(tokens), None, until, Asker())
    grove.cache.unpin(4)
    assert grove.cache.evictable == 1
    grove.cache.unpin(6)
    assert grove.evicted(99) == ([3, 2, 1, 0] if order == "tail-first" else [3, 0, 1, 2])


@pytest.mark.parametrize("page_size", [1, 4])
def test_the_trace_alone_gives_the_free_queue_at_every_commit(page_size: int) -> None:
    @settings(max_examples=25, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(case=cases(page_size), order=st.sampled_from(["tail-first", "head-first"]))
    def run(case: Case, order: str) -> None:
        case.config.update(cache="blocks", block_order=order, eviction="lru", host_pages=0)
        state, along = State(), -1 if order == "tail-first" else 1

        def watch(batch: list[ev.Event]) -> None:
            for event in batch:
                state.apply(event)
            free = [n for n in state.nodes.values() if not (n.locks or n.pins)]
            told = [n.id for n in sorted(free, key=lambda n: (n.joined, along * n.depth))]
            assert not engine or told == list(engine[0].cache._free)

        engine: list[Engine] = []
        engine.append(Engine(config=EngineConfig(**case.config), trace=ev.Trace(sinks=[watch])))
        for request in case.requests:
            asked = dict(request)
            engine[0].submit(asked.pop("prompt"), **asked)
        for _ in engine[0].run():
            pass

    run()
