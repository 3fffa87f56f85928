"""Field note D10: which policy wins depends on the traffic, so one traffic is run under all of them; and what was regretted."""

from __future__ import annotations

import random
from typing import Any

from engine import events as ev
from engine.config import EVICTIONS
from workbench.evictions import every_policy
from workbench.explain.regrets import regrets
from workbench.recording import as_scenario
from workbench.runner import run
from workbench.scenario import Scenario, parse


def skewed(**engine: Any) -> Scenario:
    """Five heads, two of them asked for twice as often, in a pool with room for three and a half."""
    chance = random.Random(3)
    heads = ["A40", "B40", "A40", "B40", "C40", "D40", "E40"]
    requests = [{"tokens": f"{chance.choice(heads)}+X{chr(97 + i)}{4 + i % 5}", "max_new_tokens": 2} for i in range(26)]
    return parse({"engine": {"pages": 160, "max_running": 2, **engine}, "requests": requests})


def test_d10_one_traffic_under_all_policies_in_one_table() -> None:
    rows = every_policy(skewed())
    assert [r.eviction for r in rows] == list(EVICTIONS)
    table = {r.eviction: r for r in rows}
    for r in rows:
        assert r.cached is not None and r.computed is not None and r.regretted is not None
        assert r.cached + r.computed == 26 * 40 + sum(4 + i % 5 for i in range(26))
        assert r.hit_rate == round(r.cached / (r.cached + r.computed), 6) and (r.evictions or 0) > 0
    best = {round((r.cached or 0) / (r.share_of_best or 1)) for r in rows}
    assert len(best) == 1, "the ceiling is the traffic's, not the policy's"
    assert all((r.cached or 0) + (r.regretted or 0) == next(iter(best)) for r in rows), "what is short of it was evicted and missed"
    assert table["belady"].name == "farthest next use"
    assert (table["lfu"].cached or 0) > (table["lru"].cached or 0), "skewed traffic: frequency tells more than recency"
    assert table["belady"].regretted == min(r.regretted or 0 for r in rows)
    assert rows == every_policy(skewed()), "the same traffic gives the same table"


def test_d10_a_scan_larger_than_the_pool_is_won_by_another_policy() -> None:
    cycle = [{"tokens": f"{'ABCDE'[i % 5]}40", "max_new_tokens": 1} for i in range(25)]
    scenario = parse({"engine": {"pages": 170, "max_running": 1, "eviction_unit": "leaf"}, "requests": cycle})
    cached = {r.eviction: r.cached for r in every_policy(scenario)}
    assert cached["lru"] == cached["fifo"] == 0
    assert 0 < (cached["mru"] or 0) <= (cached["belady"] or 0)


def test_d10_a_recorded_trace_can_be_put_to_every_policy() -> None:
    trace = run(skewed()).trace
    recorded, made = every_policy(as_scenario(trace)), every_policy(skewed())
    assert recorded == made


def test_a_policy_that_cannot_run_says_why_and_the_others_run() -> None:
    rows = every_policy(skewed(policy="lpm"), ["lru", "belady"])
    assert rows[0].cached and rows[0].refused is None
    assert rows[1].cached is None and "needs policy: fcfs" in (rows[1].refused or "")


def test_what_is_regretted_is_counted_by_hand() -> None:
    """Room for two prompts of four: C drives A out, A is asked for again and drives B out, B is asked for again."""
    requests = [{"tokens": f"{name}4", "max_new_tokens": 1} for name in "ABCAB"]
    done = run(parse({"engine": {"pages": 9, "eviction_unit": "leaf", "max_running": 1}, "requests": requests}))
    told = regrets(done.trace.events)
    assert [r.cached_tokens for r in done.report.requests] == [0, 0, 0, 0, 0]
    assert (told.tokens, told.requests, told.evictions) == (2 * 3, 2, 2)
    assert all(isinstance(done.trace.events[seq], ev.Eviction) and tokens == 3 for seq, tokens in told.worst)


def test_what_was_evicted_and_never_asked_for_again_is_not_regretted() -> None:
    requests = [{"tokens": f"{name}4", "max_new_tokens": 1} for name in "ABCDE"]
    done = run(parse({"engine": {"pages": 9, "max_running": 1}, "requests": requests}))
    assert done.report.totals.evicted_tokens > 0
    assert regrets(done.trace.events).tokens == 0
