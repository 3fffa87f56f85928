"""Runs a scenario on a fresh engine and returns its trace and report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from engine import Engine, Fleet, Plugs, open_engine
from engine import events as ev
from workbench.replay import fold
from workbench.replicas import split
from workbench.report import Report, build
from workbench.scenario import RequestSpec, Scenario, ScenarioError


@dataclass(repr=False)
class Run:
    """One finished run."""

    scenario: Scenario
    trace: ev.Trace
    report: Report

    def __repr__(self) -> str:
        return f"Run({self.scenario.name!r}, {len(self.scenario.requests)} requests, {len(self.trace)} events)"


def run(
    scenario: Scenario,
    *,
    loaded: Any = None,
    sinks: Iterable[ev.Sink] = (),
    stop: Callable[[], bool] = lambda: False,
    check: bool = False,
    logprobs: int | None = None,
    started: Callable[[Engine | Fleet], None] | None = None,
    plugs: Plugs | None = None,
) -> Run:
    """Run a scenario to its end, or until `stop()` says so.

    `loaded` is a model loaded before (`engine.load_model`); without it the executor loads what it needs.
    `plugs` are parts that take the place of the engine's own.
    `check` watches the invariant at every step and the fold at the end; a breach stands in the report.
    Raises ScenarioError for a request that the engine cannot take.
    """
    header = ev.Header(scenario=scenario.name, note=noted(scenario), seed=scenario.seed)
    trace = ev.Trace(header, keep=True, sinks=sinks)
    engine = open_engine(scenario.engine, loaded=loaded, trace=trace, check=check, plugs=plugs or Plugs())
    if started:
        started(engine)
    for number, request in enumerate(scenario.requests):
        try:
            submit(engine, request, scenario.seed + number, logprobs)
        except ValueError as error:
            said = str(error)
            if request.tokens is not None:
                said = said.replace("prompt:", "tokens:", 1)  # what the scenario calls it
            raise ScenarioError(f"requests.{number}.{said}") from None
    breach: str | None = None
    stopped = False
    try:
        while engine.step() is not None:
            if stop():
                stopped = True
                break
    except RuntimeError as error:
        if not check:
            raise
        breach = str(error)
    engine.finish(stopped)
    if check and breach is None and [fold(part).canonical() for part in split(trace.events, scenario.engine.replicas)] != engine.snapshots():
        breach = "the trace, folded, is not the engine's state"
    header.texts = texts(engine, trace.events)
    report = build(header, trace.events, checked=check)
    if breach and report.invariants == "ok":
        report.invariants = [breach]
    return Run(scenario, trace, report)


def submit(engine: Engine | Fleet, request: RequestSpec, seed: int, logprobs: int | None = None) -> str:
    """Hand one request of a scenario to an engine; `seed` serves sampled requests that name none."""
    fixed = request.seed if request.seed is not None or request.temperature == 0 else seed
    prompt: Any = request.tokens if request.tokens is not None else request.prompt
    return engine.submit(
        prompt, messages=request.messages, id=request.id,
        at=request.at, at_step=request.at_step, after=request.after, think=request.think,
        abort_at_step=request.abort_at_step, fail_at_step=request.fail_at_step,
        namespace=request.namespace, content_at=request.content_at, priority=request.priority, store=request.store, pin=request.pin,
        label=request.label, says=request.says, max_new_tokens=request.max_new_tokens,
        ignore_eos=request.ignore_eos, temperature=request.temperature, top_p=request.top_p,
        top_k=request.top_k, seed=fixed, stop=tuple(request.stop), stop_token_ids=tuple(request.stop_token_ids), logprobs=logprobs,
        regex=request.regex, json_schema=request.json_schema, score_from=request.score_from,
    )  # fmt: skip


def texts(engine: Engine | Fleet, events: Iterable[ev.Event]) -> dict[str, str]:
    """Token id -> text for every id of a trace; empty where the executor has no tokenizer."""
    if engine.tokenizer is None:
        return {}
    ids: set[int] = set()
    for event in events:
        ids.update(token_ids(event))
    return dict(engine.tokenizer.texts(sorted(ids)))


def token_ids(event: ev.Event) -> Iterable[int]:
    """The token ids that an event brings."""
    if isinstance(event, ev.RequestArrived):
        return event.prompt
    if isinstance(event, ev.StepFinished):
        return event.ids
    if isinstance(event, (ev.TokenEmitted, ev.GrammarMasked)):
        return [i for i, _ in event.top]
    if isinstance(event, ev.GrammarVerified):
        return event.draft
    if isinstance(event, ev.GrammarJumped):
        return event.after
    return ()


def noted(scenario: Scenario) -> str | None:
    """A scenario's note, and what the reader of its workload has to tell."""
    told = [f"Workload: {line}." for line in scenario.told]
    return " ".join([*([scenario.note] if scenario.note else []), *told]) or None
