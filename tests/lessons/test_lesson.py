"""The frame of a lesson: what is kept, what is refused in one sentence, what a learner's own error says."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from engine import Plugs
from workbench.course import progress
from workbench.lessons import CheckFailed, Lesson, Published, Unfinished, chart, show, table
from workbench.lessons import events as events_of
from workbench.lessons.attempt import attempt, bounded
from workbench.lessons.grading import same
from workbench.lessons.verdicts import expect

RIGHT = {"second": 6, "third": 7, "splits": 2, "nodes": 5, "blocks": 4}


@pytest.fixture(autouse=True)
def _own_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADIX_PROGRESS", str(tmp_path / "progress.json"))


@pytest.fixture
def lesson() -> Lesson:
    return Lesson("L2")


def match(root: Any, tokens: list[int]) -> Any:
    return root, 0


def test_a_run_waits_for_the_predictions_that_it_needs(lesson: Lesson) -> None:
    with pytest.raises(Unfinished, match=r"third: say what you expect before you run it. How many of the third prompt's tokens .* a whole number from 0 to 8"):
        lesson.run("grow", "third")
    lesson.predict(third=7)
    assert len(lesson.run("grow", "third").report.requests) == 3


@pytest.mark.parametrize("value", [None, ..., "6", True, 9, -1, 2.5, [6]])
def test_a_prediction_that_cannot_be_is_refused_and_nothing_is_kept(lesson: Lesson, value: object) -> None:
    with pytest.raises(Unfinished, match="a whole number from 0 to 8"):
        lesson.predict(third=4, second=value)
    assert lesson.predicted == {}


def test_what_is_still_open_is_named_and_so_is_what_nobody_asked_for(lesson: Lesson) -> None:
    assert "still open: splits, nodes, blocks" in repr(lesson.predict(second=6, third=7))
    assert "Now run it" in repr(lesson.predict(splits=2, nodes=5, blocks=4))
    for wrong in (lambda: lesson.predict(5, 6), lambda: lesson.predict(fourth=3), lambda: lesson.reveal(fourth=3)):
        with pytest.raises(Unfinished, match="second"):
            wrong()


def test_what_was_said_first_stays_once_it_is_revealed(lesson: Lesson) -> None:
    lesson.predict(**{**RIGHT, "third": 6})
    lesson.predict(**{**RIGHT, "third": 5})  # before it is revealed one may think again
    assert "✗" in repr(lesson.reveal(third=7))
    assert "what you said first stays" in repr(lesson.predict(**RIGHT))
    lesson.reveal(third=7)
    assert progress.lesson("L2")["predictions"]["third"] == {"said": 5, "came": 7, "right": False}
    assert "prediction third: not what came" in repr(lesson.finish())


def test_a_figure_that_the_reference_does_not_confirm_is_no_outcome(lesson: Lesson) -> None:
    lesson.predict(**RIGHT)
    with pytest.raises(CheckFailed, match="the run says 6 tokens, the reference 7 tokens"):
        lesson.reveal(third=6)


def test_what_is_published_is_told_as_that(lesson: Lesson) -> None:
    lesson.predict(**RIGHT)
    said = repr(lesson.reveal(third=Published(7, "A paper")))
    assert "A paper says: 7 tokens (published, not measured here)" in said and "came to" not in said


@pytest.mark.parametrize("given", [(), (None,)])
def test_a_check_without_a_solution_is_told_and_never_passed(lesson: Lesson, given: tuple[Any, ...]) -> None:
    with pytest.raises(Unfinished, match=r'lesson.check\("match", your_function\)'):
        lesson.check("match", *given)
    assert progress.lesson("L2")["exercises"] == {} and not lesson.complete
    with pytest.raises(Unfinished, match="the exercises of L2 are match"):
        lesson.check("mtach", match)


def test_a_solution_that_passed_once_and_fails_now_has_not_passed(lesson: Lesson) -> None:
    lesson.passed["match"] = True
    progress.record("L2", "exercises", "match", True)
    with pytest.raises(CheckFailed):
        lesson.check("match", match)
    assert lesson.passed["match"] is False and progress.lesson("L2")["exercises"] == {"match": False}


def test_an_error_of_the_learners_own_is_told_with_its_line(lesson: Lesson) -> None:
    names: dict[str, Any] = {}
    exec(compile("def match_prefix(root, tokens):\n    node = root\n    return node, tokens[99]\n", "<cell>", "exec"), names)
    with pytest.raises(CheckFailed, match=r"looking up 10 11 12 13 14 15 20: your match_prefix\(.*\) stopped with IndexError: list index out of range, at line 3 of the cell"):
        lesson.check("match", names["match_prefix"])
    with pytest.raises(CheckFailed, match=r"doubled: your twice\('a'\) stopped with TypeError: .*, at line 1 of the cell"):
        exec(compile("def twice(x): return x - 1\n", "<cell>", "exec"), names)
        attempt("doubled", names["twice"], "a")
    with pytest.raises(CheckFailed, match="expected a function, got 5"):
        attempt("doubled", 5)


def test_a_loop_without_an_end_is_ended() -> None:
    began = time.monotonic()
    with pytest.raises(CheckFailed, match="match: after 1 s it has not ended"), bounded("match", 1):
        while True:
            time.sleep(0.01)
    assert time.monotonic() - began < 20


def test_an_answer_of_the_wrong_kind_is_told_and_a_missing_one_too(lesson: Lesson) -> None:
    with pytest.raises(Unfinished, match=r"lesson\.questions"):
        lesson.own.facts  # noqa: B018
    lesson.questions()
    with pytest.raises(Unfinished, match="one of the three is still missing"):
        lesson.answer(1, None, 2)
    with pytest.raises(Unfinished, match="answer 2: '5' cannot be it; write a number, without quotes"):
        lesson.answer(1, "5", 2)
    with pytest.raises(CheckFailed, match=r"not yet: 1\. .*You said 999 tokens"):
        lesson.answer(999, 999, 999)
    assert lesson.answers == {1: False, 2: False, 3: False}
    assert len(repr(lesson.own)) < 300 and len(repr(lesson.own.run)) < 120


@pytest.mark.parametrize(
    ("value", "came", "within", "counts"),
    [
        (7, 7, 0, True), (6, 7, 0, False), (7.0, 7, 0, True), (True, 1, 0, False), (105, 100, 0.05, True), (106, 100, 0.05, False), ("r5", "R5", 0, True),
        ("R5", "R6", 0, False), ([1, 2], (1, 2), 0, True), ([1], (1, 2), 0, False), (None, 0, 0, False), (0, 0, 0.1, True),
    ],
)  # fmt: skip
def test_an_answer_counts_when_it_is_equal_or_near_enough(value: Any, came: Any, within: float, counts: bool) -> None:
    assert same(value, came, within) is counts


def test_a_failed_expectation_names_both_the_event_and_a_hint(lesson: Lesson) -> None:
    run = lesson.run("grow")
    event = events_of(run, "request.matched", request="R3")[0]
    with pytest.raises(CheckFailed, match=r"(?s)found: expected 6, got 7\n  event 28: R3 .*\n  Hint: count again"):
        expect("found", event.length, 6, run=run, event=event.seq, hint="count again")
    expect("found", 7, 7)


def test_an_error_shows_as_one_card_and_not_as_a_stack_trace() -> None:
    assert CheckFailed("not so")._render_traceback_() == ["✗ not so"]
    assert Unfinished("write it")._render_traceback_() == ["✎ write it"]


def test_pictures_carry_all_they_need_and_say_in_words_what_they_are(lesson: Lesson) -> None:
    import plotly.graph_objects as go

    run = lesson.run("grow")
    player = show(run, 28, request="R3")
    assert "srcdoc=" in player._repr_html_() and "http" not in player._repr_html_().split("srcdoc")[0] and "43 events" in repr(player)
    drawn = chart(go.Figure(go.Bar(x=[1], y=[2])), "Two & two")
    assert "Two &amp; two" in drawn._repr_html_() and len(drawn._repr_html_()) < 100_000
    assert "Plotly" in lesson._repr_html_() and "Python 3" in repr(lesson)
    rows = table("Found", ["request", "tokens"], [["R1", 0], ["<b>", None]])
    assert "&lt;b&gt;" in rows._repr_html_() and "unknown" in repr(rows)


def test_a_solution_that_stops_the_engine_is_told_as_that(lesson: Lesson) -> None:
    def too_much(root: Any, tokens: list[int]) -> Any:
        return (next(iter(root.children.values())), len(tokens)) if root.children else (root, 0)

    with pytest.raises(CheckFailed, match=r"the engine stopped with your match: too_much: WrongSlot: R2: position 6 should hold id 30"):
        lesson.run("grow", plugs=Plugs(match=too_much))
