"""Four handbooks, room for two: the order of arrival decides whether a cache helps at all."""

from __future__ import annotations

from typing import Any

from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import HANDBOOK, Chart, Curve, Point, exact
from workbench.report import Report
from workbench.runner import Run
from workbench.workloads.ceiling import best_possible

HANDBOOKS, TIMES, PAGES, QUESTION = 4, 2, 1024, 64
ONE = PAGES + QUESTION
ORDERS = {"cyclic (A B C D A B C D)": "round-robin", "grouped (A A B B C C D D)": "grouped"}
ROOMS = (1.25, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5)
"""Capacities of the curve, in handbooks with a question."""


def traffic(order: str, rooms: float) -> dict[str, Any]:
    """The eight requests, one after the other, in a pool with room for so many handbooks."""
    return {
        "name": f"capacity-{order}", "engine": {"executor": "puppet", "pages": round(rooms * ONE)},
        "workload": {
            "kind": "shared_prefix", "groups": HANDBOOKS, "per_group": TIMES, "prefix": PAGES, "question": QUESTION,
            "output": 0, "order": order, "sequential": True,
        },
    }  # fmt: skip


def computed(report: Report) -> int:
    """How often a handbook was computed, wholly or in part."""
    return sum((r.cached_tokens or 0) < PAGES for r in report.requests)


def find(bench: Bench) -> Findings:
    """Both orders at room for two, and both over a range of capacities."""
    rows = []
    curves = []
    main: Run | None = None
    for (words, order), published in zip(ORDERS.items(), (HANDBOOKS * TIMES, HANDBOOKS), strict=True):
        points = []
        for rooms in (2,) if bench.quick else ROOMS:
            run = bench.run(traffic(order, rooms), f"{words}, room for {rooms:g}")
            points.append(
                Point(round(rooms * ONE), round(100 * (run.report.totals.hit_rate or 0), 2), f"room for {rooms:g}")
            )
            if rooms == 2:
                rows.append(
                    exact(
                        f"{words}, room for two: handbooks computed",
                        computed(run.report),
                        published,
                        "handbooks",
                        HANDBOOK,
                    )
                )
                main = main or run
        curves.append(Curve(name=words, points=points))
    assert main is not None
    prompts = [r.tokens or [] for r in main.scenario.requests]
    ceiling = 100 * best_possible(prompts) / sum(map(len, prompts))
    setup = (
        f"{HANDBOOKS} handbooks of {PAGES:,} tokens, each asked for {TIMES} times with a fresh question of {QUESTION}, one request after the other, "
        f"least recently used out first. Room for two: {2 * ONE:,} tokens."
    )
    chart = Chart(
        kind="capacity",
        title="Hit rate against capacity",
        x="capacity, tokens",
        y="prompt tokens reused, %",
        curves=curves,
        ceiling=round(ceiling, 2),
    )
    return Findings(setup, rows, main, charts=[chart])


PLAN = Plan(
    "capacity", "Four handbooks take turns and there is room for two: is any of them ever found again?",
    "exact", "seconds", "seconds", find,
)  # fmt: skip
