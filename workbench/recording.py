"""A recorded trace as a scenario again: the recorded tokens, every arrival pinned to its step.

Run on the replay executor it takes the same decisions without model or GPU; only times are simulated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from engine import events as ev
from workbench.replay import fold
from workbench.replicas import count
from workbench.report import Report, RequestReport, build
from workbench.runner import Run, run
from workbench.scenario import Scenario, ScenarioError, parse


def as_scenario(trace: ev.Trace, overrides: dict[str, Any] | None = None) -> Scenario:
    """The scenario that repeats a trace. Raises ScenarioError when the trace holds no request, or was made with parts of its caller's own."""
    if trace.header.plugs:
        raise ScenarioError(
            f"the run was made with parts that its caller brought ({', '.join(trace.header.plugs)}); a trace does not hold them, so it can be looked at and not run again"
        )
    if count(trace.header) > 1:
        raise ScenarioError(f"a trace of {count(trace.header)} replicas cannot be replayed: arrivals are pinned to steps, and replicas count theirs each for itself; run its scenario again")
    state = fold(trace.events)
    aborted, failed = _ends(trace.events)
    stops = {e.request: e.matched_stop for e in trace.events if isinstance(e, ev.RequestFinished)}
    requests: list[dict[str, Any]] = []
    for event in trace.events:
        if not isinstance(event, ev.RequestArrived):
            continue
        was = state.requests[event.request]
        # A script that is over ends its request; one that ended otherwise had more to say.
        said = was.output if was.reason in ("stop", "length") else [*was.output, 0]
        stop = stops.get(event.request)
        salt, adapter, content = event.namespace or (None, None, None)
        requests.append(
            {
                "id": event.request, "label": event.label, "at_step": event.step, "tokens": event.prompt,
                "max_new_tokens": event.max_new_tokens, "score_from": event.score_from, "salt": salt, "adapter": adapter,
                "content": content if event.content is None else event.content, "content_at": event.content_at,
                "says": list(said), "store": event.store, "pin": event.pin, "priority": event.priority,
                "stop_token_ids": [stop] if isinstance(stop, int) else [],
                "abort_at_step": aborted.get(event.request), "fail_at_step": failed.get(event.request),
            }
        )  # fmt: skip
    if not requests:
        raise ScenarioError("the trace holds no request; there is nothing to replay")
    engine = {k: v for k, v in trace.header.config.items() if k not in ("model", "device", "dtype")} | _link(trace.header)
    return parse(
        {
            "name": trace.header.scenario or "recording", "note": _note(trace), "seed": trace.header.seed,
            "engine": engine | {"executor": "replay"}, "requests": requests,
        },
        overrides,
    )  # fmt: skip


@dataclass
class Again:
    """A recording that was run again."""

    run: Run
    recorded: Report
    """The report of the recording itself, with the times that were measured then."""
    same: bool
    """Whether every request was served, reused and answered as it was recorded."""


def run_again(trace: ev.Trace, overrides: dict[str, Any] | None = None, *, check: bool = False) -> Again:
    """Replay a recording; what its tokens read like comes from it as well. Raises ScenarioError as `as_scenario` does."""
    done = run(as_scenario(trace, overrides), check=check)
    recorded = build(trace.header, trace.events)
    done.trace.header.texts = dict(trace.header.texts)
    was = {r.id: r for r in recorded.requests}
    for request in done.report.requests:
        if request.output_text is None and request.output_ids == was[request.id].output_ids:
            request.output_text = was[request.id].output_text
    return Again(done, recorded, [_served(r) for r in done.report.requests] == [_served(r) for r in recorded.requests])


def _served(r: RequestReport) -> tuple[Any, ...]:
    """What became of a request, times apart."""
    return (r.id, r.status, r.finish_reason, r.cached_tokens, r.computed_tokens, r.recomputed_tokens, r.retractions, tuple(r.output_ids))


def _link(header: ev.Header) -> dict[str, Any]:
    """With a host tier: the recording's rates, in the replay's unit of a byte a token, so that loads are decided as they were."""
    rates = header.rates
    if not {"kv_bytes", "prefill_rate", "host_bandwidth"} <= set(rates):
        return {}
    clock = header.config.get("clock", {}) | {"token": 1 / rates["prefill_rate"]}
    return {"clock": clock, "host_bandwidth": rates["host_bandwidth"] / rates["kv_bytes"]}


def _note(trace: ev.Trace) -> str | None:
    """The recording's note; with a word where it had grammars or scores, for which a replay has no model."""
    shaped = any(isinstance(e, ev.RequestArrived) and (e.regex or e.json_schema) for e in trace.events)
    scored = any(isinstance(e, ev.TokensScored) for e in trace.events)
    said = [
        trace.header.note,
        "Replayed without its grammars: the recorded tokens come one a pass, none is jumped over." if shaped else None,
        "Replayed without its scores: the recorded log-probabilities stand in the recording." if scored else None,
    ]
    return " ".join(s for s in said if s) or None


def _ends(events: Iterable[ev.Event]) -> tuple[dict[str, int], dict[str, int]]:
    """The steps at which requests were aborted, and at which their forward failed."""
    aborted: dict[str, int] = {}
    failed: dict[str, int] = {}
    for event in events:
        if isinstance(event, ev.RequestAborted):
            aborted[event.request] = event.step
        elif isinstance(event, ev.ExecutorFailed):
            failed.update(dict.fromkeys(event.members, event.step))
    return aborted, failed
