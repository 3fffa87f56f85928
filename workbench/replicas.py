"""A trace of several replicas as one trace a replica: each is that of a single engine, and all that reads such a one reads it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from engine import events as ev


def count(header: ev.Header) -> int:
    """How many replicas a run had."""
    return int(header.config.get("replicas", 1))


def split(events: Iterable[ev.Event], replicas: int) -> list[list[ev.Event]]:
    """Each replica's events, numbered anew from 0. `request.routed` stands with the replica that was chosen."""
    out: list[list[ev.Event]] = [[] for _ in range(replicas)]
    for event in events:
        mine = out[event.replica]
        mine.append(event if event.seq == len(mine) else msgspec.structs.replace(event, seq=len(mine)))
    return out


def trace_of(trace: ev.Trace, replica: int) -> ev.Trace:
    """One replica's part of a trace, as a trace. Raises ValueError where there is none."""
    replicas = count(trace.header)
    if not 0 <= replica < replicas:
        raise ValueError(f"replica: must be 0 to {replicas - 1}; got {replica}")
    if replicas == 1:
        return trace
    one = ev.Trace(trace.header)
    one.events = split(trace.events, replicas)[replica]
    one.seq = len(one.events)
    return one


def shares(values: list[int]) -> list[float | None]:
    """Each value's share of their sum; None where that is 0."""
    total = sum(values)
    return [round(v / total, 6) if total else None for v in values]


def busy_seconds(events: Iterable[ev.Event]) -> float:
    """Seconds in which a replica planned or ran a step."""
    return sum(_taken(e) for e in events if isinstance(e, ev.StepFinished))


def _taken(e: Any) -> float:
    return (0.0 if e.ahead else e.plan_seconds) + e.forward_seconds + e.sample_seconds
