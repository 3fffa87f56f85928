"""`overlap`: the next step is planned while the executor runs this one. Nothing that is said changes."""

from __future__ import annotations

from typing import Any

import pytest

from engine import events as ev
from engine.config import Clock
from engine.executor.puppet import PuppetExecutor
from engine.loaded import LoadedModel
from tests.engine.lab import Lab

CLOCK = Clock(plan=0.002, step=0.008)


def timed(overlap: bool, **config: Any) -> Lab:
    return Lab(pages=64, clock=CLOCK, overlap=overlap, **config)


def ends(lab: Lab) -> list[float]:
    return [round(e.t, 6) for e in lab.events(ev.StepFinished)]


def test_a_step_takes_ten_milliseconds_serial_and_eight_overlapped_after_the_first() -> None:
    serial, ahead = timed(False), timed(True)
    assert serial.serve("R", "A4", 5) == ahead.serve("R", "A4", 5)
    assert ends(serial) == [0.010, 0.020, 0.030, 0.040, 0.050]
    assert ends(ahead) == [0.010, 0.018, 0.026, 0.034, 0.042]


def test_where_planning_takes_longer_than_the_forward_it_is_what_a_step_takes() -> None:
    lab = Lab(pages=64, clock=Clock(plan=0.008, step=0.002), overlap=True)
    lab.serve("R", "A4", 4)
    assert ends(lab) == [0.016, 0.024, 0.032, 0.034]  # looked at when the planning beside them is done; the last has none


def test_a_step_that_was_planned_ahead_says_so_and_its_planning_took_no_time_of_its_own() -> None:
    lab = timed(True)
    lab.serve("R", "A4", 3)
    assert [e.ahead for e in lab.events(ev.StepPlanned)] == [False, True, True]
    assert [(e.step, e.ahead) for e in lab.events(ev.StepFinished)] == [(1, False), (2, True), (3, True)]


def test_a_stop_is_heard_one_step_late_and_the_pass_that_was_one_too_many_is_told() -> None:
    def ending(overlap: bool) -> Lab:
        executor = PuppetExecutor(64, 1)
        executor.eos_ids = frozenset({7})
        lab = Lab(executor=executor, overlap=overlap)
        lab.serve("R", "A4", 9, says=[901, 7, 902, 903])
        return lab

    serial, ahead = ending(False), ending(True)
    assert serial.out("R") == ahead.out("R") == [901, 7]
    assert (serial.engine.totals.forward_passes, ahead.engine.totals.forward_passes) == (2, 3)
    assert [e.late for e in ahead.events(ev.StepFinished)] == [[], [], ["R"]]
    assert ahead.events(ev.RequestFinished)[0].step == 3 and serial.events(ev.RequestFinished)[0].step == 2


def test_an_answer_that_ends_by_its_length_needs_no_late_pass() -> None:
    lab = timed(True)
    lab.serve("R", "A4", 3)
    assert lab.engine.totals.forward_passes == 3
    assert not any(e.late for e in lab.events(ev.StepFinished))


@pytest.mark.parametrize(("overlap", "cached"), [(False, 8), (True, 0)])
def test_what_a_step_wrote_is_findable_one_step_later(overlap: bool, cached: int) -> None:
    lab = Lab(pages=64, overlap=overlap)
    lab.ask("R1", "A8+B2", 3, at_step=1)
    lab.ask("R2", "A8+C2", 1, at_step=2)
    lab.ask("R3", "A8+D2", 1, at_step=3)
    lab.run()
    assert lab.events(ev.RequestAdmitted, "R2")[0].cached == cached
    assert lab.events(ev.RequestAdmitted, "R3")[0].cached == 8


def test_nobody_is_retracted_before_the_step_in_flight_is_back() -> None:
    asked: dict[str, Any] = {"pages": 12, "reserve_start": 0.0, "reserve_min": 0.0}
    labs = [Lab(overlap=overlap, **asked) for overlap in (False, True)]
    for lab in labs:
        lab.ask("R1", "A4", 8)
        lab.ask("R2", "B4", 8)
        lab.run()
    assert [lab.engine.totals.retractions for lab in labs] == [1, 1]
    assert labs[0].outputs == labs[1].outputs
    trace = list(labs[1].trace)
    at = next(i for i, e in enumerate(trace) if isinstance(e, ev.RequestRetracted))
    started = sum(isinstance(e, ev.StepStarted) for e in trace[:at])
    assert started == sum(isinstance(e, ev.StepFinished) for e in trace[:at])


def test_after_a_forward_that_failed_only_those_that_it_did_not_hold_go_on() -> None:
    lab = Lab(pages=64, overlap=True, mixed=True)
    lab.ask("R1", "A4", 6, fail_at_step=2)
    lab.ask("R2", "B4", 6, at_step=3)
    lab.run()
    assert lab.reasons == {"R1": "error", "R2": "length"}
    assert [e.dropped for e in lab.events(ev.StepStarted) if e.dropped] == [["R1"]]
    assert lab.idle()


def test_a_request_that_is_taken_back_in_flight_leaves_only_what_was_committed() -> None:
    lab = Lab(pages=64, overlap=True)
    lab.ask("R", "A4", 6)
    for _ in range(3):
        lab.step()
    lab.engine.abort("R")
    lab.run()
    assert len(lab.out("R")) == 2  # the third token was in flight
    assert lab.engine.cache.held == 5 and lab.idle()
    assert lab.events(ev.StepFinished)[-1].late == ["R"]


def test_an_engine_that_has_run_can_run_again(tiny_llama: LoadedModel) -> None:
    lab = Lab(loaded=tiny_llama, pages=96, overlap=True)
    for name in ("R1", "R2"):
        lab.ask(name, [3, 5, 7, 11], 6, ignore_eos=True)
        list(lab.engine.run())
    assert [e.request for e in lab.events(ev.RequestFinished)] == ["R1", "R2"]


@pytest.mark.parametrize("config", [{}, {"chunk": 5, "mixed": True}, {"page_size": 4, "pages": 24}])
def test_a_model_says_the_same_with_its_forward_on_a_thread_of_its_own(tiny_llama: LoadedModel, config: dict[str, Any]) -> None:
    labs = []
    for overlap in (False, True):
        lab = Lab(loaded=tiny_llama, overlap=overlap, **{"pages": 96, **config})
        for i in range(5):
            lab.ask(f"R{i}", [*[3, 5, 7, 11, 13, 17, 19][:3 + i], 20 + i], 12, at_step=i, ignore_eos=True)
        lab.run()
        labs.append(lab)
    assert labs[0].outputs == labs[1].outputs
    assert any(e.ahead for e in labs[1].events(ev.StepPlanned))
