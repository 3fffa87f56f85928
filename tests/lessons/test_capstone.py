"""The capstone's bound against the engine, its percentile, and its rule over many learners."""

from __future__ import annotations

import pytest

from workbench.lessons import CheckFailed, Lesson, Unfinished
from workbench.lessons.checks import capstone
from workbench.lessons.unseen import PAGE_SIZES, POLICIES, Unseen, drawn, p95

RULE = {"page_size": 1, "policy": "lpm", "eviction": "lru"}


def right(burst: Unseen) -> dict[str, object]:
    return {"order": capstone.orders(burst)["what all share first"], **RULE}


@pytest.mark.parametrize("seed", range(6))
def test_with_room_each_text_is_computed_once_and_the_arithmetic_is_near(seed: int) -> None:
    lesson, burst = Lesson("capstone"), drawn(f"test {seed}")
    roomy = burst.scenario(right(burst))
    roomy["engine"]["pages"] = 40000
    assert lesson.run(roomy).report.totals.computed_tokens == capstone.least(burst)
    slowest, computed, _ = capstone.measured(lesson, burst, right(burst))
    assert computed >= capstone.least(burst)
    practice = lesson.run("practice").report
    pace = p95(r.ttft for r in practice.requests if r.ttft is not None) / practice.totals.computed_tokens
    assert abs(capstone.least(burst) * pace - slowest) < 0.25 * slowest
    every = [capstone.measured(lesson, burst, right(burst) | {"page_size": size, "policy": policy})[0] for size in PAGE_SIZES for policy in POLICIES]
    assert slowest <= min(every) * (1 + capstone.WITHIN)


def test_the_percentile_is_by_nearest_rank() -> None:
    assert p95(range(1, 101)) == 95 and p95([3.0]) == 3 and p95([5, 1, 2, 4, 3]) == 5 and p95(range(1, 21)) == 19


def test_the_same_key_gives_the_same_burst_and_another_another() -> None:
    assert drawn("a") == drawn("a") != drawn("b")
    assert {drawn(f"{i}").facts["tenants"] for i in range(40)} == {5, 6, 7, 8, 9}


@pytest.mark.parametrize(
    "silly", [None, 7, lambda facts: None, lambda facts: "lpm", lambda facts: {}, lambda facts: 1 / 0, lambda: 1,
              lambda facts: {"order": ["x"], **RULE}, lambda facts: {"order": list(facts["parts"]), **RULE, "page_size": True}, lambda facts: {"order": list(facts["parts"]), **RULE, "policy": ["lpm"]}],
)  # fmt: skip
def test_what_makes_no_sense_is_told_in_a_sentence(silly: object) -> None:
    with pytest.raises((CheckFailed, Unfinished)) as told:
        Lesson("capstone").check("choose", silly)
    assert "\n" not in str(told.value) and len(str(told.value)) < 400


@pytest.mark.parametrize("silly", ["order", 3, [], {}])
def test_an_explanation_that_is_none_of_the_three_is_told(silly: object) -> None:
    with pytest.raises(CheckFailed, match="expected one of page_size, policy, eviction"):
        Lesson("capstone").check("explain", silly)
