"""Goes through a lesson once, in this process, the way a learner would who first runs every stub, then answers wrongly, then rightly."""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from workbench.course import notebook
from workbench.course.cards import card
from workbench.course.notebook import END, SOLUTION, STUB, Cell
from workbench.lessons import CheckFailed, Unfinished

PLANTED = Path(__file__).parent / "planted"


@dataclass
class Rehearsal:
    """What came of it."""

    lesson: Any = None
    hints: dict[int, str] = field(default_factory=dict)
    """Cell -> what its stub said."""
    stubs: list[int] = field(default_factory=list)
    """Cells in which the learner writes something."""
    noticed: dict[str, str] = field(default_factory=dict)
    """Exercise -> what its check said to the planted wrong solution."""


def planted(lesson: str) -> dict[str, Any]:
    """The wrong predictions and solutions for a lesson."""
    known: dict[str, Any] = yaml.safe_load((PLANTED / f"{lesson}.yaml").read_text(encoding="utf-8"))
    return known


def rehearse(lesson: str, wrong_predictions: bool = True) -> Rehearsal:
    """Stubs, planted solutions and solutions, in the order of the cells; with the planted predictions or the right ones."""
    out = Rehearsal()
    wrong = planted(lesson)
    names: dict[str, Any] = {}
    for number, cell in enumerate(notebook.cells(lesson)):
        if cell.kind != "code":
            continue
        if cell.asks:
            out.stubs.append(number)
            try:
                perform(cell.shown(False), names, f"{lesson} cell {number}, stub")
            except Unfinished as error:
                out.hints[number] = str(error)
            for exercise in exercises_of(cell, lesson):
                try:
                    perform(given(cell, wrong["solutions"][exercise]), names, f"{lesson} cell {number}, planted")
                except CheckFailed as error:
                    out.noticed[exercise] = str(error)
        perform(cell.shown(True), names, f"{lesson} cell {number}")
        out.lesson = names.get("lesson")
        if wrong_predictions and "lesson.predict(" in cell.text:
            out.lesson.predicted |= {k: v for k, v in wrong["predictions"].items() if k in out.lesson.predicted}
    return out


def perform(code: str, names: dict[str, Any], where: str) -> None:
    """Run a cell; its last value is looked at as a notebook would."""
    tree = ast.parse(code, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, where, "exec"), names)
    if last is not None:
        shown = eval(compile(ast.Expression(last.value), where, "eval"), names)
        for look in ("__repr__", "_repr_html_"):
            if hasattr(shown, look):
                getattr(shown, look)()


def exercises_of(cell: Cell, lesson: str) -> list[str]:
    """The exercises that a cell checks."""
    return [name for name in re.findall(r'lesson\.check\(\s*"([\w-]+)"', cell.text) if name in card(lesson).exercises]


def given(cell: Cell, code: str) -> str:
    """A cell with `code` where its solution stands."""
    lines = [line for line in cell.text.splitlines() if not line.strip().startswith(STUB)]
    marks = [line.strip() for line in lines]
    start, stop = marks.index(SOLUTION), marks.index(END)
    depth = lines[start][: len(lines[start]) - len(lines[start].lstrip())]
    return "\n".join([*lines[:start], textwrap.indent(code.rstrip(), depth), *lines[stop + 1 :]])
