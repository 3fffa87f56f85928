"""This project's own grammar backend: automaton, masks and forced runs behind the door."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from engine.events import GrammarEdge
from engine.grammar.automaton import build
from engine.grammar.closing import Closing
from engine.grammar.compressed import Compressed
from engine.grammar.masks import Masks
from engine.grammar.syntax import Node
from engine.grammar.vocabulary import Vocabulary

SHOWN = 10_000
"""States of the largest automaton whose edges are told: beyond, nobody could look at them and they take seconds."""


class OwnGrammar:
    """A compiled grammar."""

    backend = "own"

    def __init__(self, source: str, node: Node, vocabulary: Vocabulary, began: float | None = None) -> None:
        """`began` is when compiling began by time.perf_counter(), where a front end has worked before.

        Raises GrammarError where nothing can match or be said, or where the grammar is too large.
        """
        began = time.perf_counter() if began is None else began
        self.source = source
        self.automaton = build(node)
        self.masks = Masks(self.automaton, vocabulary)
        self.runs = Compressed(self.masks.automaton)
        self.closing = Closing(self.masks)
        self.states = self.automaton.states
        self._edges: list[GrammarEdge] | None = None
        self.seconds = time.perf_counter() - began

    def edges(self) -> Sequence[GrammarEdge]:
        """The compressed automaton's edges, worked out at the first call; none above SHOWN states.

        Their states are those of the walks.
        """
        if self._edges is None:
            self._edges = Compressed(self.automaton).edges() if self.states <= SHOWN else []
        return self._edges

    def ends(self) -> Sequence[int]:
        """The states of the edges in which an answer may end."""
        shown = {state for edge in self.edges() for state in (edge.source, edge.target)}
        return [state for state in sorted(shown) if self.automaton.accepting[state]]

    def walk(self) -> OwnWalk:
        """A fresh walk from the start."""
        return OwnWalk(self)


class OwnWalk:
    """One request's way through the automaton."""

    def __init__(self, grammar: OwnGrammar) -> None:
        self._grammar = grammar
        self._path = [0]
        """The state before and after each token."""
        self._ended = False

    @property
    def state(self) -> int:
        """The automaton's state."""
        return self._path[-1]

    @property
    def complete(self) -> bool:
        """Whether the end may come, or has come."""
        return bool(self._grammar.automaton.accepting[self.state])

    def allowed(self) -> np.ndarray:
        """Which ids may come next: bool [width], read-only. None after the end."""
        masks = self._grammar.masks
        return np.zeros(masks.vocabulary.width, bool) if self._ended else masks.mask(self.state)

    def advance(self, token: int) -> bool:
        """Take a token. False, and nothing changes, where the grammar forbids it."""
        masks = self._grammar.masks
        if self._ended:
            return False
        if token in masks.vocabulary.ends:
            if not self.complete:
                return False
            self._ended = True
            self._path.append(self.state)
            return True
        state = masks.next(self.state, token)
        if state < 0:
            return False
        self._path.append(state)
        return True

    def back(self, tokens: int) -> None:
        """Take back the last `tokens` tokens. Raises ValueError where there were fewer."""
        if not 0 <= tokens < len(self._path):
            raise ValueError(f"cannot take back {tokens} tokens of {len(self._path) - 1}")
        if tokens:
            del self._path[-tokens:]
            self._ended = False

    def forced(self) -> bytes:
        """The bytes that must come next; b"" where there is a choice or the end may come."""
        return self._grammar.runs.forced(self.state)

    def closing(self) -> int | None:
        """Fewest tokens that say a shortest way to the end (see `closing`), the end itself not counted."""
        return self._grammar.closing.tokens(self.state)
