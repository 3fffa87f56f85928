"""L2: how far prompts agree, and the tree they make, by counting prefixes: no tree, and nothing of the engine."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from typing import Any

from engine import Plugs
from workbench.lessons.attempt import attempt
from workbench.lessons.lesson import Lesson
from workbench.lessons.questions import Asked, Own
from workbench.lessons.reading import events
from workbench.lessons.verdicts import CheckFailed, expect
from workbench.runner import Run

PROMPTS = ((10, 11, 12, 13, 14, 15, 20, 21), (10, 11, 12, 13, 14, 15, 30, 31), (10, 11, 12, 13, 14, 15, 20, 40))
Prompt = Sequence[int]


def agreed(a: Prompt, b: Prompt) -> int:
    """How many tokens two sequences share from their start."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def found(prompts: Sequence[Prompt], size: int = 1) -> list[int]:
    """Of each prompt, the tokens that the ones before it have, in whole pages; its last token is never looked up."""
    return [max((agreed(p[:-1], earlier) // size * size for earlier in prompts[:i]), default=0) for i, p in enumerate(prompts)]


def forks(prompts: Sequence[Prompt]) -> int:
    """Places where prompts part, the root left out: each is one split, since every prompt ends in a token of its own."""
    followed: dict[tuple[int, ...], set[int]] = {}
    for prompt in prompts:
        for i, token in enumerate(prompt):
            followed.setdefault(tuple(prompt[:i]), set()).add(token)
    return sum(len(after) > 1 for before, after in followed.items() if before)


KEYS: dict[str, Callable[[Lesson], Any]] = {
    "second": lambda lesson: found(PROMPTS)[1],
    "third": lambda lesson: found(PROMPTS)[2],
    "splits": lambda lesson: forks(PROMPTS),
    "nodes": lambda lesson: forks(PROMPTS) + len(PROMPTS),
    "blocks": lambda lesson: found(PROMPTS, 4)[2],
}


def drawn(rng: random.Random, count: int, length: int = 10) -> list[list[int]]:
    """Prompts that share beginnings of many lengths; each ends in a token that no other has."""
    prompts: list[list[int]] = []
    for i in range(count):
        start = rng.choice(prompts)[: rng.randint(1, length - 3)] if prompts and rng.random() < 0.85 else []
        while len(start) < length - 1:
            start = [*start, rng.randint(1, 3)]
        prompts.append([*start, 900 + i])
    return prompts


def served(prompts: Sequence[Prompt], name: str) -> dict[str, Any]:
    """One prompt after the other."""
    requests = [
        {"id": f"R{i + 1}", "tokens": list(p), "max_new_tokens": 1, **({"after": f"R{i}"} if i else {"at_step": 1})} for i, p in enumerate(prompts)
    ]
    return {"name": name, "engine": {"executor": "puppet", "pages": 512}, "requests": requests}


def matched(run: Run) -> dict[str, Any]:
    """Request -> what its look-up found."""
    return {e.request: e for e in events(run, "request.matched")}


def _theirs(name: str, match: Callable[..., Any]) -> Callable[..., Any]:
    """The learner's look-up; an error of its own is told with the prompt at which it came."""

    @functools.wraps(match)
    def looked_up(root: Any, tokens: list[int]) -> Any:
        return attempt(f"{name}, looking up {' '.join(map(str, tokens))}", match, root, tokens)

    return looked_up


def check_match(lesson: Lesson, match: Callable[..., Any]) -> list[str]:
    """The engine, with the learner's look-up in place of its own, finds as much as counting does."""
    if not callable(match):
        raise CheckFailed(f"match: expected a function, got {match!r}")
    cases = [("the lesson's prompts", PROMPTS), *((f"drawn prompts {seed}", drawn(random.Random(seed), 12)) for seed in range(6))]
    looked_up = 0
    for name, prompts in cases:
        run = lesson.run(served(prompts, name), plugs=Plugs(match=_theirs(name, match)))
        events = matched(run)
        for i, (prompt, expected) in enumerate(zip(prompts, found(prompts), strict=True)):
            event = events.get(f"R{i + 1}")
            if event is None:
                raise CheckFailed(f"{name}: R{i + 1} was never looked up")
            expect(
                f"{name}, R{i + 1} = {' '.join(map(str, prompt))}: tokens found", event.length, expected, run=run, event=event.seq,
                hint="your look-up stops too early: a node counts as far as its run agrees, token by token, and deeper nodes may follow",
            )  # fmt: skip
            looked_up += 1
    return [f"{looked_up} prompts found as much with your look-up as counting says, in {len(cases)} runs of the engine"]


CHECKS: dict[str, Callable[..., list[str]]] = {"match": check_match}


def questions(lesson: Lesson, rng: random.Random) -> Own:
    """Six prompts; tokens found in all, splits, nodes."""
    prompts = drawn(rng, 6)
    run = lesson.run(served(prompts, "your own prompts"))
    splits = [e.seq for e in events(run, "node.split")]
    best = max(range(6), key=lambda i: found(prompts)[i])
    facts = {f"R{i + 1}": " ".join(map(str, p)) for i, p in enumerate(prompts)}
    asked = (
        Asked("How many prompt tokens did the tree find, over all six requests?", sum(found(prompts)), matched(run)[f"R{best + 1}"].seq, "tokens",
              hint="compare each prompt with those before it; the last token is never looked up"),
        Asked("How many splits were there?", forks(prompts), splits[-1] if splits else None, "splits", hint="one for each place, beyond the root, where prompts part"),
        Asked("How many nodes does the tree have at the end?", forks(prompts) + 6, None, "nodes", hint="a leaf for each prompt, and a node for each place where some part"),
    )  # fmt: skip
    return Own(run, asked, facts)
