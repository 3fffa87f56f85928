"""Which stored rows an edit changes: one strip of cells a kind of row, a cell a token; colour and sign say how far apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.figures.look import COLOURS, look

SAME, NEAR, OTHER = "#e4e1da", "#a6cfe8", COLOURS[1]
KINDS = (("the same bits", SAME, "·"), ("equal but for rounding", NEAR, "≈"), ("different", OTHER, "×"))


def kind(difference: float, rounding: float = 1e-12) -> int:
    """0: the same bits; 1: no further apart than rounding; 2: different."""
    return 0 if difference == 0 else 1 if difference <= rounding else 2


def changed(cases: Mapping[str, Mapping[str, Sequence[float]]], rounding: float = 1e-12) -> go.Figure:
    """A strip a case: edit -> kind of row -> per token the largest difference."""
    figure = make_subplots(rows=len(cases), cols=1, subplot_titles=list(cases), vertical_spacing=0.26 / len(cases), shared_xaxes=True)
    for row, (title, rows) in enumerate(cases.items(), 1):
        kinds = [[kind(d, rounding) for d in line] for line in rows.values()]
        figure.add_heatmap(
            z=kinds, y=list(rows), zmin=0, zmax=2, showscale=False, xgap=1, ygap=1,
            colorscale=[[0, SAME], [1 / 3, SAME], [1 / 3, NEAR], [2 / 3, NEAR], [2 / 3, OTHER], [1, OTHER]],
            text=[[KINDS[k][2] for k in line] for line in kinds], texttemplate="%{text}", textfont={"color": "#1d2329", "size": 11},
            customdata=[list(line) for line in rows.values()], hovertemplate=f"{title}<br>token %{{x}}, %{{y}}: apart by %{{customdata:.2g}}<extra></extra>",
            row=row, col=1,
        )  # fmt: skip
        figure.update_yaxes(autorange="reversed", row=row, col=1)
    for name, colour, sign in KINDS:
        figure.add_scatter(
            x=[None], y=[None], mode="markers", name=f"{sign} {name}", marker={"symbol": "square", "size": 12, "color": colour, "line": {"color": "#1d2329", "width": 1}}
        )
    look(figure, 96 + 150 * len(cases))
    figure.update_layout(legend={"y": 1 + 40 / (96 + 150 * len(cases))})
    figure.update_annotations(font={"size": 13}, x=0, xanchor="left")
    figure.update_xaxes(showgrid=False, dtick=4)
    figure.update_yaxes(showgrid=False, ticksuffix=" ")
    figure.update_xaxes(title_text="token of the first prompt, from 0", row=len(cases), col=1)
    return figure
