"""Random traffic on the puppet: what holds for every configuration and every kind of trouble.

The puppet raises when a page holds anything but what its request put there, and under `check` that ends
the run, so each of these runs also proves that no page was wrong, found early or lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from engine import events as ev
from tests.engine.traffic import OTHER_CLOCK, Case, Played, cases, play

PAGE_SIZES = [1, 2, 4, 16]
CHECKS: dict[str, Callable[[Case], None]] = {}
RUNS, SLOW_RUNS = 25, 100
"""Examples for each page size and property; with eight properties and four sizes 800, slow 3,200."""


def prop(check: Callable[[Case], None]) -> Callable[[Case], None]:
    CHECKS[check.__name__] = check
    return check


def examples(check: Callable[[Case], None], page_size: int, count: int, *, fixed: bool) -> None:
    """Hold `check` against `count` random cases; `fixed`: the same ones every time."""

    @settings(
        max_examples=count, deadline=None, derandomize=fixed, database=None, print_blob=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=cases(page_size), data=st.data())
    def run(case: Case, data: Any) -> None:
        check(case)

    run()


@prop
def the_fold_equals_the_snapshot_at_every_commit_and_the_invariant_holds(case: Case) -> None:
    played = play(case, fold=True)
    assert played.engine.totals.retractions == len(of(played, ev.RequestRetracted))
    assert all(e.times <= case.config["retract_max"] for e in of(played, ev.RequestRetracted))
    ended = of(played, ev.RequestFinished) + of(played, ev.RequestAborted) + of(played, ev.RequestRefused)
    assert sorted(e.request for e in ended) == sorted(e.request for e in of(played, ev.RequestArrived))
    assert not any(n.locks for n in played.engine.cache.walk())
    if case.config["cache"] == "radix" or case.config["block_order"] == "tail-first":
        assert not any(n.removed for n in played.engine.cache.walk())
    cache = played.engine.cache
    assert played.engine.pool.free + cache.evictable + cache.pinned == case.config["pages"]
    assert cache.pinned == sum(len(n.pages) for n in cache.walk() if n.pins) <= case.config["pin_budget"] * case.config["pages"]
    if case.config["cache_pages"] is not None and not of(played, ev.RequestAborted):
        assert played.engine.cache.evictable <= case.config["cache_pages"]


@prop
def a_cache_changes_no_output(case: Case) -> None:
    jump = sure(case)
    same_answers(play(case, jump=jump), play(case, jump=jump, cache="off"))


def sure(case: Case) -> str:
    """How the case jumps, but not unverified: when that happens may change what is said."""
    return "off" if case.config["jump"] == "unverified" else str(case.config["jump"])


@prop
def a_simulated_machine_answers_alike_with_and_without_a_cache_and_its_trace_folds(case: Case) -> None:
    jump = "off" if case.config["jump"] == "unverified" else case.config["jump"]
    card: dict[str, Any] = {"executor": "cost", "hardware": "h100-llama-3.1-8b", "jump": jump}
    same_answers(play(case, fold=True, **card), play(case, cache="off", chunk=None, mixed=False, **card))


@prop
def a_verified_jump_changes_no_output_and_takes_no_more_passes(case: Case) -> None:
    jumped, plain = play(case, jump="verified"), play(case, jump="off")
    same_answers(jumped, plain)
    if len(case.requests) == 1:
        assert jumped.engine.totals.forward_passes <= plain.engine.totals.forward_passes


@prop
def speculation_changes_no_output_and_takes_no_more_passes(case: Case) -> None:
    drafted, plain = (play(case, jump=sure(case), overlap=False, speculate=n, speculate_ngram=1) for n in (6, 0))
    same_answers(drafted, plain)
    if len(case.requests) == 1:
        assert drafted.engine.totals.forward_passes <= plain.engine.totals.forward_passes


@prop
def planning_ahead_changes_no_output_and_adds_at_most_one_pass_a_request(case: Case) -> None:
    ahead, serial = (play(case, jump=sure(case), overlap=ahead, speculate=0, host_pages=0) for ahead in (True, False))
    same_answers(ahead, serial)
    late = [name for e in of(ahead, ev.StepFinished) for name in e.late]
    assert len(late) == len(set(late))


def same_answers(one: Played, other: Played) -> None:
    for name in one.outputs.keys() | other.outputs.keys():
        a, b = one.outputs.get(name, []), other.outputs.get(name, [])
        whole = {one.reasons.get(name), other.reasons.get(name)}
        if whole <= {"stop", "length", "capacity"}:
            assert (a, one.reasons[name]) == (b, other.reasons[name]), name
        else:  # taken back or failed: where it stopped depends on the step
            n = min(len(a), len(b))
            assert a[:n] == b[:n], name


@prop
def tracing_changes_no_decision(case: Case) -> None:
    told, silent = play(case), play(case, traced=False)
    assert not silent.trace.events
    assert told.outputs == silent.outputs and told.reasons == silent.reasons
    assert told.engine.snapshot() == silent.engine.snapshot()
    assert told.engine.step_number == silent.engine.step_number


@prop
def no_decision_reads_the_clock(case: Case) -> None:
    assert play(case).timeless() == play(case, clock=OTHER_CLOCK).timeless()


@prop
def the_same_run_again_is_the_same_trace_and_survives_json(case: Case) -> None:
    one, two = play(case), play(case)
    assert one.trace.events == two.trace.events
    lines = [ev.encode(one.trace.header), *(ev.encode(e) for e in one.trace)]
    assert ev.Trace.parse(lines).events == one.trace.events


def of(played: Played, kind: type[Any]) -> list[Any]:
    return [e for e in played.trace if isinstance(e, kind)]


@pytest.mark.parametrize("page_size", PAGE_SIZES)
@pytest.mark.parametrize("check", CHECKS)
def test_random_traffic(check: str, page_size: int) -> None:
    examples(CHECKS[check], page_size, RUNS, fixed=True)


@pytest.mark.slow
@pytest.mark.parametrize("page_size", PAGE_SIZES)
@pytest.mark.parametrize("check", CHECKS)
def test_random_traffic_at_length(check: str, page_size: int) -> None:
    examples(CHECKS[check], page_size, SLOW_RUNS, fixed=False)


def test_the_traffic_reaches_every_kind_of_trouble() -> None:
    seen: set[str] = set()
    retracted_twice = 0

    def look(case: Case) -> None:
        nonlocal retracted_twice
        for event in play(case).trace:
            seen.add(event.__struct_config__.tag)
            if isinstance(event, ev.RequestFinished):
                seen.add(event.reason)
            elif isinstance(event, ev.RequestPassedOver):
                seen.add(event.limit)
            elif isinstance(event, ev.StepPlanned):
                seen.add(event.mode)
                seen.update(["ahead"] if event.ahead else [])
            elif isinstance(event, ev.StepFinished):
                seen.update(["late"] if event.late else [])
            elif isinstance(event, ev.RequestRetracted):
                retracted_twice += event.times > 1

    for batch in range(6):  # what Hypothesis draws also depends on what else has been imported
        quick = settings(max_examples=120, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
        seed(batch)(quick(given(case=cases(2))(look)))()
        if seen >= TROUBLE and retracted_twice > 20:
            return
    raise AssertionError(f"never met: {', '.join(sorted(TROUBLE - seen)) or 'twenty requests retracted twice'}")


TROUBLE = {
    "request.retracted", "request.remapped", "request.aborted", "executor.failed", "clock.jumped",
    "node.split", "node.grown", "node.trimmed", "node.evicted", "node.pinned", "node.demoted", "node.restored", "queue.ordered",
    "grammar.compiled", "grammar.masked", "grammar.jumped", "grammar.verified", "grammar.rolled_back", "token.emitted",
    "stop", "length", "capacity", "error", "pages", "budget", "chunk", "running cap", "prefill", "decode", "mixed",
    "ahead", "late", "draft.verified",
}  # fmt: skip
"""What the random traffic has to bring about."""
