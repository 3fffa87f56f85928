"""The published experiments, each on the real engine: one module an experiment, found by name."""

from __future__ import annotations

from workbench.experiments import (
    amdahl,
    attention,
    aware,
    branch_lru,
    capacity,
    groups,
    handbook,
    hits,
    jump,
    language,
    memory,
    mooncake,
    offload,
    optimal,
    ordering,
    overhead,
    overlap,
    prefill,
    routing,
    schedule,
    separate,
    speedup,
    three_cases,
    walkthrough,
)
from workbench.experiments.bench import Bench, Plan, StoppedError
from workbench.experiments.result import Experiment, Row

PLANS: dict[str, Plan] = {
    m.PLAN.name: m.PLAN
    for m in (
        walkthrough, attention, handbook, capacity, memory, hits, mooncake, schedule, aware, branch_lru, ordering, optimal, amdahl, speedup,
        prefill, overhead, overlap, offload, jump, language, groups, three_cases, routing, separate,
    )
}  # fmt: skip

__all__ = ["PLANS", "Bench", "Experiment", "Plan", "Row", "StoppedError", "find"]


def find(name: str) -> Plan:
    """An experiment by its name. Raises ValueError naming those that are there."""
    if name not in PLANS:
        raise ValueError(f"{name!r} is no experiment; there are {', '.join(PLANS)}")
    return PLANS[name]
