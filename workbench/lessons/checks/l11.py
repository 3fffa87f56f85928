"""L11: times of requests and percentiles by their definitions, from the trace's raw events: nothing of the report."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Collection, Sequence
from fractions import Fraction
from typing import Any

from engine import events as ev
from workbench.lessons.attempt import attempt
from workbench.lessons.lesson import Lesson
from workbench.lessons.questions import Asked, Own
from workbench.lessons.reading import events
from workbench.lessons.verdicts import CheckFailed, Unfinished, expect, fail
from workbench.runner import Run

PAGE, FIRST = 16, 1024
"""Tokens of a page, and of the prompt that the second round begins with."""
Times = tuple[float | None, float | None, float | None]


def moments(run: Run) -> dict[str, tuple[float, list[float]]]:
    """Request -> when it came, and when each of its tokens did."""
    out: dict[str, tuple[float, list[float]]] = {}
    members: list[str] = []
    for event in run.trace.events:
        if isinstance(event, ev.RequestArrived):
            out[event.request] = (event.arrived, [])
        elif isinstance(event, ev.StepPlanned):
            members = event.members
        elif isinstance(event, ev.StepFinished):
            for member, count in zip(members, event.emitted, strict=True):
                out[member][1].extend([event.t] * count)
    return out


def defined(came: float, tokens: Sequence[float]) -> Times:
    """TTFT, TPOT and total, as they are defined; None for what is not there."""
    if not tokens:
        return None, None, None
    gaps = [after - before for before, after in itertools.pairwise(tokens)]
    return tokens[0] - came, sum(gaps) / len(gaps) if gaps else None, tokens[-1] - came


def nearest_rank(values: Sequence[float], p: int) -> float | None:
    """The smallest value that at least p of a hundred do not exceed."""
    for value in sorted(values):
        if Fraction(sum(other <= value for other in values), len(values)) >= Fraction(p, 100):
            return value
    return None


def rounds(run: Run) -> dict[str, list[str]]:
    """The three rounds of the lesson's run: letter -> requests."""
    return {letter: [name for name in moments(run) if name[0] == letter] for letter in "ABC"}


def warm_round(lesson: Lesson) -> str:
    """The round whose prompts had all been sent before, by comparing prompts."""
    sent: set[tuple[int, ...]] = set()
    again = {"A": 0, "B": 0, "C": 0}
    for request in lesson.scenario("rounds").requests:
        prompt = tuple(request.tokens or ())
        again[(request.id or " ")[0]] += prompt in sent
        sent.add(prompt)
    return {"A": "the first", "B": "the second", "C": "the third"}[max(again, key=lambda letter: again[letter])]


KEYS: dict[str, Callable[[Lesson], Any]] = {
    "found": lambda lesson: (FIRST - 1) // PAGE * PAGE,
    "publish": warm_round,
}


# --- exercises -----------------------------------------------------------------------------------


def _close(came: Any, expected: float | None) -> bool:
    if came is None or expected is None:
        return came is None and expected is None
    return isinstance(came, (int, float)) and not isinstance(came, bool) and abs(came - expected) < 1e-6


NAMES = ("TTFT", "TPOT", "total")
CASES: tuple[tuple[float, list[float]], ...] = ((1.0, [1.5, 1.75, 2.0, 2.5]), (0.0, [0.25]), (3.0, []), (2.0, [2.5, 2.5, 3.5]), (10.0, [10.125, 10.25]))
HINTS = {
    "TTFT": "from when it came to its first token; none without a token",
    "TPOT": "from the first token to the last, divided by the tokens after the first; none with fewer than two tokens",
    "total": "from when it came to its last token; none without a token",
}


def check_metrics(lesson: Lesson, metrics: Callable[..., Any]) -> list[str]:
    """Small cases, then every request of the lesson's two runs."""
    for came, tokens in CASES:
        _three(f"a request that came at {came} with tokens at {tokens}", attempt("metrics", metrics, came, list(tokens)), defined(came, tokens))
    count = 0
    for name in ("rounds", "open"):
        run = lesson.run(name)
        done = {e.request: e.seq for e in events(run, "request.finished")}
        for request, (came, tokens) in moments(run).items():
            _three(f"{request}", attempt("metrics", metrics, came, list(tokens)), defined(came, tokens), run, done.get(request))
            count += 1
    return [f"{count} requests of two runs and {len(CASES)} small cases have the times that you say"]


def _three(what: str, given: Any, expected: Times, run: Run | None = None, event: int | None = None) -> None:
    if not isinstance(given, (tuple, list)) or len(given) != 3:
        raise CheckFailed(f"{what}: metrics must return three values, (TTFT, TPOT, total); got {given!r}")
    for name, mine, right in zip(NAMES, given, expected, strict=True):
        if not _close(mine, right):
            fail(f"{what}: {name} in seconds", mine, right, run=run, event=event, hint=HINTS[name])


def check_percentile(lesson: Lesson, percentile: Callable[..., Any]) -> list[str]:
    """Small lists, drawn ones, and the lesson's own times, each with the definition itself."""
    rng = random.Random(11)
    drawn = [[rng.randint(1, 99) for _ in range(n)] for n in (1, 2, 3, 4, 7, 10, 20, 33, 100)]
    times = [t for _, tokens in moments(lesson.run("open")).values() for t in tokens[:1]]
    count = 0
    for values in ([5, 1, 3], [10, 20, 30, 40], *drawn, times):
        for p in (50, 95, 25, 99, 60, 75, 90, 5, 1, 100):
            expected = nearest_rank(values, p)
            came = attempt("percentile", percentile, list(values), p)
            if not _close(came, expected):
                shown = f"of {values}" if len(values) <= 10 else f"of {len(values)} values"
                fail(f"percentile {p} {shown}", came, expected, hint=f"sorted and counted from one, it is number {p} × {len(values)} / 100 = {p * len(values) / 100:g}, rounded up")
            count += 1
    expect("no values", attempt("percentile", percentile, [], 50), None, hint="of nothing there is no percentile, and it is not zero")
    return [f"{count} percentiles agree with the definition, ties and single values among them", "say the method and n beside each percentile that you publish"]


ALLOWED = frozenset("ACF")


def check_caption(lesson: Lesson, honest: Any) -> list[str]:
    """Each caption against what the run holds: warm or cold, how many values, which load."""
    if honest is None:
        raise Unfinished("honest: write a set of letters, as {'A', 'D'}. Of each caption ask: cold or warm, how many values, which load, measured or simulated?")
    if isinstance(honest, str) or not isinstance(honest, Collection) or not all(isinstance(one, str) for one in honest):
        raise CheckFailed(f"honest: a set of letters is wanted, as {{'A', 'D'}}; got {honest!r}")
    chosen = {one.strip().upper() for one in honest}
    if chosen - set("ABCDEFG"):
        raise CheckFailed(f"honest: there is no caption {min(chosen - set('ABCDEFG'))!r}; they are A to G")
    run = lesson.run("rounds")
    known = rounds(run)
    found = {e.request: e for e in events(run, "request.matched")}
    warm = found[known["B"][0]]
    n = len(known["A"])
    total = {letter: sum(found[name].length for name in names) for letter, names in known.items()}
    why = {
        "B": (f"the second round found {total['B']:,} prompt tokens in the cache, the first {total['A']:,}: the server is the same, its cache was warm", warm.seq),
        "D": (f"n is {n}: by nearest rank the 99th percentile of {n} values is the largest one, and these were four simulated clients and no users", None),
        "E": (f"it does not say that the round was warm: {total['B']:,} of its prompt tokens were not computed", warm.seq),
        "G": ("four clients that wait for their answers are one load; in the open loop the same prompts waited longer", None),
    }
    for letter in sorted(chosen - ALLOWED):
        reason, event = why[letter]
        fail(f"caption {letter}", "among the honest ones", "left out", run=run if event else None, event=event, hint=reason)
    for letter in sorted(ALLOWED - chosen):
        fail(f"caption {letter}", "left out", "among the honest ones", hint="it names what was compared, how many values there are and the state of the cache, and claims no more")
    return ["A, C and F say what was compared, how many values there are, and whether the cache was warm", *(f"{letter}: {reason}" for letter, (reason, _) in why.items())]


CHECKS: dict[str, Callable[..., list[str]]] = {"metrics": check_metrics, "percentile": check_percentile, "caption": check_caption}


def questions(lesson: Lesson, rng: random.Random) -> Own:
    """Five requests on a virtual clock that was drawn; a TTFT, a TPOT, a percentile of TTFT."""
    step, token = rng.choice((0.011, 0.013, 0.017, 0.019)), rng.choice((0.0003, 0.0004, 0.0007))
    made = [
        {
            "id": f"Q{i + 1}", "at": round(0.03 * i + rng.randint(0, 20) / 1000, 3), "tokens": f"{'ABCDE'[i]}{rng.randint(40, 400)}",
            "max_new_tokens": rng.randint(4, 12), "ignore_eos": True,
        }
        for i in range(5)
    ]  # fmt: skip
    run = lesson.run({"name": "your own times", "engine": {"executor": "puppet", "pages": 4096, "clock": {"step": step, "token": token}}, "requests": made})
    known = {name: defined(came, tokens) for name, (came, tokens) in moments(run).items()}
    begun = {e.request: e.seq for e in events(run, "request.first_token")}
    done = {e.request: e.seq for e in events(run, "request.finished")}
    ttfts = [ttft for ttft, _, _ in known.values() if ttft is not None]
    facts = {"requests": " ".join(known), "clock": "virtual: a step takes a fixed time and a little for each token", "unit": "answer in milliseconds"}
    asked = (
        Asked("What is the TTFT of Q2?", 1000 * (known["Q2"][0] or 0), begun["Q2"], "ms", 0.002, "from when it came, which may be in the middle of a step, to its first token"),
        Asked("What is the TPOT of Q3?", 1000 * (known["Q3"][1] or 0), done["Q3"], "ms", 0.002, "first token to last, divided by the tokens after the first"),
        Asked("What is the 60th percentile of TTFT over the five requests, by nearest rank?", 1000 * (nearest_rank(ttfts, 60) or 0), None, "ms", 0.002, "60 × 5 / 100 is three: the third smallest"),
    )
    return Own(run, asked, facts)
