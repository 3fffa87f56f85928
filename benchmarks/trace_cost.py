"""What tracing costs: microseconds an event, and the share of a run on the embedded model.

Counted inside the run: every call that tells the trace something is timed there. To reach: a median of
at most 2 us an event and under 3 % of the run. `python benchmarks/trace_cost.py [--scripted]`
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import msgspec

from engine import events as ev
from workbench import scenario as scenarios
from workbench.runner import run


class Silent(ev.Trace):
    """A trace with a call that costs what calling and timing cost, and does nothing."""

    def nothing(self, event: type[ev.Event], **fields: Any) -> None:
        """Take an event and forget it."""


class TimedTrace(Silent):
    """A trace that times itself, net of what a call and two looks at the clock cost in the same place."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.emits: list[float] = []
        self.commits: list[float] = []
        self.each: list[float] = []
        self.counted = 0

    def emit(self, event: type[ev.Event], **fields: Any) -> None:
        start = time.perf_counter()
        super().emit(event, **fields)
        told = time.perf_counter()
        super().nothing(event, **fields)  # type: ignore[misc]
        self.emits.append(told - start - (time.perf_counter() - told))

    def tell(self, event: ev.Event) -> None:
        start = time.perf_counter()
        msgspec.structs.replace(event)  # it comes built: built once more, to count what that costs
        super().tell(event)
        told = time.perf_counter()
        super().nothing(type(event))
        self.emits.append(told - start - (time.perf_counter() - told))

    def commit(self) -> None:
        count = len(self.emits) - self.counted
        start = time.perf_counter()
        super().commit()
        took = time.perf_counter() - start
        self.commits.append(took)
        if count:
            each = (sum(self.emits[self.counted :]) + took) / count
            self.each += [each] * count
            self.counted += count


def main() -> None:
    """Run the handbook preset on the embedded model (or the scripted one) and print the cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scripted", action="store_true", help="the scripted capacity preset: no model needed")
    args = parser.parse_args()
    scenario = scenarios.load("capacity-cyclic-1024" if args.scripted else "handbook")
    loaded = None
    if not args.scripted:
        from engine import load_model

        loaded = load_model("embedded")
    ev.Trace, plain = TimedTrace, ev.Trace  # type: ignore[misc]
    try:
        for _ in range(2):  # the first one warms up
            start = time.perf_counter()
            trace = run(scenario, loaded=loaded).trace
            took = time.perf_counter() - start
    finally:
        ev.Trace = plain  # type: ignore[misc]
    assert isinstance(trace, TimedTrace)
    told = sum(trace.emits) + sum(trace.commits)
    print(f"{len(trace.emits):,} events in a run of {took:.2f} s ({scenario.name})")
    p90 = sorted(trace.each)[int(len(trace.each) * 0.9)]
    print(f"an event, told and committed: median {statistics.median(trace.each) * 1e6:.2f} us, p90 {p90 * 1e6:.2f} us")
    print(f"all of it: {told * 1e3:.2f} ms, {told / took:.3%} of the run")


if __name__ == "__main__":
    main()
