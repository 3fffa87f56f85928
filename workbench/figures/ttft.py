"""TTFT beside the same traffic without the cache: the facts of a comparison, ready to be drawn.

A pure function of a comparison; the page and the notebooks draw the same dictionary.
"""

from __future__ import annotations

from typing import Any

from engine import events as ev
from workbench.compare import Comparison
from workbench.report import RequestReport


def ttft_pairs(result: Comparison) -> dict[str, Any]:
    """Two arms side by side: one row a request, the medians of both, and one honest sentence.

    Times in seconds; `simulated` when they come from a virtual clock.
    """
    first, second = result.arms[0], result.arms[1]
    rows = []
    for pair, a, b in zip(result.paired, first.report.requests, second.report.requests, strict=True):
        rows.append(
            {
                "id": pair.id, "ttft": pair.ttft[:2], "share": pair.share_of_total[:2],
                "computed": [a.computed_tokens, b.computed_tokens], "cached": [a.cached_tokens, b.cached_tokens],
                "whole": [_whole(a), _whole(b)],
            }
        )  # fmt: skip
    return {
        "arms": [first.name, second.name],
        "simulated": first.report.header.clock == "virtual",
        "rows": rows,
        "median": [first.report.totals.ttft.p50, second.report.totals.ttft.p50],
        "computed": [first.report.totals.computed_tokens, second.report.totals.computed_tokens],
        "cached": [first.report.totals.cached_tokens, second.report.totals.cached_tokens],
        "duration": [first.report.totals.duration, second.report.totals.duration],
        "equal": result.outputs_equal,
        "sentence": sentence(result),
        "difference": _difference(result),
    }


def _whole(r: RequestReport) -> float | None:
    return None if r.finished is None else round(r.finished - r.arrived, 6)


def sentence(result: Comparison) -> str:
    """How much sooner the first token came, and how much of the whole request that was."""
    reused = [
        (pair.ttft, _whole(a), _whole(b))
        for pair, a, b in zip(result.paired, result.arms[0].report.requests, result.arms[1].report.requests, strict=True)
        if a.cached_tokens
    ]
    pairs = [(t[0], t[1], a, b) for t, a, b in reused if t[0] and t[1] and a and b]
    if not pairs:
        return "No request found anything in the cache, so the cache saved nothing here."
    sooner = _middle([off / on for on, off, _, _ in pairs])
    whole = _middle([b / a for _, _, a, b in pairs])
    count = "the one request" if len(pairs) == 1 else f"the {len(pairs)} requests"
    return (
        f"For {count} that found something in the cache, the first token came {sooner:.1f} times sooner (median) "
        f"and the whole answer {whole:.1f} times sooner: reuse shortens the prefill, not the decoding."
    )


def _middle(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 2]


def _difference(result: Comparison) -> str | None:
    d = result.first_difference
    if d is None:
        return None
    gap = "unknown" if d.gap is None else f"{d.gap:.4f}"
    return f"{d.request} differs first at output token {d.position + 1}; the gap between its two best tokens there was {gap} (log-probability)."


def pool_fill(trace: ev.Trace, most: int = 400) -> list[tuple[float, float]]:
    """(t, share of all pages in use) after each step, at most `most` points: another arm's line in the timeline."""
    used = 0
    points: list[tuple[float, float]] = []
    for event in trace.events:
        if isinstance(event, ev.PageAllocated):
            used += len(event.pages)
        elif isinstance(event, ev.PageFreed):
            used -= len(event.pages)
        if isinstance(event, (ev.StepPlanned, ev.RunEnded)):
            points.append((event.t, round(used / trace.header.pages, 4)))
    stride = max(1, len(points) // most)
    return points[::stride]
