"""Cards, moments, progress and the teacher's plan: read strictly, kept safely, found by name."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from workbench.course import moments, notebook, progress, runs
from workbench.course.cards import CourseError, Moment, card, cards, read
from workbench.course.notebook import Cell
from workbench.course.plan import plan
from workbench.runner import run
from workbench.scenario import ScenarioError

GOOD = (
    "id: L2\ntitle: T\nobjective: say it.\nminutes: 45\nneeds: puppet\npredictions: {}\nruns: {}\nexercises: {}\n"
    "quiz: [{q}, {q}, {q}, {q}, {q}, {q}]\n".replace("{q}", "{ask: A, options: [a, b], right: a, because: so}")
)


@pytest.fixture(autouse=True)
def _own_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADIX_PROGRESS", str(tmp_path / "far" / "progress.json"))
    monkeypatch.delenv("RADIX_LEARNER", raising=False)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("minutes: 45", "minutes: 3"), "minutes: "),
        (("needs: puppet", "needs: magic"), "needs: "),
        (("id: L2", "id: L44"), "id: "),
        (("title: T", "titel: T"), "title"),
        (("right: a", "right: c"), "'c' is not among the options"),
        (("quiz: [", "quiz: [ [ "), "x.yaml"),
    ],
)
def test_a_card_that_cannot_be_used_names_the_field(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(GOOD)
    assert read(path).title == "T"
    path.write_text(GOOD.replace(*change))
    with pytest.raises(CourseError, match=said):
        read(path)


def test_a_lesson_and_a_run_that_do_not_exist_are_named() -> None:
    with pytest.raises(CourseError, match=r"lesson: 'L0' does not exist; there are .*L2"):
        card("L0")
    with pytest.raises(CourseError, match="run: L2 has no run 'grove'; there are grow"):
        runs.scenario(card("L2"), "grove")


def test_a_run_takes_other_settings_and_refuses_wrong_ones() -> None:
    assert runs.scenario(card("L2"), "grow", page_size=2).engine.page_size == 2
    assert runs.scenario(card("L2"), "grow").engine.page_size == 1
    with pytest.raises(ScenarioError, match=r"engine\.pagez"):
        runs.scenario(card("L2"), "grow", pagez=2)


def test_a_moment_is_found_by_kind_request_node_and_number() -> None:
    events = run(runs.scenario(card("L2"), "grow")).trace.events
    assert [moments.find(events, Moment(label="", kind="request.matched", nth=n)) for n in (1, 2, 3)] == [2, 13, 28]
    assert moments.find(events, Moment(label="", kind="request.matched", request="R3")) == 28
    assert events[moments.find(events, Moment(label="", kind="node.split", node=1, nth=2))].seq == 29
    with pytest.raises(CourseError, match=r"no eviction of R9 number 1"):
        moments.find(events, Moment(label="", kind="eviction", request="R9"))


def test_a_solution_is_replaced_by_its_stub_at_the_same_depth() -> None:
    cell = Cell("code", "def f():\n    # stub: raise Unfinished('do it')\n    # solution:\n    return 1\n    # end\n\n\nf()")
    assert cell.asks
    assert cell.shown(False) == "def f():\n    raise Unfinished('do it')\n\n\nf()"
    assert cell.shown(True) == "def f():\n    return 1\n\n\nf()"


def test_the_same_source_makes_the_same_notebook() -> None:
    assert notebook.written("L2", False) == notebook.written("L2", False) != notebook.written("L2", True)
    made = json.loads(notebook.written("L2", False))
    assert made["nbformat"] == 4 and len({cell["id"] for cell in made["cells"]}) == len(made["cells"])


def test_progress_is_kept_a_lesson_each_and_can_be_forgotten() -> None:
    progress.record("L2", "exercises", "match", True)
    progress.record("L2", "questions", "1", False)
    progress.record("L5", "exercises", "policy", True)
    assert progress.lesson("L2")["exercises"] == {"match": True} and progress.lesson("L2")["questions"] == {"1": False}
    progress.forget("L2")
    assert progress.lesson("L2") == {part: {} for part in progress.PARTS} and progress.lesson("L5")["exercises"] == {"policy": True}


def test_a_broken_file_counts_as_none_and_is_replaced() -> None:
    progress.record("L2", "exercises", "match", True)
    progress.place().write_text("{ not json", encoding="utf-8")
    assert progress.lesson("L2")["exercises"] == {}
    progress.record("L2", "exercises", "match", False)
    assert json.loads(progress.place().read_text(encoding="utf-8"))["lessons"]["L2"]["exercises"] == {"match": False}


def test_two_notebooks_at_once_lose_nothing() -> None:
    threads = [threading.Thread(target=progress.record, args=("L2", "exercises", str(i), True)) for i in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(progress.lesson("L2")["exercises"]) == 24


def test_a_learner_keeps_the_number_they_drew(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = progress.learner()
    assert len(mine) == 8 and progress.learner() == mine
    monkeypatch.setenv("RADIX_LEARNER", "seat 7")
    assert progress.learner() == "seat 7"


def test_the_teachers_plan_fills_its_minutes_with_three_lessons_and_opens_moments_that_exist() -> None:
    made = plan()
    assert sum(stage.minutes for stage in made.stages) == made.minutes == 50
    taught = {stage.lesson for stage in made.stages if stage.lesson}
    assert len(taught) == 3
    for stage in made.stages:
        assert stage.ask
        if stage.lesson in cards():
            about = card(stage.lesson)
            assert stage.run in about.runs and stage.moment < len(about.runs[stage.run].moments)
