"""The same traffic in order of arrival and by what the cache holds: where does a cache-aware scheduler win, where does it tie?"""

from __future__ import annotations

from typing import Any

from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import SERVING, Chart, Curve, Point, Row, told, within
from workbench.runner import Run

GROUPS, EACH, PASSAGE, QUESTION, OUTPUT, ZIPF = 32, 16, 1024, 64, 16, 1.0
KEPT, ROUND = 4, 16
"""Passages that the tree keeps beside the running requests, and requests that run together."""
SCALE = 16
"""The quick version divides passages and questions by this, and requests and answers by four."""
CLOCK = {"step": 0.008, "token": 0.0001}
"""Virtual seconds: a step, and each token that it forwards."""
POLICIES: dict[str, dict[str, Any]] = {
    "fcfs": {"policy": "fcfs"}, "cache-aware": {"policy": "lpm"}, "cache-aware with the barrier": {"policy": "lpm", "in_batch": "barrier"},
}  # fmt: skip
HOT = "group 1,"


def sizes(scale: int) -> tuple[int, int, int, int]:
    """Tokens of a passage and of a question, questions on each, tokens of an answer."""
    fewer = 1 if scale == 1 else 4
    return PASSAGE // scale, QUESTION // scale, EACH // fewer, OUTPUT // fewer


def traffic(scale: int) -> dict[str, dict[str, Any]]:
    """What waits at once: questions on passages, a few of which are asked for most; and as many prompts that share nothing."""
    passage, question, each, output = sizes(scale)
    count, length = GROUPS * each, passage + question
    engine = {
        "executor": "puppet", "clock": CLOCK, "pages": KEPT * length + ROUND * (length + output), "cache_pages": KEPT * length,
        "max_running": ROUND, "prefill_budget": None,
    }  # fmt: skip
    heavy = {
        "kind": "shared_prefix", "groups": GROUPS, "per_group": each, "prefix": passage, "question": question, "output": output,
        "order": "shuffled", "zipf": ZIPF,
    }  # fmt: skip
    unique = {"kind": "random", "requests": count, "length": [length, length], "output": [output, output]}
    return {
        "prefix-heavy": {"name": "aware-prefix-heavy", "engine": engine, "workload": heavy},
        "unique prompts": {"name": "aware-unique", "engine": engine, "workload": unique},
    }


def throughput(run: Run) -> float:
    """Prompt and output tokens served a virtual second."""
    return (run.report.totals.prompt_tokens + run.report.totals.output_tokens) / run.report.totals.duration


def recomputed(run: Run, passage: int) -> int:
    """How often the passage that is asked for most was computed, wholly or in part."""
    asked = zip(run.report.requests, run.scenario.requests, strict=True)
    return sum((r.cached_tokens or 0) < passage for r, spec in asked if (spec.label or "").startswith(HOT))


def find(bench: Bench) -> Findings:
    """Both kinds of traffic under both policies."""
    scale = SCALE if bench.quick else 1
    runs = {
        kind: {name: bench.run(data, f"{kind}, {name}", **engine) for name, engine in POLICIES.items()}
        for kind, data in traffic(scale).items()
    }
    rows: list[Row] = []
    curves = []
    for kind, by in runs.items():
        for name, run in by.items():
            rows.append(told(f"{kind}, {name}: hit rate", rate(run), "%", "replay"))
            rows.append(told(f"{kind}, {name}: throughput", round(throughput(run), 1), "tokens/s", "simulated"))
        curves.append(Curve(name=kind, points=[Point(name, rate(run)) for name, run in by.items()]))
    heavy, unique = runs["prefix-heavy"], runs["unique prompts"]
    gain, tie = (round(throughput(by["cache-aware"]) / throughput(by["fcfs"]), 3) for by in (heavy, unique))
    rows += [
        within("prefix-heavy: hit rate gained", round(rate(heavy["cache-aware"]) - rate(heavy["fcfs"]), 2), 1, None, "points", "replay", rule="cache-aware wins", source=SERVING),
        within("prefix-heavy: throughput, cache-aware over fcfs", gain, 1.01, None, "times", "simulated", rule="cache-aware wins", source=SERVING),
        within("unique prompts: hit rate gained", round(rate(unique["cache-aware"]) - rate(unique["fcfs"]), 2), 0, 0, "points", "replay", rule="a tie", source=SERVING),
        within("unique prompts: throughput, cache-aware over fcfs", tie, 0.99, 1.01, "times", "simulated", rule="a tie, within 1 %", source=SERVING),
    ]  # fmt: skip
    times = {name: recomputed(run, PASSAGE // scale) for name, run in heavy.items()}
    for name, count in times.items():
        label = f"prefix-heavy, {name}: times that the most wanted passage was computed"
        rule = "no more often than under fcfs: it stays resident"
        rows.append(told(label, count, "times", "replay") if name == "fcfs" else within(label, count, None, times["fcfs"], "times", "replay", rule=rule))
    passage, question, each, output = sizes(scale)
    setup = (
        f"{GROUPS * each} requests of {passage + question:,} tokens wait at once, {output} tokens answered each, {ROUND} at a time; the tree keeps {KEPT} prompts' worth beside them. Prefix-heavy: "
        f"{GROUPS} passages of {passage:,} tokens, the k-th asked for in proportion to 1/k. Unique prompts: nothing shared. Cache-aware: longest prefix first; with "
        f"the barrier, who would compute the same passage waits for the one who does. Throughput is simulated, on a virtual clock: {1000 * CLOCK['step']:g} ms a step and {1000 * CLOCK['token']:g} ms "
        "a token forwarded."
    )
    why = (
        "The write-up prints no figures; asserted is what it says: cache-aware wins on prefix-heavy traffic and ties on unique prompts. With the barrier the gain "
        "is larger, and unique prompts pay a little: no more of them start in one step than the tree has room for."
    )
    chart = Chart(kind="shares", title="Hit rate by policy", x="policy", y="prompt tokens reused, %", curves=curves)
    return Findings(setup, rows, heavy["cache-aware"], why, [chart])


def rate(run: Run) -> float:
    """Prompt tokens found in the cache, in per cent."""
    return round(100 * (run.report.totals.hit_rate or 0), 2)


PLAN = Plan(
    "aware", "The same requests by order of arrival and by what the cache holds: where does that win, and where does it tie?",
    "replay", "seconds", "seconds", find,
)  # fmt: skip