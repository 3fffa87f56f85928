"""L4: what whole blocks find again, by comparing prompts token by token: no hash, and nothing of the engine."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from engine import Plugs
from workbench.lessons.attempt import attempt
from workbench.lessons.checks.l2 import agreed, found
from workbench.lessons.lesson import Lesson
from workbench.lessons.questions import Asked, Own
from workbench.lessons.reading import events
from workbench.lessons.verdicts import CheckFailed, expect, fail

Prompt = Sequence[int]
Space = tuple[str | None, str | None]
"""Salt and adapter: whose prompt it is."""
SIZE = 4
"""Tokens a block in the exercise."""


def hit_rate(lesson: Lesson, size: int) -> float:
    """Of the chats' prompt tokens, the share that whole blocks find again, in per cent. Requests ID+ only store an answer."""
    requests = lesson.scenario("chats").requests
    tokens = [r.tokens or [] for r in requests]
    counted = [(len(t), n) for r, t, n in zip(requests, tokens, found(tokens, size), strict=True) if not str(r.id).endswith("+")]
    return 100 * sum(n for _, n in counted) / sum(length for length, _ in counted)


def lost(lesson: Lesson, size: int) -> float:
    """Points of hit rate that blocks of `size` cost against single tokens."""
    return hit_rate(lesson, 1) - hit_rate(lesson, size)


def prompt(lesson: Lesson, run: str, request: str) -> list[int]:
    """A request's prompt in one of the lesson's runs."""
    return next(r.tokens or [] for r in lesson.scenario(run).requests if r.id == request)


def changed(lesson: Lesson) -> int:
    """Blocks of R2 that are not R1's: every one from the first difference on."""
    one, two = prompt(lesson, "changed", "R1"), prompt(lesson, "changed", "R2")
    return sum(one[: i + SIZE] != two[: i + SIZE] for i in range(0, len(two), SIZE))


def longest_unseen(size: int) -> int:
    """The longest prompt that finds nothing of itself: all but its last token fill no block."""
    return max(length for length in range(1, 3 * size) if (length - 1) // size == 0)


KEYS: dict[str, Callable[[Lesson], Any]] = {
    "lost16": lambda lesson: lost(lesson, 16),
    "lost64": lambda lesson: lost(lesson, 64),
    "changed": changed,
    "moved": lambda lesson: found([prompt(lesson, "changed", "R1"), prompt(lesson, "changed", "R3")], SIZE)[1],
    "unseen": lambda lesson: longest_unseen(528),
}


# --- the exercise ------------------------------------------------------------------------------

SHARED = tuple(range(101, 117))
TURNED = (104, 103, 102, 101, *SHARED[4:])
"""The same tokens, the first block's in another order."""


def cases() -> list[tuple[str, list[int], Space]]:
    """Name, prompt, whose: the same prompt of several tenants, blocks that look alike elsewhere, and drawn ones."""
    out: list[tuple[str, list[int], Space]] = [
        ("a prompt", [*SHARED, 1], (None, None)),
        ("the same prompt", [*SHARED, 2], (None, None)),
        ("the same prompt, its first tokens in another order", [*TURNED, 3], (None, None)),
        ("the second block of a known prompt at the front", [*SHARED[4:8], *SHARED[:4], 4], (None, None)),
        ("the same prompt for tenant red", [*SHARED, 5], ("red", None)),
        ("the same prompt for tenant red again", [*SHARED, 6], ("red", None)),
        ("the same prompt for tenant blue", [*SHARED, 7], ("blue", None)),
        ("the same prompt for salt ab, adapter c", [*SHARED, 8], ("ab", "c")),
        ("the same prompt for salt a, adapter bc", [*SHARED, 9], ("a", "bc")),
    ]
    rng = random.Random(4)
    stored: list[list[int]] = []
    for i in range(24):
        start = rng.choice(stored)[: rng.randint(1, 15)] if stored and rng.random() < 0.8 else []
        stored.append([*start, *(rng.randint(1, 3) for _ in range(16 - len(start))), 900 + i])
        out.append((f"drawn prompt {i + 1}", stored[-1], (rng.choice((None, "red", "blue")), None)))
    return out


def within(size: int, given: Sequence[tuple[str, list[int], Space]]) -> list[int]:
    """Of each prompt, the tokens in whole blocks that earlier prompts of the same tenant have."""
    out = []
    for i, (_, tokens, space) in enumerate(given):
        earlier = [t for _, t, other in given[:i] if other == space]
        out.append(max((agreed(tokens[:-1], t) // size * size for t in earlier), default=0))
    return out


def served(given: Sequence[tuple[str, list[int], Space]], size: int, name: str) -> dict[str, Any]:
    """One prompt after the other, in blocks."""
    requests = [
        {"id": f"R{i + 1}", "label": what, "tokens": tokens, "max_new_tokens": 1}
        | ({"after": f"R{i}"} if i else {"at_step": 1})
        | {key: value for key, value in zip(("salt", "adapter"), space, strict=True) if value is not None}
        for i, (what, tokens, space) in enumerate(given)
    ]
    return {"name": name, "engine": {"executor": "puppet", "cache": "blocks", "page_size": size, "pages": 1024}, "requests": requests}


def asked_of(hasher: Callable[..., Any]) -> Callable[[int, list[int], Any], int]:
    """The learner's hash, called twice each time and its answers looked at."""

    def block_hash(parent: int, tokens: list[int], salt: Any) -> int:
        told = f"block_hash({parent}, {tokens}, {salt!r})"
        first, again = (attempt("hash", hasher, parent, list(tokens), salt) for _ in range(2))
        if isinstance(first, bool) or not isinstance(first, int):
            raise CheckFailed(f"{told}: expected an integer, got {first!r}")
        if first != again:
            raise CheckFailed(f"{told}: expected the same answer each time, got {first} and then {again}")
        return first

    return block_hash


def check_hasher(lesson: Lesson, hasher: Callable[..., Any]) -> list[str]:
    """The engine reuses with the learner's hash what comparing says; and so would a cache that trusts the hash alone, as vLLM's does."""
    if not callable(hasher):
        raise CheckFailed(f"hasher: expected a function block_hash(parent, tokens, salt), got {hasher!r}")
    mine, given = asked_of(hasher), cases()
    expected = within(SIZE, given)
    run = lesson.run(served(given, SIZE, "your hash"), plugs=Plugs(hasher=mine))
    looked_up = {e.request: e for e in events(run, "request.matched")}
    owner: dict[int, tuple[tuple[int, ...], Space]] = {}
    blocks = 0
    for i, ((name, tokens, space), right) in enumerate(zip(given, expected, strict=True)):
        event = looked_up[f"R{i + 1}"]
        salt = (*space, None) if any(space) else None
        above, chain = 0, []
        for at in range(0, len(tokens) // SIZE * SIZE, SIZE):
            above = mine(above, tokens[at : at + SIZE], salt)
            chain.append(above)
        findable = chain[: (len(tokens) - 1) // SIZE]
        trusted = SIZE * next((k for k, h in enumerate(findable) if h not in owner), len(findable))
        if trusted != right:
            fail(
                f"R{i + 1}, {name}: tokens that a cache which trusts your hash hands out", trusted, right, run=run, event=event.seq,
                hint=_why(owner, chain, tokens, space),
            )  # fmt: skip
        expect(f"R{i + 1}, {name}: tokens that the engine found", event.length, right, run=run, event=event.seq)
        for k, h in enumerate(chain):
            block = (tuple(tokens[: SIZE * (k + 1)]), space)
            if owner.setdefault(h, block) != block:
                fail(
                    f"R{i + 1}, {name}: the hash of block {k + 1}", f"{h}, the hash of another block", "one that no other block has",
                    run=run, event=event.seq, hint=_why(owner, chain, tokens, space),
                )  # fmt: skip
            blocks += 1
    leaks = sum(1 for i, (_, t, s) in enumerate(given) if right_of_others(given, i, t, s))
    return [
        f"{blocks} blocks of {len(given)} prompts: equal hashes for equal blocks after equal blocks of one tenant, and for no others",
        f"{leaks} prompts began as another tenant's did, and none was given that tenant's blocks",
    ]


def right_of_others(given: Sequence[tuple[str, list[int], Space]], i: int, tokens: list[int], space: Space) -> bool:
    """Whether another tenant had stored more of a prompt than its own."""
    others = max((agreed(tokens[:-1], t) // SIZE for _, t, s in given[:i] if s != space), default=0)
    return others * SIZE > within(SIZE, given[: i + 1])[i]


def _why(owner: dict[int, tuple[tuple[int, ...], Space]], chain: Sequence[int], tokens: Prompt, space: Space) -> str:
    """What the hash seems to leave out, from the first block that has another's hash."""
    for k, h in enumerate(chain):
        block = (tuple(tokens[: SIZE * (k + 1)]), space)
        if h not in owner or owner[h] == block:
            continue
        prefix, whose = owner[h]
        if whose != space:
            if prefix == block[0] and all(whose) and all(space):
                return "these two tenants differ only in where their salt ends and their adapter begins: keep the parts apart"
            return f"block {k + 1} has the hash of a block that another tenant stored: the salt has to count"
        if prefix[-SIZE:] == block[0][-SIZE:]:
            return f"block {k + 1} has the tokens of a block that stands after others: the parent has to count"
        return f"block {k + 1} has the hash of a block with other tokens, {list(prefix[-SIZE:])}: each token and its place have to count"
    return "equal blocks after equal blocks need equal hashes: nothing else may go in"


CHECKS: dict[str, Callable[..., list[str]]] = {"hasher": check_hasher}


def questions(lesson: Lesson, rng: random.Random) -> Own:
    """Six prompts in blocks: tokens found, tokens that single tokens would have found as well, blocks stored."""
    size = rng.choice((4, 8))
    prompts: list[list[int]] = []
    for i in range(6):
        start = rng.choice(prompts)[: rng.randint(size, 28)] if prompts and rng.random() < 0.9 else []
        prompts.append([*start, *(rng.randint(1, 9) for _ in range(32 - len(start))), 900 + i])
    run = lesson.run(served([(f"prompt {i + 1}", p, (None, None)) for i, p in enumerate(prompts)], size, "your own prompts in blocks"))
    whole, single = found(prompts, size), found(prompts)
    stored = {tuple(p[:end]) for p in prompts for end in range(size, len(p) + 1, size)}
    worst = max(range(6), key=lambda i: single[i] - whole[i])
    matched = events(run, "request.matched", request=f"R{worst + 1}")[0].seq
    facts = {"tokens a block": str(size)} | {f"R{i + 1}": " ".join(map(str, p)) for i, p in enumerate(prompts)}
    asked = (
        Asked("How many prompt tokens were found, over all six requests?", sum(whole), matched, "tokens", hint="whole blocks alone, and never the last token"),
        Asked("How many more would have been found if blocks held one token?", sum(single) - sum(whole), matched, "tokens",
              hint="request.matched tells both: length in whole blocks, raw_length token by token"),
        Asked("How many different blocks are stored at the end?", len(stored), events(run, "node.created")[-1].seq, "blocks",
              hint="each new block is a node.created; only full blocks are stored"),
    )  # fmt: skip
    return Own(run, asked, facts)
