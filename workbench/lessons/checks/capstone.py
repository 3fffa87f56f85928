"""Capstone: the grid of settings on the learner's own burst, and what cannot be undercut: each part computed once for each of its texts."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

from workbench.lessons.attempt import attempt
from workbench.lessons.lesson import Lesson
from workbench.lessons.questions import Asked, Own
from workbench.lessons.reading import events
from workbench.lessons.unseen import CHANGES, EVICTIONS, PAGE_SIZES, POLICIES, Unseen, drawn, mine, p95
from workbench.lessons.verdicts import CheckFailed, Unfinished, expect
from workbench.runner import Run

KEYS: dict[str, Callable[[Lesson], Any]] = {}
"""Hit rate and p95 depend on what the learner chooses; both are simulated. A bound that no choice can pass is checked with `choose`."""
WITHIN = 0.05
"""How far from the grid's best p95 a choice may be, and how close two settings' costs are that count as equal."""
OTHERS = 1
"""Further bursts on which a rule has to hold."""
Grid = dict[tuple[str, int, str, str], tuple[float, int]]


def orders(burst: Unseen) -> dict[str, list[str]]:
    """Three ways to put the parts: as they come, what tenants share first, and what all share first."""
    by = {change: [name for name, part in burst.parts.items() if part["changes"] == change] for change in CHANGES}
    return {
        "what changes with each request first": [*by["request"], *by["tenant"], *by["never"]],
        "what each tenant has first": [*by["tenant"], *by["never"], *by["request"]],
        "what all share first": [*by["never"], *by["tenant"], *by["request"]],
    }


def least(burst: Unseen) -> int:
    """Prompt tokens that any order, policy and memory must compute: every text of every part once."""
    texts = {"never": 1, "tenant": len(set(tenants(burst))), "request": burst.requests}
    return sum(part["tokens"] * texts[part["changes"]] for part in burst.parts.values())


def tenants(burst: Unseen) -> list[int]:
    """Whose request each is, as the workload draws them."""
    rng = random.Random(burst.seed)
    return [int(rng.random() * burst.tenants) for _ in range(burst.requests)]


def measured(lesson: Lesson, burst: Unseen, settings: dict[str, Any]) -> tuple[float, int, Run]:
    """p95 TTFT, prompt tokens computed, and the run."""
    run = lesson.run(burst.scenario(settings))
    return p95(r.ttft for r in run.report.requests if r.ttft is not None), run.report.totals.computed_tokens, run


_grids: dict[str, Grid] = {}


def grid(lesson: Lesson, burst: Unseen) -> Grid:
    """Every combination: p95 TTFT in seconds, and prompt tokens computed. Once a burst: the simulation gives the same again."""
    known = str(burst)
    if known not in _grids:
        _grids[known] = _grid(lesson, burst)
    return _grids[known]


def _grid(lesson: Lesson, burst: Unseen) -> Grid:
    out: Grid = {}
    for (name, order), size, policy, eviction in itertools.product(orders(burst).items(), PAGE_SIZES, POLICIES, EVICTIONS):
        slowest, computed, _ = measured(lesson, burst, {"order": order, "page_size": size, "policy": policy, "eviction": eviction})
        out[name, size, policy, eviction] = (slowest, computed)
    return out


def check_choose(lesson: Lesson, choose: Callable[..., Any]) -> list[str]:
    """The learner's rule on the own burst and on others, beside the best of the grid."""
    bursts = [("your burst", mine())] + [(f"another burst ({i})", drawn(f"other {i}")) for i in range(1, OTHERS + 1)]
    lines = []
    for name, burst in bursts:
        settings = attempt(name, choose, burst.facts)
        slowest, computed, run = measured(lesson, burst, settings)
        if computed < least(burst):
            raise CheckFailed(f"{name}: the engine computed {computed:,} tokens and the texts alone have {least(burst):,}; one of them is wrong, and it matters")
        table = grid(lesson, burst)
        best = min(table, key=lambda key: table[key][0])
        if slowest > table[best][0] * (1 + WITHIN):
            late = max((r for r in run.report.requests if r.ttft is not None), key=lambda r: r.ttft or 0)
            seq = events(run, "request.first_token", request=late.id)[0].seq
            expect(
                f"{name}: p95 TTFT of {settings}", f"{slowest:.2f} s", f"at most {table[best][0] * (1 + WITHIN):.2f} s", run=run, event=seq,
                hint=f"the grid's best computes {table[best][1]:,} prompt tokens, yours {computed:,}; ask which part stands in front of what many prompts share, and what is computed again",
            )  # fmt: skip
        rank = sum(value < slowest for value, _ in table.values()) + 1
        lines.append(f"{name}: p95 TTFT {slowest:.2f} s (simulated), place {rank} of {len(table)} in the grid, best {table[best][0]:.2f} s, worst {max(v for v, _ in table.values()):.2f} s")
    return lines


def costs(lesson: Lesson) -> dict[str, float]:
    """What each setting costs if it alone is wrong: p95 TTFT as a share of that with all four right."""
    burst = mine()
    right = {"order": orders(burst)["what all share first"], "page_size": 1, "policy": "lpm", "eviction": "lru"}
    wrong = {"page_size": 128, "policy": "fcfs", "eviction": "lfu"}
    base = measured(lesson, burst, right)[0]
    return {key: measured(lesson, burst, right | {key: value})[0] / base for key, value in wrong.items()}


def check_explain(lesson: Lesson, costliest: Any = None) -> list[str]:
    """Which setting, the order aside, costs the most if it alone is wrong."""
    if costliest is None or costliest is ...:
        raise Unfinished('costliest: "page_size", "policy" or "eviction"; run your burst three times more, each with one of them wrong, and compare p95')
    found = costs(lesson)
    if not isinstance(costliest, str) or costliest not in found:
        raise CheckFailed(f"costliest: expected one of {', '.join(found)}, got {costliest!r}")
    most = max(found.values())
    if found[costliest] < most - WITHIN:
        told = ", ".join(f"{key} {value:.2f} times" for key, value in found.items())
        raise CheckFailed(f"costliest: expected the one that makes p95 grow most, got {costliest}\n  p95 TTFT beside the right settings: {told}\n  Hint: change one setting at a time and leave the others right")
    return [f"{key} alone wrong: p95 TTFT is {value:.2f} times that of the right settings (simulated)" for key, value in sorted(found.items(), key=lambda kv: -kv[1])]


CHECKS: dict[str, Callable[..., list[str]]] = {"choose": check_choose, "explain": check_explain}


def questions(lesson: Lesson, rng: random.Random) -> Own:
    """The same kind of burst with room for everything: what must be computed, and the slow end by hand."""
    burst = drawn(f"questions {rng.random()}")
    settings = {"order": orders(burst)["what all share first"], "page_size": 1, "policy": "lpm", "eviction": "lru"}
    scenario = burst.scenario(settings)
    scenario["engine"]["pages"] = 40000
    scenario["name"] = "a burst with room for everything"
    run = lesson.run(scenario)
    times = [first.t - events(run, "request.arrived", request=first.request)[0].t for first in events(run, "request.first_token")]
    slowest = p95(times)
    whole = burst.requests * sum(part["tokens"] for part in burst.parts.values())
    last = next(e for e in events(run, "request.first_token") if abs(e.t - slowest) < 1e-9)
    facts = {name: value for name, value in burst.rows if name != "memory"} | {"memory": "room for everything", "order": ", ".join(settings["order"])}
    facts["tenants"] = f"{burst.tenants}, of whom {len(set(tenants(burst)))} sent requests"
    asked = (
        Asked("How many prompt tokens were computed, over all requests?", least(burst), events(run, "request.admitted")[0].seq, "tokens", hint="each text of each part once: the shared one, one a tenant, one a request"),
        Asked("What is the hit rate, in per cent?", 100 * (1 - least(burst) / whole), None, "%", within=0.005, hint="tokens found of all prompt tokens"),
        Asked("What is the 95th percentile of TTFT by nearest rank, in seconds?", slowest, last.seq, "s", within=0.005, hint="sort the times; take number ceil(0.95 n), counted from 1"),
    )  # fmt: skip
    return Own(run, asked, facts)
