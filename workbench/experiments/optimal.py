"""How near each policy comes to the best possible when the whole batch is known and the cache is small."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import PAPER, Chart, Curve, Point, Row, exact, told
from workbench.runner import Run
from workbench.workloads.ceiling import best_possible

BATCHES: dict[str, dict[str, Any]] = {
    "passages": {"groups": 16, "per_group": 8, "prefix": 256, "question": 32},
    "one handbook": {"groups": 8, "per_group": 12, "common": 256, "prefix": 64, "question": 16},
    "examples": {"groups": 1, "per_group": 96, "prefix": 384, "question": 24},
    "many short groups": {"groups": 40, "per_group": 3, "prefix": 192, "question": 48},
}
"""Shared-prefix batches in random order."""
POLICIES: dict[str, dict[str, Any]] = {
    "fcfs": {"policy": "fcfs"},
    "fcfs, farthest next use": {"policy": "fcfs", "eviction": "belady"},
    "random": {"policy": "random"},
    "dfs-weight": {"policy": "dfs-weight"},
    "lpm": {"policy": "lpm"},
    "lpm with the barrier": {"policy": "lpm", "in_batch": "barrier"},
}
AT_ONCE = 8
"""Requests that run together in the batched arms."""


def traffic(name: str, at_once: int) -> dict[str, Any]:
    """A batch known from the start, in a pool with room for the longest request, times those that run together."""
    keys = BATCHES[name]
    length = keys.get("common", 0) + keys["prefix"] + keys["question"]
    engine: dict[str, Any] = {"executor": "puppet", "pages": length + 1, "max_running": 1}
    if at_once > 1:
        engine = {
            "executor": "puppet",
            "pages": (at_once + 1) * length,
            "cache_pages": length,
            "max_running": at_once,
            "prefill_budget": None,
        }
    return {
        "name": f"optimal-{name}",
        "engine": engine,
        "workload": {"kind": "shared_prefix", "output": 0, "order": "shuffled", **keys},
    }


def returns(prompts: Sequence[Sequence[int]]) -> int:
    """How many prompts enter a branch that was left before; a depth-first walk of their tree has none."""
    left: list[Sequence[int]] = []
    count = 0
    before: Sequence[int] = ()
    for prompt in prompts:
        shared = next(
            (i for i, (a, b) in enumerate(zip(before, prompt, strict=False)) if a != b), min(len(before), len(prompt))
        )
        if shared < len(before):
            left.append(before[: shared + 1])
        count += any(prompt[: len(branch)] == branch for branch in left)
        before = prompt
    return count


def find(bench: Bench) -> Findings:
    """One request at a time, where the theorem holds; then eight at a time, as an engine runs."""
    batches = list(BATCHES)[:2] if bench.quick else list(BATCHES)
    rows: list[Row] = []
    curves: dict[str, list[Point]] = {name: [] for name in batches}
    shares: dict[str, list[float]] = {policy: [] for policy in POLICIES}
    rates: list[float] = []
    main: Run | None = None
    for name in batches:
        alone = bench.run(traffic(name, 1), f"{name}, one at a time, lpm", policy="lpm")
        main = main or alone
        prompts = {str(r.id): r.tokens or [] for r in alone.scenario.requests}
        best = best_possible(list(prompts.values()))
        rows.append(
            exact(
                f"{name}: lpm, one at a time, of the best possible",
                alone.report.totals.cached_tokens,
                best,
                "tokens",
                f"{PAPER}, theorem 3.1",
                "replay",
            )
        )
        again = returns([prompts[i] for i in alone.report.order])
        rows.append(
            exact(
                f"{name}: lpm, one at a time, branches entered again after they were left",
                again,
                0,
                "branches",
                f"{PAPER}, theorem 3.1",
                "replay",
            )
        )
        for policy, settings in POLICIES.items():
            run = bench.run(traffic(name, AT_ONCE), f"{name}, {AT_ONCE} at a time, {policy}", **settings)
            share = 100 * run.report.totals.cached_tokens / best
            shares[policy].append(share)
            curves[name].append(Point(policy, round(share, 1)))
            if policy == "lpm with the barrier":
                rates.append(100 * (run.report.totals.hit_rate or 0))
    for policy, values in shares.items():
        paper = {"published": 96, "source": f"{PAPER}: average of their workloads"} if policy == "lpm" else {}
        rows.append(
            told(
                f"{policy}, {AT_ONCE} at a time: share of the best possible, average",
                round(fmean(values), 1),
                "%",
                "replay",
                **paper,
            )
        )
    rows.append(
        told("lpm with the barrier: lowest hit rate", round(min(rates), 1), "%", "replay", 50, f"{PAPER}: 50 to 99 %")
    )
    rows.append(
        told("lpm with the barrier: highest hit rate", round(max(rates), 1), "%", "replay", 99, f"{PAPER}: 50 to 99 %")
    )
    setup = (
        f"{len(batches)} batches of requests that share prefixes, each known from the start and in random order, nothing generated. One at a time: a pool with "
        f"room for the longest request and nothing more. {AT_ONCE} at a time: the tree keeps as much beside the running requests. Best possible: every distinct token "
        "computed once. Farthest next use evicts what the file needs again last; it is no optimum of a tree's leaves."
    )
    why = (
        "The paper's workloads are others, so its average stands here for comparison only. Where several run together, those that start in one step cannot find each "
        "other's prefix: what the barrier gains."
    )
    chart = Chart(
        kind="shares", title="Share of the best possible reuse", x="policy", y=f"of the best possible, % ({AT_ONCE} at a time)",
        curves=[Curve(name=name, points=points) for name, points in curves.items()], ceiling=100,
    )  # fmt: skip
    assert main is not None
    return Findings(setup, rows, main, why, [chart])


PLAN = Plan(
    "optimal", "The whole batch is known: how near does each policy come to the best possible reuse?",
    "replay", "seconds", "half a minute", find,
)  # fmt: skip
