"""Which tokens a pass settles under a grammar: the drafted ones that the model agrees with, then one of its own.

Each position's logits are masked as plain constrained decoding would mask them, and the token that they choose
is compared with the draft; the first that differs is taken instead and ends the look. So the tokens are those of
plain decoding, wherever the logits are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.grammar.door import Walk
from engine.grammar.syntax import GrammarError


@dataclass(slots=True)
class Look:
    """One position: the mask in `state`, the token that was taken, the state it led to.

    `top` is the model's top few with their log-probabilities before the mask; `seconds` is what the mask took.
    """

    state: int
    target: int
    allowed: int
    token: int
    seconds: float = 0.0
    logprob: float | None = None
    top: list[tuple[int, float]] = field(default_factory=list)
    forbade: list[int] = field(default_factory=list)
    """Which of `top` the mask forbade."""


Pick = Callable[[int, np.ndarray], int | None]
"""(position in the row's looks, mask) -> an allowed token; None: the script is over."""


def settle(walk: Walk, draft: Sequence[int], ends: Collection[int], pick: Pick) -> list[Look]:
    """Take tokens until one differs from the draft, or one after its end; `walk` goes along.

    Where the document is whole and only `ends` may follow, nothing is taken. Raises GrammarError where no token of
    this vocabulary can go on, and where the backend gives up.
    """
    looks: list[Look] = []
    for i in range(len(draft) + 1):
        started = time.perf_counter()
        allowed = walk.allowed()
        seconds = time.perf_counter() - started
        count = int(np.count_nonzero(allowed))
        if walk.complete and only_ends(allowed, count, ends):
            break
        if not count:
            raise GrammarError("no token of this vocabulary can go on here")
        state = walk.state
        token = pick(i, allowed)
        if token is None:
            break
        if not walk.advance(token):
            raise GrammarError(f"mask and automaton disagree on token {token}")
        looks.append(Look(state, walk.state, count, token, round(seconds, 9)))
        if i < len(draft) and token != draft[i]:
            break
    return looks


def only_ends(allowed: np.ndarray, count: int, ends: Collection[int]) -> bool:
    """Whether a mask of `count` ids allows nothing but ends of sequence."""
    return count <= len(ends) and all(int(i) in ends for i in np.flatnonzero(allowed))


def is_closed(walk: Walk, ends: Collection[int]) -> bool:
    """True where a document is whole and nothing can follow it: its request needs no pass for the end."""
    if not walk.complete:
        return False
    allowed = walk.allowed()
    return only_ends(allowed, int(np.count_nonzero(allowed)), ends)
