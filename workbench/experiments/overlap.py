"""Planning the next step beside the one that runs: the arithmetic on the engine's own clock, and what it costs."""

from __future__ import annotations

import itertools
from typing import Any

from engine import events as ev
from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import HANDBOOK, Chart, Curve, Point, Row, exact, told, within
from workbench.runner import Run

PLAN_MS, FORWARD_MS = 2, 8
STEPS = 12
DRAWN = 6
"""Steps that the figure shows."""


def traffic() -> dict[str, Any]:
    """One long answer, and two that end by themselves while others go on."""
    return {
        "name": "overlap",
        "engine": {"executor": "puppet", "pages": 128, "mixed": True, "clock": {"plan": PLAN_MS / 1000, "step": FORWARD_MS / 1000}},
        "requests": [
            {"id": "long", "tokens": "A8+B2", "max_new_tokens": STEPS},
            {"id": "stops", "tokens": "C8+D2", "max_new_tokens": 9, "says": [901, 902, 903], "at_step": 2},
            {"id": "writes", "tokens": "E8+F2", "max_new_tokens": 2, "at_step": 3},
            {"id": "looks", "tokens": "E8+G2", "max_new_tokens": 2, "at_step": 4},
        ],
    }  # fmt: skip


def step_ms(run: Run) -> float:
    """Milliseconds from the end of one step to the end of the next, after the first, where they are all the same."""
    ends = [e.t for e in run.trace if isinstance(e, ev.StepFinished)]
    gaps = {round(1000 * (b - a), 6) for a, b in itertools.pairwise(ends)}
    return gaps.pop() if len(gaps) == 1 else float("nan")


def late(run: Run) -> int:
    """Passes that were made for a request which had ended."""
    return sum(len(e.late) for e in run.trace if isinstance(e, ev.StepFinished))


def cached(run: Run, request: str) -> int:
    """Prompt tokens that a request found."""
    return next(r.cached_tokens or 0 for r in run.report.requests if r.id == request)


def lanes(run: Run, arm: str) -> list[Curve]:
    """When the CPU planned and when the device ran, in milliseconds: points are (start, duration, step)."""
    plans: list[Point] = []
    runs: list[Point] = []
    planned = {e.step: e.t for e in run.trace if isinstance(e, ev.StepPlanned)}
    launched = {e.step: e.t for e in run.trace if isinstance(e, ev.StepStarted)}
    for event in run.trace:
        if isinstance(event, ev.StepFinished) and event.step <= DRAWN:
            begun = launched[event.step] if run.scenario.engine.overlap else planned[event.step] + event.plan_seconds
            plans.append(Point(round(1000 * planned[event.step], 3), round(1000 * event.plan_seconds, 3), f"plan {event.step}"))
            runs.append(Point(round(1000 * begun, 3), round(1000 * event.forward_seconds, 3), f"step {event.step}"))
    return [Curve(name=f"{arm}: the CPU plans", points=plans), Curve(name=f"{arm}: the device runs", points=runs)]


def find(bench: Bench) -> Findings:
    """Serial and overlapped on the virtual clock; in the full version also on the model, by the wall clock."""
    serial, ahead = (bench.run(traffic(), name, overlap=overlap) for name, overlap in (("serial", False), ("overlapped", True)))
    rows = [
        exact("a step, serial", step_ms(serial), PLAN_MS + FORWARD_MS, "ms", HANDBOOK),
        exact("a step after the first, overlapped", step_ms(ahead), FORWARD_MS, "ms", HANDBOOK),
        _must("answers that differ", _differ(serial, ahead), 0, "answers"),
        _must("passes for a request that had ended, serial", late(serial), 0, "passes"),
        _must("passes for a request that had ended, overlapped", late(ahead), 1, "passes"),
        _must("tokens found of a prefix written one step before, serial", cached(serial, "looks"), 8, "tokens"),
        _must("tokens found of a prefix written one step before, overlapped", cached(ahead, "looks"), 0, "tokens"),
    ]
    if not bench.quick:
        rows += _on_the_model(bench)
    setup = (
        f"Planning a step takes {PLAN_MS} ms, its forward {FORWARD_MS} ms, on a virtual clock. Four requests: one answers at length, one ends by itself, "
        "and one looks for a prefix in the step after another has written it. Serial, a step is planned when the one before has been looked at; "
        "overlapped, while it runs: the tokens of a decode are filled in when they come."
    )
    why = None if bench.quick else (
        "Planning this engine's steps takes a small part of what their forwards take here, and where the forward runs on the CPU both share its cores: there is little to hide."
    )
    chart = Chart(
        kind="spans", title=f"The first {DRAWN} steps, serial and overlapped (simulated)", x="ms since the start", y="",
        curves=[*lanes(serial, "serial"), *lanes(ahead, "overlapped")],
    )  # fmt: skip
    return Findings(setup, rows, ahead, why, charts=[chart])


def _must(label: str, ours: int, wanted: int, unit: str) -> Row:
    """A count that follows from how the engine is built."""
    return within(label, ours, wanted, wanted, unit, "exact", rule=f"{wanted}")


def _differ(one: Run, other: Run) -> int:
    return sum(a.output_ids != b.output_ids for a, b in zip(one.report.requests, other.report.requests, strict=True))


def _on_the_model(bench: Bench) -> list[Row]:
    data = {
        "name": "overlap-model",
        "engine": {"executor": "model", "dtype": "float32", "pages": 1024, "max_running": 8},
        "requests": [{"id": f"R{i}", "prompt": f"Count from {i} upwards:", "max_new_tokens": 24, "ignore_eos": True} for i in range(8)],
    }
    bench.run(data, "warming up")
    arms = [bench.run(data, "overlapped" if overlap else "serial", overlap=overlap) for overlap in (False, True, True, False)]
    serial, ahead = (arms[0], arms[3]), (arms[1], arms[2])
    return [
        _must("on the model: answers that differ", _differ(arms[0], arms[1]) + _differ(arms[3], arms[2]), 0, "answers"),
        *(told(f"on the model: the whole run, {name}, the quicker of two", round(min(r.report.totals.duration for r in runs), 3), "s", "measured")
          for name, runs in (("serial", serial), ("overlapped", ahead))),
        told("on the model: planning, a step", round(1000 * _planning(arms[0]), 3), "ms", "measured"),
    ]  # fmt: skip


def _planning(run: Run) -> float:
    steps = [e.plan_seconds for e in run.trace if isinstance(e, ev.StepFinished)]
    return sum(steps) / len(steps)


PLAN = Plan(
    "overlap", "Planning takes 2 ms and the forward 8: what is won when the next step is planned meanwhile?", "exact", "under a second",
    "seconds, also on the model", find,
)  # fmt: skip
