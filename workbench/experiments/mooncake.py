"""A real service's trace: what share of the best possible does a cache of so many tokens reach?"""

from __future__ import annotations

from typing import Any

from workbench import scenario as scenarios
from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import Chart, Curve, Point, Row, told, within
from workbench.runner import Run

MOONCAKE = "Qin et al., Mooncake, FAST 2025, 5.3.1: 3 M tokens stay under half of the best possible in most workloads, 50 M nearly reach it"
FOLDER, OWN = "mooncake", "mooncake.jsonl"
TRACES = {"conversation": "conversation_trace.jsonl", "synthetic": "synthetic_trace.jsonl"}
MILLION = 1_000_000
CAPACITIES = (MILLION, 3 * MILLION, 10 * MILLION, 50 * MILLION)
OWN_CAPACITIES = (12 * 512, 16 * 512, 24 * 512, 48 * 512)
BLOCK, SHOWN = 512, 2
"""Tokens of a block, and how many stand for it here: hits in whole blocks are the same, and a replay takes seconds."""
RULES: dict[int, tuple[float | None, float | None, str]] = {3 * MILLION: (None, 50, "under 50 %"), 50 * MILLION: (97, None, "at least 97 %")}


def traffic(file: str) -> dict[str, Any]:
    """The trace, one request after the other in its order, prompts alone."""
    return {
        "name": "mooncake", "engine": {"executor": "puppet", "page_size": SHOWN},
        "workload": {"kind": "mooncake", "file": file, "block": SHOWN, "arrivals": "sequential", "output": 0},
    }  # fmt: skip


def blocks_of(run: Run) -> tuple[int, int]:
    """Blocks found and blocks asked for, a partial last one counted whole."""
    found = sum(r.cached_tokens or 0 for r in run.report.requests) // SHOWN
    return found, sum(-(-r.prompt_tokens // SHOWN) for r in run.report.requests)


def traces(bench: Bench) -> dict[str, tuple[str, str]]:
    """Name -> file and what it is, in words."""
    public = {name: bench.traffic_file(f"{FOLDER}/{file}", OWN) for name, file in TRACES.items()}
    if bench.file is not None or any(file == OWN for file, _ in public.values()):
        return {"trace": next(iter(public.values()))}
    return public


def find(bench: Bench) -> Findings:
    """Every trace at every capacity and without a limit."""
    rows: list[Row] = []
    curves: list[Curve] = []
    told_of: list[str] = []
    main: Run | None = None
    for name, (file, words) in traces(bench).items():
        scenario = scenarios.parse(traffic(file), files=True)
        stored = sum(len(r.tokens or []) // SHOWN for r in scenario.requests)
        longest = max(-(-len(r.tokens or []) // SHOWN) for r in scenario.requests)
        unlimited = bench.again(scenario, f"{name}, unlimited", pages=stored + 2)
        best, asked = blocks_of(unlimited)
        main = main or unlimited
        rows.append(told(f"{name}: best possible, unlimited room", round(100 * best / asked, 2), "%", "replay"))
        told_of.append(f"{name}: {len(scenario.requests):,} requests, {asked:,} blocks, from {words}")
        points = []
        for capacity in OWN_CAPACITIES if file == OWN else CAPACITIES:
            kept = capacity // BLOCK
            run = bench.again(scenario, f"{name}, {capacity:,} tokens", pages=max(min(kept, stored + longest), longest))
            found, _ = blocks_of(run)
            rows.append(row(f"{name}, {capacity:,} tokens: of the best possible", round(100 * found / best, 1) if best else 0.0, capacity, asserted=file != OWN and bench.file is None))
            points.append(Point(capacity, round(100 * found / best, 2) if best else 0.0, f"{capacity:,} tokens"))
        curves.append(Curve(name=name, points=points))
    assert main is not None
    setup = (
        f"{'; '.join(told_of)}. One request after the other in the trace's order, prompts alone; a hash id stands for {BLOCK} tokens and is found whole or not at all, "
        f"least recently used out first, in one pool with the running request. Each block is shown as {SHOWN} tokens, which changes no hit; capacities and shares are those of the full size."
    )
    why = (
        "Shares are of blocks, a partial last one counted whole. The paper's own weighting is not printed, so its hit rates are not compared; asserted is what its text says "
        "of 3 M and 50 M tokens. The engine keeps whole blocks only; a count that keeps partial ones as well has less room for the others, and its shares are a little lower."
    )
    chart = Chart(
        kind="capacity", title="Share of the best possible against capacity", x="capacity, tokens", y="of the best possible, %", curves=curves, ceiling=100, log_x=True,
    )  # fmt: skip
    return Findings(setup, rows, main, why, [chart])


def row(label: str, share: float, capacity: int, asserted: bool) -> Row:
    """A share; what the paper says is asserted of its own traces."""
    if capacity not in RULES or not asserted:
        return told(label, share, "%", "replay")
    low, high, rule = RULES[capacity]
    return within(label, share, low, high, "%", "replay", rule=rule, source=MOONCAKE)


PLAN = Plan(
    "mooncake", "An hour of a real service's requests: what share of the best possible reuse does a cache of so many tokens reach?",
    "replay", "seconds", "a minute or two", find, takes="a Mooncake trace",
)  # fmt: skip
