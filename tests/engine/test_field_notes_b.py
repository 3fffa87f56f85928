"""Field notes B: who owns which page, counted in every state and by every way out."""

from __future__ import annotations

import random
from typing import Any

import pytest

from engine import events as ev
from engine.engine import InvariantError
from engine.executor.puppet import PuppetExecutor
from engine.pool import Pool, PoolError
from tests.engine.lab import Lab


@pytest.mark.parametrize("page_size", [1, 4])
def test_b1_two_hundred_requests_leave_the_counts_as_they_were(page_size: int) -> None:
    chance = random.Random(page_size)
    lab = Lab(pages=160 // page_size, page_size=page_size, chunk=8)
    for i in range(200):
        prompt = f"{chance.choice('ABCD')}{chance.randint(3, 20)}+{chance.choice('XYZ')}{chance.choice('abcde')}{chance.randint(1, 8)}"
        aborted = {"abort_at_step": 1 + i // 2 + chance.randint(0, 6)} if chance.random() < 0.2 else {}
        lab.ask(f"R{i}", prompt, chance.randint(0, 9), at_step=1 + i // 2, **aborted)
    lab.run()
    assert lab.idle()
    assert lab.engine.totals.aborted > 10
    assert lab.engine.totals.finished + lab.engine.totals.aborted == 200


def mid_chunk(lab: Lab) -> str:
    lab.step()
    assert 0 < lab.live("R").kv < 20
    return "prefill"


def running(lab: Lab) -> str:
    while lab.live("R").status != "decode":
        lab.step()
    lab.step()
    return "decode"


def retracted(lab: Lab) -> str:
    running(lab)
    lab.engine.scheduler._retract(lab.live("R"))
    return "waiting"


@pytest.mark.parametrize("page_size", [1, 4])
@pytest.mark.parametrize("reach", [mid_chunk, running, retracted], ids=lambda f: f.__name__)
def test_b2_an_abort_in_any_state_gives_everything_back(reach: Any, page_size: int) -> None:
    lab = Lab(pages=64, page_size=page_size, chunk=8)
    lab.serve("S", "A6")
    lab.ask("R", "A6+R14", 9)
    state = reach(lab)
    produced = len(lab.out("R"))
    assert lab.engine.abort("R")
    assert [e.was for e in lab.events(ev.RequestAborted)] == [state]
    lab.run()
    assert len(lab.out("R")) == produced and lab.idle()


def test_b2_an_abort_of_one_that_waits_leaves_the_others_alone() -> None:
    lab = Lab(pages=64, max_running=1)
    lab.ask("H", "H3", 9)
    lab.step()
    lab.ask("R", "A6", 9)
    lab.step()
    assert lab.engine.abort("R") and [e.was for e in lab.events(ev.RequestAborted)] == ["waiting"]
    lab.run()
    assert "R" not in lab.outputs and len(lab.out("H")) == 9 and lab.idle()


def test_b2_an_abort_before_the_arrival_means_it_never_comes() -> None:
    lab = Lab(pages=64)
    lab.ask("R", "A6", 9, at_step=5)
    assert lab.engine.abort("R")
    lab.run()
    assert not lab.events(ev.RequestArrived) and not lab.engine.busy


@pytest.mark.parametrize("name", ["never heard of", "", "R"])
def test_b2_an_abort_of_an_unknown_or_ended_request_is_harmless(name: str) -> None:
    lab = Lab(pages=64)
    lab.serve("R", "A6", 3)
    before, told = lab.engine.snapshot(), len(lab.trace)
    assert lab.engine.abort(name) is False
    assert lab.engine.snapshot() == before and len(lab.trace) == told


def test_b2_an_aborted_request_is_stored_like_a_finished_one() -> None:
    lab = Lab(pages=64)
    lab.ask("R", "A6", 9)
    for _ in range(4):
        lab.step()
    lab.engine.abort("R")
    assert lab.found([*lab.request("R").prompt, *lab.out("R")]) == 6 + 3


def test_b3_a_shared_head_counts_once() -> None:
    lab = Lab(pages=16, page_size=4)
    lab.serve("R1", "A8+B4")
    lab.serve("R2", "A8+C4")
    assert lab.engine.cache.evictable * 4 == 16
    assert (lab.engine.pool.free + lab.engine.cache.evictable) * 4 == 64


def test_b4_two_nodes_with_one_page_are_both_named() -> None:
    lab = Lab(pages=32, fold=False)
    lab.serve("R1", "A4")
    lab.serve("R2", "B4")
    a, b = lab.node_of("A4"), lab.node_of("B4")
    b.pages[0] = a.pages[0]
    lab.ask("R3", "C4")
    with pytest.raises(InvariantError, match="page 0 has more than one owner"):
        lab.step()
    broken = lab.events(ev.InvariantBroken)
    assert set(broken[0].owners) == {a.id, b.id} and broken[0].last_owners[0] == a.id
    assert any("page 4 has no owner and is not free" in e.what for e in broken)


@pytest.mark.parametrize(("counter", "says"), [
    (lambda lab: setattr(lab.node_of("A4"), "locks", 1), "node 1 has 1 locks, running requests hold 0"),
    (lambda lab: setattr(lab.node_of("A4"), "locks", -1), "node 1 has -1 locks, running requests hold 0"),
    (lambda lab: setattr(lab.engine.cache, "_locked", 1), "the cache counts"),
    (lambda lab: lab.engine.pool._free.insert(0, lab.engine.pool._free[1]), "names a page twice"),
    (lambda lab: lab.engine.pool._free.insert(0, 0), "page 0 is free and owned"),
    (lambda lab: lab.engine.pool._free.remove(31), "page 31 has no owner and is not free"),
    (lambda lab: lab.node_of("A4").pages.append(77), "page 77 does not exist"),
    (lambda lab: lab.node_of("A4").pages.pop(), "node 1 has 4 tokens in 3 pages"),
])  # fmt: skip
def test_b4_a_wrong_count_is_found_within_one_step(counter: Any, says: str) -> None:
    lab = Lab(pages=32, fold=False)
    lab.serve("R1", "A4")
    lab.ask("R2", "C4")
    counter(lab)
    with pytest.raises(InvariantError):
        lab.step()
    assert any(says in e.what for e in lab.events(ev.InvariantBroken))


def test_b5_a_running_request_keeps_its_whole_path_when_all_that_can_go_must_go() -> None:
    lab = Lab(pages=64)
    lab.serve("R1", "A8+B4")
    lab.serve("R2", "A8+C4")
    lab.ask("R", "A8+B4+D1", 5)
    lab.step()
    lab.engine.scheduler.holdings.evict(1000)
    assert lab.engine.cache.evictable == 0
    assert lab.found("A8+B4+D1") == 13 and lab.found("A8+C4") == 8
    assert all(n.locks >= 1 for n in lab.engine.cache.walk())
    lab.run()
    assert lab.out("R") == Lab(pages=64).serve("R", "A8+B4+D1", 5)


def test_b6_a_finish_and_an_abort_that_land_together_release_once() -> None:
    lab = Lab(pages=64)
    lab.ask("R", "A6", 3, abort_at_step=4)
    lab.ask("other", "A6", 8)
    lab.run()
    assert lab.reasons["R"] == "length" and lab.engine.abort("R") is False
    assert not lab.events(ev.RequestAborted) and lab.idle()


def test_b6_a_page_cannot_be_freed_twice() -> None:
    pool = Pool(4, 1)
    pages = pool.allocate(2)
    pool.give_back(pages[:1])
    for again in (pages[:1], [pages[1], pages[1]], [3]):
        with pytest.raises(PoolError, match="freed twice"):
            pool.give_back(again)
    assert pool.free == 3
    with pytest.raises(PoolError, match="asked for 4 pages, 3 are free"):
        pool.allocate(4)


@pytest.mark.parametrize(("reason", "asked"), [
    ("length", {"new": 3}), ("stop", {"new": 9, "says": [901, 902, 903]}), ("stop", {"new": 9, "says": [901, 902, 7, 904]}),
])  # fmt: skip
def test_b7_every_way_to_end_frees_the_last_slot_once(reason: str, asked: dict[str, Any]) -> None:
    executor = PuppetExecutor(32, 4)
    executor.eos_ids = frozenset({7})
    lab = Lab(pages=32, page_size=4, executor=executor)
    lab.serve("R", "P5", **asked)
    assert lab.reasons["R"] == reason and len(lab.out("R")) == 3
    assert lab.found([*lab.request("R").prompt, *lab.out("R")]) == 4
    freed = [p for e in lab.events(ev.PageFreed) for p in e.pages]
    assert len(freed) == len(set(freed)) == 1
    assert len(set(lab.engine.pool.free_pages())) == lab.engine.pool.free == 31


def test_b8_a_page_that_holds_two_neighbouring_pieces_is_freed_once() -> None:
    lab = Lab(pages=16, page_size=4)
    lab.serve("R1", "A6+B4")
    lab.serve("R2", "A6+C4")
    assert lab.hit("R2") == 4
    assert lab.found("A6+B4") == lab.found("A6+C4") == 8
    freed = [(e.owner, len(e.pages)) for e in lab.events(ev.PageFreed)]
    assert freed == [("R1", 1), ("R2", 1)] and lab.idle()


def test_b9_a_match_that_is_not_admitted_holds_nothing() -> None:
    lab = Lab(pages=600, admission="full")
    lab.serve("S", "A8")
    lab.ask("R1", "B4", 520)
    lab.step()
    lab.ask("R2", "A8+C4", 90)
    node = lab.node_of("A8")
    before = (node.locks, node.last_used, node.hits, lab.engine.cache.tick)
    for _ in range(500):
        lab.step()
        assert lab.live("R2").node is None and lab.live("R2").pages == []
        assert (node.locks, node.last_used, node.hits, lab.engine.cache.tick) == before
    assert not lab.events(ev.RequestMatched, "R2")
    lab.run()
    assert lab.hit("R2") == 8


def test_b10_a_prompt_that_can_never_fit_is_refused_at_once_with_both_numbers() -> None:
    lab = Lab(pages=4, page_size=4)
    lab.ask("R1", "A20")
    lab.ask("R2", "B3")
    refused = lab.events(ev.RequestRefused)
    assert [(e.request, e.reason, e.needed, e.available, e.step) for e in refused] == [("R1", "pages", 6, 4, 1)]
    lab.run()
    assert lab.reasons == {"R2": "length"}


def test_b11_a_request_that_fills_the_pool_alone_ends_with_capacity_and_what_it_has() -> None:
    lab = Lab(pages=4, page_size=4)
    out = lab.serve("R1", "A8", 100)
    assert lab.reasons == {"R1": "capacity"}
    assert out == Lab(pages=400).serve("R1", "A8", 100)[: 16 - 8 + 1]
    assert lab.serve("R2", "B3") and lab.idle()


def test_b12_a_retraction_raises_the_estimate_and_its_count_is_bounded() -> None:
    lab = Lab(pages=4 * 70, reserve_start=0.0, reserve_min=0.0, retract_max=3)
    for i in range(8):
        lab.ask(f"R{i}", f"{'ABCDEFGH'[i]}10", 60)
    lab.run()
    retracted = lab.events(ev.RequestRetracted)
    assert retracted and max(e.times for e in retracted) <= 3
    planned = lab.events(ev.StepPlanned)
    for e in retracted:
        before = [p.reserve for p in planned if p.seq < e.seq][-1]
        assert e.reserve > before
    assert lab.engine.totals.retractions == len(retracted)
    assert lab.engine.totals.recomputed_tokens == sum(r.recomputed for r in lab.shadow.state.requests.values()) > 0
    assert all(len(lab.out(f"R{i}")) == 60 for i in range(8))


def test_b13_a_thousand_short_calls_leave_no_table_behind() -> None:
    lab = Lab(pages=64, fold=False)
    for i in range(1000):
        lab.ask(f"R{i}", f"{'ABCDEFGH'[i % 8]}4", 1 + i % 2, at_step=i, abort_at_step=i + 2000 if i % 3 else None)
    lab.run()
    engine = lab.engine
    tables = [engine._live, engine._aborts, engine._answers.texts, engine._answers._fresh, engine.constrained.held, engine.constrained.jumps.jumped, engine._arrivals, engine.executor._chains,
              engine.scheduler.waiting, engine.scheduler.running, engine.scheduler.telling._over]  # fmt: skip
    assert [len(t) for t in tables] == [0] * len(tables)
    assert engine.totals.finished == 1000 and lab.idle()


@pytest.mark.parametrize("page_size", [1, 4])
def test_b14_a_forward_that_raises_fails_its_batch_and_nothing_else(page_size: int) -> None:
    lab = Lab(pages=64 // page_size, page_size=page_size)
    lab.serve("S", "A8")
    lab.ask("R1", "A8+B6", 9, fail_at_step=4)
    lab.ask("R2", "A8+C6", 9)
    lab.ask("R3", "A8+D6", 9, at_step=9)
    lab.run()
    failed = lab.events(ev.ExecutorFailed)
    assert [sorted(e.members) for e in failed] == [["R1", "R2"]] and "told to fail" in failed[0].error
    assert lab.reasons == {"S": "length", "R1": "error", "R2": "error", "R3": "length"}
    assert [e.error for e in lab.events(ev.RequestFinished, "R2")] == [failed[0].error]
    assert [lab.found(p) for p in ("A8+B6", "A8+C6")] == [14 // page_size * page_size] * 2
    assert lab.out("R3") == Lab(pages=64).serve("R3", "A8+D6", 9) and lab.idle()


def test_b14_a_step_that_failed_stores_nothing_of_that_step() -> None:
    lab = Lab(pages=64, chunk=4)
    lab.ask("R", "A16", 4, fail_at_step=3)
    lab.run()
    assert lab.reasons == {"R": "error"} and lab.found("A16") == 8
