"""L3's references against values known beforehand, and its picture."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.experiments.attention import TwoLayers, differences, turned
from workbench.figures.changed import changed
from workbench.lessons import CheckFailed, Lesson, Unfinished
from workbench.lessons.checks import l3


def test_a_change_touches_one_row_then_all_behind_it() -> None:
    assert [l3.touched(24, 7, layer) for layer in (1, 2, 3)] == [1, 17, 17]
    assert [l3.touched(24, 0, 2), l3.touched(24, 23, 2)] == [24, 1]
    assert l3.usable([1, 2, 3, 4], [1, 2, 3, 4]) == [0, 1, 2] and l3.usable([1, 2, 3], [9, 1, 2, 3]) == []


def test_the_plain_loops_agree_with_numpy() -> None:
    model, ids = TwoLayers(0, rotary=True), np.array(l3.lesson_ids())
    answer, _ = model.run(ids)
    slow, _ = l3.through(model, ids.tolist())
    assert np.abs(answer - np.array(slow)).max() < l3.CLOSE


def test_only_the_distance_of_two_turned_rows_counts() -> None:
    a, b = np.random.default_rng(0).standard_normal((2, 1, 32))
    products = [(turned(a, np.array([i])) @ turned(b, np.array([i + 3])).T).item() for i in (0, 5, 400)]
    assert products == pytest.approx([products[0]] * 3)
    assert turned(a, np.array([9]))[0] == pytest.approx(l3.turn(a[0].tolist(), 9))


def test_without_positions_the_model_is_the_experiments() -> None:
    ids = np.arange(10)
    assert (TwoLayers(0).run(ids)[0] == TwoLayers(0).run(ids, position=5)[0]).all()
    assert (TwoLayers(0).run(ids)[0] != TwoLayers(0, rotary=True).run(ids)[0]).any()


def test_the_picture_has_a_strip_a_case_and_a_sign_beside_each_colour() -> None:
    model, ids = TwoLayers(0), np.arange(12)
    other = np.where(ids == 7, 70, ids)
    figure = changed({"one": differences(model.run(ids)[1], model.run(other)[1]), "none": differences(model.run(ids)[1], model.run(ids)[1])})
    strips = [t for t in figure.data if t.type == "heatmap"]
    assert len(strips) == 2 and [sum(k == 2 for k in row) for row in strips[0].z] == [1, 1, 5, 5]
    assert strips[0].text[0][7] == "×" and set(strips[1].text[3]) == {"·"}
    assert [t.name for t in figure.data if t.type == "scatter"] == ["· the same bits", "≈ equal but for rounding", "× different"]


@pytest.mark.parametrize("name", ["continue", "reusable"])
@pytest.mark.parametrize("silly", [None, 5, lambda *a: None, lambda *a: "no", lambda *a: 1 / 0, lambda: 0, lambda *a: [[1]], lambda *a: a[0] * 0])
def test_what_makes_no_sense_is_told_in_a_sentence(name: str, silly: object) -> None:
    with pytest.raises((CheckFailed, Unfinished)) as told:
        Lesson("L3").check(name, silly)
    assert any(word in str(told.value) for word in ("expected", "stopped with", "give what you wrote"))
