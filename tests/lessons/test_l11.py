"""Lesson 11's references: percentiles against NumPy's definition of the same method, times against the report."""

from __future__ import annotations

import random

import numpy as np
import pytest

from workbench.lessons import Lesson
from workbench.lessons.checks import l11


def test_percentiles_by_nearest_rank_are_numpys_inverted_cdf() -> None:
    rng = random.Random(3)
    for n in (1, 2, 5, 20, 37):
        values = [rng.randint(0, 30) / 4 for _ in range(n)]
        for p in (1, 5, 33, 50, 60, 95, 99, 100):
            assert l11.nearest_rank(values, p) == np.percentile(values, p, method="inverted_cdf")
    assert l11.nearest_rank([], 50) is None


def test_times_from_raw_events_are_those_of_the_report() -> None:
    run = Lesson("L11").run("open")
    raw = l11.moments(run)
    for report in run.report.requests:
        ttft, tpot, total = l11.defined(*raw[report.id])
        assert ttft == pytest.approx(report.ttft) and tpot == pytest.approx(report.tpot) and report.finished is not None
        assert total == pytest.approx(report.finished - report.arrived)


def test_the_three_rounds_send_what_the_lesson_says() -> None:
    requests = Lesson("L11").scenario("rounds").requests
    first, again, fresh = ([r for r in requests if (r.id or "")[0] == letter] for letter in "ABC")
    assert [r.tokens for r in first] == [r.tokens for r in again] and [len(r.tokens or ()) for r in first] == [len(r.tokens or ()) for r in fresh]
    assert len({(r.tokens or [0])[0] for r in (*first, *fresh)}) == 40, "no two new prompts begin alike"
    assert {len(r.tokens or ()) for r in first} >= {256, 2048} and {r.max_new_tokens for r in first} >= {16, 96}
    assert [r.tokens for r in Lesson("L11").scenario("open").requests] == [r.tokens for r in first]
