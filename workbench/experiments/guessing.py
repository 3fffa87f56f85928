"""What to expect of an experiment before it has run: asked of its own rows, graded by the result just made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.experiments.result import Experiment, Row
from workbench.experiments.words import amount


@dataclass(frozen=True)
class Guess:
    """A number of one row, or which of several rows has the most (or least).

    `row` and the values of `options` are patterns of a row's label; the first row that matches is meant.
    """

    ask: str
    row: str = ""
    unit: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    least: bool = False


@dataclass(frozen=True)
class Grade:
    """What became of a guess: whether it was right (None: a number, which is only near or far), in words."""

    right: bool | None
    words: str
    row: str


GUESSES: dict[str, Guess] = {
    "walkthrough": Guess("Three prompts arrive: 10 11 12 13 14 15 20 21, then 10 11 12 13 14 15 30 31, then 10 11 12 13 14 15 20 40. How many of the third one's 8 tokens does the tree find again?", r"radix tree, prompt 3", "tokens"),
    "attention": Guess("Two keys 0 and 1 with the values 2 and 6. Query 0 gives 4. What does query ln 3 give?", r"query ln 3: result"),
    "handbook": Guess("64 requests: 1,024 shared tokens, one of four sections of 256, a question of 64; 86,016 prompt tokens in all. How many does an engine with a radix tree compute?", r"radix tree: prompt tokens computed", "tokens"),
    "hits": Guess("The cache has room for exactly what the chats under way hold. What share of the reuse that unlimited room gives does the tree reach?", r"radix tree, the working set", "%"),
    "mooncake": Guess("With unlimited room, what share of the hour's prompt tokens could be found again at best?", r"best possible, unlimited room", "%"),
    "capacity": Guess("Four handbooks arrive A B C D A B C D, with room for two. How many of the eight times is the whole handbook computed?", r"cyclic .*room for two", "handbooks"),
    "memory": Guess("8,192 tokens of an 8-billion model's state take 1 GiB. What do 32 readers hold at once, without sharing?", r"cache off", "GiB"),
    "branch-lru": Guess("Memory is short and part of a long handbook has to go. Which keeps most of it for a later question?", options={
        "blocks, a prompt's end goes first": r"blocks, tail first: handbook", "blocks, its beginning goes first": r"blocks, head first: handbook",
        "radix tree, page by page from the leaf": r"radix tree, page by page: handbook", "radix tree, whole leaves": r"radix tree, whole leaves: handbook",
    }),
    "schedule": Guess("1,024 requests wait at once, the cache keeps 8 of 64 passages. Which order reuses most?", options={
        "first come, first served": r"^fcfs: reuse", "longest prefix first": r"^lpm: reuse", "the same, sorted only while at most 128 wait": r"^lpm-as-shipped: reuse",
        "longest prefix first, nobody overtaken for long": r"^lpm-fair, bound .*: reuse",
    }),
    "aware": Guess("A few passages are asked for most. How many times the throughput of first come, first served does a cache-aware order reach?", r"throughput, cache-aware over fcfs", "times"),
    "optimal": Guess("Longest prefix first, 8 requests at a time: what share of the best possible reuse does it reach on average?", r"^lpm, 8 at a time: share", "%"),
    "ordering": Guess("An agent's prompt is tools, instructions, history. Which change leaves the least to reuse?", least=True, options={
        "a line about the session in front": r"header first", "a changing note in the middle": r"note in the middle", "the tools in another order each call": r"tools shuffled",
        "the time in front": r"timestamp first", "changing parts at the end": r"dynamic last",
    }),
    "amdahl": Guess("100 ms of prefill and 900 ms of decode; the prefill becomes 5 times faster. How many times faster does the request become?", r"a run of the engine: the whole request", "times"),
    "speedup": Guess("Long prompts, short answers, 84 % of the prompt tokens reused. How many times faster does the whole request become?", r"long prompts, short answers: whole request", "times"),
    "prefill": Guess("Nearly all of a long prompt is known. How many times sooner does its first token come on this machine?", r"^times sooner", "times"),
    "groups": Guess("Four groups with a 4,096-token system prompt each, on a simulated L4. How many times sooner does the median answer begin with the cache?", r"simulated L4: times sooner", "times"),
    "three-cases": Guess("The handbooks were read before. Against an engine without a cache, where does the whole request gain most?", options={
        "one handbook that all share": r"simulated L4: one shared handbook, warmed against no cache: whole", "many handbooks, not all of which fit": r"simulated L4: many unrelated handbooks, warmed against no cache: whole",
        "long answers": r"simulated L4: long answers, warmed against no cache: whole",
    }),
    "offload": Guess("1 GiB of saved state over a link of 25 GB/s. From how many milliseconds of computing on does loading win?", r"load and computing take the same", "ms"),
    "overhead": Guess("Nothing is ever reused, so the tree is pure cost. What share of the whole run goes into it?", r"inside the cache, of the whole run", "%"),
    "jump": Guess("JSON with three fixed keys. What share of the passes does jumping over what the schema forces save?", r"passes saved, verified", "%"),
    "overlap": Guess("Planning a step takes 2 ms, its forward 8 ms. How long does a step take when the next one is planned meanwhile?", r"a step after the first, overlapped", "ms"),
    "routing": Guess("Four replicas, each with room for a third of the handbooks. Under which router is most of the prompts reused?", options={
        "where the prefix was sent before": r"^cache-aware: prompt tokens reused", "each in turn": r"^round-robin: prompt tokens reused",
        "where least waits": r"^least-loaded: prompt tokens reused", "the less loaded of two drawn": r"^power-of-two: prompt tokens reused",
    }),
    "separate": Guess("Four machines, long prompts. When are the tokens after the first slowest for the unluckiest hundredth?", options={
        "all four do both": r"^all do both: the slowest hundredth of those", "one only prefills": r"^1 prefill, 3 decode: the slowest hundredth of those",
        "two only prefill": r"^2 prefill, 2 decode: the slowest hundredth of those",
    }),
}  # fmt: skip


def afterwards(result: Experiment) -> Guess | None:
    """What can be asked where nothing was prepared: the first figure that states a rule or stands beside a published one."""
    known = [row for row in result.rows if row.ours is not None]
    row = next((r for r in known if r.agrees is not None or r.published is not None), known[0] if known else None)
    return None if row is None else Guess(f"{row.label}: what do you expect?", f"^{re.escape(row.label)}$", row.unit)


def find(result: Experiment, pattern: str) -> Row | None:
    """The first row with a figure whose label matches."""
    return next((row for row in result.rows if row.ours is not None and re.search(pattern, row.label)), None)


def grade(guess: Guess, answer: float | str, result: Experiment) -> Grade | None:
    """How far off an answer is, and which row tells; None where the result has no such row."""
    return _choice(guess, str(answer), result) if guess.options else _number(guess, float(answer), result)


def _number(guess: Guess, answer: float, result: Experiment) -> Grade | None:
    row = find(result, guess.row)
    if row is None or row.ours is None:
        return None
    off = answer - row.ours
    said = f"You said {amount(answer, row.unit)}; it came to {amount(row.ours, row.unit)}"
    if abs(off) < 5e-5:
        return Grade(True, f"{said}: exactly.", row.label)
    share = f" ({100 * abs(off) / abs(row.ours):,.0f} % of it)" if row.ours else ""
    return Grade(None, f"{said}: you were {amount(round(abs(off), 4), row.unit)} too {'high' if off > 0 else 'low'}{share}.", row.label)


def _choice(guess: Guess, answer: str, result: Experiment) -> Grade | None:
    rows = {option: find(result, pattern) for option, pattern in guess.options.items()}
    known = {option: row for option, row in rows.items() if row is not None and row.ours is not None}
    if answer not in known:
        return None
    values = {option: row.ours or 0 for option, row in known.items()}
    best = (min if guess.least else max)(values.values())
    winner = next(option for option, value in values.items() if value == best)
    mine = known[answer]
    if values[answer] == best:
        also = [option for option, value in values.items() if value == best and option != answer]
        with_it = f" {also[0]} comes to the same." if also else ""
        return Grade(True, f"Right: {answer}, {amount(mine.ours, mine.unit)}.{with_it}", mine.label)
    row = known[winner]
    return Grade(False, f"You said {answer} ({amount(mine.ours, mine.unit)}); it was {winner} ({amount(row.ours, row.unit)}).", row.label)
