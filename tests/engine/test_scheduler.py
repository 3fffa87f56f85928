"""The queue's order, the reserve's course, retraction and the end at capacity."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from engine import events as ev
from engine.scheduler.policy import VICTIMS
from tests.engine.lab import Lab


def planned(lab: Lab, field: str) -> list[Any]:
    return [getattr(e, field) for e in lab.events(ev.StepPlanned)]


# --- order -------------------------------------------------------------------------------------


def test_longest_prefix_first_orders_by_what_is_found_and_ties_by_arrival() -> None:
    lab = Lab(pages=200, policy="lpm", max_running=1)
    lab.serve("S", "A20")
    for name, prompt in (("R0", "B6"), ("R1", "A4+C2"), ("R2", "A9+D2"), ("R3", "E6"), ("R4", "A9+F2"), ("R5", "A20+G1")):
        lab.ask(name, prompt)
    lab.step()
    told = lab.events(ev.QueueOrdered)[0]
    assert (told.policy, told.waiting) == ("lpm", 6)
    assert told.head == ["R5", "R2", "R4", "R1", "R0", "R3"] and told.keys == [-20, -9, -9, -4, 0, 0]
    lab.run()
    assert [e.request for e in lab.events(ev.RequestAdmitted)][1:] == ["R5", "R2", "R4", "R1", "R0", "R3"]


def test_longest_prefix_first_sees_what_was_stored_a_step_ago() -> None:
    lab = Lab(pages=200, policy="lpm", max_running=1)
    for name, prompt in (("R0", "A9"), ("R1", "B9"), ("R2", "A9+C1")):
        lab.ask(name, prompt)
    lab.run()
    assert [e.request for e in lab.events(ev.RequestAdmitted)] == ["R0", "R2", "R1"]


def test_first_come_first_served_leaves_the_queue_alone_and_tells_no_order() -> None:
    lab = Lab(pages=200, max_running=1)
    lab.serve("S", "A20")
    for name, prompt in (("R0", "B6"), ("R1", "A20+C1")):
        lab.ask(name, prompt)
    lab.run()
    assert [e.request for e in lab.events(ev.RequestAdmitted)] == ["S", "R0", "R1"]
    assert not lab.events(ev.QueueOrdered)


def test_an_order_is_told_once_until_it_changes() -> None:
    lab = Lab(pages=200, policy="lpm", max_running=1)
    lab.ask("H", "H3", 10)
    lab.step()
    for name in ("R0", "R1"):
        lab.ask(name, "A6" if name == "R0" else "B6")
    for _ in range(5):
        lab.step()
    assert [e.head for e in lab.events(ev.QueueOrdered)] == [["R0", "R1"]]


# --- the reserve -------------------------------------------------------------------------------


def test_the_reserve_falls_by_a_six_hundredth_a_decode_step_and_starts_again_at_idle() -> None:
    lab = Lab(pages=100, reserve_start=0.7, reserve_min=0.1)
    lab.serve("R0", "A4", 5)
    assert planned(lab, "reserve") == [0.7, 0.699, 0.698, 0.697, 0.696]
    lab.serve("R1", "B4", 2)
    assert planned(lab, "reserve")[5:] == [0.7, 0.699]


def test_the_reserve_stops_at_its_least() -> None:
    lab = Lab(pages=800, reserve_start=0.5, reserve_min=0.2)
    lab.serve("R0", "A4", 650)
    told = planned(lab, "reserve")
    assert told[300] == pytest.approx(0.35) and told[600] == pytest.approx(0.2)
    assert set(told[601:]) == {0.2}


def test_under_full_admission_there_is_nothing_to_estimate() -> None:
    lab = Lab(pages=100, admission="full")
    lab.serve("R0", "A4", 5)
    assert set(planned(lab, "reserve")) == {1.0}


def test_after_a_retraction_the_reserve_is_what_the_survivors_used_and_twenty_more_each() -> None:
    lab = Lab(pages=90, reserve_start=0.0, reserve_min=0.0)
    for name in "ABC":
        lab.ask(name, f"{name}10", 300, says=[900 + k for k in range(40)])
    while not lab.events(ev.RequestRetracted):
        lab.step()
    told = lab.events(ev.RequestRetracted)
    survivors = [r for r in lab.engine.scheduler.running]
    assert len(told) == 1 and len(survivors) == 2
    before = sum(e.outputs for e in told) * 2  # all three had produced as many
    assert told[0].reserve == round((before + 20 * 2) / (2 * 300 + 1), 6)
    lab.run()
    assert all(len(lab.out(name)) == 40 for name in "ABC")


def test_a_reserve_is_never_more_than_everything() -> None:
    lab = Lab(pages=24, reserve_start=0.0, reserve_min=0.0)
    for name in "AB":
        lab.ask(name, f"{name}8", 12)
    lab.run()
    assert [e.reserve for e in lab.events(ev.RequestRetracted)] == [1.0]


# --- whom to retract ---------------------------------------------------------------------------


def retracted_first(policy: str, requests: list[tuple[int, int, int]]) -> list[int]:
    """(outputs, prompt, priority) in order of arrival -> the order in which they would be retracted."""
    rows = [
        SimpleNamespace(output=[0] * outputs, prompt=[0] * prompt, priority=priority, index=i)
        for i, (outputs, prompt, priority) in enumerate(requests)
    ]
    return [r.index for r in sorted(rows, key=VICTIMS[policy])]  # type: ignore[arg-type]


@pytest.mark.parametrize(("policy", "requests", "order"), [
    ("least-output", [(5, 9, 0), (1, 9, 0), (3, 9, 0)], [1, 2, 0]),
    ("least-output", [(2, 10, 0), (2, 20, 0)], [1, 0]),
    ("least-output", [(2, 10, 0), (2, 10, 0)], [1, 0]),
    ("newest", [(0, 30, 0), (9, 1, 0), (5, 5, 0)], [2, 1, 0]),
    ("priority", [(0, 9, 2), (9, 9, 0), (5, 9, 1)], [1, 2, 0]),
    ("priority", [(1, 9, 0), (5, 9, 0)], [0, 1]),
])  # fmt: skip
def test_who_is_retracted_first(policy: str, requests: list[tuple[int, int, int]], order: list[int]) -> None:
    assert retracted_first(policy, requests) == order


@pytest.mark.parametrize(("policy", "victim"), [("least-output", "C"), ("newest", "C"), ("priority", "A")])
def test_the_knob_chooses_the_victim(policy: str, victim: str) -> None:
    lab = Lab(pages=60, reserve_start=0.0, reserve_min=0.0, retract_victim=policy)
    for at, (name, priority) in enumerate((("A", 0), ("B", 2), ("C", 1)), 1):
        lab.ask(name, f"{name}8", 30, at_step=at, priority=priority)
    while not lab.events(ev.RequestRetracted):
        lab.step()
    assert lab.events(ev.RequestRetracted)[0].request == victim
    lab.run()
    assert all(len(lab.out(name)) == 30 for name in "ABC")


def test_a_request_at_its_bound_is_kept_all_it_may_say_and_spared_from_then_on() -> None:
    lab = Lab(pages=64, reserve_start=0.0, reserve_min=0.0, retract_max=1)
    for name in "ABCDEF":
        lab.ask(name, f"{name}6", 1000, says=[900 + k for k in range(30)])
    lab.run()
    times = {e.request: e.times for e in lab.events(ev.RequestRetracted)}
    assert times and set(times.values()) == {1}
    again = [e for e in lab.events(ev.RequestAdmitted) if not e.first]
    for e in again:
        outputs = lab.events(ev.RequestRetracted, e.request)[0].outputs
        assert e.needed in (6 + outputs - e.length + 1000 - outputs, 6 + outputs - e.length)


def test_what_a_retracted_request_stored_is_found_again_and_the_rest_forwarded_again() -> None:
    lab = Lab(pages=64)
    lab.ask("R", "A10", 12)
    for _ in range(6):
        lab.step()
    assert lab.live("R").kv == 15
    lab.engine.scheduler._retract(lab.live("R"))
    told = lab.events(ev.RequestRetracted) or [e for e in lab.trace._open if isinstance(e, ev.RequestRetracted)]
    assert [(e.outputs, e.freed, e.times) for e in told] == [(6, 5, 1)]
    lab.run()
    again = lab.events(ev.RequestAdmitted, "R")[1]
    assert (again.first, again.length, again.cached, again.computed) == (False, 10, 0, 10)
    assert (again.recovered, again.recomputed) == (10, 5)
    assert (lab.engine.totals.prompt_tokens, lab.engine.totals.computed_tokens) == (10, 10)


# --- the end at capacity -----------------------------------------------------------------------


@pytest.mark.parametrize("page_size", [1, 4])
@pytest.mark.parametrize("at", [9, 14, 15, 16])
def test_capacity_comes_at_the_same_token_retracted_or_not(page_size: int, at: int) -> None:
    never = Lab(pages=16 // page_size, page_size=page_size)
    whole = never.serve("R", "A8", 100)
    assert never.reasons == {"R": "capacity"} and len(whole) == 9
    lab = Lab(pages=16 // page_size, page_size=page_size)
    lab.ask("R", "A8", 100)
    while not lab.engine.scheduler.running or lab.live("R").size < at:
        lab.step()
    lab.engine.scheduler._retract(lab.live("R"))
    lab.run()
    assert lab.out("R") == whole and lab.reasons == {"R": "capacity"} and lab.idle()


def test_one_that_ends_at_capacity_leaves_room_for_the_next() -> None:
    lab = Lab(pages=16)
    lab.ask("R0", "A8", 100)
    lab.ask("R1", "B8", 4)
    lab.run()
    assert lab.reasons == {"R0": "capacity", "R1": "length"} and lab.idle()


# --- overtaking --------------------------------------------------------------------------------


def test_overtaken_counts_prompt_tokens_computed_for_later_arrivals() -> None:
    lab = Lab(pages=200, policy="lpm", max_running=1)
    lab.serve("S", "A8")
    lab.ask("E", "E5")
    lab.ask("R0", "Z6")
    lab.ask("R1", "A8+B3", 2)
    lab.ask("R2", "A8+C4")
    lab.run()
    admitted = {e.request: e.overtaken for e in lab.events(ev.RequestAdmitted)}
    assert list(admitted) == ["S", "R1", "R2", "E", "R0"]
    assert admitted == {"S": 0, "R1": 0, "R2": 0, "E": 7, "R0": 7}


def test_overtaking_is_a_sum_over_later_arrivals() -> None:
    from engine.scheduler.overtaking import Overtaking

    tree, table = Overtaking(), list[int]()
    for i in range(200):
        assert tree.arrive() == i
        table.append(0)
        for k, tokens in ((i, 3), (i // 2, 5), (i // 3, 7)):
            tree.computed(k, tokens)
            table[k] += tokens
        for k in range(0, i + 1, 7):
            assert tree.of(k) == sum(table[k + 1 :])
