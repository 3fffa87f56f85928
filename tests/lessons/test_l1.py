"""L1's judgements by hand, and its pictures."""

from __future__ import annotations

import pytest

from engine import events as ev
from workbench.figures.twice import EDGE, moved, ties, twice
from workbench.lessons import CheckFailed, Lesson, Unfinished
from workbench.lessons.checks import l1


def spoke(token: int, *top: tuple[int, float]) -> ev.TokenEmitted:
    return ev.TokenEmitted(request="R", position=0, token=token, top=list(top), seq=0, t=0.0, step=0)


def test_cases_by_hand_are_judged_as_their_names_say() -> None:
    expected = ["same", "same", "near tie", "near tie", "wrong", "wrong", "same"]
    assert [l1.judged(cold, warm, tolerance) for _, cold, warm, tolerance in l1.CASES] == expected


def test_an_answer_is_followed_to_the_first_token_that_differs() -> None:
    cold = [spoke(5, (5, -0.1), (9, -2.1)), spoke(5, (5, -0.7), (9, -0.75)), spoke(1, (1, 0.0), (2, -3.0))]
    warm = [spoke(5, (5, -0.2), (9, -2.1)), spoke(9, (9, -0.70), (5, -0.72)), spoke(2, (2, 0.0), (1, -3.0))]
    assert [(round(gap, 6), round(shift, 6), other) for gap, shift, other in moved(cold, warm)] == [(2.0, 0.1, False), (0.05, 0.07, True)]


def test_a_tie_whose_list_is_turned_round_is_no_other_token() -> None:
    assert moved([spoke(5, (5, -0.7), (9, -0.7))], [spoke(5, (9, -0.7), (5, -0.7))]) == [(0.0, 0.0, False)]


def test_the_pictures_show_what_was_counted() -> None:
    figure = twice({"cold": (0, 10), "warm": (9, 1)}, {"cold": [5.0, 6.0], "warm": [1.0, 2.0]})
    found, computed, cold, warm = figure.data
    assert list(found.x) == [9, 0] and list(computed.x) == [1, 10] and list(computed.y) == ["warm", "cold"]
    assert [a - round(a) for a in cold.y] == [a - round(a) for a in warm.y], "both of a pair stand alike"
    drawn = ties({"float32": [(0.5, 1e-5, False)], "bfloat16": [(0.0, 0.0, False), (0.1, 0.2, True)]})
    assert [t.name for t in drawn.data] == ["float32, the same token", "bfloat16, the same token", "bfloat16, another token", "moved by as much as the gap"]
    assert drawn.data[1].x == (EDGE,) and drawn.data[2].marker.symbol == "x"


@pytest.mark.parametrize("name", ["verdict", "receipt"])
@pytest.mark.parametrize("silly", [None, 5, lambda *a: None, lambda *a: "no", lambda *a: 1 / 0, lambda: 0, lambda *a: {}, lambda *a: {"R1": (0, True, "x")}])
def test_what_makes_no_sense_is_told_in_a_sentence(name: str, silly: object) -> None:
    with pytest.raises((CheckFailed, Unfinished)) as told:
        Lesson("L1").check(name, silly)
    assert any(word in str(told.value) for word in ("expected", "stopped with", "give what you wrote"))
