"""Traffic that shares nothing: what it costs to keep a tree that is never of use."""

from __future__ import annotations

from typing import Any

from workbench import scenario as scenarios
from workbench.compare import warm_up_of
from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import MEASURED, told, within
from workbench.experiments.stopwatch import Stopwatch

REQUESTS, PROMPT, ANSWER = 100, 256, 8
QUICK_REQUESTS, QUICK_PROMPT = 6, 64
PUBLISHED = (0.2, 74.3)
"""Seconds with the tree, of all seconds, for 100 requests."""
MOST = 0.3
"""Per cent of the run."""


def traffic(requests: int, prompt: int) -> dict[str, Any]:
    """Prompts that part at their first token, one after the other, in a pool that has to evict."""
    return {
        "name": "overhead", "engine": {"executor": "model", "pages": 8 * (prompt + ANSWER)},
        "workload": {
            "kind": "shared_prefix", "groups": requests, "per_group": 1, "prefix": 0, "question": prompt,
            "output": ANSWER, "sequential": True,
        },
    }  # fmt: skip


def find(bench: Bench) -> Findings:
    """A warm-up, then the same traffic with the cache off and on, the cache's calls timed."""
    count, length = (QUICK_REQUESTS, QUICK_PROMPT) if bench.quick else (REQUESTS, PROMPT)
    data = traffic(count, length)
    bench.run(
        scenarios.as_data(warm_up_of(scenarios.parse(data)).model_copy(update={"workload": None})),
        "warming up (not measured)",
    )
    off = bench.run(data, f"{count} requests, cache off", cache="off")
    watch = Stopwatch()
    on = bench.run(data, f"{count} requests, cache on", started=watch.start)
    whole, without = on.report.totals.duration, off.report.totals.duration
    share = 100 * watch.seconds / whole
    rows = [
        told("whole run, cache off", round(without, 2), "s", "measured"),
        told("whole run, cache on", round(whole, 2), "s", "measured", *((PUBLISHED[1], MEASURED) if not bench.quick else ())),
        told("longer with the cache on, noise included", round(100 * (whole - without) / without, 2), "%", "measured"),
        told(f"inside the cache, {watch.calls:,} calls", round(watch.seconds, 4), "s", "measured", *((PUBLISHED[0], MEASURED) if not bench.quick else ())),
        within("inside the cache, of the whole run", round(share, 3), None, MOST, "%", "measured", rule=f"under {MOST} %",
               published=round(100 * PUBLISHED[0] / PUBLISHED[1], 2), source=MEASURED),
        told("prompt tokens reused", on.report.totals.cached_tokens, "tokens", "measured"),
    ]  # fmt: skip
    setup = (
        f"{count} prompts of {length} random tokens that share nothing, one after the other, {ANSWER} tokens answered each, on the model; a pool with room for "
        "eight, so that the tree also evicts. Once with the cache off and once on, after a warm-up; timed are all calls of the cache, the events that they tell included."
    )
    why = "Another model on another machine: the whole run takes another time, and the cache's share follows from it. Two runs of the model differ by more than the cache costs."
    return Findings(setup, rows, on, why)


PLAN = Plan(
    "overhead", "Nothing is ever reused: what does keeping the tree cost?", "measured", "seconds, on the model", "minutes, on the model", find,
)  # fmt: skip
