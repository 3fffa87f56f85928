"""A prefill that becomes five times faster: how much faster does the request become?"""

from __future__ import annotations

from typing import Any

from workbench.experiments.arithmetic import amdahl
from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import HANDBOOK, Chart, Curve, Point, exact

PREFILL, DECODE, FASTER, PUBLISHED = 0.1, 0.9, 5, 1.087
STEP, TOKEN = 0.0099, 0.0001
"""Virtual seconds: a step, and each token that it forwards; a decoded token takes 10 ms."""
PROMPT, KNOWN, OUTPUTS = 901, 800, 91
"""9.9 + 90.1 ms of prefill and 90 further tokens; with 800 tokens known, 9.9 + 10.1 ms."""


def traffic() -> dict[str, Any]:
    """Somebody asks about the first 800 tokens; then the request that is timed comes."""
    return {
        "name": "amdahl", "engine": {"executor": "puppet", "pages": 4096, "clock": {"step": STEP, "token": TOKEN}},
        "requests": [
            {"id": "before", "label": "leaves 800 tokens behind", "tokens": f"A{KNOWN}", "max_new_tokens": 0},
            {"id": "timed", "tokens": f"A{KNOWN}+Q{PROMPT - KNOWN}", "after": "before", "max_new_tokens": OUTPUTS, "ignore_eos": True},
        ],
    }  # fmt: skip


def find(bench: Bench) -> Findings:
    """The arithmetic, then the same request on the engine's virtual clock without its known prefix and with it."""
    runs = {cache: bench.run(traffic(), f"cache {cache}", cache=cache) for cache in ("off", "radix")}
    cold, warm = (run.report.requests[1] for run in runs.values())
    assert None not in (cold.ttft, warm.ttft, cold.finished, warm.finished)
    took = [round((r.finished or 0) - r.arrived, 6) for r in (cold, warm)]
    rows = [
        exact("100 ms of prefill and 900 ms of decode, prefill 5 times faster", round(amdahl(PREFILL, DECODE, FASTER), 3), PUBLISHED, "times", HANDBOOK),
        exact("a run of the engine: prefill, cache off", round(1000 * (cold.ttft or 0), 3), 1000 * PREFILL, "ms", HANDBOOK, "simulated"),
        exact("a run of the engine: prefill, 800 tokens known", round(1000 * (warm.ttft or 0), 3), 1000 * PREFILL / FASTER, "ms", HANDBOOK, "simulated"),
        exact("a run of the engine: decode, both", round(1000 * (took[0] - (cold.ttft or 0)), 3), 1000 * DECODE, "ms", HANDBOOK, "simulated"),
        exact("a run of the engine: the whole request", round(took[0] / took[1], 3), PUBLISHED, "times", HANDBOOK, "simulated"),
    ]  # fmt: skip
    setup = (
        f"The request is faster by (prefill + decode) / (prefill / 5 + decode). The same on the engine, simulated on a virtual clock of {1000 * STEP:g} ms a step and {1000 * TOKEN:g} ms "
        f"a token: a prompt of {PROMPT} tokens and {OUTPUTS} tokens of answer, the first of which comes with the prefill; with the cache on, {KNOWN} tokens of the prompt are known."
    )
    shares = [Point(percent, round(amdahl(percent, 100 - percent, FASTER), 3), f"prefill is {percent} % of the request") for percent in range(0, 101, 10)]
    chart = Chart(
        kind="capacity", title="How much faster a request becomes when its prefill becomes 5 times faster", x="prefill's share of the request, %", y="times faster",
        curves=[Curve(name="the whole request", points=shares)],
    )  # fmt: skip
    return Findings(setup, rows, runs["radix"], charts=[chart])


PLAN = Plan(
    "amdahl", "Prefill becomes five times faster: how much faster does the whole request become?", "exact", "under a second", "under a second", find,
)  # fmt: skip
