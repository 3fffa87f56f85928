"""A trace of several replicas as one trace a replica: each is that of a single engine, and all that reads such a one reads it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

import msgspec

from engine import events as ev


def count(header: ev.Header) -> int:
    """How many replicas a run had."""
    return int(header.config.get("replicas", 1))


class Parts:
    """A run's events handed out to its replicas as they come. `numbers[i]` are those that replica i's events have in the run."""

    def __init__(self, replicas: int) -> None:
        self.numbers: list[list[int]] = [[] for _ in range(replicas)]
        self._told_by: list[int] = []

    def __len__(self) -> int:
        return len(self._told_by)

    def take(self, event: ev.Event) -> ev.Event:
        """The run's next event, numbered anew among those of its replica."""
        mine = self.numbers[event.replica]
        seq = len(mine)
        mine.append(event.seq)
        self._told_by.append(event.replica)
        return event if event.seq == seq else msgspec.structs.replace(event, seq=seq)

    def told_by(self, moment: int) -> int:
        """The replica that told the run's event `moment`."""
        return self._told_by[moment]

    def at(self, moment: int, replica: int) -> int:
        """A replica's newest event when the run stood at its event `moment`; -1 where it had told nothing yet."""
        return bisect_right(self.numbers[replica], moment) - 1


def split(events: Iterable[ev.Event], replicas: int) -> list[list[ev.Event]]:
    """Each replica's events, numbered anew from 0. `request.routed` stands with the replica that was chosen."""
    out: list[list[ev.Event]] = [[] for _ in range(replicas)]
    parts = Parts(replicas)
    for event in events:
        out[event.replica].append(parts.take(event))
    return out


def traces(trace: ev.Trace) -> list[ev.Trace]:
    """A trace a replica, all with the same header."""
    replicas = count(trace.header)
    if replicas == 1:
        return [trace]
    out = []
    for part in split(trace.events, replicas):
        one = ev.Trace(trace.header)
        one.events, one.seq = part, len(part)
        out.append(one)
    return out


def trace_of(trace: ev.Trace, replica: int) -> ev.Trace:
    """One replica's part of a trace, as a trace. Raises ValueError where there is none."""
    replicas = count(trace.header)
    if not 0 <= replica < replicas:
        raise ValueError(f"replica: must be 0 to {replicas - 1}; got {replica}")
    return traces(trace)[replica]


def shares(values: list[int]) -> list[float | None]:
    """Each value's share of their sum; None where that is 0."""
    total = sum(values)
    return [round(v / total, 6) if total else None for v in values]


def busy_seconds(events: Iterable[ev.Event]) -> float:
    """Seconds in which a replica planned or ran a step."""
    return sum(_taken(e) for e in events if isinstance(e, ev.StepFinished))


def _taken(e: Any) -> float:
    return (0.0 if e.ahead else e.plan_seconds) + e.forward_seconds + e.sample_seconds
