"""One shared handbook, many unrelated ones, long answers: each served fresh and again once it was read. Where does reuse pay?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from statistics import mean, median
from typing import Any

from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import Chart, Curve, Kind, Point, Row, told, within
from workbench.report import RequestReport
from workbench.runner import Run
from workbench.workloads.runs import runs

PAGE = 16
CLIENTS = 4
"""Each sends its next question when its last one is answered."""
SLOW = 1000
"""A request is slow when its first token takes more than so many milliseconds."""
HARDWARE = "l4-llama-3.1-8b"
ROUNDS = ("fresh", "warmed")


@dataclass(frozen=True)
class Case:
    """Lengths in tokens; `room`: handbooks that the cache keeps beside what is running."""

    name: str
    handbooks: int
    questions: int
    handbook: int
    question: int
    answer: int
    room: int


def cases(handbook: int, question: int, answer: int, long: int, asked: int) -> list[Case]:
    """The three: many questions on one handbook, one question on each of many, long answers on a short one."""
    return [
        Case("one shared handbook", 1, asked, handbook, question, answer, 2),
        Case("many unrelated handbooks", asked, asked, handbook, question, answer, max(2, asked // 3)),
        Case("long answers", 1, asked, handbook // 4, question, long, 2),
    ]


FULL = cases(4096, 128, 32, 512, 24)
QUICK = cases(4096, 128, 8, 64, 8)
HERE = cases(512, 32, 8, 64, 8)
QUICK_HERE = cases(48, 8, 2, 6, 7)


def traffic(case: Case, engine: dict[str, Any]) -> dict[str, Any]:
    """Every question of a round in turn, round two when all of round one were sent: the same handbooks, other questions."""
    rng = Random(0)
    books = runs(rng, case.handbooks, case.handbook)
    asked = runs(rng, 2 * case.questions, case.question)
    requests: list[dict[str, Any]] = []
    for i, question in enumerate(asked):
        which, n = divmod(i, case.questions)
        before = i - CLIENTS if n >= CLIENTS else None if which == 0 else case.questions - 1
        requests.append(
            {
                "id": f"{ROUNDS[which]}-{n + 1}", "tokens": [*books[n % case.handbooks], *question], "max_new_tokens": case.answer, "ignore_eos": True,
                **({} if before is None else {"after": requests[before]["id"]}),
            }
        )  # fmt: skip
    own = -(-(case.handbook + case.question + case.answer) // PAGE) + 1
    kept = case.room * max(1, (case.handbook + case.question) // PAGE)
    return {
        "name": f"three cases, {case.name}", "requests": requests,
        "engine": {"page_size": PAGE, "pages": kept + CLIENTS * own, "cache_pages": kept, "max_running": CLIENTS, "in_batch": "barrier", **engine},
    }  # fmt: skip


@dataclass(frozen=True)
class Round:
    """One round of a case: milliseconds to the first token and to the end, requests a second, what went wrong."""

    first: list[float]
    whole: list[float]
    rate: float | None
    errors: int
    reused: float | None


def rounds_of(run: Run) -> list[Round]:
    """The fresh round and the warmed one."""
    return [_round([r for r in run.report.requests if r.id.startswith(name)]) for name in ROUNDS]


def _round(requests: Sequence[RequestReport]) -> Round:
    done = [r for r in requests if r.status == "finished" and r.ttft is not None and r.finished is not None]
    whole = [(r.finished or 0) - r.arrived for r in done]
    span = max(r.finished or 0 for r in done) - min(r.arrived for r in requests) if done else 0
    prompt = sum(r.prompt_tokens for r in done)
    return Round(
        sorted(1000 * (r.ttft or 0) for r in done), sorted(1000 * t for t in whole), len(done) / span if span else None, len(requests) - len(done),
        100 * sum(r.cached_tokens or 0 for r in done) / prompt if prompt else None,
    )  # fmt: skip


def rows_of(case: Case, found: list[Round], where: str, kind: Kind) -> list[Row]:
    """Both rounds of one case side by side."""
    rows: list[Row] = []
    for name, one in zip(ROUNDS, found, strict=True):
        said = f"{where}: {case.name}, {name}"
        rows += [
            told(f"{said}: prompt tokens reused", None if one.reused is None else round(one.reused, 1), "%", kind),
            told(f"{said}: median TTFT", round(median(one.first), 1) if one.first else None, "ms", kind),
            told(f"{said}: slowest TTFT", round(one.first[-1], 1) if one.first else None, "ms", kind),
            told(f"{said}: median time to finish", round(median(one.whole), 1) if one.whole else None, "ms", kind),
            told(f"{said}: requests a second", None if one.rate is None else round(one.rate, 2), "/s", kind),
            told(f"{said}: slow requests, of {case.questions}", sum(t > SLOW for t in one.first), "", kind),
        ]
    errors = sum(one.errors for one in found)
    return [*rows, within(f"{where}: {case.name}: errors", errors, 0, 0, "", kind, rule="none")]


def gains(case: Case, before: Round, after: Round, where: str, than: str, kind: Kind) -> list[Row]:
    """How much sooner first tokens come, and how much shorter whole requests are, on average, in one round than in another."""
    if not (before.whole and after.whole):
        return []
    first, whole = mean(before.first) / mean(after.first), mean(before.whole) / mean(after.whole)
    said = f"{where}: {case.name}, warmed against {than}"
    return [told(f"{said}: first token, times sooner", round(first, 2), "times", kind), told(f"{said}: whole request, times shorter", round(whole, 2), "times", kind)]


def find(bench: Bench) -> Findings:
    """Every case at size on the simulated card, then scaled down on the model."""
    rows: list[Row] = []
    charts: list[Chart] = []
    main: Run | None = None
    full, here = (QUICK, QUICK_HERE) if bench.quick else (FULL, HERE)
    for case in full:
        data = traffic(case, {"executor": "cost", "hardware": HARDWARE})
        run = bench.run(data, f"{case.name}, simulated L4")
        off = rounds_of(bench.run(data, f"{case.name}, simulated L4, cache off", cache="off", in_batch="off"))[1]
        main = main or run
        fresh, warmed = rounds_of(run)
        rows += rows_of(case, [fresh, warmed], "simulated L4", "simulated")
        rows += gains(case, fresh, warmed, "simulated L4", ROUNDS[0], "simulated") + gains(case, off, warmed, "simulated L4", "no cache", "simulated")
        charts.append(chart(case, {"no cache": off, "fresh": fresh, "warmed": warmed}))
    bench.run(traffic(here[0], {"executor": "model"}), "warming up (not measured)")
    for case in here:
        run = bench.run(traffic(case, {"executor": "model"}), f"{case.name}, scaled to this machine")
        fresh, warmed = rounds_of(run)
        rows += rows_of(case, [fresh, warmed], "this machine, scaled", "measured") + gains(case, fresh, warmed, "this machine, scaled", ROUNDS[0], "measured")
    assert main is not None
    why = (
        "The write-up names the three cases and prints no figures for them, so nothing is compared. Reuse pays where a long prompt is met again while it is still kept: one handbook does, "
        "handbooks that do not all fit are pushed out before their turn comes again, and with long answers the prefill was the small part. "
        "Measured times are few and move with whatever else the machine does; the simulated ones do not."
    )
    return Findings(setup(full, here), rows, main, why, charts)


def setup(full: list[Case], here: list[Case]) -> str:
    """What was set up, in words."""
    def words(some: list[Case]) -> str:
        return "; ".join(
            f"{c.name}: {c.questions} questions of {c.question} tokens on {c.handbooks} of {c.handbook:,}, {c.answer} answered, room to keep {c.room}" for c in some
        )

    return (
        f"Our own traffic. {CLIENTS} clients ask, each its next question when the last was answered; every handbook's questions fresh, then as many other ones on the same handbooks, warmed. "
        f"A request is slow when its first token takes more than {SLOW:,} ms. On a simulated L4 with Llama-3.1-8B, from data sheets: {words(full)}. "
        f"On the model, on this machine: {words(here)}. A request waits while another computes the same handbook. The simulated ones ran with the cache off as well."
    )


def chart(case: Case, found: dict[str, Round]) -> Chart:
    """TTFT without a cache, fresh and warmed."""
    curves = [
        Curve(name=name, points=[Point(round(t, 2), round(100 * (i + 1) / len(one.first), 1), f"{i + 1} of {len(one.first)}") for i, t in enumerate(one.first)])
        for name, one in found.items()
    ]
    title = f"Time to first token, {case.name} (simulated L4)"
    return Chart(kind="distribution", title=title, x="ms to the first token", y="requests that had it by then, %", curves=curves)


PLAN = Plan(
    "three-cases", "One shared handbook, many unrelated ones, long answers: where does having read them before pay?",
    "simulated", "seconds, also on the model", "a minute or two, also on the model", find,
)  # fmt: skip
