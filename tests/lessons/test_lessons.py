"""The course holds together: notebooks in step with their sources, stubs that hint, wrong answers that are noticed, no result in prose."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.lessons.rehearsal import planted, rehearse
from workbench.course import moments, notebook
from workbench.course.cards import CourseError, cards, folder, glossary
from workbench.lessons import Lesson
from workbench.lessons.execute import execute

LESSONS = list(cards())
LONG = {"L1", "L9"}
"""Those that take more than a few seconds; `make slow` goes through them."""


@pytest.fixture(autouse=True)
def _own_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADIX_PROGRESS", str(tmp_path / "progress.json"))


@pytest.mark.parametrize("lesson", LESSONS)
@pytest.mark.parametrize("solution", [False, True], ids=["student", "solution"])
def test_a_notebook_is_what_its_source_makes(lesson: str, solution: bool) -> None:
    path = notebook.path_of(lesson, solution)
    assert path.is_file() and path.read_text(encoding="utf-8") == notebook.written(lesson, solution), "run: make notebooks"


def test_no_notebook_lies_there_without_a_source() -> None:
    stems = {card.stem for card in cards().values()}
    there = {path.stem for kind in ("student", "solutions") for path in (folder() / kind).glob("*.ipynb")}
    assert there == stems == {path.stem for path in (folder() / "source").glob("*.py")}


def test_the_map_of_the_course_is_what_the_cards_say() -> None:
    readme = (folder() / "README.md").read_text(encoding="utf-8")
    assert readme == notebook.mapped(readme), "run: make notebooks"
    assert all(f"student/{card.stem}.ipynb" in readme for card in cards().values())


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_is_600_to_1500_words_and_12_to_25_cells(lesson: str) -> None:
    assert 600 <= notebook.words(lesson) <= 1500
    assert 12 <= len(notebook.cells(lesson)) <= 25


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_student_sees_no_solution_and_no_output(lesson: str) -> None:
    made = json.loads(notebook.written(lesson, solution=False))
    for before, cell in zip(notebook.cells(lesson), made["cells"], strict=True):
        text = "".join(cell["source"])
        assert notebook.SOLUTION not in text and notebook.STUB not in text
        assert not cell.get("outputs") and (not before.asks or text != before.shown(True))


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_first_cell_shows_the_lesson_which_brings_what_charts_are_drawn_with(lesson: str) -> None:
    first = next(cell for cell in notebook.cells(lesson) if cell.kind == "code")
    assert {"lesson", "display(lesson)"} & set(first.text.splitlines())


def _numbers(text: str) -> list[str]:
    """Numbers in prose, those of names (L2, float32) and in code left out."""
    bare = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)|https?://\S+", " ", text, flags=re.S)
    return re.findall(r"(?<![\w.#-])\d[\d,.]*(?:\s?%)?", bare)


def _told_results(text: str) -> list[str]:
    """Numbers that could be a result: not the year, version or pull request of a source, in a paragraph that names none."""
    found: list[str] = []
    for paragraph in re.split(r"\n\s*\n|\n(?=- |\d\. |\| )", text):
        if re.search(r"published|\bpaper\b|\b(19|20)\d\d\b|#\d+|arxiv", paragraph, re.I):
            continue
        found += [n for n in _numbers(paragraph) if not re.match(r"^\d\.$", n)]
    return found


@pytest.mark.parametrize("lesson", LESSONS)
def test_no_result_stands_in_prose(lesson: str) -> None:
    """A number in prose is small and counts the set-up (lesson 4), or stands in a paragraph that names where it was published."""
    for cell in notebook.cells(lesson)[2:]:  # title and terms are made from the card
        if cell.kind == "markdown":
            told = [n for n in _told_results(cell.text) if "%" in n or "." in n.rstrip(".,") or int(re.sub(r"\D", "", n)) > 12]
            assert not told, f"{told} in: {cell.text[:200]}"
            assert not re.findall(r"`[^`\n]*\d\s?(?:%|ms\b|x faster)[^`\n]*`", cell.text), "a measured figure in code font"


def test_a_result_in_prose_would_be_found() -> None:
    assert _told_results("The tree found 87.5 % of the tokens.") == ["87.5 %"]
    assert _told_results("It took 41 ms.") == ["41"]
    assert not _told_results("The paper reports 36.6 %. Lesson L2 uses float32 and `page_size=16`.")


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_card_names_what_the_notebook_holds(lesson: str) -> None:
    about = cards()[lesson]
    code = "\n".join(cell.shown(True) for cell in notebook.cells(lesson) if cell.kind == "code")
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    said = {k.arg for call in calls if call.func.attr == "predict" for k in call.keywords}
    revealed = {k.arg for call in calls if call.func.attr == "reveal" for k in call.keywords}
    checked = {call.args[0].value for call in calls if call.func.attr == "check"}
    assert said == revealed == set(about.predictions)
    assert checked == set(about.exercises)
    assert {"questions", "answer", "finish"} <= {call.func.attr for call in calls}
    headings = "\n".join(cell.text for cell in notebook.cells(lesson) if cell.kind == "markdown")
    assert "## On a real server" in headings and "## Predict" in headings


MODELLED = [lesson for lesson in LESSONS if cards()[lesson].needs == "model"]


@pytest.mark.parametrize("lesson", [*(lesson for lesson in LESSONS if lesson not in MODELLED), *(pytest.param(lesson, marks=pytest.mark.slow) for lesson in MODELLED)])
def test_every_moment_of_a_card_is_found_in_its_run(lesson: str) -> None:
    for name, run in cards()[lesson].runs.items():
        made = Lesson(lesson).run(name)
        for moment in run.moments:
            assert 0 <= moments.find(made.trace.events, moment) < len(made.trace)


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_quiz_has_one_right_answer_and_the_longest_is_not_always_it(lesson: str) -> None:
    quiz = cards()[lesson].quiz
    assert all(len(set(q.options)) == len(q.options) and len(q.because.split()) >= 8 for q in quiz)
    assert Counter(q.options.index(q.right) for q in quiz).most_common(1)[0][1] < len(quiz)
    assert not all(len(q.right) == max(map(len, q.options)) for q in quiz)


def _goes_through(lesson: str) -> None:
    came = rehearse(lesson)
    wrong = planted(lesson)
    assert set(came.stubs) == set(came.hints), "a stub that says nothing"
    assert all(len(hint) > 40 for hint in came.hints.values())
    assert set(came.noticed) == set(cards()[lesson].exercises), "a planted wrong solution passed"
    assert set(wrong["predictions"]) <= set(came.lesson.came)
    assert wrong["predictions"] and not any(came.lesson.came[name][1] for name in wrong["predictions"]), "a planted wrong prediction passed"
    assert not came.lesson.complete and "✗" in repr(came.lesson.finish())
    came.lesson.came |= {name: (None, True) for name in wrong["predictions"]}
    assert came.lesson.complete, "beside the planted predictions all is right"


@pytest.mark.parametrize("lesson", [lesson for lesson in LESSONS if lesson not in LONG])
def test_stubs_hint_and_what_is_wrong_is_noticed(lesson: str) -> None:
    _goes_through(lesson)


@pytest.mark.slow
@pytest.mark.parametrize("lesson", [lesson for lesson in LESSONS if lesson in LONG])
def test_stubs_hint_and_what_is_wrong_is_noticed_in_the_long_ones(lesson: str) -> None:
    _goes_through(lesson)


@pytest.mark.parametrize("learner", ["one", "two", "three"])
@pytest.mark.parametrize("lesson", ["L2"])
def test_another_learner_gets_another_run(lesson: str, learner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADIX_LEARNER", learner)
    mine, again = Lesson(lesson), Lesson(lesson)
    mine.questions()
    again.questions()
    assert mine.own is not None and again.own is not None and mine.own.facts == again.own.facts
    monkeypatch.setenv("RADIX_LEARNER", "somebody else")
    other = Lesson(lesson)
    other.questions()
    assert other.own is not None and other.own.facts != mine.own.facts


def test_a_solution_passes_from_a_clean_kernel() -> None:
    made = execute("L2")
    assert "done" in str(made.cells[-1].outputs)


@pytest.mark.slow
@pytest.mark.parametrize("lesson", LESSONS)
def test_every_solution_passes_from_a_clean_kernel(lesson: str) -> None:
    execute(lesson)


def test_every_term_is_defined_once() -> None:
    assert {term for card in cards().values() for term in card.terms} <= set(glossary())


def test_a_lesson_that_does_not_exist_is_named() -> None:
    with pytest.raises(CourseError, match="'L99' does not exist"):
        Lesson("L99")
