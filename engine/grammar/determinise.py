"""Joined pieces made deterministic again: the subset construction.

Most states of a joined table have no free moves, and each of them stays what it is: only where a free move
leads is a set of states at work, and only such sets are worked out one by one. A string of 256 counted characters
so costs some hundred sets, however many states a character has.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from engine.grammar.joined import Fragment, Joined, check_size, never
from engine.grammar.syntax import GrammarError

MAX_WORK = 1_000_000
"""So many members may all sets of one construction have together."""


def determinise(joined: Joined, start: int | None) -> Fragment:
    """The deterministic automaton of what can be read from `start` to the end.

    Raises GrammarError where it gets too large.
    """
    return never(joined.classes) if start is None else _Subsets(joined).run(start)


Key = tuple[tuple[int, ...], bool]
"""A set of states, without those that lead nowhere, and whether the end is among them."""


class _Subsets:
    """One construction. New states, one for each set, are numbered after the table's own."""

    def __init__(self, joined: Joined) -> None:
        self.moves, self.free, self.end = joined.moves(), joined.free, joined.end
        self.live = np.any(self.moves >= 0, axis=1).tolist()
        group, rank = joined.kin()
        self.group, self.rank = group.tolist(), rank.tolist()
        self.keys: list[Key] = []
        self.numbers: dict[Key, int] = {}
        self.known: dict[tuple[int, ...], int] = {}
        """What stands for states that a row leads to side by side, -1 among them."""
        self.closures: dict[int, frozenset[int]] = {}
        self.work = 0

    def run(self, start: int) -> Fragment:
        # What stands for a state wherever it is entered; the extra last entry keeps -1 what it is.
        alias = np.arange(len(self.moves) + 1, dtype=np.int32)
        alias[-1] = -1
        for state in self.free:
            alias[state] = self.number([state])
        first = self.number([start])
        rows: list[np.ndarray] = []
        while len(rows) < len(self.keys):
            rows.append(self.row(self.keys[len(rows)][0], alias))
        added = np.array(rows, np.int32).reshape(len(rows), self.moves.shape[1])
        accepting = np.zeros(len(self.moves), bool)
        accepting[self.end] = True
        flags = np.append(accepting, np.array([accepts for _, accepts in self.keys], bool))
        return _entered(np.concatenate([alias[self.moves], added]), flags, first)

    def number(self, states: Collection[int]) -> int:
        """The state that stands for all of these and what they reach by free moves."""
        reached = frozenset().union(*(self.closure(state) for state in states))
        best: dict[int, int] = {}
        for state in reached:
            if self.live[state]:
                group = self.group[state]
                if group not in best or self.rank[state] < self.rank[best[group]]:
                    best[group] = state
        key = (tuple(sorted(best.values())), self.end in reached)
        if len(key[0]) + key[1] == 1:
            return key[0][0] if key[0] else self.end
        if key not in self.numbers:
            self.numbers[key] = len(self.moves) + len(self.keys)
            self.keys.append(key)
            self.work += len(key[0])
            check_size(len(self.keys))
            if self.work > MAX_WORK:
                raise GrammarError("the grammar can be read in too many ways at once; make its repetitions unambiguous")
        return self.numbers[key]

    def closure(self, state: int) -> frozenset[int]:
        """A state and all that it reaches by free moves."""
        if state not in self.closures:
            reached, stack = {state}, [state]
            while stack:
                for target in self.free.get(stack.pop(), ()):
                    if target not in reached:
                        reached.add(target)
                        stack.append(target)
            self.closures[state] = frozenset(reached)
        return self.closures[state]

    def row(self, members: tuple[int, ...], alias: np.ndarray) -> np.ndarray:
        """Where a set leads, for each class."""
        block = self.moves[list(members)]
        top = block.max(axis=0)
        row: np.ndarray = alias[top]
        several = np.flatnonzero(((block >= 0) & (block != top)).any(axis=0))
        for column, states in zip(several.tolist(), map(tuple, block[:, several].T.tolist()), strict=True):
            if states not in self.known:
                self.known[states] = self.number([s for s in states if s >= 0])
            row[column] = self.known[states]
        return row


def _entered(table: np.ndarray, accepting: np.ndarray, start: int) -> Fragment:
    """The states that are the start or entered by a move, with the start first.

    What only left-over states enter may stay, until the whole grammar is numbered anew.
    """
    for _ in range(3):
        entered = np.zeros(len(table) + 1, bool)
        entered[table.ravel()] = True
        entered[-1] = False
        entered[start] = True
        keep = np.flatnonzero(entered)
        if len(keep) == len(table):
            break
        place = np.full(len(table) + 1, -1, np.int32)
        place[keep] = np.arange(len(keep), dtype=np.int32)
        table, accepting, start = place[table[keep]], accepting[keep], int(place[start])
    order = np.arange(len(table), dtype=np.int32)
    order[[0, start]] = order[[start, 0]]
    place = np.append(order, np.int32(-1))  # swapping two states is its own inverse
    return Fragment(place[table[order]], accepting[order])
