"""Arrivals: what is due when, in which order, and what a forgotten one leaves behind."""

from __future__ import annotations

from engine.arrivals import Arrivals
from engine.request import Request, SamplingParams
from tests.engine.lab import Lab


def request(name: str) -> Request:
    return Request(id=name, prompt=[1], params=SamplingParams(), arrived=0.0, index=0)


def expecting(*asked: tuple[str, dict[str, object]]) -> Arrivals:
    arrivals = Arrivals()
    for name, how in asked:
        times = {"at": None, "at_step": None, "after": None, "think": 0.0} | how
        arrivals.add(request(name), **times)  # type: ignore[arg-type]
    return arrivals


def names(due: list[tuple[Request, float]]) -> list[tuple[str, float]]:
    return [(r.id, t) for r, t in due]


def test_a_time_that_no_clock_tells_is_met_all_the_same() -> None:
    lab = Lab(pages=16)
    lab.ask("R1", "A4", at=0.1 * 3)
    lab.ask("R2", "B4", after="R1", think=0.1 * 3)
    lab.run(limit=10)
    assert sorted(lab.outputs) == ["R1", "R2"]


def test_together_due_means_in_order_of_submission() -> None:
    arrivals = expecting(("late", {"at": 2.0}), ("b", {"at": 1.0}), ("a", {"at": 1.0}))
    assert names(arrivals.due(1, 1.0)) == [("b", 1.0), ("a", 1.0)]
    assert arrivals.expects("late") and not arrivals.expects("a")


def test_a_step_before_the_first_is_the_first() -> None:
    arrivals = expecting(("zero", {"at_step": 0}), ("three", {"at_step": 3}))
    assert arrivals.next() == (1, None)
    assert names(arrivals.due(1, 0.5)) == [("zero", 0.5)]
    assert arrivals.next() == (3, None)


def test_whoever_follows_another_has_a_time_once_that_one_has_ended() -> None:
    arrivals = expecting(("next", {"after": "first", "think": 2.0}))
    assert arrivals.next() == (None, None)
    arrivals.ended("first", 3.0)
    assert arrivals.next() == (None, 5.0)
    assert names(arrivals.due(9, 5.0)) == [("next", 5.0)]
    assert len(arrivals) == 0


def test_a_forgotten_arrival_never_comes_and_is_not_next() -> None:
    arrivals = expecting(("gone", {"at": 1.0}), ("stays", {"at": 4.0}), ("follower", {"after": "x"}))
    forgotten = arrivals.forget("gone")
    assert forgotten is not None and forgotten.id == "gone"
    assert arrivals.forget("follower") is not None
    arrivals.ended("x", 0.0)
    assert arrivals.next() == (None, 4.0)
    assert names(arrivals.due(1, 9.0)) == [("stays", 4.0)]
    assert arrivals.forget("stays") is None
