"""What a hit rate is worth: the expected speed-up from the lengths of prompts and answers, checked against runs."""

from __future__ import annotations

from typing import Any

from workbench.experiments.arithmetic import expected_speedup
from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import SERVING, Chart, Curve, Point, Row, told, within
from workbench.report import Report
from workbench.runner import Run

STEP, TOKEN = 0.008, 0.0002
"""Virtual seconds: a step, and each token that it forwards."""
MIXES: dict[str, dict[str, Any]] = {
    "long prompts, short answers": {"groups": 8, "per_group": 8, "prefix": 1536, "question": 64, "output": 8},
    "short prompts, long answers": {"groups": 8, "per_group": 8, "prefix": 96, "question": 32, "output": 128},
    "nothing shared": {"groups": 32, "per_group": 1, "prefix": 0, "question": 512, "output": 16},
}
SCALE = 16
"""The quick version divides prompts and answers by this."""
RATES = range(0, 100, 5)


def traffic(name: str, scale: int) -> dict[str, Any]:
    """One mix, one request at a time, with room for everything."""
    keys = {k: v if k in ("groups", "per_group") else v // scale for k, v in MIXES[name].items()}
    keys["output"] = max(keys["output"], 2)
    room = keys["groups"] * (keys["prefix"] + keys["per_group"] * (keys["question"] + keys["output"]))
    return {
        "name": f"speedup, {name}", "engine": {"executor": "puppet", "pages": room, "clock": {"step": STEP, "token": TOKEN}},
        "workload": {"kind": "shared_prefix", "sequential": True, **keys},
    }  # fmt: skip


def sums(report: Report) -> tuple[float, float]:
    """Seconds that all requests took to their first token, and to their end."""
    ttft = sum(r.ttft or 0 for r in report.requests)
    return ttft, sum((r.finished or 0) - r.arrived for r in report.requests)


def find(bench: Bench) -> Findings:
    """Each mix with the cache off and on; the calculator gets the hit rate that came out and the lengths."""
    scale = SCALE if bench.quick else 1
    rows: list[Row] = []
    curves: list[Curve] = []
    main: Run | None = None
    for name in MIXES:
        off, on = (bench.run(traffic(name, scale), f"{name}, cache {cache}", cache=cache) for cache in ("off", "radix"))
        main = main or on
        totals = on.report.totals
        rate = totals.cached_tokens / totals.prompt_tokens
        lengths = [r.prompt_tokens for r in on.report.requests]
        outputs = [len(r.output_ids) for r in on.report.requests]
        expected = expected_speedup(lengths, rate, outputs, STEP, TOKEN)
        ran = [cold / warm for cold, warm in zip(sums(off.report), sums(on.report), strict=True)]
        rows.append(told(f"{name}: hit rate", round(100 * rate, 2), "%", "replay"))
        for what, calculated, measured in zip(("time to first token", "whole request"), expected, ran, strict=True):
            wanted = round(calculated, 4)
            rows.append(within(f"{name}: {what}, times faster", round(measured, 4), wanted, wanted, "times", "simulated", rule=f"as calculated, {wanted:g}", source=SERVING))
        points = [Point(p, round(expected_speedup(lengths, p / 100, outputs, STEP, TOKEN)[1], 3), f"hit rate {p} %") for p in RATES]
        curves.append(Curve(name=name, points=points))
    assert main is not None
    setup = (
        f"A pass takes {1000 * STEP:g} ms and {1000 * TOKEN:g} ms a token that it forwards; the first token of an answer comes with the prefill, each further one takes a pass. So all requests "
        "take n x step + token x prompt tokens x (1 - hit rate) to their first tokens, and the decode passes beside. Each mix ran on the engine one request at a time, with the cache "
        "off and on, simulated on that virtual clock; the calculator was given the hit rate and the lengths that came out, and has to say by how much the runs differ."
        + (f" Quick: prompts and answers are a {scale}th as long." if scale > 1 else "")
    )
    why = (
        "The write-up asks for a calculator and prints no figure; asserted is that it says what the runs do. A high hit rate is worth little where answers are long; attention's cost beyond a "
        "straight line in the prompt's length is left out."
    )
    chart = Chart(
        kind="capacity", title="Expected speed-up of the whole request against the hit rate", x="hit rate, % of prompt tokens", y="times faster", curves=curves,
    )  # fmt: skip
    return Findings(setup, rows, main, why, [chart])


PLAN = Plan(
    "speedup", "What is a hit rate worth, given how long prompts and answers are?", "exact", "seconds", "seconds", find,
)  # fmt: skip
