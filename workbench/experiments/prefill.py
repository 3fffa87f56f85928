"""One long prompt, computed whole and with most of it found in the cache: how much sooner its first token comes, and whether it is the same."""

from __future__ import annotations

from random import Random
from statistics import median
from typing import Any

from engine import events as ev
from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import MEASURED, Chart, Curve, Number, Point, Row, told, within
from workbench.runner import Run
from workbench.workloads.runs import runs

PROMPT, KNOWN = 2176, 2048
SCALE = 8
"""The quick version divides both by this."""
REPEATS, QUICK_REPEATS = 3, 1
"""Pairs that are timed, whole and known in turns, after one that warms up."""
TOP = 20
"""Log-probabilities that are told of the first token."""
NEAR = 1e-3
PUBLISHED = (2101.5, 152.6)
"""Milliseconds to the first token, whole and known, of a 1.5 B model on an Apple M4."""


def traffic(prompt: list[int], known: int) -> dict[str, Any]:
    """The prompt; before it, where some of it is to be known, its beginning alone."""
    before = [{"id": "before", "label": f"leaves {known:,} tokens behind", "tokens": prompt[:known], "max_new_tokens": 0}] if known else []
    timed = {"id": "timed", "tokens": prompt, "max_new_tokens": 1, "ignore_eos": True, **({"after": "before"} if known else {})}
    return {
        "name": f"prefill, {known:,} known" if known else "prefill, whole", "requests": [*before, timed],
        "engine": {"executor": "model", "page_size": 16, "pages": len(prompt) // 16 + 8, "cache": "radix" if known else "off"},
    }  # fmt: skip


def first(run: Run) -> tuple[float, int, dict[int, float]]:
    """Milliseconds to the timed prompt's first token, that token, and the best tokens' log-probabilities."""
    report = run.report.requests[-1]
    spoken = next(e for e in run.trace.events if isinstance(e, ev.TokenEmitted) and e.request == "timed")
    assert report.ttft is not None
    return 1000 * report.ttft, report.output_ids[0], dict(spoken.top)


def find(bench: Bench) -> Findings:
    """Whole and known in turns, the first pair to warm up."""
    scale = SCALE if bench.quick else 1
    length, known = PROMPT // scale, KNOWN // scale
    prompt = runs(Random(0), 1, length)[0]
    took: dict[int, list[float]] = {0: [], known: []}
    same = gap = 0.0
    rounds = 1 + (QUICK_REPEATS if bench.quick else REPEATS)
    main: Run | None = None
    for turn in range(rounds):
        said = {}
        for cached in (0, known) if turn % 2 == 0 else (known, 0):
            what = "warming up" if turn == 0 else f"pair {turn} of {rounds - 1}"
            run = bench.run(traffic(prompt, cached), f"{f'{known:,} tokens known' if cached else 'computed whole'}, {what}", logprobs=TOP)
            time, token, top = first(run)
            said[cached] = (token, top)
            if turn:
                took[cached].append(time)
            main = run if cached else main
        same += said[0][0] == said[known][0]
        both = said[0][1].keys() & said[known][1].keys()
        gap = max([gap, *(abs(said[0][1][i] - said[known][1][i]) for i in both)])
    assert main is not None
    whole, part = (median(times) for times in took.values())
    header = main.report.header
    shown: tuple[dict[str, Any], ...] = ({}, {}, {}) if scale > 1 else tuple({"published": p, "source": MEASURED} for p in (*PUBLISHED, 13.8))
    rows = [
        told("first token, computed whole", round(whole, 1), "ms", "measured", **shown[0]),
        told(f"first token, {known:,} of {length:,} tokens known", round(part, 1), "ms", "measured", **shown[1]),
        told("times sooner", round(whole / part, 1), "times", "measured", **shown[2]),
        within(f"pairs with the same first token, of {rounds}", int(same), rounds if header.dtype == "float32" else None, None, "", "measured",
               rule="all" if header.dtype == "float32" else "not asserted outside float32"),
        _gap(gap, header.dtype),
    ]  # fmt: skip
    return Findings(setup(length, known, rounds, main), rows, main, why(), [chart(took)])


def _gap(gap: float, dtype: str | None) -> Row:
    """The largest difference, beside the one that was published for such numbers."""
    label = f"largest difference of a log-probability, best {TOP} tokens"
    shown: tuple[Number, str] = (0 if dtype == "float32" else 2.2e-2, MEASURED)
    if dtype != "float32":
        return told(label, gap, "", "measured", *shown)
    return within(label, gap, None, NEAR, "", "measured", rule=f"at most {NEAR:g}", published=shown[0], source=shown[1])


def setup(length: int, known: int, rounds: int, main: Run) -> str:
    """What was set up, in words."""
    header = main.report.header
    quick = "" if length == PROMPT else f" Quick: {PROMPT:,} and {KNOWN:,} tokens, divided by {SCALE}."
    return (
        f"A prompt of {length:,} random tokens on {header.model}, {header.device}, {header.dtype}: computed whole with the cache off, and with its first {known:,} tokens left in the "
        f"cache by a request before it, so that {length - known:,} are computed. Fresh engines, in turns, {rounds} pairs, the first to warm up; shown are the medians.{quick}"
    )


def why() -> str:
    """Why figures differ."""
    return (
        "In the write-up the first token was the same too. Its times are those of a 1.5 B model on an Apple M4, its difference of 2.2e-2 one of 16-bit numbers on an RTX 3090, both of logits. Here the engine tells log-probabilities, "
        f"so those of the best {TOP} tokens that both ways name are compared: they are logits less one number that all share. The ratio depends on the machine: "
        "the 128 tokens left still read all keys and values, and each pass has a fixed cost."
    )


def chart(took: dict[int, list[float]]) -> Chart:
    """Every time that was taken."""
    names = ("computed whole", "most of it known")
    curves = [
        Curve(name=name, points=[Point(round(t, 1), round(100 * (i + 1) / len(times), 1), f"run {i + 1}") for i, t in enumerate(sorted(times))])
        for name, times in zip(names, took.values(), strict=True)
    ]
    return Chart(kind="distribution", title="Time to first token, every run", x="ms to the first token", y="runs that had it by then, %", curves=curves)


PLAN = Plan(
    "prefill", "A long prompt whose beginning is known: how much sooner does its first token come, and is it the same one?",
    "measured", "seconds, on the model", "a minute or two, on the model", find,
)  # fmt: skip
