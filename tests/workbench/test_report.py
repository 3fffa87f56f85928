"""Contract 3: the report, hand-checked; what did not happen is null."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from engine import events as ev
from workbench import scenario
from workbench.report import Report, RequestReport, TreeNode, build, spread
from workbench.runner import run


@pytest.fixture(scope="module")
def walkthrough() -> Report:
    """Three prompts of 8 tokens that begin alike; a step takes 0.1 s and 0.1 s a token."""
    return run(scenario.load("walkthrough"), check=True).report


def report(requests: list[dict[str, Any]], **engine: Any) -> Report:
    return run(scenario.parse({"engine": engine, "requests": requests}), check=True).report


def by_id(report: Report) -> dict[str, RequestReport]:
    return {r.id: r for r in report.requests}


def test_the_walkthrough_counts_what_was_reused(walkthrough: Report) -> None:
    rows = by_id(walkthrough)
    assert [(r.prompt_tokens, r.cached_tokens, r.computed_tokens) for r in rows.values()] == [(8, 0, 8), (8, 6, 2), (8, 7, 1)]
    assert [r.output_ids for r in rows.values()] == [[901, 902], [903, 904], [905, 906]]
    assert [(r.status, r.finish_reason) for r in rows.values()] == [("finished", "length")] * 3
    assert [r.wait_tokens for r in rows.values()] == [8, 10, 11]
    assert walkthrough.order == ["R1", "R2", "R3"] and walkthrough.invariants == "ok"


def test_the_walkthroughs_times_follow_from_its_clock(walkthrough: Report) -> None:
    rows = by_id(walkthrough)
    # prefill of 8, 2 and 1 tokens: 0.9, 0.3, 0.2 s; each then decodes one token in 0.2 s
    assert [(r.arrived, r.admitted, r.first_token, r.finished) for r in rows.values()] == [
        (0.0, 0.0, 0.9, 1.1), (1.1, 1.1, 1.4, 1.6), (1.6, 1.6, 1.8, 2.0),
    ]  # fmt: skip
    assert [(r.ttft, r.queue_time, r.prefill_time, r.tpot) for r in rows.values()] == [
        (0.9, 0.0, 0.9, 0.2), (0.3, 0.0, 0.3, 0.2), (0.2, 0.0, 0.2, 0.2),
    ]  # fmt: skip
    assert walkthrough.totals.duration == 2.0 and walkthrough.totals.tokens_per_second == 3.0


def test_the_walkthroughs_totals_add_up(walkthrough: Report) -> None:
    t = walkthrough.totals
    assert (t.prompt_tokens, t.cached_tokens, t.computed_tokens, t.hit_rate) == (24, 13, 11, 0.541667)
    assert (t.output_tokens, t.forward_passes, t.steps, t.evictions, t.retractions, t.refused) == (6, 6, 6, 0, 0, 0)
    assert (t.ttft.n, t.ttft.mean, t.ttft.p50, t.ttft.p90, t.ttft.p99, t.ttft.max) == (3, 0.466666667, 0.3, 0.9, 0.9, 0.9)
    p = walkthrough.pool
    assert (p.pages, p.free, p.cached, p.private, p.locked, p.evictable) == (32, 18, 14, 0, 0, 14)


def test_the_walkthroughs_tree_is_the_one_in_the_golden_trace(walkthrough: Report) -> None:
    def outline(node: TreeNode) -> Any:
        return (node.id, node.tokens, node.hits, [outline(c) for c in node.children])

    assert outline(walkthrough.tree) == (0, 0, 0, [
        (3, 6, 2, [
            (4, 2, 0, [(5, 1, 0, [])]),
            (6, 1, 1, [(1, 1, 0, [(2, 1, 0, [])]), (7, 1, 0, [(8, 1, 0, [])])]),
        ]),
    ])  # fmt: skip


# --- percentiles -------------------------------------------------------------------------------


def test_percentiles_are_nearest_ranks() -> None:
    s = spread([float(v) for v in range(100, 0, -1)])
    assert (s.n, s.mean, s.p50, s.p90, s.p99, s.max) == (100, 50.5, 50.0, 90.0, 99.0, 100.0)
    assert (spread([7.0]).p50, spread([7.0]).p99) == (7.0, 7.0)
    assert spread([1.0, 2.0]).p50 == 1.0 and spread([1.0, 2.0]).p90 == 2.0


def test_percentiles_are_ranks_in_whole_numbers_whatever_floating_point_says() -> None:
    for n in range(1, 1200):
        s = spread([float(i) for i in range(1, n + 1)])
        assert (s.p50, s.p90, s.p99) == (-(-50 * n // 100), -(-90 * n // 100), -(-99 * n // 100)), n


def test_no_values_have_no_spread() -> None:
    assert msgspec.to_builtins(spread([])) == {"n": 0, "mean": None, "p50": None, "p90": None, "p99": None, "max": None}


# --- what did not happen -----------------------------------------------------------------------


def test_a_refused_request_has_its_numbers_and_nothing_else() -> None:
    r = by_id(report([{"tokens": "A20", "id": "R"}], pages=16))["R"]
    assert (r.status, r.finish_reason) == ("refused", None)
    assert msgspec.to_builtins(r.refusal) == {"reason": "pages", "needed": 21, "available": 16}
    absent = ("cached_tokens", "computed_tokens", "recovered_tokens", "recomputed_tokens", "retractions", "overtaken_tokens",
              "admitted", "first_token", "ttft", "queue_time", "prefill_time", "tpot", "wait_tokens", "error")  # fmt: skip
    assert {k: getattr(r, k) for k in absent} == dict.fromkeys(absent)


def test_a_run_in_which_nothing_ran_has_no_rates() -> None:
    t = report([{"tokens": "A20"}], pages=16).totals
    assert (t.hit_rate, t.tokens_per_second, t.ttft.n, t.ttft.p50, t.refused) == (None, None, 0, None, 1)


def test_a_prefill_only_request_has_no_first_token() -> None:
    r = by_id(report([{"tokens": "A4", "id": "R", "max_new_tokens": 0}]))["R"]
    assert (r.first_token, r.ttft, r.prefill_time, r.tpot) == (None, None, None, None)
    assert (r.status, r.finish_reason, r.finished, r.computed_tokens) == ("finished", "length", 1.0, 4)


def test_one_token_has_no_time_between_tokens() -> None:
    assert by_id(report([{"tokens": "A4", "id": "R", "max_new_tokens": 1}]))["R"].tpot is None


def test_a_request_aborted_while_it_waited_was_never_admitted() -> None:
    rows = by_id(report(
        [{"tokens": "A4", "id": "H", "max_new_tokens": 5}, {"tokens": "B4", "id": "R", "abort_at_step": 3}], max_running=1
    ))  # fmt: skip
    r = rows["R"]
    assert (r.status, r.finish_reason, r.admitted, r.cached_tokens, r.retractions, r.finished) == ("aborted", "abort", None, None, None, 2.0)


def test_a_failed_request_says_why() -> None:
    r = by_id(report([{"tokens": "A4", "id": "R", "max_new_tokens": 5, "fail_at_step": 3}]))["R"]
    assert (r.status, r.finish_reason, r.output_ids != []) == ("failed", "error", True)
    assert r.error == "RuntimeError: R was told to fail at step 3"


def test_what_a_retraction_costs_stands_apart_from_the_hit_rate() -> None:
    done = report(
        [{"tokens": f"{c}8", "id": c, "max_new_tokens": 12} for c in "AB"], pages=24, reserve_start=0.0, reserve_min=0.0
    )
    t, rows = done.totals, by_id(done)
    assert t.retractions == sum(r.retractions for r in rows.values() if r.retractions) > 0
    assert (t.prompt_tokens, t.cached_tokens, t.computed_tokens, t.hit_rate) == (16, 0, 16, 0.0)
    assert t.recovered_tokens + t.recomputed_tokens > 0
    assert all(r.prompt_tokens == r.cached_tokens + r.computed_tokens for r in rows.values())


def test_invariants_are_null_where_nobody_watched_and_listed_where_they_broke() -> None:
    done = run(scenario.load("walkthrough"))
    assert done.report.invariants is None
    broken = ev.InvariantBroken(seq=len(done.trace), t=2.0, step=7, what="page 3 has more than one owner")
    assert build(done.trace.header, [*done.trace, broken], checked=True).invariants == ["page 3 has more than one owner"]


def test_overtaken_tokens_are_those_of_the_first_admission() -> None:
    rows = by_id(report(
        [{"tokens": "A8", "id": "S"}, {"tokens": "Z6", "id": "R", "at_step": 30, "max_new_tokens": 1},
         {"tokens": "A8+B3", "id": "X", "at_step": 30, "max_new_tokens": 1}],
        policy="lpm", max_running=1,
    ))  # fmt: skip
    assert (rows["R"].overtaken_tokens, rows["X"].overtaken_tokens) == (3, 0)
    assert (rows["R"].wait_tokens, rows["X"].wait_tokens) == (8 + 3 + 6, 8 + 3)
    assert rows["R"].queue_time == 1.0


def test_the_report_is_plain_json() -> None:
    text = msgspec.json.encode(run(scenario.load("walkthrough")).report)
    again = msgspec.json.decode(text, type=Report)
    assert msgspec.json.encode(again) == text and b"NaN" not in text
    assert math.isfinite(again.totals.duration)


def test_what_a_pin_holds_is_cached_and_not_evictable() -> None:
    told = report([{"tokens": "A6", "max_new_tokens": 1, "pin": 9}], pages=16).pool
    assert (told.cached, told.locked, told.evictable, told.free) == (6, 0, 0, 10)
