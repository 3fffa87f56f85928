"""One prompt and its repetition: what was computed, when the first token came, and how near ties move when sums are ordered otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from engine import events as ev
from workbench.figures.look import COLOURS, PATTERNS, SYMBOLS, look

EDGE = 1e-6
"""Where zero is drawn on a logarithmic axis."""
TICKS = [digit * 10**power for power in range(6) for digit in (1, 2, 5)]


def twice(computed: Mapping[str, tuple[int, int]], first: Mapping[str, Sequence[float]]) -> go.Figure:
    """Above, a bar a request: prompt tokens (found in the cache, computed). Below, a strip a kind: milliseconds to the first token, a dot a request."""
    figure = make_subplots(rows=2, cols=1, vertical_spacing=0.24, row_heights=[0.55, 0.45])
    names = list(computed)[::-1]
    for i, label in enumerate(("found in the cache", "computed")):
        counts = [computed[name][i] for name in names]
        figure.add_bar(
            y=names, x=counts, name=label, orientation="h", marker={"color": COLOURS[i], "pattern": {"shape": PATTERNS[i], "fgcolor": "rgba(255,255,255,.5)", "size": 7}},
            text=[f"{n:,}" if n else "" for n in counts], textposition="auto", textangle=0, constraintext="none", textfont={"color": "#1d2329"}, cliponaxis=False,
            hovertemplate=f"%{{y}}: %{{x:,}} tokens {label}<extra></extra>", row=1, col=1,
        )  # fmt: skip
    for i, (name, times) in enumerate(first.items()):
        figure.add_scatter(
            x=list(times), y=[_spread(k, len(times), i) for k in range(len(times))], mode="markers", name=name,
            marker={"color": COLOURS[2 + i], "symbol": SYMBOLS[i], "size": 10, "opacity": 0.8},
            text=[f"pair {k + 1}" for k in range(len(times))], hovertemplate=f"{name}, %{{text}}: %{{x:,.1f}} ms<extra></extra>", row=2, col=1,
        )  # fmt: skip
    look(figure, 430, barmode="stack")
    figure.update_layout(legend={"traceorder": "normal"})
    figure.update_xaxes(title_text="prompt tokens", range=[0, 1.08 * max(a + b for a, b in computed.values())], row=1, col=1)
    figure.update_xaxes(title_text="time to first token, milliseconds (logarithmic)", type="log", tickvals=TICKS, ticktext=[f"{t:,}" for t in TICKS], row=2, col=1)
    figure.update_yaxes(type="category", ticksuffix=" ", row=1, col=1)
    figure.update_yaxes(tickvals=list(range(len(first))), ticktext=list(first), range=[len(first) - 0.4, -0.6], ticksuffix=" ", row=2, col=1)
    return figure


def _spread(k: int, count: int, row: int) -> float:
    """A little up or down, so that dots in one strip do not hide each other; the same for both of a pair."""
    return row + 0.5 * ((k + 0.5) / count - 0.5)


Moved = tuple[float, float, bool]
"""Of one output token: how far apart its two best were, how far that moved in the other run, and whether another token was chosen."""


def moved(cold: Sequence[ev.TokenEmitted], warm: Sequence[ev.TokenEmitted]) -> list[Moved]:
    """Token by token of one answer in two runs that tell the best tokens; ends with the first that differs."""
    out: list[Moved] = []
    for a, b in zip(cold, warm, strict=True):
        here, there = dict(a.top), dict(b.top)
        second = max((token for token in here if token != a.token), key=lambda token: here[token])
        if a.token not in there or second not in there:
            return out
        gap = here[a.token] - here[second]
        out.append((gap, abs(gap - (there[a.token] - there[second])), a.token != b.token))
        if out[-1][2]:
            break
    return out


def ties(cases: Mapping[str, Sequence[Moved]]) -> go.Figure:
    """Gap of the two best tokens against how far it moved: above the line the order can tip. Zero is drawn at the edge."""
    figure = go.Figure()
    for i, (name, points) in enumerate(cases.items()):
        for chosen, symbol, size, said in ((False, SYMBOLS[i], 7, "the same token"), (True, "x", 12, "another token")):
            some = [p for p in points if p[2] is chosen]
            if not some:
                continue
            figure.add_scatter(
                x=[max(gap, EDGE) for gap, _, _ in some], y=[max(shift, EDGE) for _, shift, _ in some], mode="markers", name=f"{name}, {said}",
                marker={"color": COLOURS[3] if chosen else COLOURS[(0, 2)[i % 2]], "symbol": symbol, "size": size, "opacity": 0.85, "line": {"width": 1, "color": "#1d2329"} if chosen else None},
                customdata=[[gap, shift] for gap, shift, _ in some], hovertemplate=f"{name}, {said}<br>gap %{{customdata[0]:.2g}}, moved by %{{customdata[1]:.2g}}<extra></extra>",
            )  # fmt: skip
    figure.add_scatter(x=[EDGE, 10], y=[EDGE, 10], mode="lines", name="moved by as much as the gap", line={"color": "#6b747c", "dash": "dash", "width": 1.5}, hoverinfo="skip")
    axis = {"type": "log", "range": [-6.3, 1.2], "dtick": 1, "exponentformat": "power"}
    return look(
        figure, 420, xaxis={**axis, "title": {"text": "gap of the two best tokens, cold (nats; an exact tie is drawn at the left edge)"}},
        yaxis={**axis, "title": {"text": "moved by, warm (nats)"}},
    )  # fmt: skip
