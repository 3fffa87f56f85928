"""Compare: one workload, several configurations (arms), differences told.

A fresh engine an arm, the same ids in each; the order alternates from repeat to repeat. On a wall clock
an unmeasured warm-up runs first. TTFTs are paired by request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import msgspec

from engine import events as ev
from workbench.report import Report, RequestReport
from workbench.runner import Run, run
from workbench.scenario import Scenario, ScenarioError, as_data, parse, settings


class Arm(msgspec.Struct, kw_only=True):
    """One configuration: its name, what it sets, and the report of its (last) run."""

    name: str
    set: dict[str, Any]
    report: Report


class Paired(msgspec.Struct, kw_only=True):
    """One request in every arm: TTFT (seconds, median over repeats) and its share of the whole request."""

    id: str
    ttft: list[float | None]
    share_of_total: list[float | None]


class FirstDifference(msgspec.Struct, kw_only=True):
    """The first output token that differs from the first arm's, and the first arm's top-two gap there."""

    request: str
    position: int
    ids: list[int | None]
    gap: float | None = None


class FirstDecision(msgspec.Struct, kw_only=True):
    """The first decision that differs: its event's seq in each arm, and what it was."""

    seq: list[int | None]
    why: str


class Comparison(msgspec.Struct, kw_only=True):
    """Contract 3's `compare`."""

    scenario: str
    arms: list[Arm]
    order: list[list[str]]
    """The order in which the arms ran, one list a repeat."""
    repeats: int
    warm_up: str | None = None
    paired: list[Paired]
    outputs_equal: bool
    first_difference: FirstDifference | None = None
    first_decision: FirstDecision | None = None


def parse_arm(text: str) -> tuple[str, dict[str, Any]]:
    """`NAME:key=v,key=v` -> name and settings. Raises ScenarioError."""
    name, sign, rest = text.partition(":")
    if not name or not sign:
        raise ScenarioError(f"--arm {text}: write NAME:KEY=VALUE,KEY=VALUE, as off:engine.cache=off")
    return name, settings([p for p in rest.split(",") if p])


def arms_of(scenario: Scenario, arms: Sequence[tuple[str, dict[str, Any]]]) -> list[Scenario]:
    """The scenario once an arm. Raises ScenarioError for fewer than two, equal names or a bad setting."""
    if len(arms) < 2:
        raise ScenarioError(f"--arm: at least two arms are needed to compare; got {len(arms)}")
    names = [n for n, _ in arms]
    if len(set(names)) != len(names):
        raise ScenarioError(f"--arm: every arm needs a name of its own; got {', '.join(names)}")
    base = as_data(scenario)
    for _, change in arms:
        for key in change:
            if not key.startswith("engine."):
                raise ScenarioError(f"--arm: {key}: an arm changes engine.* only, so that the traffic stays the same")
    return [parse(base, change, files=True) for _, change in arms]


def compare(
    scenario: Scenario,
    arms: Sequence[tuple[str, dict[str, Any]]],
    *,
    repeats: int = 1,
    loaded: Any = None,
    check: bool = False,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[str], None] = lambda text: None,
    sinks: Callable[[str], list[ev.Sink]] = lambda name: [],
) -> tuple[Comparison, list[Run]]:
    """Run every arm `repeats` times and lay them side by side. Returns the comparison and the last runs."""
    scenarios = arms_of(scenario, arms)
    names = [n for n, _ in arms]
    warm_up = None
    if any(s.engine.executor == "model" for s in scenarios):
        progress("warming up (not measured)")
        run(warm_up_of(scenarios[0]), loaded=loaded)
        warm_up = "one unmeasured request before the arms"
    runs: list[list[Run]] = [[] for _ in arms]
    order: list[list[str]] = []
    for repeat in range(repeats):
        ranks = list(range(len(arms)))
        if repeat % 2:
            ranks.reverse()
        order.append([names[i] for i in ranks])
        for i in ranks:
            if stop():
                break
            progress(f"arm {names[i]}, run {repeat + 1} of {repeats}")
            runs[i].append(
                run(scenarios[i], loaded=loaded, check=check, stop=stop, logprobs=2, sinks=sinks(names[i]))
            )
    done = [r for r in runs if r]
    return lay_side_by_side(scenario, arms[: len(done)], done, order, warm_up), [r[-1] for r in done]


def lay_side_by_side(
    scenario: Scenario,
    arms: Sequence[tuple[str, dict[str, Any]]],
    runs: list[list[Run]],
    order: list[list[str]],
    warm_up: str | None = None,
) -> Comparison:
    """Tell the differences of runs that were made: for each arm its runs, one a repeat."""
    last = [r[-1] for r in runs]
    reports = [r.report for r in last]
    ids = [str(r.id) for r in scenario.requests]
    outputs = [{r.id: r.output_ids for r in report.requests} for report in reports]
    return Comparison(
        scenario=scenario.name,
        arms=[Arm(name=n, set=c, report=r) for (n, c), r in zip(arms, reports, strict=True)],
        order=order, repeats=max(map(len, runs), default=0), warm_up=warm_up,
        paired=paired(ids, [[r.report for r in arm] for arm in runs]),
        outputs_equal=all(o == outputs[0] for o in outputs),
        first_difference=first_difference(ids, last), first_decision=first_decision([r.trace.events for r in last]),
    )  # fmt: skip


def warm_up_of(scenario: Scenario) -> Scenario:
    """The first request alone, two tokens long: the same shapes, not the same run."""
    first = scenario.requests[0].model_copy(update={"max_new_tokens": 2, "after": None, "at": None, "at_step": None})
    return scenario.model_copy(update={"requests": [first]})


def _median(values: list[float]) -> float | None:
    return median(values) if values else None


def paired(ids: Sequence[str], arms: list[list[Report]]) -> list[Paired]:
    """TTFTs request by request: for each arm the median over its repeats (None where it had none)."""
    known = [[{r.id: r for r in report.requests} for report in arm] for arm in arms]
    out = []
    for name in ids:
        rows = [[requests[name] for requests in arm if name in requests] for arm in known]
        out.append(
            Paired(
                id=name,
                ttft=[_median([r.ttft for r in row if r.ttft is not None]) for row in rows],
                share_of_total=[_median([s for r in row if (s := _share(r)) is not None]) for row in rows],
            )
        )
    return out


def _share(r: RequestReport) -> float | None:
    if r.ttft is None or r.finished is None or r.finished <= r.arrived:
        return None
    return round(r.ttft / (r.finished - r.arrived), 6)


def first_difference(ids: Sequence[str], runs: list[Run]) -> FirstDifference | None:
    """The first request, in file order, whose output differs from the first arm's."""
    known = [{r.id: r.output_ids for r in one.report.requests} for one in runs]
    for name in ids:
        outputs: list[list[int]] = [outputs.get(name, []) for outputs in known]
        if all(o == outputs[0] for o in outputs):
            continue
        position = next(
            p for p in range(max(map(len, outputs)) + 1)
            if len({o[p] if p < len(o) else None for o in outputs}) > 1
        )  # fmt: skip
        return FirstDifference(
            request=name, position=position,
            ids=[o[position] if position < len(o) else None for o in outputs], gap=_gap(runs[0].trace.events, name, position),
        )  # fmt: skip
    return None


def _gap(events: list[ev.Event], request: str, position: int) -> float | None:
    for event in events:
        if isinstance(event, ev.TokenEmitted) and event.request == request and event.position == position and len(event.top) > 1:
            return round(event.top[0][1] - event.top[1][1], 6)
    return None


DECISIONS = ((ev.RequestRouted, ev.RequestAdmitted, ev.RequestRetracted, ev.Eviction), (ev.StepPlanned,))
"""What arms are compared by: which replica each went to, who was admitted, sent back, evicted; only where that agrees, by each step's plan."""


def first_decision(traces: list[list[ev.Event]]) -> FirstDecision | None:
    """The first decision at which the arms part."""
    for kinds in DECISIONS:
        decisions = [[e for e in events if isinstance(e, kinds)] for events in traces]
        for i in range(max(map(len, decisions), default=0)):
            at = [d[i] if i < len(d) else None for d in decisions]
            if len({_what(e) for e in at}) > 1:
                return FirstDecision(seq=[e.seq if e else None for e in at], why=", against: ".join(_what(e) for e in at))
    return None


def _what(event: ev.Event | None) -> str:
    match event:
        case ev.RequestRouted():
            return f"{event.request} goes to replica {event.chosen}"
        case ev.RequestAdmitted():
            again = "" if event.first else " again"
            return f"{event.request} is admitted{again} with {event.length} tokens from the cache"
        case ev.RequestRetracted():
            return f"{event.request} is retracted"
        case ev.Eviction():
            return f"{event.freed} pages are evicted"
        case ev.StepPlanned():
            return f"a {event.mode} step of {sum(event.tokens)} tokens for {', '.join(event.members[:4])}"
    return "nothing more"

