"""TTFT beside the same traffic without the cache: the facts of a comparison, ready to be drawn.

A pure function of a comparison; the page and the notebooks draw the same dictionary.
"""

from __future__ import annotations

from statistics import median
from typing import Any

from engine import events as ev
from workbench.compare import Comparison
from workbench.figures.verdict import lasted, sentence
from workbench.replicas import count
from workbench.report import Report
from workbench.times import simulated


def ttft_pairs(result: Comparison) -> dict[str, Any]:
    """Two arms side by side: one row a request, the medians of both, and one honest sentence.

    Times in seconds; `simulated` says so, and for which machine, when they come from a virtual clock, else it is None.
    """
    first, second = result.arms[0], result.arms[1]
    rows = []
    known = [{r.id: r for r in arm.report.requests} for arm in (first, second)]
    for pair in result.paired:
        a, b = (requests[pair.id] for requests in known)
        rows.append(
            {
                "id": pair.id, "ttft": pair.ttft[:2], "share": pair.share_of_total[:2],
                "computed": [a.computed_tokens, b.computed_tokens], "cached": [a.cached_tokens, b.cached_tokens],
                "whole": [lasted(a), lasted(b)],
            }
        )  # fmt: skip
    return {
        "arms": [first.name, second.name],
        "simulated": simulated(first.report.header),
        "rows": rows,
        "median": [middle(first.report), middle(second.report)],
        "computed": [first.report.totals.computed_tokens, second.report.totals.computed_tokens],
        "cached": [first.report.totals.cached_tokens, second.report.totals.cached_tokens],
        "duration": [first.report.totals.duration, second.report.totals.duration],
        "equal": result.outputs_equal,
        "sentence": sentence(result),
        "difference": _difference(result),
    }


def middle(report: Report) -> float | None:
    """The median TTFT of a run, in seconds."""
    known = [r.ttft for r in report.requests if r.ttft is not None]
    return median(known) if known else None


def _difference(result: Comparison) -> str | None:
    d = result.first_difference
    if d is None:
        return None
    gap = "unknown" if d.gap is None else f"{d.gap:.4f}"
    return f"{d.request} differs first at output token {d.position + 1}; the gap between its two best tokens there was {gap} (log-probability)."


def pool_fill(trace: ev.Trace, most: int = 400) -> list[tuple[float, float]]:
    """(t, share of all pages in use, of all replicas together) after each step, at most `most` points: another arm's line in the timeline."""
    used, pages = 0, trace.header.pages * count(trace.header)
    points: list[tuple[float, float]] = []
    for event in trace.events:
        if isinstance(event, ev.PageAllocated):
            used += len(event.pages)
        elif isinstance(event, ev.PageFreed):
            used -= len(event.pages)
        if isinstance(event, (ev.StepPlanned, ev.RunEnded)):
            points.append((event.t, round(used / pages, 4)))
    stride = max(1, len(points) // most)
    return points[::stride]
