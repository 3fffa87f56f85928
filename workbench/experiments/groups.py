"""Four groups with a long system prompt each: the first of a group computes it, the others only their question."""

from __future__ import annotations

from typing import Any

from workbench import scenario as scenarios
from workbench.compare import warm_up_of
from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import SERVING, Chart, Curve, Kind, Point, Row, told, within
from workbench.report import Report
from workbench.runner import Run

GROUPS, EACH, SYSTEM, QUESTION, ANSWER = 4, 16, 4096, 128, 32
RATE = 1.0
"""Requests a second at full size. Our own: none is published."""
RUNNING = 12
HARDWARE = "l4-llama-3.1-8b"
PUBLISHED = (0.479, 14.706)
"""Median TTFT in seconds, cache on and off, on one L4; no model, number of requests or arrival times are published."""
LEAST = 10
HERE = {"per_group": 6, "prefix": 512, "question": 32, "output": 4, "rate": 2.0}
"""The same, scaled to the embedded model on a small machine."""
QUICK_HERE = {"per_group": 2, "prefix": 96, "question": 16, "output": 2, "rate": 4.0}


def traffic(engine: dict[str, Any], **sizes: Any) -> dict[str, Any]:
    """All groups' questions in random order, arriving at random; nobody computes what another one is computing just now."""
    workload = {
        "kind": "shared_prefix", "groups": GROUPS, "per_group": EACH, "prefix": SYSTEM, "question": QUESTION, "output": ANSWER,
        "order": "shuffled", "rate": RATE, **sizes,
    }  # fmt: skip
    own = workload["question"] + workload["output"] + 16
    shared = workload["groups"] * workload["prefix"] + workload["groups"] * workload["per_group"] * own
    pages = -(-max(shared, RUNNING * (workload["prefix"] + own)) // 16)
    return {
        "name": "groups", "workload": workload,
        "engine": {"page_size": 16, "pages": pages, "max_running": RUNNING, "in_batch": "barrier", **engine},
    }  # fmt: skip


def simulated(quick: bool) -> dict[str, Any]:
    """At full size on the L4's data sheet."""
    return traffic({"executor": "cost", "hardware": HARDWARE}, **({"per_group": 4} if quick else {}))


def scaled(quick: bool) -> dict[str, Any]:
    """Small enough for the embedded model on this machine."""
    return traffic({"executor": "model"}, **(QUICK_HERE if quick else HERE))


def times_sooner(on: Report, off: Report) -> float | None:
    """Median TTFT without the cache over the one with it."""
    if not on.totals.ttft.p50 or off.totals.ttft.p50 is None:
        return None
    return off.totals.ttft.p50 / on.totals.ttft.p50


def once(on: Run) -> int:
    """Prompt tokens to compute if every system prompt is computed once, and every question."""
    w = scenarios.as_data(on.scenario)["workload"]
    return int(w["groups"] * w["prefix"] + w["groups"] * w["per_group"] * w["question"])


def rows_of(on: Run, off: Run, where: str, kind: Kind, least: float | None, published: bool) -> list[Row]:
    """Both medians and their ratio on one machine, and what was computed."""
    a, b = on.report.totals.ttft.p50, off.report.totals.ttft.p50
    shown: list[dict[str, Any]] = [{"published": 1e3 * p, "source": SERVING} if published else {} for p in PUBLISHED]
    ratio = times_sooner(on.report, off.report)
    label = f"{where}: times sooner with the cache"
    found = None if ratio is None else round(ratio, 1)
    return [
        within(f"{where}: prompt tokens computed, cache on", on.report.totals.computed_tokens, once(on), once(on), "tokens", kind,
               rule="every system prompt once, and every question"),
        told(f"{where}: prompt tokens computed, cache off", off.report.totals.computed_tokens, "tokens", kind),
        told(f"{where}: median TTFT, cache on", None if a is None else round(1e3 * a, 1), "ms", kind, **shown[0]),
        told(f"{where}: median TTFT, cache off", None if b is None else round(1e3 * b, 1), "ms", kind, **shown[1]),
        told(label, found, "times", kind) if least is None or found is None
        else within(label, found, least, None, "times", kind, rule=f"at least {least:g}"),
    ]  # fmt: skip


def find(bench: Bench) -> Findings:
    """Cache on and off at full size on the simulated card, then scaled down on the model."""
    data = simulated(bench.quick)
    on = bench.run(data, "full size, simulated L4, cache on")
    off = bench.run(data, "full size, simulated L4, cache off", cache="off", in_batch="off")
    rows = rows_of(on, off, "simulated L4", "simulated", None if bench.quick else LEAST, not bench.quick)
    small = scaled(bench.quick)
    bench.run(
        scenarios.as_data(warm_up_of(scenarios.parse(small)).model_copy(update={"workload": None})), "warming up (not measured)"
    )
    here_on = bench.run(small, "scaled to this machine, cache on")
    here_off = bench.run(small, "scaled to this machine, cache off", cache="off", in_batch="off")
    rows += rows_of(here_on, here_off, "this machine, scaled", "measured", None, False)
    why = (
        "The published figures name neither model nor traffic, so no agreement is asserted. A time without the cache is mostly waiting: requests come faster "
        "than they can be served, so it grows with every further request, and the ratio says as much about the traffic as about the cache."
    )
    charts = [distribution((on, off), "full size, simulated L4"), distribution((here_on, here_off), "scaled, this machine, measured")]
    return Findings(setup(data["workload"], small["workload"]), rows, on, why, charts)


def distribution(arms: tuple[Run, Run], where: str) -> Chart:
    """Time to first token of every request, with the cache and without."""
    curves = []
    for name, arm in zip(("cache on", "cache off"), arms, strict=True):
        took = sorted((1e3 * r.ttft, r.id) for r in arm.report.requests if r.ttft is not None)
        curves.append(Curve(name=name, points=[Point(round(t, 2), round(100 * (i + 1) / len(took), 1), id) for i, (t, id) in enumerate(took)]))
    return Chart(kind="distribution", title=f"Time to first token ({where})", x="ms to the first token", y="requests that had it by then, %", curves=curves)


def setup(full: dict[str, Any], small: dict[str, Any]) -> str:
    """What was set up, in words."""
    def words(w: dict[str, Any]) -> str:
        return (
            f"{w['groups'] * w['per_group']} requests, {w['groups']} system prompts of {w['prefix']:,} tokens with {w['per_group']} questions of "
            f"{w['question']} each, {w['output']} tokens answered, {w['rate']:g} a second at random (Poisson)"
        )

    return (
        f"Our own traffic, as none is published. On a simulated L4 with Llama-3.1-8B, from data sheets: {words(full)}. On the model, on this machine: "
        f"{words(small)}. At most {RUNNING} run at a time, pages of 16, room for everything; with the cache on, a request waits while another computes its system prompt."
    )


PLAN = Plan(
    "groups", "Four teams with a long system prompt each: how much sooner does an answer begin with a prefix cache?",
    "simulated", "seconds, also on the model", "a minute or two, also on the model", find,
)  # fmt: skip
