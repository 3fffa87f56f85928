"""What walks through other libraries' grammars have in common: no automaton to show, and ends that are ours to allow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from engine.events import GrammarEdge
from engine.grammar.vocabulary import Vocabulary


class LibraryGrammar:
    """A grammar whose automaton, if there is one, stays inside its library."""

    states = 0

    def edges(self) -> Sequence[GrammarEdge]:
        """None: there is no automaton to show."""
        return ()

    def ends(self) -> Sequence[int]:
        """None, as there are no edges."""
        return ()


class LibraryWalk(ABC):
    """One request's way through a library's matcher, which hears of every token but the end of the sequence."""

    state = -1

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._ends = np.array(sorted(vocabulary.ends), np.int64)
        self._taken = 0
        """Tokens taken, not counting the end."""
        self._ended = False

    @property
    @abstractmethod
    def complete(self) -> bool:
        """Whether the end may come, or has come."""

    @abstractmethod
    def _bits(self) -> np.ndarray:
        """The library's mask: uint8, a bit an id, the lowest first. Raises GrammarError where it gives up."""

    @abstractmethod
    def _take(self, token: int) -> bool:
        """Hand the library a token that has bytes; False where it may not come next."""

    @abstractmethod
    def _give_back(self, tokens: int) -> None:
        """Have the library forget its last tokens. Raises GrammarError where it gives up."""

    @abstractmethod
    def forced(self) -> bytes:
        """The bytes that must come next; b"" where there is a choice or the end may come."""

    def allowed(self) -> np.ndarray:
        """Which ids may come next: bool [width], read-only. None after the end. Raises GrammarError."""
        width = self._vocabulary.width
        if self._ended:
            return np.zeros(width, bool)
        mask = np.unpackbits(self._bits(), count=width, bitorder="little").view(bool)
        mask[self._ends] = self.complete
        mask.flags.writeable = False
        return mask

    def advance(self, token: int) -> bool:
        """Take a token. False, and nothing changes, where the grammar forbids it."""
        if self._ended:
            return False
        if token in self._vocabulary.ends:
            self._ended = self.complete
            return self._ended
        pieces = self._vocabulary.pieces
        if not 0 <= token < len(pieces) or not pieces[token] or not self._take(token):
            return False
        self._taken += 1
        return True

    def back(self, tokens: int) -> None:
        """Take back the last `tokens` tokens. Raises ValueError where there were fewer, GrammarError after trouble."""
        if not 0 <= tokens <= self._taken + self._ended:
            raise ValueError(f"cannot take back {tokens} tokens of {self._taken + self._ended}")
        if tokens and self._ended:
            self._ended, tokens = False, tokens - 1
        if tokens:
            self._give_back(tokens)
            self._taken -= tokens

    def closing(self) -> int | None:
        """None: the libraries do not say."""
        return None
