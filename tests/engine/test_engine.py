"""The engine's calls: what arrives when, what an event's time means, how a request ends, what a caller gets."""

from __future__ import annotations

from typing import Any

import pytest

from engine import Engine, EngineConfig
from engine import events as ev
from engine.clock import WallClock
from engine.config import ConfigError
from engine.executor.puppet import PuppetExecutor
from engine.executor.scripted import ANSWERS
from tests.engine.lab import Lab, ids

CLOCK = {"plan": 0.5, "step": 2.0, "token": 0.25}


def arrivals(lab: Lab) -> list[tuple[str, int, float, float]]:
    """Each arrival: request, step, the time it was due, the time it is told at."""
    return [(e.request, e.step, e.arrived, e.t) for e in lab.events(ev.RequestArrived)]


# --- when requests arrive ----------------------------------------------------------------------


def test_a_jump_to_a_step_moves_the_step_and_not_the_time() -> None:
    lab = Lab(clock=CLOCK)
    lab.ask("R1", "A4", at_step=7)
    lab.run()
    jump = lab.events(ev.ClockJumped)[0]
    assert (jump.from_step, jump.to_step, jump.from_t, jump.to_t) == (1, 7, 0.0, 0.0)
    assert arrivals(lab) == [("R1", 7, 0.0, 0.0)]
    assert [e.step for e in lab.events(ev.StepPlanned)] == [7]


def test_a_jump_to_a_time_moves_the_time_and_not_the_step() -> None:
    lab = Lab(clock=CLOCK)
    lab.ask("R1", "A4", at=7.5)
    lab.run()
    jump = lab.events(ev.ClockJumped)[0]
    assert (jump.from_step, jump.to_step, jump.from_t, jump.to_t) == (1, 1, 0.0, 7.5)
    assert arrivals(lab) == [("R1", 1, 7.5, 7.5)]


@pytest.mark.parametrize("at_step", [0, 1])
def test_steps_count_from_one(at_step: int) -> None:
    lab = Lab()
    lab.ask("R1", "A4", at_step=at_step)
    lab.run()
    assert arrivals(lab)[0][1] == 1 and not lab.events(ev.ClockJumped)


def test_an_arrival_by_step_comes_before_that_step_is_planned_and_joins_it() -> None:
    lab = Lab(mixed=True)
    lab.ask("R1", "A4", 6)
    lab.ask("R2", "B4", 1, at_step=3)
    lab.run()
    assert [(e.step, e.members) for e in lab.events(ev.StepPlanned)][2] == (3, ["R2", "R1"])


def test_an_arrival_by_time_joins_the_first_step_planned_after_it() -> None:
    lab = Lab(clock={"step": 1.0})
    lab.ask("R1", "A4", 6)
    lab.ask("R2", "B4", 1, at=1.5)
    lab.run()
    assert arrivals(lab)[1] == ("R2", 3, 1.5, 2.0)
    assert lab.events(ev.RequestFirstToken, "R2")[0].ttft == 1.5


@pytest.mark.parametrize("think", [0.0, 2.5])
def test_a_follower_arrives_when_its_predecessor_has_ended_and_thought(think: float) -> None:
    lab = Lab(clock={"step": 1.0})
    lab.ask("R1", "A4", 3)
    lab.ask("R2", "B4", after="R1", think=think)
    lab.run()
    assert arrivals(lab)[1][2] == 3.0 + think
    assert bool(lab.events(ev.ClockJumped)) is bool(think)


def test_followers_come_whichever_way_their_predecessor_ended() -> None:
    lab = Lab(pages=16, clock={"step": 1.0})
    lab.ask("refused", "A16")
    lab.ask("aborted", "B4", 9, at_step=1, abort_at_step=3)
    lab.ask("failed", "C4", 9, at_step=1, fail_at_step=5)
    lab.ask("taken back", "D4", at=100.0)
    for name in ("refused", "aborted", "failed", "taken back"):
        lab.ask(f"after {name}", "E2", 0, after=name)
    lab.engine.abort("taken back")
    lab.run()
    assert {name: t for name, _, t, _ in arrivals(lab) if name.startswith("after")} == {
        "after refused": 0.0, "after taken back": 0.0, "after aborted": 2.0, "after failed": 4.0,
    }  # fmt: skip


def test_a_follower_of_one_that_has_ended_already_comes_at_once() -> None:
    lab = Lab(clock={"step": 1.0})
    lab.serve("R1", "A4", 3)
    lab.ask("R2", "B4", after="R1")
    lab.ask("R3", "C4", after="R1", think=2.0)
    lab.run()
    assert [(name, due) for name, _, due, _ in arrivals(lab)] == [("R1", 0.0), ("R2", 3.0), ("R3", 5.0)]


def test_a_chain_of_refusals_is_over_within_one_step_and_jumps_nowhere() -> None:
    lab = Lab(pages=4)
    lab.ask("R0", "A9", at_step=1)
    for i in range(1, 6):
        lab.ask(f"R{i}", "A9" if i < 5 else "B2", after=f"R{i - 1}")
    lab.run()
    assert [step for _, step, _, _ in arrivals(lab)] == [1] * 6
    assert not lab.events(ev.ClockJumped) and lab.reasons == {"R5": "length"}


def test_those_that_are_due_together_come_in_the_order_in_which_they_were_asked() -> None:
    lab = Lab(clock={"step": 1.0})
    lab.ask("R0", "H1", 4)
    lab.ask("a", "A1", at=2.0)
    lab.ask("b", "B1", at_step=3)
    lab.ask("c", "C1", at=2.0)
    lab.ask("d", "D1", at=1.5)
    lab.run()
    assert [a[0] for a in arrivals(lab)] == ["R0", "d", "a", "b", "c"]


# --- times -------------------------------------------------------------------------------------


def test_planning_is_told_at_the_steps_start_and_what_follows_at_its_end() -> None:
    lab = Lab(clock=CLOCK)
    lab.serve("R1", "A4", 2)
    first, second = 0.5 + 2.0 + 4 * 0.25, 0.5 + 2.0 + 0.25
    by_kind = {type(e).__name__: e.t for e in lab.trace if e.step == 1}
    assert {by_kind[k] for k in ("RequestArrived", "RequestMatched", "RequestAdmitted", "StepPlanned", "StepStarted")} == {0.0}
    assert {by_kind[k] for k in ("StepFinished", "RequestFirstToken", "NodeCreated", "NodeLocked")} == {first}
    assert lab.events(ev.RequestFinished)[0].t == first + second
    told = lab.events(ev.StepFinished)[0]
    assert (told.plan_seconds, told.forward_seconds, told.sample_seconds) == (0.5, 3.0, 0.0)


def test_prefill_only_ends_in_the_step_of_its_last_chunk_without_a_first_token() -> None:
    lab = Lab(chunk=4)
    assert lab.serve("R1", "A10", 0) == []
    ended = lab.events(ev.RequestFinished)[0]
    assert (ended.reason, ended.outputs, ended.step) == ("length", 0, 3)
    assert not lab.events(ev.RequestFirstToken) and lab.found("A10") == 10


def test_time_runs_on_a_wall_clock_and_never_back() -> None:
    clock = WallClock()
    seen = [clock.now() for _ in range(1000)]
    assert clock.kind == "wall" and seen == sorted(seen)


# --- ends --------------------------------------------------------------------------------------


def test_the_output_counts_the_last_token_but_the_tree_does_not_hold_it() -> None:
    lab = Lab()
    out = lab.serve("R1", "A4", 3)
    assert len(out) == 3 and lab.found([*ids("A4"), *out]) == 6


def test_an_abort_by_step_acts_before_that_step_is_planned() -> None:
    lab = Lab()
    lab.ask("R1", "A4", 9, abort_at_step=4)
    lab.ask("R2", "B4", 9, abort_at_step=1)
    lab.run()
    assert len(lab.out("R1")) == 3 and "R2" not in lab.outputs
    assert [(e.request, e.step, e.was) for e in lab.events(ev.RequestAborted)] == [("R2", 1, "waiting"), ("R1", 4, "decode")]
    assert all("R1" not in e.members for e in lab.events(ev.StepPlanned) if e.step >= 4)


def test_a_failure_by_step_waits_for_the_first_forward_that_holds_the_request() -> None:
    lab = Lab(max_running=1)
    lab.ask("H", "H2", 6)
    lab.ask("R", "A4", 9, fail_at_step=2)
    lab.run()
    assert lab.reasons == {"H": "length", "R": "error"}
    failed = lab.events(ev.ExecutorFailed)[0]
    assert (failed.step, failed.members) == (7, ["R"])


def test_a_stopped_run_takes_back_what_is_left() -> None:
    lab = Lab()
    lab.ask("R1", "A4", 50)
    lab.step()
    lab.engine.finish(stopped=True)
    assert lab.request("R1").status == "aborted" and lab.trace.events[-1].stopped is True
    assert lab.idle() and lab.step() is False


# --- what the puppet says ----------------------------------------------------------------------


@pytest.mark.parametrize(("says", "new", "out", "reason"), [
    ([901, 902, 903], 9, [901, 902, 903], "stop"),
    ([901, 902, 903], 2, [901, 902], "length"),
    ([901, 902], 2, [901, 902], "length"),
    ([[7, 8, 9], 5, [3]], 9, [7, 5, 3], "stop"),
    ([], 9, [], "stop"),
    ([901], 0, [], "length"),
])  # fmt: skip
def test_a_puppet_says_what_it_is_told_the_first_of_each_ranking(says: list[Any], new: int, out: list[int], reason: str) -> None:
    lab = Lab()
    assert lab.serve("R1", "A4", new, says=says) == out
    assert lab.reasons == {"R1": reason}


def test_without_a_script_a_puppet_answers_with_what_it_read() -> None:
    out = Lab().serve("R1", "A4", 5)
    assert len(set(out)) == 5 and all(i >= ANSWERS for i in out)
    assert Lab().serve("R1", "A4", 5) == out != Lab().serve("R1", "B4", 5)


def test_an_end_token_ends_the_sequence_unless_it_is_ignored() -> None:
    def ending(**asked: Any) -> tuple[list[int], str]:
        executor = PuppetExecutor(64, 1)
        executor.eos_ids = frozenset({7})
        lab = Lab(executor=executor)
        return lab.serve("R1", "A4", 9, says=[901, 7, 902], **asked), lab.reasons["R1"]

    assert ending() == ([901, 7], "stop")
    assert ending(ignore_eos=True) == ([901, 7, 902], "stop")


# --- calls -------------------------------------------------------------------------------------


def test_requests_without_an_id_get_the_next_free_one() -> None:
    engine = Engine(config=EngineConfig())
    assert [engine.submit([1], id=i) for i in (None, "R3", None, None)] == ["R1", "R3", "R4", "R5"]


def test_an_engine_with_nothing_to_do_does_nothing() -> None:
    lab = Lab()
    assert lab.engine.step() is None and not lab.engine.busy
    assert [type(e) for e in lab.trace] == [ev.RunStarted]


def test_knobs_beside_a_config_are_refused() -> None:
    with pytest.raises(ConfigError, match="pages: given beside config"):
        Engine(config=EngineConfig(), pages=5)
