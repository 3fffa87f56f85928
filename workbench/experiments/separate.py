"""Prefill and decode on engines of their own: what that does to the first token and to those after it, simulated."""

from __future__ import annotations

from typing import Any

from engine import events as ev
from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import Row, told, within
from workbench.report import RequestReport, spread
from workbench.runner import Run

REPLICAS = 4
SPLITS = (0, 1, 2)
"""Of the four, how many only prefill; 0: all do both."""


def traffic(quick: bool) -> dict[str, Any]:
    """Long prompts that share nothing, at random times."""
    return {
        "name": "separate",
        "engine": {
            "executor": "cost", "hardware": "h100-llama-3.1-8b", "replicas": REPLICAS, "router": "least-loaded", "pages": 2048, "page_size": 128,
            "max_running": 64,
        },
        "workload": {"kind": "random", "requests": 40 if quick else 300, "length": [4000, 8000], "output": [64, 128], "rate": 10.0},
    }  # fmt: skip


def answers(run: Run) -> dict[str, list[int]]:
    """Each request's whole answer, both halves joined."""
    out: dict[str, list[int]] = {}
    for request in run.report.requests:
        out.setdefault(request.id.removesuffix("+"), []).extend(request.output_ids)
    return out


def halves(run: Run) -> tuple[list[RequestReport], list[RequestReport]]:
    """The requests up to their first token, and those (or their second halves) that say the rest."""
    rest = [r for r in run.report.requests if r.id.endswith("+")]
    return [r for r in run.report.requests if not r.id.endswith("+")], rest or list(run.report.requests)


def arm(run: Run, name: str) -> list[Row]:
    """One arm's times."""
    first, rest = halves(run)
    ttft = spread([r.ttft for r in first if r.ttft is not None])
    tpot = spread([r.tpot for r in rest if r.tpot is not None])
    moved = [e for e in run.trace if isinstance(e, ev.RequestRouted) and e.transferred]
    rows = [
        told(f"{name}: median time to the first token", _ms(ttft.p50), "ms", "simulated"),
        told(f"{name}: the slowest hundredth", _ms(ttft.p99), "ms", "simulated"),
        told(f"{name}: median time a token after it", _ms(tpot.p50), "ms", "simulated"),
        told(f"{name}: the slowest hundredth of those", _ms(tpot.p99), "ms", "simulated"),
    ]
    if moved:
        rows.append(told(f"{name}: KV on its way, a request", _ms(sum(e.seconds for e in moved) / len(moved)), "ms", "simulated"))
    return rows


def find(bench: Bench) -> Findings:
    """The same arrivals on four engines that do both, and on one or two of them only prefilling."""
    runs = {n: bench.run(traffic(bench.quick), f"{n} of {REPLICAS} only prefill", prefill_replicas=n) for n in SPLITS}
    whole = answers(runs[0])
    rows = [row for n, run in runs.items() for row in arm(run, _name(n))]
    rows.append(within("answers that differ", sum(answers(run) != whole for run in runs.values()), 0, 0, "arms", "exact", rule="0"))
    work = traffic(bench.quick)["workload"]
    setup = (
        f"{REPLICAS} simulated H100s with Llama-3.1-8B; {work['requests']} prompts of {work['length'][0]:,} to {work['length'][1]:,} tokens that share nothing, {work['rate']:g} a second, "
        "answers of 64 to 128 tokens. An engine that only prefills sends a prompt's KV over its host link (the data sheet's rate) to the least loaded of the others, "
        "where it lies in the cache when the request arrives. Links are never busy here: a simplification in favour of separating."
    )
    why = "Nothing is published beside it in the write-ups; they name separate prefill and decode servers as what real engines add."
    return Findings(setup, rows, runs[2], why)


def _name(prefilling: int) -> str:
    return "all do both" if not prefilling else f"{prefilling} prefill, {REPLICAS - prefilling} decode"


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(1000 * seconds, 1)


PLAN = Plan(
    "separate", "Should prefill and decode run on engines of their own?", "simulated", "seconds", "seconds", find,
)  # fmt: skip
