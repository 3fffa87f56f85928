"""The cost executor's `measured` profile against the model itself: TTFT and duration predicted and measured.

Calibrates first, then serves five workloads that the calibration has not seen, each with the model and with the cost
executor on the same plan. To reach: a median error under 15 %. Then what the roofline misses, by the kind of step.
`--clock cpu` counts the processor time of one thread, for a machine that others use as well. The last line is a burst on the cost executor alone.
`python benchmarks/cost_model.py [--clock wall|cpu] [--burst]`
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from engine import Engine, EngineConfig, load_model
from engine.calibration import measure
from engine.executor.base import Executor, Row, StepResult
from engine.executor.cost import CostExecutor
from engine.executor.model import ModelExecutor
from workbench import scenario as scenarios
from workbench.runner import run

PAGES, PAGE_SIZE = 512, 16
AT_MOST = 0.15
BURST = {
    "name": "burst", "engine": {"executor": "cost", "hardware": "h100-llama-3.1-8b", "page_size": 16, "pages": 16_384, "max_running": 32},
    "workload": {"kind": "shared_prefix", "groups": 64, "per_group": 16, "prefix": 2048, "question": 128, "output": 16, "order": "shuffled"},
}  # fmt: skip


@dataclass
class Workload:
    """What is asked: knobs of the engine, prompts, answers in tokens, and whether each waits for the one before."""

    name: str
    knobs: dict[str, Any]
    prompts: list[list[int]]
    answers: int
    one_by_one: bool = False


@dataclass
class Served:
    """One run: seconds of each step, of them beside the forward, its plan, and the step of each request's arrival and first token."""

    steps: list[float]
    beside: list[float]
    plans: list[list[tuple[int, int]]]
    spans: dict[str, tuple[int, int]]

    def ttft(self) -> float:
        """The median over its requests."""
        return statistics.median(sum(self.steps[first : last + 1]) for first, last in self.spans.values())


class Watched:
    """An executor whose passes are timed, and their rows noted down."""

    def __init__(self, inner: Executor, clock: Callable[[], float]) -> None:
        self.inner, self.clock = inner, clock
        self.seconds = 0.0
        self.rows: list[tuple[int, int]] = []
        self.said = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def execute(self, rows: list[Row]) -> StepResult:
        """One pass of the inner executor."""
        self.rows = [(row.start, len(row.tokens)) for row in rows]
        started = self.clock()
        result = self.inner.execute(rows)
        self.seconds, self.said = self.clock() - started, result.forward_seconds
        return result


def workloads() -> list[Workload]:
    """Five of them, none of which has a pass of the calibration."""
    rng = random.Random(5)

    def ids(count: int) -> list[int]:
        return [rng.randrange(100, 49_000) for _ in range(count)]

    shared, long = ids(400), ids(960)
    return [
        Workload("one long prompt", {}, [ids(800)], 24),
        Workload("six prompts at once", {}, [ids(160) for _ in range(6)], 24),
        Workload("three questions on a shared prefix", {}, [shared + ids(48) for _ in range(3)], 8, True),
        Workload("chunks with decodes riding along", {"chunk": 128, "mixed": True}, [ids(384) for _ in range(3)], 12),
        Workload("three long contexts", {"in_batch": "barrier"}, [long + ids(40) for _ in range(3)], 24),
    ]


def serve(one: Workload, executor: Executor, clock: Callable[[], float]) -> Served:
    """Step an engine through a workload, timing each step; a virtual executor's step takes what it says."""
    watched: Any = Watched(executor, clock)
    config = EngineConfig(executor="model", pages=PAGES, page_size=PAGE_SIZE, **one.knobs)
    engine = Engine(config=config, executor=watched)
    for i, prompt in enumerate(one.prompts):
        after = {"after": f"R{i - 1}"} if one.one_by_one and i else {}
        engine.submit(prompt, id=f"R{i}", max_new_tokens=one.answers, ignore_eos=True, **after)
    out = Served([], [], [], {})
    arrived: dict[str, int] = {f"R{i}": 0 for i in range(len(one.prompts)) if not (one.one_by_one and i)}
    while True:
        started = clock()
        progress = engine.step()
        took = clock() - started
        if progress is None:
            return out
        step = len(out.steps)
        out.steps.append(watched.said if executor.virtual else took)
        out.beside.append(0.0 if executor.virtual else took - watched.seconds)
        out.plans.append(watched.rows)
        for p in progress:
            if p.ids and p.request not in out.spans:
                out.spans[p.request] = arrived[p.request], step
            if p.reason and one.one_by_one:
                arrived[f"R{int(p.request[1:]) + 1}"] = step + 1


def kind(rows: list[tuple[int, int]]) -> str:
    """What kind of step a plan was."""
    prompts = [(start, count) for start, count in rows if count > 1]
    if not prompts:
        return "decode, one row" if len(rows) == 1 else "decode, several rows"
    if len(prompts) < len(rows):
        return "prefill with decodes"
    return "prefill behind a cache" if any(start for start, _ in prompts) else "prefill from the start"


def burst() -> None:
    """A thousand long prompts on the cost executor, traced: real seconds."""
    scenario = scenarios.parse(BURST)
    started = time.perf_counter()
    done = run(scenario)
    took = time.perf_counter() - started
    t = done.report.totals
    print(
        f"burst of {len(scenario.requests):,} prompts of {len(scenario.requests[0].tokens or []):,} tokens on a simulated H100: {took:.2f} s here, "
        f"{t.duration:.1f} s simulated; {t.steps:,} steps, {len(done.trace):,} events, {t.hit_rate:.1%} reused"
    )


def main() -> None:
    """Calibrate, predict, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--burst", action="store_true", help="the burst alone")
    args = parser.parse_args()
    if args.burst:
        burst()
        return
    clock = time.perf_counter
    if args.clock == "cpu":
        torch.set_num_threads(1)
        clock = time.process_time
    loaded = load_model("embedded", dtype="float32")
    started = time.perf_counter()
    made = measure(loaded, clock=clock)
    machine = made.profile.accelerator
    print(
        f"calibrated in {time.perf_counter() - started:.0f} s: {machine.flops / 1e9:.1f} GFLOP/s, {machine.bandwidth / 1e9:.1f} GB/s, "
        f"{machine.overhead * 1e3:.1f} ms a pass, {machine.row * 1e3:.2f} ms a row, KV moved {machine.kv_moves:.1f} times; its own passes "
        f"off by {statistics.median(abs(p.fitted / p.seconds - 1) for p in made.passes):.1%} (median)"
    )
    model = ModelExecutor(loaded, PAGES, PAGE_SIZE)
    cost = CostExecutor(made.profile, PAGES, PAGE_SIZE)
    errors: list[float] = []
    steps: dict[str, list[tuple[float, float]]] = defaultdict(list)
    beside = whole = 0.0
    for one in workloads():
        real, said = serve(one, model, clock), serve(one, cost, clock)
        assert real.plans == said.plans, f"{one.name}: the two were planned otherwise"
        pairs = [("TTFT", said.ttft(), real.ttft()), ("duration", sum(said.steps), sum(real.steps))]
        errors += [abs(p / m - 1) for _, p, m in pairs]
        print(f"{one.name}: " + "; ".join(f"{what} {p:.3f} s predicted, {m:.3f} s measured ({p / m - 1:+.1%})" for what, p, m in pairs))
        for plan, p, m in zip(real.plans, said.steps, real.steps, strict=True):
            steps[kind(plan)].append((p, m))
        beside, whole = beside + sum(real.beside), whole + sum(real.steps)
    middle = statistics.median(errors)
    print(f"median error {middle:.1%}, largest {max(errors):.1%}: {'under' if middle < AT_MOST else 'NOT under'} {AT_MOST:.0%}")
    for name, both in sorted(steps.items(), key=lambda item: -sum(m for _, m in item[1])):
        predicted, measured = (sum(x) for x in zip(*both, strict=True))
        print(f"  {name}: {len(both)} steps, {measured:.2f} s ({measured / whole:.0%} of all), predicted {predicted:.2f} s ({predicted / measured - 1:+.1%})")
    print(f"  beside the passes (planning, cache, events; not predicted): {beside:.3f} s, {beside / whole:.2%} of all")
    burst()


if __name__ == "__main__":
    main()
