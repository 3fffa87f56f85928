"""Comparisons that the Compare page keeps, and what it shows of them."""

from __future__ import annotations

import json

from workbench import compare, scenario
from workbench.ui.compared import KEPT, Asked, Compared, Kept, table_of, words_of

HOSTILE = "<b>R1"


def compared(id: str) -> Compared:
    traffic = scenario.parse({"engine": {"clock": {"plan": 0, "step": 1, "token": 1}}, "requests": [{"id": HOSTILE, "tokens": "A8"}, {"id": "R2", "tokens": "A8+B4", "after": HOSTILE}]})
    result, _ = compare.compare(traffic, [("on", {}), ("off", {"engine.cache": "off"})])
    return Compared(Asked("traffic", "question", "on:", 1), result, [("run-on", 40), ("run-off", 30)], id)


def test_the_oldest_comparison_is_forgotten() -> None:
    kept, one = Kept(), compared("0")
    for i in range(KEPT + 1):
        kept.add(Compared(one.asked, one.result, one.runs, str(i)))
    assert kept.get("0") is None and kept.get("1") is not None and kept.get(str(KEPT)) is not None


def test_the_address_names_the_run_that_answers_for_each_arm() -> None:
    assert json.loads(compared("x").address()) == {
        "id": "x", "arms": [{"name": "on", "run": "run-on", "last": 40}, {"name": "off", "run": "run-off", "last": 30}],
    }  # fmt: skip


def test_the_words_tell_for_whom_it_took_longer_and_names_become_no_markup() -> None:
    one = compared("x")
    assert "First tokens in off against on: " in words_of(one.result)
    table = table_of(one.result)
    assert "<b>" not in table and table.count("data-request=") == 2
