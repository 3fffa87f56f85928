"""Charts of an experiment, as plotly figures: hit rate against capacity, reuse against fairness, shares of the best possible,
times of two ways, times to first token, and what each change of a prompt's order costs.

Pure functions of a chart's data; `draw` picks the one that a chart's kind names.
"""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go

from workbench.experiments.result import Chart
from workbench.figures.look import COLOURS, PATTERNS, SYMBOLS, look

FADED = "rgba(128,128,128,.8)"


def draw(chart: Chart) -> go.Figure:
    """The figure that a chart asks for."""
    return _FIGURES[chart.kind](chart)


def capacity(chart: Chart) -> go.Figure:
    """Hit rate against capacity, a line a case, under the best that any cache could reach."""
    figure = go.Figure()
    for i, curve in enumerate(chart.curves):
        figure.add_scatter(
            x=[p.x for p in curve.points], y=[p.y for p in curve.points], name=curve.name, mode="lines+markers",
            line={"color": COLOURS[i % 4], "width": 2}, marker={"symbol": SYMBOLS[i % 4], "size": 9},
            text=[p.label or "" for p in curve.points], hovertemplate=f"{curve.name}<br>%{{text}}: {_hovered(chart.y)}<extra></extra>",
        )  # fmt: skip
    _ceiling(figure, chart)
    return look(
        figure,
        340,
        xaxis_title=chart.x,
        xaxis_tickformat=",",
        yaxis_title=chart.y,
        yaxis_rangemode="tozero",
        **({"xaxis_type": "log"} if chart.log_x else {"xaxis_rangemode": "tozero"}),
    )


def fairness(chart: Chart) -> go.Figure:
    """Reuse against the slowest wait: a line through the bounds, a mark for each other policy. Up and left is better."""
    figure = go.Figure()
    for i, curve in enumerate(chart.curves):
        line = len(curve.points) > 1
        figure.add_scatter(
            x=[p.x for p in curve.points], y=[p.y for p in curve.points], name=curve.name,
            mode="lines+markers+text" if line else "markers",
            line={"color": COLOURS[i % 4], "width": 2}, marker={"color": COLOURS[i % 4], "symbol": SYMBOLS[i % 4], "size": 10},
            text=_first_of_each_place([(p.x, p.y, p.label or "") for p in curve.points]), textposition="top right", cliponaxis=False,
            customdata=[p.label or curve.name for p in curve.points],
            hovertemplate="%{customdata}<br>slowest wait %{x:,} tokens, reuse %{y:.1f} %<extra></extra>",
        )  # fmt: skip
    _ceiling(figure, chart)
    return look(figure, 400, xaxis_title=chart.x, xaxis_tickformat=",", yaxis_title=chart.y, yaxis_range=[0, 100])


def _first_of_each_place(points: list[tuple[float | str, float, str]]) -> list[str]:
    """Labels, those that would lie on another left out."""
    seen: set[tuple[float | str, float]] = set()
    out = []
    for x, y, label in points:
        out.append("" if (x, y) in seen else label)
        seen.add((x, y))
    return out


def shares(chart: Chart) -> go.Figure:
    """Bars in groups: what each policy reached of the best possible, a colour a batch."""
    figure = go.Figure()
    for i, curve in enumerate(chart.curves):
        figure.add_bar(
            x=[p.x for p in curve.points], y=[p.y for p in curve.points], name=curve.name,
            marker={"color": COLOURS[i % 4], "pattern": {"shape": PATTERNS[i % 4]}},
            hovertemplate=f"%{{x}}, {curve.name}: %{{y:.1f}} %<extra></extra>",
        )  # fmt: skip
    _ceiling(figure, chart)
    return look(figure, 360, barmode="group", xaxis_title=chart.x, yaxis_title=chart.y, yaxis_range=[0, 105])


def times(chart: Chart) -> go.Figure:
    """What each way takes, a line a way; the last one, what was chosen, as marks alone."""
    figure = go.Figure()
    for i, curve in enumerate(chart.curves):
        chosen = curve is chart.curves[-1]
        figure.add_scatter(
            x=[p.x for p in curve.points], y=[p.y for p in curve.points], name=curve.name, mode="markers" if chosen else "lines",
            line={"color": COLOURS[i % 4], "width": 2, "dash": "dash" if i % 2 else "solid"},
            marker={"color": COLOURS[i % 4], "symbol": SYMBOLS[i % 4], "size": 10},
            text=[p.label or "" for p in curve.points], hovertemplate=f"{curve.name} (%{{text}}): %{{y:.2f}}<extra></extra>",
        )  # fmt: skip
    return look(figure, 360, xaxis_title=chart.x, yaxis_title=chart.y, yaxis_rangemode="tozero", xaxis_rangemode="tozero")


def spans(chart: Chart) -> go.Figure:
    """What went on when: a lane a curve, a bar from each point's x, as long as its y says; its label inside."""
    figure = go.Figure()
    for i, curve in enumerate(chart.curves):
        figure.add_bar(
            base=[p.x for p in curve.points], x=[p.y for p in curve.points], y=[curve.name] * len(curve.points), orientation="h",
            marker={"color": COLOURS[i % 2], "pattern": {"shape": PATTERNS[i % 2]}, "line": {"color": FADED, "width": 1}},
            text=[(p.label or "").rsplit(" ", 1)[-1] for p in curve.points], textposition="inside", insidetextanchor="middle", textangle=0,
            customdata=[p.label for p in curve.points], name=curve.name, showlegend=False,
            hovertemplate="%{customdata}: from %{base} for %{x} ms<extra></extra>",
        )  # fmt: skip
    return look(figure, 300, barmode="overlay", xaxis_title=chart.x, yaxis_autorange="reversed", bargap=0.35)


def tradeoff(chart: Chart) -> go.Figure:
    """One figure against another, a named mark a case."""
    figure = go.Figure()
    for i, curve in enumerate(chart.curves):
        figure.add_scatter(
            x=[p.x for p in curve.points], y=[p.y for p in curve.points], name=curve.name, mode="markers",
            marker={"color": COLOURS[i % 4], "symbol": SYMBOLS[i % 4], "size": 13},
            hovertemplate=f"{curve.name}<br>{chart.x}: %{{x}}<br>{chart.y}: %{{y}}<extra></extra>",
        )  # fmt: skip
    return look(figure, 360, xaxis_title=chart.x, yaxis_title=chart.y, yaxis_range=[0, 100], xaxis_rangemode="tozero")


def distribution(chart: Chart) -> go.Figure:
    """How many of the requests (in per cent) had it by then: a staircase a case, over times on a logarithmic axis."""
    figure = go.Figure()
    for i, curve in enumerate(chart.curves):
        figure.add_scatter(
            x=[p.x for p in curve.points], y=[p.y for p in curve.points], name=curve.name, mode="lines+markers",
            line={"color": COLOURS[i % 4], "width": 2, "shape": "hv", "dash": "dash" if i % 2 else "solid"},
            marker={"symbol": SYMBOLS[i % 4], "size": 7}, text=[p.label or "" for p in curve.points],
            hovertemplate=f"{curve.name}: %{{text}}<br>%{{x:,.1f}}, %{{y:.0f}} % by then<extra></extra>",
        )  # fmt: skip
    return look(figure, 340, xaxis_title=chart.x, xaxis_type="log", yaxis_title=chart.y, yaxis_range=[0, 105])


def waterfall(chart: Chart) -> go.Figure:
    """What is left of the first bar after each change alone, and above it what that change costs, as far as there is any."""
    figure = go.Figure()
    for i, curve in enumerate(chart.curves):
        figure.add_bar(
            x=[p.x for p in curve.points], y=[p.y for p in curve.points], name=curve.name,
            marker={"color": COLOURS[i % 4], "pattern": {"shape": PATTERNS[i % 4]}, "opacity": 0.45 if i else 1},
            text=[p.label or "" for p in curve.points], textposition="inside" if i == 0 else "outside", cliponaxis=False,
            hovertemplate=f"%{{x}}, {curve.name}: %{{y:.1f}}<extra></extra>",
        )  # fmt: skip
    _ceiling(figure, chart)
    return look(figure, 380, barmode="stack", xaxis_title=chart.x, yaxis_title=chart.y, yaxis_range=[0, 108])


def _hovered(axis: str) -> str:
    """A value under the pointer, with its unit where the axis is in per cent."""
    return "%{y:.1f} %" if "%" in axis else "%{y:,.4~r}"


def _ceiling(figure: go.Figure, chart: Chart) -> None:
    if chart.ceiling is None:
        return
    figure.add_hline(
        y=chart.ceiling, line={"color": FADED, "dash": "dash", "width": 1.5},
        annotation={"text": f"best possible, {chart.ceiling:g} %", "font": {"color": FADED, "size": 12}, "yshift": 4}, annotation_position="top right",
    )  # fmt: skip


_FIGURES: dict[str, Callable[[Chart], go.Figure]] = {
    "capacity": capacity, "fairness": fairness, "shares": shares, "times": times, "spans": spans, "tradeoff": tradeoff,
    "distribution": distribution, "waterfall": waterfall,
}  # fmt: skip
