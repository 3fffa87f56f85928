"""A run in the player, and a chart, inside a notebook: both on their own paper, with the network off."""

from __future__ import annotations

import html
from typing import Any

from plotly.offline import get_plotlyjs

from workbench.explain.saved import Opening
from workbench.export import to_html
from workbench.lessons.grading import number
from workbench.runner import Run

PAPER, INK, LINE = "#fbfaf7", "#1d2329", "#d9d5cb"


class Picture:
    """HTML for a notebook; a line of text elsewhere."""

    def __init__(self, markup: str, words: str) -> None:
        self._markup = markup
        self._words = words

    def __repr__(self) -> str:
        return self._words

    def _repr_html_(self) -> str:
        return self._markup


def show(run: Run, event: int | None = None, *, request: str | None = None, node: int | None = None, height: int = 760) -> Picture:
    """The run in the player, at an event (its number; None: the end), with a request or a node selected."""
    page = to_html(run.trace, opening=Opening(seq=event, request=request, node=node))
    title = run.scenario.name
    frame = (
        f'<iframe title="{html.escape(title)}, in the player" srcdoc="{html.escape(page)}" '
        f'style="width:100%;height:{height}px;border:1px solid {LINE};border-radius:8px" loading="lazy"></iframe>'
    )
    return Picture(frame, f"[{title}: {len(run.trace)} events, open this notebook in Jupyter to see the player]")


def drawing() -> str:
    """Plotly's script, once a notebook and always in the same cell: a chart that is drawn again needs it still."""
    return f"<script>{get_plotlyjs()}</script>"


def chart(figure: Any, caption: str = "") -> Picture:
    """A plotly figure on paper of its own; what draws it came with the lesson's first cell (`drawing`)."""
    figure.update_layout(
        paper_bgcolor=PAPER, plot_bgcolor=PAPER, font={"color": INK, "family": "system-ui, sans-serif", "size": 13},
        margin={"l": 12, "r": 16, "t": 48 if figure.layout.title.text else 24, "b": 12},
    )  # fmt: skip
    figure.update_xaxes(gridcolor="#e4e1da", automargin=True)
    figure.update_yaxes(gridcolor="#e4e1da", automargin=True)
    drawn = figure.to_html(full_html=False, include_plotlyjs=False, config={"displaylogo": False, "responsive": True})
    below = f'<figcaption style="color:{INK};font:13px/1.5 system-ui,sans-serif;padding:0 14px 10px">{html.escape(caption)}</figcaption>'
    markup = f'<figure style="margin:4px 0;background:{PAPER};border:1px solid {LINE};border-radius:8px;overflow:hidden">{drawn}{below if caption else ""}</figure>'
    return Picture(markup, f"[chart: {caption or figure.layout.title.text or 'untitled'}]")


def table(title: str, columns: list[str], rows: list[list[Any]]) -> Picture:
    """A small table on the same paper; also plain text."""
    cell = f"padding:3px 10px;border-bottom:1px solid {LINE};text-align:left;font-variant-numeric:tabular-nums"
    head = "".join(f'<th scope="col" style="{cell};font-weight:600;color:{INK};background:{PAPER}">{html.escape(c)}</th>' for c in columns)
    body = "".join(
        f'<tr style="background:{PAPER}">' + "".join(f'<td style="{cell};color:{INK}">{html.escape(_text(v))}</td>' for v in row) + "</tr>" for row in rows
    )
    markup = (
        f'<div style="background:{PAPER};color:{INK};border:1px solid {LINE};border-radius:8px;padding:10px 14px;margin:4px 0;overflow-x:auto;'
        f'font:14px/1.5 system-ui,sans-serif"><b>{html.escape(title)}</b><table style="border-collapse:collapse;margin-top:6px;color:{INK}"><tr>{head}</tr>{body}</table></div>'
    )
    widths = [max(len(_text(v)) for v in column) for column in zip(columns, *rows, strict=True)]
    lines = [title, *("  ".join(_text(v).ljust(w) for v, w in zip(row, widths, strict=True)) for row in [columns, *rows])]
    return Picture(markup, "\n".join(lines))


def _text(value: Any) -> str:
    return "unknown" if value is None else number(value)
