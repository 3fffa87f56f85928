"""Texts as strips of cells, one below the other: each cell a character or a token, and by its kind how it came about.

A pure function. Kinds differ in colour and in being hollow, filled or hatched. Long texts go on in another line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from workbench.figures.look import look
from workbench.figures.masks import visible

INK = "#1d2329"
KINDS = {
    "free": ("rgba(0,0,0,0)", "", "chosen by the model"),
    "forced": ("#8fd3bf", "", "forced"),
    "masked": ("#f3cf8a", "/", "one token left by the mask"),
    "respelt": ("#e3b3cd", "x", "spelt anew by the jump"),
}
"""Kind -> fill, pattern, what the legend says."""
Cell = tuple[str, str]
"""Text and kind."""


def strips(texts: Mapping[str, Sequence[Cell]], width: int = 48, words: Mapping[str, str] | None = None) -> go.Figure:
    """Each named text as cells in lines of at most `width` characters; `words`: other words for a kind in the legend."""
    figure = go.Figure()
    placed: dict[str, list[tuple[int, int, int, str]]] = {kind: [] for kind in KINDS}
    named: dict[int, str] = {}
    line = 0
    for name, cells in texts.items():
        named[line] = name
        at = 0
        for text, kind in cells:
            shown = visible(text)
            if at and at + len(shown) > width:
                line, at = line + 1, 0
            placed[kind].append((line, at, len(shown), shown))
            at += len(shown)
        line += 1
    for kind, cells_of in placed.items():
        if cells_of:
            _draw(figure, cells_of, kind, (words or {}).get(kind, KINDS[kind][2]))
    look(figure, 96 + 27 * line, barmode="overlay", bargap=0.12, uniformtext={"minsize": 9, "mode": "hide"})  # too narrow for text: colours alone
    figure.update_xaxes(visible=False, range=[-0.2, width + 0.2], fixedrange=True)
    return figure.update_yaxes(tickvals=list(named), ticktext=list(named.values()), range=[line - 0.4, -0.6], showgrid=False, fixedrange=True)


def _draw(figure: go.Figure, cells: Sequence[tuple[int, int, int, str]], kind: str, words: str) -> None:
    fill, pattern, _ = KINDS[kind]
    figure.add_bar(
        y=[line for line, *_ in cells], base=[at for _, at, *_ in cells], x=[size for _, _, size, _ in cells], orientation="h", name=words,
        marker={"color": fill, "line": {"color": INK, "width": 0.8}, "pattern": {"shape": pattern, "fgcolor": "rgba(29,35,41,.35)", "size": 5}},
        text=[text for *_, text in cells], textposition="inside", insidetextanchor="middle", textangle=0,
        insidetextfont={"family": "ui-monospace, monospace", "color": INK, "size": 12}, hovertemplate=f"%{{text}}: {words}<extra></extra>",
    )  # fmt: skip
