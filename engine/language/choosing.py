"""Which of several continuations a model finds likeliest: three rules over the log-probabilities of their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

RULES = ("token-length-normalised", "greedy-token", "unconditional-normalised")


@dataclass(frozen=True)
class Token:
    """One scored token. `text` is None without a tokenizer; `alone`: its log-probability without the prompt, where asked."""

    id: int
    text: str | None
    logprob: float
    alone: float | None = None


@dataclass(frozen=True)
class Option:
    """One choice, its scored tokens, and what the rule made of them: the highest score wins, except token by token."""

    choice: str | list[int]
    tokens: list[Token]
    score: float
    cached: int
    """Tokens of prompt and choice that the cache had."""


@dataclass(frozen=True)
class Selection:
    """What was chosen, by which rule, and the table behind it.

    `healed`: the end of the prompt that was spelt anew together with the choices, because the tokenizer joins them.
    Scoring begins there, for every choice alike; None where the prompt's tokens stand as they are.
    """

    choice: str | list[int]
    rule: str
    options: list[Option]
    healed: str | None = None


def scores(rule: str, options: Sequence[Sequence[Token]]) -> list[float]:
    """A number for each option: its mean log-probability, or by how much the prompt raises that over the choice alone."""
    if rule == "unconditional-normalised":
        return [fmean(t.logprob - (t.alone or 0.0) for t in tokens) for tokens in options]
    return [fmean(t.logprob for t in tokens) for tokens in options]


def choose(rule: str, options: Sequence[Sequence[Token]]) -> int:
    """The index of the option that a rule chooses; of equals the first."""
    if rule == "greedy-token":
        return _token_by_token(options)
    found = scores(rule, options)
    return found.index(max(found))


def _token_by_token(options: Sequence[Sequence[Token]]) -> int:
    """Column by column those with the likeliest token stay; an option that is over goes on with its mean.

    Options that begin with the same tokens share one number for them: batched passes differ in the last digits.
    """
    means = [fmean(t.logprob for t in tokens) for tokens in options]
    left = list(range(len(options)))
    for column in range(max(map(len, options))):
        shared: dict[tuple[int, ...], float] = {}
        column_of = []
        for i in left:
            tokens = options[i]
            if column < len(tokens):
                head = tuple(t.id for t in tokens[: column + 1])
                column_of.append(shared.setdefault(head, tokens[column].logprob))
            else:
                column_of.append(means[i])
        best = max(column_of)
        left = [i for i, value in zip(left, column_of, strict=True) if value == best]
        if len(left) == 1:
            break
    return left[0]
