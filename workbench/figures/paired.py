"""Charts of a comparison, as plotly figures: paired TTFT dots, TTFT distributions, what each arm computed.

Pure functions of a comparison.
"""

from __future__ import annotations

import plotly.graph_objects as go

from workbench.compare import Comparison
from workbench.figures.look import COLOURS, PATTERNS, SYMBOLS, look
from workbench.times import simulated


def _axis(result: Comparison, what: str) -> str:
    said = simulated(result.arms[0].report.header)
    return f"{what}, seconds" + (f" ({said})" if said else "")


def paired_dots(result: Comparison) -> go.Figure:
    """One line a request, one dot an arm: the TTFT of the same request in every arm."""
    figure = go.Figure()
    pairs = result.paired[::-1]
    for pair in pairs:
        times = [t for t in pair.ttft if t is not None]
        if len(times) > 1:
            figure.add_scatter(
                x=[min(times), max(times)], y=[pair.id, pair.id], mode="lines", line={"color": "rgba(128,128,128,.5)", "width": 1.5},
                hoverinfo="skip", showlegend=False,
            )  # fmt: skip
    for i, arm in enumerate(result.arms):
        rows = [(p.ttft[i], p.id) for p in pairs if p.ttft[i] is not None]
        figure.add_scatter(
            x=[x for x, _ in rows], y=[y for _, y in rows], mode="markers", name=arm.name,
            marker={"color": COLOURS[i % 4], "symbol": SYMBOLS[i % 4], "size": 10},
            hovertemplate=f"%{{y}}, {arm.name}: %{{x:.3f}} s<extra></extra>",
        )  # fmt: skip
    figure.update_yaxes(type="category")
    return look(figure, 140 + 24 * len(pairs), xaxis_title=_axis(result, "time to first token"))


def distributions(result: Comparison) -> go.Figure:
    """Every arm's TTFTs as a stepped share: how many requests had their first token by then."""
    figure = go.Figure()
    for i, arm in enumerate(result.arms):
        times = sorted(r.ttft for r in arm.report.requests if r.ttft is not None)
        figure.add_scatter(
            x=[0.0, *times], y=[100 * k / len(times) if times else 0 for k in range(len(times) + 1)], name=arm.name,
            mode="lines+markers", line={"shape": "hv", "color": COLOURS[i % 4], "width": 2},
            marker={"symbol": SYMBOLS[i % 4], "size": 7}, hovertemplate=f"{arm.name}: %{{y:.0f}} % by %{{x:.3f}} s<extra></extra>",
        )  # fmt: skip
    return look(
        figure, 300, xaxis_title=_axis(result, "time to first token"), yaxis_title="requests answering, %", yaxis_range=[0, 103]
    )


def computed(result: Comparison) -> go.Figure:
    """Prompt tokens of every arm: found in the cache, computed, computed again after a retraction."""
    figure = go.Figure()
    names = [arm.name for arm in result.arms][::-1]
    totals = [arm.report.totals for arm in result.arms][::-1]
    parts = (
        ("cached", "#009e73", [t.cached_tokens for t in totals]),
        ("computed", "#e69f00", [t.computed_tokens for t in totals]),
        ("computed again", "#d55e00", [t.recomputed_tokens for t in totals]),
    )
    for (label, colour, values), pattern in zip(parts, PATTERNS, strict=False):
        if not any(values):
            continue
        figure.add_bar(
            y=names, x=values, name=label, orientation="h",
            marker={"color": colour, "pattern": {"shape": pattern, "fillmode": "overlay", "fgcolor": "rgba(255,255,255,.5)", "size": 7, "solidity": 0.2}},
            text=[f"{v:,}" if v else "" for v in values], textposition="inside", insidetextanchor="middle", textangle=0,
            insidetextfont={"color": "#0d1114", "size": 12.5},
            hovertemplate=f"%{{y}}: %{{x:,}} tokens {label}<extra></extra>",
        )  # fmt: skip
    figure.update_yaxes(type="category")
    return look(figure, 110 + 44 * len(names), barmode="stack", xaxis_title="prompt tokens", yaxis_ticksuffix="  ")
