"""The automaton as one looks at it: over characters instead of bytes, with every run that has one way on as one edge.

A grammar made of characters reads whole characters, so its states are of two kinds: those between characters,
and those within one. Only the first kind is shown. A run of states that neither accept nor leave a choice is
one forced edge: whatever the model says, this text comes next (the compressed automaton of SGLang's jump-forward).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from engine.events import GrammarEdge
from engine.grammar.automaton import Automaton
from engine.grammar.charsets import Ranges, union
from engine.grammar.labels import char_class, literal
from engine.grammar.utf8 import LEADS


class Compressed:
    """Forced runs and edges of one automaton."""

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton
        widths = np.bincount(automaton.classes, minlength=automaton.moves.shape[1])
        single = ((automaton.moves >= 0) @ widths == 1) & ~automaton.accepting
        column = (automaton.moves >= 0).argmax(axis=1)
        firsts = np.array([np.flatnonzero(automaton.classes == c)[:1].sum() for c in range(len(widths))])
        self._only: list[int] = np.where(single, firsts[column], -1).tolist()
        """The one byte that may follow, -1 where there is a choice or the end may come."""
        self._forced: dict[int, bytes] = {}

    def forced(self, state: int) -> bytes:
        """The bytes that must follow, as far as there is one way on; b"" where there is a choice or the end may come."""
        if self._only[state] < 0:
            return b""
        if state not in self._forced:
            run = bytearray()
            at = state
            while self._only[at] >= 0:
                run.append(self._only[at])
                at = int(self.automaton.moves[at, self.automaton.classes[run[-1]]])
            self._forced[state] = bytes(run)
        return self._forced[state]

    def edges(self) -> list[GrammarEdge]:
        """The edges between the states that leave a choice, accept, begin, or are entered from several places."""
        ways = _Characters(self.automaton).ways()
        single = {s: next(iter(w.items())) for s, w in ways.items() if self._has_one(s, w)}
        entered: dict[int, int] = dict.fromkeys(ways, 0)
        for state, targets in ways.items():
            for target in targets:
                # A run goes on through a state that only one forced edge enters.
                entered[target] += 1 if state in single else 2
        inner = {s for s in single if s and entered[s] == 1}
        found: list[GrammarEdge] = []
        for state in sorted(ways):
            if state in inner:
                continue
            if state in single:
                found.append(self._run(state, single, inner))
                continue
            for target, ranges in sorted(ways[state].items()):
                found.append(GrammarEdge(source=state, target=target, label=char_class(ranges)))
        return found

    def _has_one(self, state: int, ways: dict[int, Ranges]) -> bool:
        """Whether exactly one character may follow, and not the end."""
        if len(ways) != 1 or self.automaton.accepting[state]:
            return False
        ((ranges),) = ways.values()
        return len(ranges) == 1 and ranges[0][0] == ranges[0][1]

    def _run(self, state: int, single: dict[int, tuple[int, Ranges]], inner: set[int]) -> GrammarEdge:
        text, at = "", state
        while at == state or at in inner:
            at, ranges = single[at]
            text += chr(ranges[0][0])
        return GrammarEdge(source=state, target=at, label=literal(text), forced=True, through=self._between(state, text))

    def _between(self, state: int, text: str) -> list[int]:
        """The states between the bytes of a text that may follow."""
        found = []
        for byte in text.encode()[:-1]:
            state = int(self.automaton.moves[state, self.automaton.classes[byte]])
            found.append(state)
        return found


class _Characters:
    """The automaton read by characters."""

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton
        self.rests: dict[tuple[int, int], dict[int, Ranges]] = {}

    def ways(self) -> dict[int, dict[int, Ranges]]:
        """For each state between characters: the states that one character leads to, and by which characters."""
        found: dict[int, dict[int, Ranges]] = {}
        stack = [0]
        while stack:
            state = stack.pop()
            if state not in found:
                found[state] = self._from(state)
                stack += found[state]
        return found

    def _from(self, state: int) -> dict[int, Ranges]:
        gathered: dict[int, list[tuple[int, int]]] = {}
        arcs = self._arcs(state)
        for more, (low, high, base) in enumerate(LEADS):
            first_lead, last_lead = base + (low >> 6 * more), base + (high >> 6 * more)
            here = [(max(a, first_lead) - base, min(b, last_lead) - base, t) for a, b, t in arcs]
            self._spread([arc for arc in here if arc[0] <= arc[1]], more, gathered)
        return {target: union(ranges) for target, ranges in gathered.items()}

    def _rest(self, state: int, more: int) -> dict[int, Ranges]:
        """Where `more` continuation bytes lead, and as which numbers."""
        if not more:
            return {state: ((0, 0),)}
        if (state, more) not in self.rests:
            gathered: dict[int, list[tuple[int, int]]] = {}
            self._spread([(a - 0x80, b - 0x80, t) for a, b, t in self._arcs(state)], more - 1, gathered)
            self.rests[state, more] = {target: union(ranges) for target, ranges in gathered.items()}
        return self.rests[state, more]

    def _spread(self, arcs: list[tuple[int, int, int]], more: int, into: dict[int, list[tuple[int, int]]]) -> None:
        """Add where these top parts lead with `more` bytes after them."""
        size = 64**more
        for first, last, after in arcs:
            for target, ranges in self._rest(after, more).items():
                if ranges == ((0, size - 1),):
                    into.setdefault(target, []).append((first * size, (last + 1) * size - 1))
                else:
                    spread = [(top * size + a, top * size + b) for top in range(first, last + 1) for a, b in ranges]
                    into.setdefault(target, []).extend(spread)

    def _arcs(self, state: int) -> list[tuple[int, int, int]]:
        """Runs of bytes that lead to the same state: first, last, state."""
        row = self.automaton.moves[state][self.automaton.classes]
        cuts = np.flatnonzero(np.diff(row, prepend=-2, append=-2)).tolist()
        return [(a, b - 1, int(row[a])) for a, b in pairwise(cuts) if row[a] >= 0]
