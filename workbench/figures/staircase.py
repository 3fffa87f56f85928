"""How many tokens a server found of prompts that grow: a step for each block. What it did not say is marked as unknown, not drawn as zero.

A pure function of (prompt tokens, tokens found or None), for one or more servers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from workbench.figures.look import COLOURS, SYMBOLS, look

UNKNOWN = "x-thin-open"


def staircase(servers: Mapping[str, Sequence[tuple[int, int | None]]]) -> go.Figure:
    """A staircase a server; below zero, on a line each, a cross for every answer without a count."""
    figure = go.Figure()
    most = max((found or 0 for points in servers.values() for _, found in points), default=0)
    drop = max(2.0, most / 18)
    for i, (name, points) in enumerate(servers.items()):
        colour = COLOURS[i % 4]
        known = [(n, found) for n, found in points if found is not None]
        unknown = [n for n, found in points if found is None]
        figure.add_scatter(
            x=[n for n, _ in known], y=[found for _, found in known], name=name, legendgroup=name, mode="lines+markers",
            line={"color": colour, "width": 2, "shape": "hv", "dash": "dash" if i % 2 else "solid"}, marker={"color": colour, "symbol": SYMBOLS[i % 4], "size": 7},
            hovertemplate=f"{name}: of %{{x}} prompt tokens %{{y}} found<extra></extra>",
        )  # fmt: skip
        if unknown:
            figure.add_scatter(
                x=unknown, y=[-(i + 1) * drop] * len(unknown), name=f"{name}, no count: unknown", mode="markers",
                marker={"color": colour, "symbol": UNKNOWN, "size": 8, "line": {"color": colour, "width": 2}},
                hovertemplate=f"{name}: %{{x}} prompt tokens, no count in the answer<extra></extra>",
            )  # fmt: skip
    figure.add_hline(y=0, line={"color": "rgba(128,128,128,.6)", "width": 1})
    return look(
        figure, 380, xaxis_title="prompt tokens that the server counted", yaxis_title="of these found in the cache, tokens",
        yaxis_range=[-(len(servers) + 1) * drop, most * 1.06 + 1], yaxis_tickvals=[n for n in range(0, most + 1, 16 if most > 30 else 4)], xaxis_rangemode="tozero",
    )  # fmt: skip
