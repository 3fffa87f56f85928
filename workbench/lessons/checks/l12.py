"""L12: what a server of blocks finds of growing and of forgotten prompts, by counting blocks: nothing of the engine."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from workbench import probe
from workbench.lessons.attempt import attempt
from workbench.lessons.lesson import Lesson
from workbench.lessons.questions import Asked, Own
from workbench.lessons.reading import events
from workbench.lessons.verdicts import expect, fail

BLOCK, ROOM, PROMPT = 16, 24, 65
Points = Sequence[tuple[int, int | None]]


def grown(most: int, block: int) -> list[int]:
    """Of prompts of 1, 2, ... `most` tokens, each a token longer: the tokens found. The one before was kept, the last is never looked up."""
    return [(n - 1) // block * block for n in range(1, most + 1)]


def left(others: int, block: int = BLOCK, room: int = ROOM, prompt: int = PROMPT) -> int:
    """Tokens found of a prompt after so many others, in `room` blocks of which the longest unused one goes first, the end of a prompt before its front."""
    whole, needs = prompt // block, -(-(prompt + 1) // block)
    kept: list[tuple[int, int]] = []
    for sent in range(others + 1):
        del kept[: max(0, len(kept) + needs - room)]
        kept += [(sent, place) for place in reversed(range(whole))]
    found = 0
    while (0, found) in kept:
        found += 1
    return found * block


KEYS: dict[str, Callable[[Lesson], Any]] = {
    "missing": lambda lesson: "unknown",
    "shortest": lambda lesson: 1 + next(i for i, found in enumerate(grown(64, BLOCK)) if found),
    "gone": lambda lesson: next(others for others in range(1, 31) if not left(others)),
}


def _short(value: Any) -> str:
    text = json.dumps(value) if isinstance(value, dict) else str(value)
    return text if len(text) <= 140 else f"{text[:137]}..."


ANSWERS: tuple[tuple[str, dict[str, Any], int | None], ...] = (
    ("a count", {"usage": {"prompt_tokens": 40, "prompt_tokens_details": {"cached_tokens": 32}}}, 32),
    ("a count of zero", {"usage": {"prompt_tokens": 40, "prompt_tokens_details": {"cached_tokens": 0}}}, 0),
    ("details that are null", {"usage": {"prompt_tokens": 40, "prompt_tokens_details": None}}, None),
    ("no details", {"usage": {"prompt_tokens": 40}}, None),
    ("a count that is null", {"usage": {"prompt_tokens": 40, "prompt_tokens_details": {"cached_tokens": None}}}, None),
    ("usage that is null", {"usage": None, "choices": []}, None),
    ("no usage at all", {"choices": [{"index": 0, "text": " and"}]}, None),
    ("SGLang's own way", {"text": " and", "meta_info": {"prompt_tokens": 40, "cached_tokens": 39}}, 39),
    ("SGLang's own way, zero", {"text": " and", "meta_info": {"prompt_tokens": 40, "cached_tokens": 0}}, 0),
    ("SGLang's own way without a count", {"text": " and", "meta_info": {"prompt_tokens": 40}}, None),
)


def check_cached(lesson: Lesson, cached: Callable[..., Any]) -> list[str]:
    """Answers with and without a count, then all that are recorded."""
    for what, answer, expected in ANSWERS:
        came = attempt("cached", cached, json.loads(json.dumps(answer)))
        if came is not expected and (came != expected or type(came) is not int):
            hint = "a count of zero is a count: it was said" if expected == 0 else "what was not said is None, not zero" if expected is None else "it is an int, where the text above says"
            fail(f"{what}, {_short(answer)}: cached tokens", came, expected, hint=hint)
    known = 0
    for one in probe.recorded():
        details = one.answer["usage"]["prompt_tokens_details"]
        expected = None if details is None else details["cached_tokens"]
        came = attempt("cached", cached, one.answer)
        expect(f"server {one.server}, {one.words} words: cached tokens", came, expected, hint="what was not said is None, not zero")
        known += expected is not None
    return [f"{len(ANSWERS)} kinds of answers are read right", f"of {len(probe.recorded())} recorded answers {known} hold a count; the others are unknown, and stay so"]


def _rows(*counts: int | None) -> list[tuple[int, int | None]]:
    return list(enumerate(counts, 2))


ROWS: tuple[tuple[str, Points, int | None], ...] = (
    ("blocks of 4", _rows(0, 0, 0, 4, 4, 4, 4, 8, 8), 4),
    ("single tokens", _rows(0, 1, 2, 3), 1),
    ("no count at all", _rows(None, None, None), None),
    ("zeros alone", _rows(0, 0, 0), None),
    ("no answers", [], None),
    ("zeros left out", _rows(None, None, 3, 3, 3, 6), 3),
    ("an unknown one in between", _rows(0, 8, None, 16, 16, 24), 8),
    ("nothing below 64, then blocks of 16", _rows(0, 64, 64, 80, 96), 16),
    ("a step that was left out", _rows(0, 16, 48, 48, 64), 16),
    ("forgotten in between", _rows(0, 16, 0, 16, 32), 16),
    ("one step of two blocks, one of three", _rows(0, 32, 80), 16),
)


def check_granularity(lesson: Lesson, granularity: Callable[..., Any]) -> list[str]:
    """Small rows, then servers of our own engine whose block is known."""
    for what, points, expected in ROWS:
        came = attempt("granularity", granularity, list(points))
        hint = "no step was seen, so the answer is None" if expected is None else "the greatest common divisor of the steps that go up; unknown counts are left out"
        expect(f"{what}, counts {', '.join('None' if count is None else str(count) for _, count in points) or 'none'}", came, expected, hint=hint)
    for block in (4, 10, 16, 24):
        run = lesson.run(server(block, 60))
        matched = events(run, "request.matched")
        came = attempt("granularity", granularity, [(n, e.length) for n, e in enumerate(matched, 1)])
        step = next(e for e in matched if e.length)
        expect(f"our engine with blocks of {block}", came, block, run=run, event=step.seq, hint="this was its first step")
    return [f"{len(ROWS)} rows and four servers of our own, with blocks of 4, 10, 16 and 24, are recognised"]


CHECKS: dict[str, Callable[..., list[str]]] = {"cached": check_cached, "granularity": check_granularity}


def server(block: int, most: int) -> dict[str, Any]:
    """Our engine as a server with blocks, asked for a prompt that grows to `most` tokens."""
    asked = [{"id": f"R{n}", "tokens": f"A{n}", "max_new_tokens": 1, **({"after": f"R{n - 1}"} if n > 1 else {"at_step": 1})} for n in range(1, most + 1)]
    return {"name": f"a server with blocks of {block}", "engine": {"executor": "puppet", "cache": "blocks", "page_size": block, "pages": 256}, "requests": asked}


def questions(lesson: Lesson, rng: random.Random) -> Own:
    """A server with a drawn block; its granularity, the shortest prompt with a hit, and the counts that SGLang's format would leave out."""
    block, most = rng.choice((5, 6, 7, 9, 11, 12, 13, 14, 15, 18)), rng.randint(40, 60)
    run = lesson.run(server(block, most) | {"name": "your own server"})
    found = grown(most, block)
    matched = events(run, "request.matched")
    shortest = next(i for i, count in enumerate(found) if count)
    facts = {"sent": f"prompts of 1 to {most} tokens, each one token longer than the one before", "answers": "the length in each event request.matched, in order"}
    asked = (
        Asked("What is this server's granularity?", block, matched[shortest].seq, "tokens", hint="your function can tell; the counts are in the events request.matched"),
        Asked("How long is the shortest prompt of which anything is found?", shortest + 1, matched[shortest].seq, "tokens", hint="one token more than a block: the last one is never looked up"),
        Asked("If it left zeros out, as SGLang does: how many of its answers would have no count?", found.count(0), None, "answers", hint="count the look-ups that found nothing"),
    )
    return Own(run, asked, facts)
