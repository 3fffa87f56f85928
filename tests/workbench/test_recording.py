"""A recorded trace, replayed without its model, takes the same decisions."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from engine import Plugs
from engine import events as ev
from tests.engine.traffic import Case, cases, play
from workbench.recording import as_scenario
from workbench.runner import run
from workbench.scenario import ScenarioError, load, parse

UNTOLD = (ev.ClockJumped, ev.RequestArrived, ev.RunEnded)
"""How the clock came to an arrival, and whether it came before or after an abort between the same two steps."""
TIMED = ("seq", "t", "commit", "ttft", "plan_seconds", "forward_seconds", "sample_seconds", "error")


def told(events: Any) -> list[dict[str, Any]]:
    """The events without places, times and error texts."""
    return [
        {k: v for k, v in msgspec.to_builtins(event).items() if k not in TIMED}
        for event in events if not isinstance(event, UNTOLD)
    ]  # fmt: skip


@pytest.mark.parametrize("page_size", [1, 4])
def test_a_replay_takes_the_same_decisions(page_size: int) -> None:
    @settings(max_examples=25, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(cases(page_size, grammars=False))
    def check(case: Case) -> None:
        trace = play(case).trace
        again = run(as_scenario(trace), check=True)
        assert again.report.invariants == "ok"
        assert told(again.trace) == told(trace)

    check()


@pytest.mark.parametrize(("request_", "ends"), [
    ({"max_new_tokens": 100}, ("finished", "capacity")),
    ({"max_new_tokens": 9, "abort_at_step": 4}, ("aborted", "abort")),
    ({"max_new_tokens": 9, "fail_at_step": 4}, ("failed", "error")),
    ({"max_new_tokens": 9, "says": [901, 902]}, ("finished", "stop")),
    ({"max_new_tokens": 0}, ("finished", "length")),
    ({"max_new_tokens": 3, "store": False}, ("finished", "length")),
])  # fmt: skip
def test_a_replayed_request_ends_as_it_did(request_: dict[str, Any], ends: tuple[str, str]) -> None:
    first = run(parse({"engine": {"pages": 16}, "requests": [{"id": "R", "tokens": "A8", **request_}]}))
    again = run(as_scenario(first.trace), check=True)
    row, was = again.report.requests[0], first.report.requests[0]
    assert (row.status, row.finish_reason) == ends == (was.status, was.finish_reason)
    assert row.output_ids == was.output_ids and again.report.tree == first.report.tree


def test_a_replay_may_be_asked_what_another_knob_would_have_done() -> None:
    first = run(parse({"requests": [{"tokens": "A8+B2"}, {"tokens": "A8+C2", "after": "R1"}]}))
    off = run(as_scenario(first.trace, {"engine.cache": "off"}), check=True).report
    assert [r.cached_tokens for r in off.requests] == [0, 0]
    assert [r.output_ids for r in off.requests] == [r.output_ids for r in first.report.requests]


def test_a_trace_without_requests_cannot_be_replayed() -> None:
    with pytest.raises(ScenarioError, match="the trace holds no request"):
        as_scenario(ev.Trace.parse([ev.encode(ev.Header()), ev.encode(ev.RunStarted(seq=0, t=0.0, step=1, pages=4, page_size=1))]))


def test_a_run_with_parts_of_its_callers_own_cannot_be_replayed_and_says_so() -> None:
    trace = run(load("walkthrough"), plugs=Plugs(order=lambda waiting: waiting.arrived)).trace
    with pytest.raises(ScenarioError, match=r"its caller brought \(order: <lambda>\); .* looked at and not run again"):
        as_scenario(trace)
