"""What a notebook tells a learner: something is still to do, something is not right yet, something is right.

Errors show as one card and not as a stack trace; in a terminal everything is plain text.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from workbench.explain import Explainer
from workbench.runner import Run

MARKS = {"right": "✓", "wrong": "✗", "near": "≈", "todo": "✎", "note": "·"}
"""A sign beside the colour, for whoever does not tell the colours apart."""
COLOURS = {"right": "#0b6b4f", "wrong": "#b3261e", "near": "#7a5b00", "todo": "#0b5d66", "note": "#4a525a"}
CARD = (
    "background:#fbfaf7;color:#1d2329;border:1px solid #d9d5cb;border-radius:8px;padding:10px 14px;margin:4px 0;"
    "font:14px/1.5 system-ui,sans-serif;max-width:76ch"
)
"""Its own paper: a notebook may be light or dark."""


class Told(Exception):  # noqa: N818 - it is told, and what kind it is its children say
    """An error that a learner reads: the message alone, without the way that led to it."""

    kind = "wrong"

    def _render_traceback_(self) -> list[str]:
        """IPython shows this in place of a stack trace."""
        return [f"{MARKS[self.kind]} {self}"]


class Unfinished(Told):
    """Something is still to be written or said; the message is the hint."""

    kind = "todo"


class CheckFailed(Told):
    """A check that did not pass: what was expected, what came, and where the trace shows it."""


class Card:
    """Something to show: lines, each with its mark."""

    def __init__(self, title: str, lines: Sequence[tuple[str, str]] = ()) -> None:
        self.title = title
        self.lines = list(lines)

    def __repr__(self) -> str:
        return "\n".join([self.title, *(f"  {MARKS[kind]} {text}" for kind, text in self.lines)])

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<div style="margin-top:4px"><b style="color:{COLOURS[kind]}" aria-label="{kind}">{MARKS[kind]}</b> {html.escape(text)}</div>'
            for kind, text in self.lines
        )
        return f'<div style="{CARD}"><b>{html.escape(self.title)}</b>{rows}</div>'


def say(text: str) -> Card:
    """A sentence with this run's own figures in it."""
    return Card(text)


def event_sentence(run: Run, seq: int) -> str:
    """One event of a run in words, with its number."""
    return f"event {seq}: {Explainer(run.trace).sentence(seq)}"


def expect(what: str, came: Any, expected: Any, *, run: Run | None = None, event: int | None = None, hint: str = "") -> None:
    """Raises CheckFailed unless `came` equals `expected`, with the event of the trace that shows it."""
    if isinstance(came, bool) == isinstance(expected, bool) and came == expected:
        return
    fail(what, came, expected, run=run, event=event, hint=hint)


def fail(what: str, came: Any, expected: Any, *, run: Run | None = None, event: int | None = None, hint: str = "") -> None:
    """Raises CheckFailed: what was expected, what came, and where the trace shows it."""
    said = f"{what}: expected {_shown(expected)}, got {_shown(came)}"
    if run is not None and event is not None:
        said += f"\n  {event_sentence(run, event)}"
    if hint:
        said += f"\n  Hint: {hint}"
    raise CheckFailed(said)


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) or value is None else str(value)
    return text if len(text) <= 160 else f"{text[:157]}..."
