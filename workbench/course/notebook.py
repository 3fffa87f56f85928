"""From a lesson's one source to the notebook that people open, and to the one with the solutions.

A source is a Python file of cells (jupytext's percent format) that runs as the solution. Where a learner is to write something,
the lines between `# solution:` and `# end` are replaced by those that follow `# stub:`, at the same depth.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.course.cards import Card, CourseError, card, cards, folder, glossary

STUB, SOLUTION, END = "# stub: ", "# solution:", "# end"
MAP = ("<!-- the map: made from the cards -->", "<!-- end of the map -->")
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


@dataclass(frozen=True)
class Cell:
    """One cell of a source: `markdown` or `code`, and its text with the marks in it."""

    kind: str
    text: str

    @property
    def asks(self) -> bool:
        """Whether the learner writes something here."""
        return any(line.strip() == SOLUTION for line in self.text.splitlines())

    def shown(self, solution: bool) -> str:
        """Its text for a learner, or with the solution."""
        return _resolved(self.text, solution)


def _resolved(text: str, solution: bool) -> str:
    out: list[str] = []
    inside = False
    for line in text.splitlines():
        bare = line.strip()
        if bare == SOLUTION:
            inside = True
        elif bare == END and inside:
            inside = False
        elif bare.startswith(STUB):
            if not solution:
                out.append(line.replace(STUB, "", 1))
        elif not inside or solution:
            out.append(line)
    return "\n".join(out)


def source(lesson: str) -> Path:
    """A lesson's source file."""
    return folder() / "source" / f"{card(lesson).stem}.py"


def cells(lesson: str) -> list[Cell]:
    """All cells of a lesson: the title and the terms made from its card, then those of its source. Raises CourseError."""
    import jupytext  # only where notebooks are made

    path = source(lesson)
    if not path.is_file():
        raise CourseError(f"{path.name}: there is no such file beside the card")
    made = jupytext.reads(path.read_text(encoding="utf-8"), fmt="py:percent")
    own = [Cell(cell.cell_type, cell.source) for cell in made.cells]
    for cell in own:
        _check(cell, path)
    return [_title(card(lesson)), _terms(card(lesson)), *own]


def _check(cell: Cell, path: Path) -> None:
    lines = [line.strip() for line in cell.text.splitlines()]
    if lines.count(SOLUTION) != lines.count(END):
        raise CourseError(f"{path.name}: a `{SOLUTION}` without its `{END}`, in the cell that begins {lines[0]!r}")
    if lines.count(SOLUTION) and not any(line.startswith(STUB) for line in lines):
        raise CourseError(f"{path.name}: a solution without a stub, in the cell that begins {lines[0]!r}")


def _title(about: Card) -> Cell:
    before = f" Best after {' and '.join(about.after)}." if about.after else ""
    text = f"# {about.id}: {about.title}\n\n**You will be able to:** {about.objective}\n\n{about.minutes} minutes. Needs {about.needs_in_words}.{before}"
    return Cell("markdown", text)


def _terms(about: Card) -> Cell:
    told = glossary()
    missing = [term for term in about.terms if term not in told]
    if missing:
        raise CourseError(f"{about.stem}.yaml: terms: no lesson defines {', '.join(missing)}")
    entries = [f"- **{term}**: {told[term]}" for term in [*about.defines, *about.terms]]
    return Cell("markdown", "\n".join(["<details><summary><b>Terms</b>: open this when you meet a word you do not know</summary>", "", *entries, "", "</details>"]))


def build(lesson: str, solution: bool) -> dict[str, Any]:
    """The notebook, without outputs; the same source gives the same notebook."""
    made = []
    for number, cell in enumerate(cells(lesson)):
        text = cell.shown(solution)
        entry: dict[str, Any] = {"cell_type": cell.kind, "id": f"c{number:02d}", "metadata": {}, "source": text.splitlines(keepends=True)}
        if cell.kind == "code":
            entry |= {"execution_count": None, "outputs": []}
        if cell.asks:
            entry["metadata"] = {"tags": ["yours"]}
        made.append(entry)
    metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}, "lesson": lesson}
    return {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def path_of(lesson: str, solution: bool) -> Path:
    """Where a lesson's notebook lies."""
    return folder() / ("solutions" if solution else "student") / f"{card(lesson).stem}.ipynb"


def written(lesson: str, solution: bool) -> str:
    """The notebook's file, as text."""
    return json.dumps(build(lesson, solution), indent=1, ensure_ascii=False) + "\n"


def write_all() -> list[Path]:
    """Make every notebook anew, and the map in the course's README; returns the files that changed."""
    files = {path_of(lesson, solution): written(lesson, solution) for lesson in cards() for solution in (False, True)}
    files[folder() / "README.md"] = mapped((folder() / "README.md").read_text(encoding="utf-8"))
    changed = []
    for path, text in files.items():
        path.parent.mkdir(exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed


def mapped(readme: str) -> str:
    """The README with the map of the course as the cards tell it."""
    head, rest = readme.split(MAP[0])
    rows = ["", "| | lesson | minutes | needs | best after |", "|---|---|---|---|---|"]
    for about in cards().values():
        title = f"[{about.title}](student/{about.stem}.ipynb)"
        rows.append(f"| {about.id} | {f'**{title}**' if about.core else title} | {about.minutes} | {about.needs_in_words} | {', '.join(about.after) or 'nothing'} |")
    return "\n".join([head + MAP[0], *rows, "", MAP[1] + rest.split(MAP[1])[1]])


def words(lesson: str) -> int:
    """Words of prose that a learner reads in its notebook."""
    return sum(len(re.findall(r"\w+(?:[’'-]\w+)*", re.sub(r"```.*?```", "", c.shown(False), flags=re.S))) for c in cells(lesson) if c.kind == "markdown")
