"""What all plotly figures have in common: Okabe-Ito colours, told apart by symbol or pattern as well, and a quiet frame."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

COLOURS = ("#009e73", "#e69f00", "#0072b2", "#cc79a7")
SYMBOLS = ("circle", "diamond", "square", "triangle-up")
PATTERNS = ("", "/", "x", ".")


def look(figure: go.Figure, height: int, **more: Any) -> go.Figure:
    """Give a figure its height, margins, fonts and grid; `more` goes to its layout."""
    figure.update_layout(
        height=height, margin={"l": 8, "r": 8, "t": 8, "b": 8}, paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 12.5, "color": "#7b858f"},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0}, **more,
    )  # fmt: skip
    title = {"font": {"size": 12}, "standoff": 8}
    figure.update_xaxes(gridcolor="rgba(128,128,128,.25)", zeroline=False, automargin=True, title=title)
    figure.update_yaxes(gridcolor="rgba(128,128,128,.18)", zeroline=False, automargin=True, title=title)
    return figure
