"""An agent's prompt out of its parts, in several orders: what stands in front decides what can be reused.

Only an unbroken beginning is ever found again, so a part that changes with every call costs all that
follows it. `canonical` keeps what stays in front; the others show what one misplaced part does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Literal

Order = Literal["canonical", "tools shuffled", "timestamp first", "header first", "note in the middle", "dynamic last"]
ORDERS: tuple[Order, ...] = ("canonical", "dynamic last", "header first", "note in the middle", "tools shuffled", "timestamp first")


@dataclass(frozen=True)
class Part:
    """A piece of a prompt: token ids, or a text with the role that says it."""

    ids: list[int] = field(default_factory=list)
    text: str = ""
    role: str = "system"


@dataclass(frozen=True)
class Step:
    """One call of an agent: what was new since the last one, and what it then said."""

    new: list[Part]
    said: Part | None = None


@dataclass(frozen=True)
class Session:
    """An agent at work: its tools, its instructions, and its calls in turn."""

    tools: list[Part]
    system: list[Part]
    steps: list[Step]


@dataclass(frozen=True)
class Dynamic:
    """Parts that change: with the session (`header`), with every call (`stamp`, `note`)."""

    header: Part
    stamp: Part
    note: Part


def prompt(session: Session, call: int, order: Order, dynamic: Dynamic, rng: Random) -> list[Part]:
    """The parts of a session's prompt at a call (from 0), as they stand in it."""
    tools = list(session.tools)
    if order == "tools shuffled":
        rng.shuffle(tools)
    history = [part for step in session.steps[:call] for part in (*step.new, *([step.said] if step.said else []))]
    history += session.steps[call].new
    front = {"timestamp first": [dynamic.stamp], "header first": [dynamic.header]}.get(order, [])
    middle = [dynamic.note] if order == "note in the middle" else []
    tail = [dynamic.note, dynamic.stamp] if order == "dynamic last" else []
    return [*front, *tools, *session.system, *middle, *history, *tail]
