"""How far it still is to the end of a document, in tokens."""

from __future__ import annotations

import numpy as np

from engine.grammar.joined import Fragment
from engine.grammar.masks import Masks
from engine.grammar.order import distances
from engine.grammar.reading import Reading


class Closing:
    """Fewest tokens that say a shortest way to the end.

    Of all texts that complete a document the shortest in bytes are looked at, and of the ways to cut these into
    tokens the one with the fewest. So the document can be completed with that many; a longer text that takes fewer
    tokens is not looked for.
    """

    def __init__(self, masks: Masks) -> None:
        self._automaton = masks.automaton
        self._readings = masks.short, Reading(masks.automaton, masks.vocabulary.long)
        self._bytes: np.ndarray | None = None
        self._fewest: dict[int, int | None] = {}

    def tokens(self, state: int) -> int | None:
        """Fewest tokens from a state to the end, not counting the end itself; None where the vocabulary has no way."""
        if self._bytes is None:
            self._bytes = distances(Fragment(self._automaton.moves, self._automaton.accepting))
        if state not in self._fewest:
            self._solve(state, self._bytes)
        return self._fewest[state]

    def _solve(self, state: int, distance: np.ndarray) -> None:
        """Find all states that tokens lead to on the way, then count from the nearest to the end up."""
        leads: dict[int, list[int]] = {}
        stack = [state]
        while stack:
            at = stack.pop()
            if at not in leads and at not in self._fewest:
                leads[at] = [] if distance[at] == 0 else self._after(at, distance)
                stack += leads[at]
        for at in sorted(leads, key=distance.__getitem__):
            counts = [count for after in leads[at] if (count := self._fewest[after]) is not None]
            self._fewest[at] = 0 if distance[at] == 0 else 1 + min(counts) if counts else None

    def _after(self, state: int, distance: np.ndarray) -> list[int]:
        """The states that one token leads to with each of its bytes bringing the end nearer."""
        found: set[int] = set()
        for reading in self._readings:
            for nodes, states in reading.levels(state, distance):
                found.update(states[reading.tree.is_token[nodes]].tolist())
        return list(found)
