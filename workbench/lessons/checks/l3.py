"""L3: which rows depend on which tokens, by following who reads whom; attention and rotary positions in plain loops, without NumPy's."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from workbench.experiments.attention import WIDTH, TwoLayers
from workbench.lessons.attempt import attempt
from workbench.lessons.lesson import Lesson
from workbench.lessons.questions import Asked, Own
from workbench.lessons.reading import events
from workbench.lessons.verdicts import CheckFailed, expect, fail
from workbench.runner import Run

TOKENS, CHANGED, PREFIX = 24, 7, 16
CLOSE = 1e-12
"""Float64 results that are no further apart than this differ by rounding alone."""
Rows = list[list[float]]


# --- who reads whom ----------------------------------------------------------------------------


def touched(tokens: int, changed: int, layer: int) -> int:
    """How many tokens have other rows in a layer (from 1): each starts from itself and reads all up to itself in every layer before."""
    other = {changed}
    for _ in range(layer - 1):
        other = {i for i in range(tokens) if any(j in other for j in range(i + 1))}
    return len(other)


def usable(stored: Sequence[int], edited: Sequence[int]) -> list[int]:
    """Positions of `edited` whose rows depend on nothing but what `stored` has in the same places; its last token is computed anyhow."""
    return [i for i in range(len(edited) - 1) if list(edited[: i + 1]) == list(stored[: i + 1])]


# --- the same arithmetic, in plain loops ---------------------------------------------------------


def mixed(query: Sequence[float], keys: Sequence[Sequence[float]], values: Sequence[Sequence[float]]) -> list[float]:
    """One query over all the keys and values it may read."""
    scores = [math.fsum(q * k for q, k in zip(query, key, strict=True)) / math.sqrt(len(query)) for key in keys]
    weights = [math.exp(s - max(scores)) for s in scores]
    total = math.fsum(weights)
    return [math.fsum(w * v[i] for w, v in zip(weights, values, strict=True)) / total for i in range(len(values[0]))]


def turn(row: Sequence[float], position: int) -> list[float]:
    """One row turned by its position."""
    half = len(row) // 2
    out = [0.0] * len(row)
    for i in range(half):
        angle = position / 10000.0 ** (i / half)
        out[i] = row[i] * math.cos(angle) - row[i + half] * math.sin(angle)
        out[i + half] = row[i + half] * math.cos(angle) + row[i] * math.sin(angle)
    return out


def times(rows: Rows, matrix: Rows) -> Rows:
    """A matrix product."""
    columns = list(zip(*matrix, strict=True))
    return [[math.fsum(a * b for a, b in zip(row, column, strict=True)) for column in columns] for row in rows]


def through(model: TwoLayers, ids: Sequence[int], start: int = 0) -> tuple[Rows, list[tuple[Rows, Rows]]]:
    """What the two layers answer for all of a prompt at once, and keys and values of each layer."""
    x: Rows = [model.embedding[i].tolist() for i in ids]
    state = []
    for weights in model.layers:
        q, k, v, o = (w.tolist() for w in weights)
        queries, keys = ([turn(row, start + i) for i, row in enumerate(times(x, w))] for w in (q, k))
        values = times(x, v)
        state.append((keys, values))
        read = [mixed(query, keys[: i + 1], values[: i + 1]) for i, query in enumerate(queries)]
        x = [[a + b for a, b in zip(row, more, strict=True)] for row, more in zip(x, times(read, o), strict=True)]
    return x, state


def lesson_ids() -> list[int]:
    """The prompt of the lesson."""
    return [int(i) for i in np.random.default_rng(1).integers(0, 100, TOKENS)]


def shifted() -> str:
    """What of the first layer changes when every position is one higher."""
    model = TwoLayers(0, rotary=True)
    (keys, values), (moved_keys, moved_values) = (through(model, lesson_ids(), start)[1][0] for start in (0, 1))
    return {(True, False): "the keys", (False, True): "the values", (True, True): "both", (False, False): "neither"}[keys != moved_keys, values != moved_values]


def suffix() -> str:
    """How far the answers behind a stored prefix are from those of one go, the one go in plain loops."""
    model, ids = TwoLayers(0, rotary=True), np.array(lesson_ids())
    answer, _ = model.run(ids[PREFIX:], before=model.run(ids[:PREFIX])[1])
    truth, _ = through(model, ids.tolist())
    apart = max(abs(a - b) for row, other in zip(answer.tolist(), truth[PREFIX:], strict=True) for a, b in zip(row, other, strict=True))
    return "less than 1e-12" if apart < CLOSE else "about 1e-6" if apart < 1e-3 else "more than 1e-3"


PROMPT = list(range(256, 256 + TOKENS))
EDITED = [*PROMPT[:CHANGED], 1300, *PROMPT[CHANGED + 1 :]]
KEYS: dict[str, Callable[[Lesson], Any]] = {
    "first": lambda lesson: touched(TOKENS, CHANGED, 1),
    "second": lambda lesson: touched(TOKENS, CHANGED, 2),
    "shifted": lambda lesson: shifted(),
    "suffix": lambda lesson: suffix(),
    "found": lambda lesson: len(usable(PROMPT, EDITED)),
    "inserted": lambda lesson: len(usable(PROMPT, [1280, *PROMPT])),
}


# --- exercises ---------------------------------------------------------------------------------


def check_continue(lesson: Lesson, continue_behind: Callable[..., Any]) -> list[str]:
    """The learner's attention against one query at a time, in float64."""
    worst, cases = 0.0, [(0, 5), (1, 1), (6, 1), (6, 4), (16, 8), (33, 2)]
    for stored, new in cases:
        rng = np.random.default_rng(1000 + 100 * stored + new)
        queries, keys, values = (rng.standard_normal((n, WIDTH)) for n in (new, stored + new, stored + new))
        what = f"{stored} stored, {new} new"
        came = attempt(what, continue_behind, queries.copy(), keys.copy(), values.copy(), stored)
        rows = _rows(what, came, (new, WIDTH))
        k, v = keys.tolist(), values.tolist()
        for i, query in enumerate(queries.tolist()):
            apart = float(np.abs(rows[i] - np.array(mixed(query, k[: stored + i + 1], v[: stored + i + 1]))).max())
            if not apart <= CLOSE:
                fail(f"{what}: new token {i}, largest difference to the reference", f"{apart:.2g}", f"at most {CLOSE:g}", hint=_hint(rows[i], query, k, v, stored, i))
            worst = max(worst, apart)
    return [f"{len(cases)} cases agree with a reference in plain loops; the largest difference in float64 is {worst:.0e}"]


def _rows(what: str, came: Any, shape: tuple[int, int]) -> Any:
    try:
        rows = np.asarray(came, dtype=np.float64)
    except (TypeError, ValueError):
        raise CheckFailed(f"{what}: expected an array of {shape[0]} rows of {shape[1]} numbers, got {type(came).__name__}") from None
    expect(f"{what}: shape of what you return", rows.shape, shape, hint="one row for each new token, none for the stored ones")
    return rows


def _hint(row: Any, query: list[float], keys: Rows, values: Rows, stored: int, i: int) -> str:
    """What a wrong row looks like."""

    def close(size: int) -> bool:
        return size > 0 and float(np.abs(row - np.array(mixed(query, keys[:size], values[:size]))).max()) < 1e-9

    if np.isnan(row).any():
        return "there is a row with nothing to read, or a number too large for exp; subtract the row's maximum first"
    if close(len(keys)):
        return "it reads what lies ahead; hide the rows after its own"
    if close(i + 1) and stored:
        return f"it reads {i + 1} rows; its position is stored + {i}, so it may read {stored + i + 1}"
    return "divide the scores by the square root of the width, and each row of weights by its sum"


def _served(stored: Sequence[int], edited: Sequence[int], name: str) -> dict[str, Any]:
    requests = [{"id": "stored", "tokens": list(stored), "max_new_tokens": 1, "at_step": 1}, {"id": "edited", "tokens": list(edited), "max_new_tokens": 1, "after": "stored"}]
    return {"name": name, "engine": {"executor": "puppet", "pages": 256}, "requests": requests}


def _edits(rng: random.Random) -> list[tuple[str, list[int], list[int]]]:
    base = rng.sample(range(300, 900), 12)
    at = rng.randint(2, 9)
    return [
        ("one token replaced", base, [*base[:at], 901, *base[at + 1 :]]),
        ("one token in front", base, [902, *base]),
        ("one token put in", base, [*base[:at], 903, *base[at:]]),
        ("one token left out", base, [*base[:at], *base[at + 1 :]]),
        ("more behind it", base, [*base, 904, 905]),
        ("exactly the same", base, list(base)),
        ("its first half alone", base, base[:6]),
        ("another prompt", base, rng.sample(range(1000, 1100), 8)),
    ]


def check_reusable(lesson: Lesson, reusable: Callable[..., Any]) -> list[str]:
    """The learner's positions against the reference and against what the engine's look-up found."""
    cases = _edits(random.Random(3)) + _edits(random.Random(4))
    total = 0
    for name, stored, edited in cases:
        run = lesson.run(_served(stored, edited, name))
        matched = events(run, "request.matched", request="edited")[-1]
        expected = usable(stored, edited)
        if len(expected) != matched.length:
            raise CheckFailed(f"{name}: the engine found {matched.length} tokens and the reference {len(expected)}; one of them is wrong, and it matters")
        came = attempt(name, reusable, list(stored), list(edited))
        try:
            came = [int(i) for i in came]
        except (TypeError, ValueError):
            raise CheckFailed(f"{name}: expected a list of positions, got {came!r}") from None
        hint = "KV is a token's and that of all before it: stop for good at the first difference" if came != list(range(len(edited))) else "the last token of the prompt is always computed"
        expect(f"{name}, {stored} -> {edited}: positions", came, expected, run=run, event=matched.seq, hint=hint)
        total += len(came)
    return [f"{len(cases)} edits: your {total} positions are those that the engine found in its trace"]


CHECKS: dict[str, Callable[..., list[str]]] = {"continue": check_continue, "reusable": check_reusable}


# --- the learner's own run -----------------------------------------------------------------------


def questions(lesson: Lesson, rng: random.Random) -> Own:
    """One prompt, one token of it changed, and one token put in elsewhere."""
    size = rng.randint(20, 36)
    base = rng.sample(range(300, 900), size)
    at, place = rng.sample(range(2, size - 2), 2)
    changed, inserted = [*base[:at], 950, *base[at + 1 :]], [*base[:place], 951, *base[place:]]
    requests = [
        {"id": name, "tokens": tokens, "max_new_tokens": 1, **({"after": after} if after else {"at_step": 1})}
        for name, tokens, after in (("first", base, ""), ("changed", changed, "first"), ("inserted", inserted, "changed"))
    ]
    run = lesson.run({"name": "your own edits", "engine": {"executor": "puppet", "pages": 256}, "requests": requests})
    facts = {
        "first": f"{size} tokens, all different",
        "changed": f"the same, but token {at} (from 0) is another",
        "inserted": f"the first prompt again, with one new token put in before token {place}",
    }
    asked = (
        Asked("How many tokens of 'changed' come out of the cache?", len(usable(base, changed)), _admitted(run, "changed"), "tokens", hint="those before the token that is another"),
        Asked("How many tokens of 'inserted' have to be computed?", len(inserted) - max(len(usable(p, inserted)) for p in (base, changed)), _admitted(run, "inserted"), "tokens",
              hint="the new token and all behind it; the prompt is one longer now"),
        Asked("In a model of two layers: how many tokens of 'changed' have other rows in layer 2 than those of 'first'?", touched(size, at, 2), _admitted(run, "changed"), "tokens",
              hint="the changed token, and every one that reads it"),
    )  # fmt: skip
    return Own(run, asked, facts)


def _admitted(run: Run, request: str) -> int:
    return int(events(run, "request.admitted", request=request)[0].seq)
