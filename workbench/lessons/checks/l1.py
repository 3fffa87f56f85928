"""L1: what a repeated prompt finds, by comparing tokens; what a receipt says, from the raw events; when a flip is a near tie."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from workbench.lessons.attempt import attempt
from workbench.lessons.checks.l2 import found
from workbench.lessons.lesson import Lesson
from workbench.lessons.questions import Asked, Own
from workbench.lessons.reading import events
from workbench.lessons.verdicts import CheckFailed, expect, fail
from workbench.runner import Run

TOLERANCE = 1e-3
Top = list[tuple[int, float]]


def prompts(lesson: Lesson) -> list[list[int]]:
    """The three prompts of the lesson as the model's tokens."""
    tokenizer = lesson.model().tokenizer
    return [tokenizer.chat(request["messages"]) for request in lesson.card.runs["twice"].scenario["requests"]]


def computed(lesson: Lesson, which: int) -> int:
    """How many tokens of one of them are left to compute after those before it; the last one always is."""
    all_of_them = prompts(lesson)
    return len(all_of_them[which]) - found(all_of_them)[which]


KEYS: dict[str, Callable[[Lesson], Any]] = {
    "computed": lambda lesson: computed(lesson, 1),
    "tail": lambda lesson: computed(lesson, 2),
}
"""The rest is measured."""


# --- a near tie, or wrong ------------------------------------------------------------------------


def judged(cold: Top, warm: Top, tolerance: float) -> str:
    """What a place of an answer shows, in plain loops."""
    for token, likely in cold:
        for other, its in warm:
            if token == other and abs(likely - its) > tolerance:
                return "wrong"
    return "same" if cold[0][0] == warm[0][0] else "near tie"


CASES: tuple[tuple[str, Top, Top, float], ...] = (
    ("the same to the last bit", [(5, -0.1), (9, -2.5)], [(5, -0.1), (9, -2.5)], 1e-3),
    ("moved by less than the tolerance", [(5, -0.1), (9, -2.5)], [(5, -0.1004), (9, -2.4996)], 1e-3),
    ("two tokens almost level change places", [(5, -0.9), (9, -0.95)], [(9, -0.92), (5, -0.93)], 0.1),
    ("an exact tie changes places", [(5, -0.7), (9, -0.7)], [(9, -0.7), (5, -0.7)], 1e-3),
    ("another token, and the gap was wide", [(5, -0.1), (9, -2.5)], [(9, -0.1), (5, -2.5)], 0.1),
    ("the same token first, and yet far off", [(5, -0.1), (9, -2.5)], [(5, -0.6), (9, -0.9)], 0.1),
    ("a token is in one list alone", [(5, -0.4), (9, -1.5)], [(5, -0.4), (7, -1.5)], 1e-3),
)


def check_verdict(lesson: Lesson, verdict: Callable[..., Any]) -> list[str]:
    """The learner's verdict on cases made by hand and on drawn ones."""
    rng = random.Random(1)
    for i in range(200):
        cold = sorted(((token, -rng.random() * 3) for token in rng.sample(range(9), 3)), key=lambda pair: -pair[1])
        warm = sorted(((token, likely + rng.uniform(-0.15, 0.15)) for token, likely in cold), key=lambda pair: -pair[1])
        _one(f"drawn case {i}", verdict, cold, warm, 0.1)
    for name, cold, warm, tolerance in CASES:
        _one(name, verdict, cold, warm, tolerance)
    return [f"{200 + len(CASES)} places judged as by the reference; a near tie is told from a wrong answer by how far the scores moved"]


def _one(name: str, verdict: Any, cold: Top, warm: Top, tolerance: float) -> None:
    came = attempt(name, verdict, list(cold), list(warm), tolerance)
    expected = judged(cold, warm, tolerance)
    hint = {
        "wrong": "some token moved by more than the tolerance; that counts, whoever comes first",
        "near tie": "nothing moved by more than the tolerance, and yet another token comes first",
        "same": "nothing moved by more than the tolerance, and the same token comes first",
    }[expected]
    expect(f"{name}, cold {_rounded(cold)}, warm {_rounded(warm)}, tolerance {tolerance:g}", came, expected, hint=hint)


def _rounded(top: Top) -> str:
    return ", ".join(f"{token}: {likely:.4f}" for token, likely in top)


# --- the receipt -------------------------------------------------------------------------------


def _crowd(seed: int) -> tuple[dict[str, Any], list[list[int]]]:
    """Requests that come together and are served one at a time."""
    rng = random.Random(seed)
    heads = [[100 * h + i for i in range(12)] for h in (1, 2)]
    tokens = [[*rng.choice(heads)[: rng.randint(4, 12)], *(rng.randint(500, 900) for _ in range(rng.randint(1, 6)))] for _ in range(6)]
    requests = [{"id": f"R{i + 1}", "tokens": t, "at_step": 1 + i // 3, "max_new_tokens": 2} for i, t in enumerate(tokens)]
    return {"name": f"a queue, {seed}", "engine": {"executor": "puppet", "pages": 512, "max_running": 1, "clock": {"step": 0.5, "token": 0.25}}, "requests": requests}, tokens


def check_receipt(lesson: Lesson, receipt: Callable[..., Any]) -> list[str]:
    """The learner's receipts of runs in which requests wait, against counting tokens and the raw times."""
    total = 0
    for seed in range(4):
        scenario, tokens = _crowd(seed)
        run = lesson.run(scenario)
        came = attempt(f"{scenario['name']}", receipt, run)
        if not isinstance(came, dict):
            raise CheckFailed(f"{scenario['name']}: expected a dict from each request to three numbers, got {came!r}")
        for i, known in enumerate(found(tokens)):
            name = f"R{i + 1}"
            first = events(run, "request.first_token", request=name)[0]
            arrived = events(run, "request.arrived", request=name)[0]
            expected = (known, len(tokens[i]) - known, round(first.t - arrived.t, 6))
            mine = _three(came.get(name))
            if mine is None:
                fail(f"{scenario['name']}, {name}", came.get(name), expected, hint="(tokens found, tokens computed, seconds to the first token)")
                continue
            what = ("tokens found", "tokens computed", "seconds to the first token")
            for label, a, b in zip(what, mine, expected, strict=True):
                hint = "count from request.arrived: the wait in the queue belongs to it" if label.startswith("seconds") else "request.admitted says both"
                at = first.seq if label.startswith("seconds") else events(run, "request.admitted", request=name)[0].seq
                expect(f"{scenario['name']}, {name}: {label}", a, b, run=run, event=at, hint=hint)
            total += 1
    return [f"{total} receipts agree with the prompts compared token by token, and with the times of the trace"]


def _three(value: Any) -> tuple[float, float, float] | None:
    if not isinstance(value, Sequence) or len(value) != 3 or any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in value):
        return None
    return value[0], value[1], round(value[2], 6)


CHECKS: dict[str, Callable[..., list[str]]] = {"verdict": check_verdict, "receipt": check_receipt}


# --- the learner's own run -----------------------------------------------------------------------


def questions(lesson: Lesson, rng: random.Random) -> Own:
    """A beginning, put with two endings, and the first of them once more; read by the model."""
    head, ending, other = rng.randint(60, 120), rng.randint(8, 30), rng.randint(8, 30)
    ids = rng.sample(range(1000, 40000), head + ending + other)
    first, second = ids[: head + ending], ids[:head] + ids[head + ending :]
    all_of_them = {"first": first, "other": second, "again": first}
    asked_for, before = [], None
    for name, tokens in all_of_them.items():
        asked_for.append({"id": name, "tokens": tokens, "max_new_tokens": 3, "ignore_eos": True, **({"after": before} if before else {})})
        before = name
    run = lesson.run({"name": "your own prompts", "engine": {"executor": "model", "device": "cpu", "dtype": "float32", "pages": 1024}, "requests": asked_for}, loaded=lesson.model())
    known = found(list(all_of_them.values()))
    facts = {
        "first": f"a beginning of {head} tokens and an ending of {ending}", "other": f"the same beginning and an ending of {other} other tokens", "again": "the prompt 'first' once more",
    }  # fmt: skip
    asked = (
        Asked("How many prompt tokens does the engine compute for 'again'?", len(first) - known[2], _at(run, "again"), "tokens", hint="all of it is in the cache, and yet the next token has to come from somewhere"),
        Asked("How many prompt tokens do the three requests find in the cache, all together?", sum(known), _at(run, "other"), "tokens", hint="nothing, then the beginning, then all but one"),
        Asked("How many milliseconds passed until the first token of 'first'?", 1000 * (_time(run, "request.first_token") - _time(run, "request.arrived")),
              events(run, "request.first_token", request="first")[0].seq, "ms", within=0.02, hint="the trace's times are in seconds; count from its arrival"),
    )  # fmt: skip
    return Own(run, asked, facts)


def _at(run: Run, request: str) -> int:
    return int(events(run, "request.admitted", request=request)[0].seq)


def _time(run: Run, kind: str) -> float:
    return float(events(run, kind, request="first")[0].t)
