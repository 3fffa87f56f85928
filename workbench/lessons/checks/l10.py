"""L10: chunks and pauses by counting steps in a loop, and overlap by arithmetic: nothing of the engine."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from workbench.lessons.attempt import attempt
from workbench.lessons.lesson import Lesson
from workbench.lessons.questions import Asked, Own
from workbench.lessons.reading import events
from workbench.lessons.verdicts import CheckFailed, expect, fail
from workbench.runner import Run

STEP, TOKEN = 20, 1
"""Milliseconds that a step takes, and beside it each token of the step."""
PROMPT, ANSWERS = 2000, 4
PLAN, FORWARD = 2, 8
"""Milliseconds: planning a step, and its forward pass."""


def pieces(prompt: int, chunk: int | None, answers: int, page: int = 1) -> list[int]:
    """The chunks of a prompt, beside so many answers that each take one token of every step. By trying every cut."""
    out: list[int] = []
    done = 0
    while done < prompt:
        room = prompt if chunk is None else chunk - answers
        ends = [end for end in range(done + 1, prompt + 1) if end - done <= room and (end % page == 0 or end == prompt)]
        forced = min(prompt, (done // page + 1) * page)  # at least one page, or nothing would ever move
        end = max(ends, default=forced)
        out.append(end - done)
        done = end
    return out


def pauses(chunks: Sequence[int], answers: int, step: float = STEP, token: float = TOKEN) -> list[float]:
    """How long each step takes in which a chunk and a token of each answer are computed."""
    return [step + token * (n + answers) for n in chunks]


def until_first(chunk: int | None) -> float:
    """Milliseconds from the long prompt's arrival to its first token, answers riding along."""
    return sum(pauses(pieces(PROMPT, chunk, ANSWERS), ANSWERS))


def _alone(lesson: Lesson) -> str:
    """Prefill first: the answers wait for every chunk, one after the other, and then for their own step."""
    apart = sum(STEP + TOKEN * n for n in pieces(PROMPT, 128, 0))
    return "longer" if apart > STEP + TOKEN * PROMPT else "shorter"


KEYS: dict[str, Callable[[Lesson], Any]] = {
    "pause": lambda lesson: max(pauses(pieces(PROMPT, 512, ANSWERS), ANSWERS)),
    "chunks": lambda lesson: len(pieces(PROMPT, 128, ANSWERS)),
    "later": lambda lesson: until_first(32) / until_first(None),
    "apart": _alone,
    "step": lambda lesson: max(PLAN, FORWARD),
    "wasted": lambda lesson: 1,
}


# --- reading a run -----------------------------------------------------------------------------


def cut_of(run: Run, request: str) -> tuple[list[int], list[int]]:
    """Of a request's prefill: tokens of each chunk, and the event that planned it."""
    chunks, seqs = [], []
    for event in events(run, "step.planned"):
        for name, tokens in list(zip(event.members, event.tokens, strict=True))[: event.prefills]:
            if name == request:
                chunks.append(tokens)
                seqs.append(event.seq)
    return chunks, seqs


def waits_of(run: Run, request: str) -> list[tuple[float, float, int]]:
    """Between each token of an answer and the next: when it began, how long it took (ms), and the event that ended it."""
    out = []
    last: float | None = None
    for planned, finished in zip(events(run, "step.planned"), events(run, "step.finished"), strict=True):
        given = dict(zip(planned.members, finished.emitted, strict=True)).get(request, 0)
        if not given:
            continue
        if last is not None:
            out.append((round(1000 * last, 3), round(1000 * (finished.t - last), 3), finished.seq))
        last = finished.t
    return out


def traffic(prompt: int, answers: int, *, name: str, chunk: int | None, page: int = 1, step: float = STEP, token: float = TOKEN) -> dict[str, Any]:
    """One long prompt among answers that outlast it."""
    outlasts = 40 + prompt // max(1, (chunk or prompt) - answers)
    shown = [{"id": f"A{i + 1}", "label": f"answer {i + 1}", "at_step": 1, "tokens": [1000 + i], "max_new_tokens": outlasts} for i in range(answers)]
    long = {"id": "long", "label": "the long prompt", "at_step": 6, "tokens": list(range(2000, 2000 + prompt)), "max_new_tokens": 1}
    engine = {"executor": "puppet", "pages": 16_384, "page_size": page, "mixed": True, "chunk": chunk, "max_running": 16,
              "clock": {"step": step / 1000, "token": token / 1000}}  # fmt: skip
    return {"name": name, "engine": engine, "requests": [*shown, long]}


# --- exercises ---------------------------------------------------------------------------------


CUTS = ((30, 8, 0, 1), (30, 8, 3, 1), (30, 33, 3, 1), (30, 40, 3, 1), (100, 10, 2, 4), (37, 16, 4, 4), (64, 16, 0, 16), (50, 6, 2, 8), (9, 100, 1, 4))
"""Prompt, chunk, answers, page size."""


def check_cut(lesson: Lesson, cut: Callable[..., Any]) -> list[str]:
    """The chunks are those that the engine planned."""
    total = 0
    for prompt, chunk, answers, page in CUTS:
        given = attempt("cut", cut, prompt, chunk, answers, page)
        told = f"cut(prompt={prompt}, chunk={chunk}, answers={answers}, page={page})"
        if not isinstance(given, (list, tuple)) or any(isinstance(n, bool) or not isinstance(n, int) for n in given):
            raise CheckFailed(f"{told}: expected a list of whole numbers, got {given!r}")
        run = lesson.run(traffic(prompt, answers, name=told, chunk=chunk, page=page))
        planned, seqs = cut_of(run, "long")
        right = pieces(prompt, chunk, answers, page)
        if planned != right:
            raise CheckFailed(f"{told}: the engine planned {planned}, the reference says {right}; one of them is wrong, and it matters")
        if list(given) != planned:
            at = next((i for i, (a, b) in enumerate(zip(given, planned, strict=False)) if a != b), min(len(given), len(planned) - 1))
            fail(told, list(given), planned, run=run, event=seqs[min(at, len(seqs) - 1)], hint=_hint(list(given), planned, prompt, chunk, answers, page))
        total += len(planned)
    return [f"{total} chunks in {len(CUTS)} runs: the engine planned the same, token for token"]


def _hint(given: list[int], planned: list[int], prompt: int, chunk: int, answers: int, page: int) -> str:
    if sum(given) != prompt:
        return f"your chunks add up to {sum(given)}, the prompt has {prompt} tokens"
    if chunk - answers < page:
        return "at least one whole page is taken, or the prompt would never move"
    if max(given) > chunk - answers:
        return f"a step has room for {chunk} tokens" + (f", and {answers} of them go to the answers first" if answers else "")
    return "a chunk ends where a page ends, unless the prompt ends there; count from the start of the prompt"


BUDGETS = ((100, 4), (25, 1), (50, 2), (532, 4), (2000, 8))
"""Longest pause allowed in milliseconds, answers."""


def check_budget(lesson: Lesson, largest_chunk: Callable[..., Any]) -> list[str]:
    """With the learner's chunk no answer waits longer than allowed; with one token more it would."""
    lines = []
    for budget, answers in BUDGETS:
        told = f"largest_chunk({budget}, {answers})"
        given = attempt("largest_chunk", largest_chunk, budget, answers)
        if isinstance(given, bool) or not isinstance(given, int) or given < 1:
            raise CheckFailed(f"{told}: expected a whole number of tokens, at least 1, got {given!r}")
        right = max(n for n in range(1, 3000) if STEP + TOKEN * n <= budget)
        longest = []
        for chunk in (given, given + 1):
            run = lesson.run(traffic(min(4000, max(given, right) + 20), answers, name=f"chunk {chunk}", chunk=min(chunk, 16_384)))
            worst = max(waits_of(run, "A1"), key=lambda w: w[1])
            longest.append((worst[1], run, worst[2]))
        (ms, run, seq), (more, _, _) = longest
        if ms > budget + 1e-6:
            fail(f"{told}, where {given} makes a pause of {ms:g} ms", given, right, run=run, event=seq,
                 hint="a step takes 20 ms and 1 ms for each of its tokens, the answers' tokens among them")  # fmt: skip
        if more <= budget + 1e-6:
            fail(f"{told}, where even {given + 1} keeps every pause within {more:g} ms", given, right, run=run, event=seq,
                 hint="the chunk counts all tokens of a step: those of the prompt and one for each answer")  # fmt: skip
        expect(told, given, right)
        lines.append(f"at most {budget} ms beside {answers} answers: chunk {given}, longest pause {ms:g} ms; {given + 1} would make it {more:g} ms")
    return lines


CHECKS: dict[str, Callable[..., list[str]]] = {"cut": check_cut, "budget": check_budget}


def questions(lesson: Lesson, rng: random.Random) -> Own:
    """One long prompt among answers: its chunks, the longest pause, when its own first token comes."""
    prompt, answers = rng.randint(300, 900), rng.randint(2, 6)
    chunk, step = rng.choice((48, 64, 80, 96)), rng.choice((10, 15, 25, 30))
    run = lesson.run(traffic(prompt, answers, name="your own long prompt", chunk=chunk, step=step))
    chunks = pieces(prompt, chunk, answers)
    took = pauses(chunks, answers, step)
    _, seqs = cut_of(run, "long")
    worst = max(waits_of(run, "A1"), key=lambda w: w[1])
    first = events(run, "request.first_token", request="long")[0]
    facts = {
        "the long prompt": f"{prompt} tokens, id long", "answers being written": f"{answers}, ids A1 to A{answers}",
        "chunk": f"{chunk} tokens a step", "clock": f"{step} ms a step and 1 ms a token (simulated)",
    }  # fmt: skip
    asked = (
        Asked("Into how many chunks is the long prompt cut?", len(chunks), seqs[-1], "chunks", hint="count the step.planned events in which it prefills"),
        Asked("How many milliseconds does answer A1 wait at most between two of its tokens?", max(took), worst[2], "ms", 1e-6,
              hint="take the differences of the times t of the step.finished events; t is in seconds"),
        Asked("After how many milliseconds has the long prompt its first token, counted from its arrival?", sum(took), first.seq, "ms", 1e-6,
              hint="request.first_token has ttft, in seconds"),
    )  # fmt: skip
    return Own(run, asked, facts)
