"""Several replicas and many handbooks: reuse against load under four routers, on simulated machines."""

from __future__ import annotations

from typing import Any

from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import Chart, Curve, Point, Row, told, within
from workbench.report import ReplicaReport
from workbench.runner import Run

ROUTERS = ("cache-aware", "round-robin", "least-loaded", "power-of-two")
REPLICAS = 4
HANDBOOK_TOKENS = 2048
QUESTION, ANSWER = 64, 32


def traffic(quick: bool) -> dict[str, Any]:
    """Handbooks asked about at random; every replica has room for a third of them."""
    handbooks, each, rate = (12, 6, 6.0) if quick else (24, 25, 8.0)
    return {
        "name": "routing",
        "seed": 1,
        "engine": {
            "executor": "cost", "hardware": "l4-llama-3.1-8b", "replicas": REPLICAS, "page_size": 16, "max_running": 16,
            "pages": handbooks // 3 * HANDBOOK_TOKENS // 16, "router_balance": [8, 1.5],
        },
        "workload": {
            "kind": "shared_prefix", "groups": handbooks, "per_group": each, "prefix": HANDBOOK_TOKENS, "question": QUESTION,
            "output": ANSWER, "order": "shuffled", "rate": rate,
        },
    }  # fmt: skip


def replicas(run: Run) -> list[ReplicaReport]:
    """What each replica did."""
    assert run.report.replicas is not None
    return run.report.replicas


def busiest(run: Run) -> float:
    """The largest share of the requests that one replica was sent, in percent."""
    sent = [r.requests for r in replicas(run)]
    return round(100 * max(sent) / sum(sent), 1)


def reuse(run: Run) -> float:
    """Percent of all prompt tokens that were found."""
    return round(100 * (run.report.totals.hit_rate or 0.0), 1)


def find(bench: Bench) -> Findings:
    """The same arrivals under every router."""
    runs = {name: bench.run(traffic(bench.quick), f"router {name}", router=name) for name in ROUTERS}
    best = max(reuse(runs[name]) for name in ROUTERS[1:])
    rows: list[Row] = []
    for name, run in runs.items():
        if name == "cache-aware":
            rows.append(within(f"{name}: prompt tokens reused", reuse(run), best, 100.0, "%", "simulated", rule="at least what any other router reuses"))
        else:
            rows.append(told(f"{name}: prompt tokens reused", reuse(run), "%", "simulated"))
        rows += [
            told(f"{name}: the busiest replica's share of the requests", busiest(run), "%", "simulated"),
            told(f"{name}: median time to the first token", _ms(run.report.totals.ttft.p50), "ms", "simulated"),
            told(f"{name}: the slowest hundredth", _ms(run.report.totals.ttft.p99), "ms", "simulated"),
        ]
    work = traffic(bench.quick)["workload"]
    setup = (
        f"{REPLICAS} simulated L4s with Llama-3.1-8B, {work['groups']} handbooks of {HANDBOOK_TOKENS:,} tokens, {work['groups'] * work['per_group']} questions of {QUESTION} "
        f"at random, {work['rate']:g} a second; each replica has room for a third of the handbooks. The cache-aware router guesses from what it sent where, and goes by load "
        "once the most loaded replica has 8 requests and half as many again more than the least loaded one."
    )
    chart = Chart(
        kind="tradeoff", title="Reuse against load, a mark a router (simulated)", x="the busiest replica's share of the requests, %", y="prompt tokens reused, %",
        curves=[Curve(name=name, points=[Point(busiest(run), reuse(run), name)]) for name, run in runs.items()],
    )  # fmt: skip
    return Findings(setup, rows, runs["cache-aware"], "The write-up prints no figures: it asks that reuse and load be told together.", charts=[chart])


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(1000 * seconds, 1)


PLAN = Plan(
    "routing", "Four replicas, many handbooks: send a question where its handbook lies, or where least waits?", "simulated", "seconds", "half a minute", find,
)  # fmt: skip
