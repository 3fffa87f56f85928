"""Deterministic pieces in one table, joined by free moves: moves that read nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.grammar.syntax import GrammarError

MAX_STATES = 200_000
"""More states than this are refused."""


@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """A deterministic automaton over classes of bytes: state 0 is the start, -1 is no way on.

    From each state that can be reached an accepting one can be reached, except from the start of a
    fragment that matches nothing.
    """

    moves: np.ndarray
    """int32 [states, classes]."""
    accepting: np.ndarray
    """bool [states]."""

    def __len__(self) -> int:
        return len(self.moves)

    @property
    def empty(self) -> bool:
        """Whether it matches nothing at all."""
        return not self.accepting.any()


def never(classes: int) -> Fragment:
    """The fragment that matches nothing."""
    return Fragment(np.full((1, classes), -1, np.int32), np.zeros(1, bool))


def check_size(states: int) -> None:
    """Raises GrammarError for more states than are allowed."""
    if states > MAX_STATES:
        raise GrammarError(f"the grammar needs more than {MAX_STATES:,} states; lower its repetition counts")


class Joined:
    """A table that grows. One state is the end; whatever reaches it has matched."""

    def __init__(self, classes: int) -> None:
        self.classes = classes
        self.size = 0
        self.end = -1
        self.free: dict[int, list[int]] = {}
        """The free moves of the states that have any."""
        self._moves: list[np.ndarray] = []
        self._kin: list[tuple[int, int, int, int, int]] = []

    def add_end(self) -> int:
        """The end."""
        self.end = self._add(np.full((1, self.classes), -1, np.int32))
        return self.end

    def add_choice(self, states: Iterable[int | None]) -> int | None:
        """A state with free moves to all of these; just the one where it is one, None where there is none."""
        there = sorted({state for state in states if state is not None})
        if len(there) < 2:
            return there[0] if there else None
        state = self._add(np.full((1, self.classes), -1, np.int32))
        self.free[state] = there
        return state

    def add_rows(self, rows: Sequence[np.ndarray], then: int) -> int:
        """States from their rows, of which number 0 is the start and number 1 stands for `then`. Returns the start."""
        start = self.size
        place = np.array([start, then, *range(start + 1, start + len(rows) - 1), -1], np.int32)
        self._add(place[np.array([rows[0], *rows[2:]])])
        return start

    def add_copies(self, piece: Fragment, copies: int, least: int, endless: bool, then: int) -> int:
        """Copies of a piece that does not match the empty text, one after the other; `then` from the `least`th on.

        With `endless` the last goes on with itself. Returns the first one's start.
        """
        first, size = self.size, len(piece)
        begins = first + size * np.arange(copies, dtype=np.int32)
        moves = np.where(piece.moves >= 0, piece.moves + begins[:, None, None], np.int32(-1))
        self._add(moves.reshape(copies * size, self.classes))
        ends = np.flatnonzero(piece.accepting).tolist()
        for k in range(copies):
            follows = [first + size * (k + 1)] if k + 1 < copies else [first + size * k] if endless else []
            if k + 1 >= least:
                follows.append(then)
            for end in ends:
                self.free[first + size * k + end] = follows
        self._kin.append((first, size, copies, least, -1 if endless else 1))
        return first

    def moves(self) -> np.ndarray:
        """The table, int32 [states, classes]."""
        return np.concatenate(self._moves)

    def kin(self) -> tuple[np.ndarray, np.ndarray]:
        """Which states one can do without beside another, as two arrays int64 [states].

        Of states with the same first number, the one with the lowest second number matches all that the
        others match: the same place in an earlier copy has more copies to go (where enough are done for the rest
        to be optional), and in the last copy of an endless repetition no need of any.
        """
        group = np.arange(self.size)
        rank = np.zeros(self.size, np.int64)
        for first, size, copies, least, sign in self._kin:
            begin = first + size * max(least - 1, 0) if sign > 0 else first
            every = np.arange(first + copies * size - begin)
            group[begin + every] = begin + every % size
            rank[begin + every] = sign * (every // size)
        return group, rank

    def _add(self, moves: np.ndarray) -> int:
        """More rows. Returns the first one's number."""
        first = self.size
        self.size += len(moves)
        check_size(self.size)
        self._moves.append(moves)
        return first
