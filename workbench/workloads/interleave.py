"""Conversations side by side: which turn comes when, and whom it waits for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

Turn = tuple[int, int]
"""A conversation's number and its turn's, both from 1."""


def side_by_side(turns: Sequence[int], open: int) -> Iterator[tuple[Turn, Turn | None]]:
    """`open` users, each with one conversation after another; `turns[i]` is the length of the i-th."""
    for number, count in enumerate(turns, 1):
        before = number - open
        after = (before, turns[before - 1]) if before > 0 else None
        for turn in range(1, count + 1):
            yield (number, turn), after
            after = (number, turn)


def one_by_one(turns: Sequence[int], open: int, rng: Random) -> Iterator[tuple[Turn, Turn | None]]:
    """The same, every request waiting for the one before it; which conversation goes on is drawn."""
    coming = iter(range(1, len(turns) + 1))
    going = [[number, 0] for _, number in zip(range(open), coming, strict=False)]
    after = None
    while going:
        place = int(rng.random() * len(going))
        number, turn = going[place][0], going[place][1] + 1
        going[place][1] = turn
        yield (number, turn), after
        after = (number, turn)
        if turn == turns[number - 1]:
            fresh = next(coming, None)
            going[place : place + 1] = [[fresh, 0]] if fresh else []
