"""Field notes D: eviction. Each trial carries its number; the notation is theirs (`A8+B2 ->3`).

D10, one traffic under all policies, is in `tests/workbench/test_evictions.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from engine import events as ev
from engine.cache import eviction
from engine.cache.eviction import POLICIES
from tests.engine.grove import Asker, Grove
from tests.engine.lab import Lab


def test_d1_a_hit_saves_from_eviction() -> None:
    lab = Lab(pages=11)
    for name, prompt in (("A", "A3"), ("B", "B3"), ("C", "C3"), ("A again", "A3"), ("D", "D3")):
        lab.serve(name, prompt)
    assert [lab.found(p) for p in ("A3", "B3", "C3", "D3")] == [3, 2, 3, 3]


def test_d2_hits_are_counted_and_keep_what_is_used_often() -> None:
    lab = Lab(pages=12, eviction="lfu")
    for name, prompt in (("A", "A3"), *((f"A{n}", "A3") for n in range(5)), ("B", "B3"), ("C", "C3"), ("D", "D5")):
        lab.serve(name, prompt)
    assert lab.node_of("A2").hits == 5, "the last token must run, so two of the three were hit"
    assert [lab.found(p) for p in ("A2", "B3", "C3", "D5")] == [2, 2, 3, 5]


def test_d3_a_chain_goes_from_its_end() -> None:
    grove = Grove(4)
    for end in (4, 8, 12):
        grove.insert(list(range(end)))
    assert [grove.evicted(1) for _ in range(3)] == [[5], [2], [0]]
    assert list(grove.cache.walk()) == []


def test_d4_a_hit_dates_the_whole_path() -> None:
    grove = Grove()
    grove.insert([1, 2, 3, 4])
    grove.insert([1, 2, 3, 4, 5, 6, 7, 8])
    grove.insert([9, 9])
    grove.cache.release(grove.hold([1, 2, 3, 4, 5, 6, 7, 8]), Asker())
    above, below = grove.match([1, 2, 3, 4]).node, grove.match([1, 2, 3, 4, 5]).node
    assert above is not below and above.last_used == below.last_used == 4
    assert grove.evicted(2) == [12, 13]


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


def test_d7_the_most_recently_used_goes_first_also_after_a_touch() -> None:
    for touch in (lambda g: g.insert([1]), lambda g: g.cache.release(g.hold([1]), Asker())):
        grove = Grove(eviction="mru")
        for token in (1, 2, 3):
            grove.insert([token])
        touch(grove)
        assert grove.evicted(3) == [0, 2, 1]


def test_d8_an_eviction_looks_at_a_few_leaves_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys computed and entries moved, counted: no scan of the tree, nor of its leaves."""
    looks = {"keys": 0, "pops": 0, "walked": 0}
    lru, pop = POLICIES["lru"], eviction.heappop

    def key(node: Any) -> Any:
        looks["keys"] += 1
        return lru(node)

    def popped(heap: Any) -> Any:
        looks["pops"] += 1
        return pop(heap)

    monkeypatch.setitem(POLICIES, "lru", key)
    monkeypatch.setattr(eviction, "heappop", popped)
    grove = Grove()
    grove.trace.keep = False
    monkeypatch.setattr(grove.cache, "walk", lambda: looks.__setitem__("walked", looks["walked"] + 1))
    for leaf in range(20_000):
        grove.insert([7, leaf])
    looks.update(keys=0, pops=0)
    for turn in range(1000):
        assert len(grove.evicted(1)) == 1
        grove.insert([7, 20_000 + turn])
    assert looks["keys"] <= 4000 and looks["pops"] <= 2000 and looks["walked"] == 0


@pytest.mark.parametrize("page_size", [1, 4])
def test_d9_a_pinned_prompt_survives_a_flood_for_its_steps_and_then_goes(page_size: int) -> None:
    lab = Lab(pages=32 // page_size, page_size=page_size)
    lab.serve("R1", "A8", 1, pin=50)
    end = lab.engine.step_number - 1
    flood = 0
    while lab.engine.step_number <= end + 50:
        flood += 1
        lab.serve(f"F{flood}", f"X{chr(97 + flood % 26)}20", 2)
        assert lab.found("A8") == 8
    assert lab.events(ev.Eviction)
    lab.serve("after", "B26", 2)
    assert lab.found("A8") < 8
    over = [e for e in lab.events(ev.NodePinned) if e.until == 0]
    assert [e.step for e in over] == [end + 51]


def test_d9_what_of_a_pin_is_over_the_budget_is_refused_and_said_so() -> None:
    lab = Lab(pages=32, pin_budget=0.5)
    lab.serve("R1", "A8", 1, pin=50)
    lab.serve("R2", "B12", 1, pin=50)
    lab.serve("R3", "C4", 1, pin=50)
    told = [(e.request, lab.shadow.state.nodes[e.node].count if e.node else 0, e.refused) for e in lab.events(ev.NodePinned)]
    assert told == [("R1", 8, 0), ("R2", 8, 4), ("R3", 0, 4)]
    for flood in range(4):
        lab.serve(f"F{flood}", f"X{chr(97 + flood)}14", 1)
    assert [lab.found(p) for p in ("A8", "B12", "C4")] == [8, 8, 0]


@pytest.mark.parametrize("chunk", [None, 3])
@pytest.mark.parametrize("ends", [{}, {"abort_at_step": 4}, {"fail_at_step": 4}])
def test_d11_a_request_that_stores_nothing_leaves_no_node_and_the_hot_head_as_it_was(chunk: int | None, ends: dict[str, int]) -> None:
    lab = Lab(pages=64, chunk=chunk)
    lab.serve("R1", "A8+B2", 1)
    nodes = {n.id: n.pages for n in lab.engine.cache.walk()}
    head = lab.node_of("A8+B2")
    lab.ask("R2", "A8+C6", 5, store=False, **({k: lab.engine.step_number + v - 1 for k, v in ends.items()}))
    lab.run()
    assert lab.hit("R2") == 8
    assert lab.found("A8+C6") == 8 and lab.found("A8+B2") == 10 and lab.node_of("A8+B2") is head
    assert sum(n.count for n in lab.engine.cache.walk()) == 10 and not any(n.locks for n in lab.engine.cache.walk())
    assert {p for pages in nodes.values() for p in pages} == {p for n in lab.engine.cache.walk() for p in n.pages}
    assert not [e for e in lab.events(ev.NodeCreated) + lab.events(ev.NodeGrown) if e.request == "R2"]


def test_d11_what_is_not_stored_is_not_found_by_the_next() -> None:
    lab = Lab(pages=64)
    lab.serve("R1", "A8", 2, store=False)
    lab.serve("R2", "A8", 2)
    lab.serve("R3", "A8", 2)
    assert [lab.hit(r) for r in ("R1", "R2", "R3")] == [0, 0, 7]
