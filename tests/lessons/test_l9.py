"""The lesson's way to read a document, beside known answers and beside the engine's automaton."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from workbench.figures.strips import KINDS, strips
from workbench.lessons import Lesson, events
from workbench.lessons.checks import l9
from workbench.runner import Run


@pytest.fixture
def lesson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lesson:
    monkeypatch.setenv("RADIX_PROGRESS", str(tmp_path / "progress.json"))
    return Lesson("L9")


def by_the_engine(run: Run, request: str) -> list[bool]:
    """Which characters the automaton forced."""
    edges = events(run, "grammar.compiled", request=request)[0].edges
    forced = {state for edge in edges if edge.forced for state in [edge.source, *edge.through]}
    return [event.state in forced for event in events(run, "grammar.masked", request=request)]


@pytest.mark.parametrize(
    ("parts", "text", "marks"),
    [
        ([("text", '{"a": '), ("one of", ("true", "false")), ("text", "}")], '{"a": true}', "xxxxxx.xxxx"),
        ([("one of", ("interested", "interesting")), ("text", "!")], "interesting!", "xxxxxxxx.xxx"),
        ([("text", '"'), ("string", 2)], '"ab"', "x..x"),
        ([("text", '"'), ("string", 2)], '"a"', "x.."),
        ([("one of", ("1", "12")), ("text", ",")], "1,", "x."),
    ],
)
def test_what_is_forced(parts: list[l9.Part], text: str, marks: str) -> None:
    assert l9.forced(parts, text) == [mark == "x" for mark in marks]


@pytest.mark.parametrize("text", ['{"title": "M", "year": 1850', '{"year"', '{"title": "M" ,', '{"title":"M', '{"title": "' + "M" * 31])
def test_what_is_no_beginning_of_a_film(text: str) -> None:
    assert not l9.read(l9.DOCUMENTS["film"], text)
    with pytest.raises(ValueError, match="cannot go on"):
        l9.forced(l9.DOCUMENTS["film"], text)


def test_the_automaton_forces_what_reading_says(lesson: Lesson) -> None:
    run = lesson.run("scripted")
    for name, parts in l9.DOCUMENTS.items():
        assert by_the_engine(run, name) == l9.forced(parts, l9.scripted(lesson, name))
    stubborn = bytes(next(r.output_ids for r in run.report.requests if r.id == "stubborn")).decode()
    assert stubborn != l9.scripted(lesson, "stubborn") and l9.forced(l9.DOCUMENTS["film"], stubborn)


@pytest.mark.parametrize("seed", range(12))
def test_drawn_schemas_force_what_reading_says(lesson: Lesson, seed: int) -> None:
    own = l9.questions(lesson, random.Random(seed))
    assert sum(by_the_engine(own.run, "own")) == own.asked[0].key


def test_strips_break_their_lines_and_name_what_they_show() -> None:
    figure = strips({"a": [("x", "free")] * 50, "b": [("long word", "forced"), ("y", "masked")]}, width=20)
    assert [trace.name for trace in figure.data] == [KINDS[kind][2] for kind in ("free", "forced", "masked")]
    assert len(figure.data[0].x) == 50 and set(figure.data[0].y) == {0, 1, 2} and list(figure.layout.yaxis.ticktext) == ["a", "b"]
    assert {trace.marker.pattern.shape for trace in figure.data if trace.name == KINDS["masked"][2]} == {"/"}
