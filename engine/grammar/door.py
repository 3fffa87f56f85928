"""The door that every grammar backend stands behind: a compiled grammar, and one walk through it a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from engine.events import GrammarEdge


class Walk(Protocol):
    """Where one request stands in its grammar. Every row of a batch has its own."""

    @property
    def state(self) -> int:
        """The automaton's state; -1 where a backend shows none."""
        ...

    @property
    def complete(self) -> bool:
        """Whether what has been said so far is a whole document, so that the end may come."""
        ...

    def allowed(self) -> np.ndarray:
        """Which ids may come next: bool [width of the logits]. Read-only; the same array may come again.

        Ends of sequence are allowed exactly where the document is complete.
        """
        ...

    def advance(self, token: int) -> bool:
        """Take a token. False, and nothing changes, where the grammar forbids it."""
        ...

    def back(self, tokens: int) -> None:
        """Take back the last `tokens` tokens."""
        ...

    def forced(self) -> bytes:
        """The bytes that must come next whatever the model says; b"" where there is a choice or the end may come."""
        ...

    def closing(self) -> int | None:
        """Fewest tokens that still complete the document; None where the backend cannot say."""
        ...


class Grammar(Protocol):
    """A compiled grammar. Shared by all requests that ask for the same."""

    backend: str
    source: str
    """What was asked for: the pattern, or the schema as JSON."""
    seconds: float
    """What compiling took."""
    states: int
    """0 where the backend shows none."""

    def edges(self) -> Sequence[GrammarEdge]:
        """The compressed automaton's edges; none where the backend shows none."""
        ...

    def ends(self) -> Sequence[int]:
        """The states of the edges in which an answer may end."""
        ...

    def walk(self) -> Walk:
        """A fresh walk from the start."""
        ...
