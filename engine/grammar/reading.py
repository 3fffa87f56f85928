"""An automaton reads a tree of tokens: which nodes it can come to from a state, and in which state it is there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from engine.grammar.automaton import DEAD, Automaton
from engine.grammar.vocabulary import TokenTree

CROWDED = 3
"""Where more than one in so many of a level's nodes is reached, the next level is read as a whole."""


class Reading:
    """One automaton and one tree of tokens."""

    def __init__(self, automaton: Automaton, tree: TokenTree) -> None:
        self.tree, self.trie = tree, tree.trie
        self._classes = automaton.moves.shape[1]
        self._moves = automaton.flat
        self._columns = automaton.classes[self.trie.letters].astype(np.int32)

    def levels(self, state: int, falling: np.ndarray | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The nodes that can be reached from a state, level by level, and the states that they lead to.

        With `falling` (a number for each state) only moves that lower it count.
        """
        nodes, states = np.zeros(1, np.int64), np.full(1, state, np.int32)
        for begin, first, stop in zip(self.trie.levels, self.trie.levels[1:], self.trie.levels[2:], strict=False):
            if len(nodes) * CROWDED > first - begin:
                every = np.full(first - begin, DEAD, np.int32)
                every[nodes - begin] = states
                before = every[self.trie.parents[first:stop] - begin]
                nodes = np.arange(first, stop)
            else:
                nodes, counts = self.trie.children(nodes)
                before = np.repeat(states, counts)
            states = self._moves[before * self._classes + self._columns[nodes]]
            alive = states >= 0
            if falling is not None:
                alive &= falling[states] < falling[before]
            nodes, states = nodes[alive], states[alive]
            if not len(nodes):
                break
            yield nodes, states

    def tokens(self, state: int) -> np.ndarray:
        """The tokens that may come next, int64."""
        reached = np.zeros(len(self.trie), bool)
        for nodes, _ in self.levels(state):
            reached[nodes] = True
        ids: np.ndarray = self.tree.ids[reached[self.tree.nodes]]
        return ids


class ScalarReading:
    """The same for a tree of few but long tokens, node by node: its levels are too many and too narrow for arrays."""

    def __init__(self, automaton: Automaton, tree: TokenTree) -> None:
        self._ids, self._nodes = tree.ids, tree.nodes.tolist()
        self._classes = automaton.moves.shape[1]
        self._moves = automaton.flat.data
        columns = automaton.classes[tree.trie.letters]
        self._steps = list(zip(tree.trie.parents.tolist(), columns.tolist(), strict=True))[1:]

    def tokens(self, state: int) -> np.ndarray:
        """The tokens that may come next, int64."""
        states, moves, classes = [state], self._moves, self._classes
        for parent, column in self._steps:
            states.append(moves[states[parent] * classes + column])
        return self._ids[[states[node] >= 0 for node in self._nodes]] if self._nodes else self._ids
