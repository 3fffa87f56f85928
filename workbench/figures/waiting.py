"""Who waited for whom, as plotly figures: a bar a request, and times to first token by class and policy.

Pure functions of runs; a class is whatever the caller tells requests apart by, as `hot` and `cold`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import plotly.graph_objects as go

from workbench.figures.look import COLOURS, PATTERNS, SYMBOLS, look
from workbench.runner import Run
from workbench.times import simulated

WAITING = "rgba(128,128,128,.28)"


def _seconds(run: Run, what: str) -> str:
    said = simulated(run.report.header)
    return f"{what}, seconds" + (f" ({said})" if said else "")


def gantt(run: Run, kind: Callable[[str], str]) -> go.Figure:
    """A lane a request, in the order of arrival: grey while it waits, then its class's colour and pattern while it is computed."""
    figure = go.Figure()
    known = [r for r in run.report.requests if r.admitted is not None and r.first_token is not None]
    lanes = [r.id for r in known]
    figure.add_bar(
        base=[r.arrived for r in known], x=[r.admitted - r.arrived for r in known if r.admitted is not None], y=lanes, orientation="h", name="waits",
        marker={"color": WAITING}, hovertemplate="%{y} waits for %{x:.3f} s<extra></extra>",
    )  # fmt: skip
    for i, one in enumerate(dict.fromkeys(kind(r.id) for r in known)):
        mine = [r for r in known if kind(r.id) == one]
        figure.add_bar(
            base=[r.admitted for r in mine], x=[r.prefill_time for r in mine], y=[r.id for r in mine], orientation="h", name=f"{one}: is computed",
            marker={"color": COLOURS[i % 4], "pattern": {"shape": PATTERNS[i % 4]}}, hovertemplate=f"%{{y}} ({one}) is computed for %{{x:.3f}} s<extra></extra>",
        )  # fmt: skip
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=lanes[::-1], dtick=1, title="request, in order of arrival")
    return look(figure, 110 + 19 * len(lanes), barmode="overlay", bargap=0.3, xaxis_title=_seconds(run, "time"))


def first_tokens(runs: Mapping[str, Run], kind: Callable[[str], str], leave_out: Sequence[str] = ()) -> go.Figure:
    """A mark a request: its time to first token, by policy, each class with a colour and a symbol of its own."""
    figure = go.Figure()
    colours = {one: i for i, one in enumerate(dict.fromkeys(kind(r.id) for run in runs.values() for r in run.report.requests))}
    classes = list(dict.fromkeys(kind(r.id) for run in runs.values() for r in run.report.requests if r.id not in leave_out))
    for i, one in enumerate(classes):
        colour = colours[one]  # as in `gantt`, whoever is left out
        x, y, names = [], [], []
        for column, run in enumerate(runs.values()):
            mine = [r for r in run.report.requests if kind(r.id) == one and r.ttft is not None and r.id not in leave_out]
            for place, r in enumerate(mine):
                x.append(column + 0.8 * ((i + (place + 0.5) / len(mine)) / len(classes) - 0.5))
                y.append(r.ttft)
                names.append(r.id)
        figure.add_scatter(
            x=x, y=y, text=names, name=one, mode="markers", marker={"color": COLOURS[colour % 4], "symbol": SYMBOLS[colour % 4], "size": 9},
            hovertemplate=f"%{{text}} ({one}): %{{y:.3f}} s<extra></extra>",
        )  # fmt: skip
    figure.update_xaxes(tickvals=list(range(len(runs))), ticktext=list(runs), range=[-0.5, len(runs) - 0.5], title="policy")
    title = _seconds(next(iter(runs.values())), "time to first token")
    return look(figure, 360, yaxis_title=title, yaxis_rangemode="tozero")
