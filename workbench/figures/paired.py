"""Charts of a comparison, as plotly figures: paired TTFT dots, TTFT distributions, what each arm computed.

Pure functions of a comparison; colours are Okabe-Ito, told apart by symbol or pattern as well.
"""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from workbench.compare import Comparison

COLOURS = ("#009e73", "#e69f00", "#0072b2", "#cc79a7")
SYMBOLS = ("circle", "diamond", "square", "triangle-up")
PATTERNS = ("", "/", "x", ".")


def _axis(result: Comparison, what: str) -> str:
    simulated = result.arms[0].report.header.clock == "virtual"
    return f"{what}, seconds" + (" (simulated)" if simulated else "")


def _look(figure: go.Figure, height: int, **more: Any) -> go.Figure:
    figure.update_layout(
        height=height, margin={"l": 8, "r": 8, "t": 8, "b": 8}, paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 12.5, "color": "#7b858f"},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0}, **more,
    )  # fmt: skip
    figure.update_xaxes(gridcolor="rgba(128,128,128,.25)", zeroline=False, automargin=True)
    figure.update_yaxes(gridcolor="rgba(128,128,128,.18)", zeroline=False, automargin=True)
    return figure


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
    return _look(figure, 140 + 24 * len(pairs), xaxis_title=_axis(result, "time to first token"))


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
    return _look(
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
            y=names, x=values, name=label, orientation="h", marker={"color": colour, "pattern": {"shape": pattern}},
            text=[f"{v:,}" if v else "" for v in values], textposition="inside", insidetextanchor="middle",
            hovertemplate=f"%{{y}}: %{{x:,}} tokens {label}<extra></extra>",
        )  # fmt: skip
    figure.update_yaxes(type="category")
    return _look(figure, 110 + 44 * len(names), barmode="stack", xaxis_title="prompt tokens")
