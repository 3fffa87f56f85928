"""Vocabularies for the tests: every byte a token, and a few longer ones; and the embedded model's."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

import numpy as np
import pytest

from engine.failures import ModelError
from engine.grammar.automaton import Automaton
from engine.grammar.vocabulary import Vocabulary, vocabulary_of
from engine.models import load_tokenizer
from engine.tokenizer import TextTokenizer

END = 256
"""The end of a small vocabulary."""


def small(*more: str | bytes, ends: Collection[int] = (END,), width: int | None = None) -> Vocabulary:
    """Ids 0 to 255 are the bytes, 256 is the end (its text is `<end>`), then come `more`."""
    pieces = [bytes([b]) for b in range(256)] + [b"<end>"]
    pieces += [piece.encode() if isinstance(piece, str) else piece for piece in more]
    return Vocabulary(pieces, ends, width=width)


def smollm() -> TextTokenizer:
    """The embedded model's tokenizer; skips where it is not on this machine, except in CI."""
    try:
        return load_tokenizer("embedded")
    except ModelError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


SMOLLM_ENDS = frozenset({0, 2})
SMOLLM_WIDTH = 49_152


def embedded_vocabulary() -> Vocabulary:
    """All 49,152 tokens of the embedded model."""
    return vocabulary_of(smollm(), SMOLLM_ENDS, SMOLLM_WIDTH)


class BruteForce:
    """Masks by reading every token's bytes, whatever other tokens or states there are."""

    def __init__(self, pieces: Sequence[bytes], ends: Collection[int], width: int) -> None:
        self.ends, self.width = sorted(ends), width
        said = [i for i, piece in enumerate(pieces) if piece and i not in set(ends)]
        # Longest first: those that still have a byte to read are a shrinking head of the list.
        self.ids = np.array(sorted(said, key=lambda i: -len(pieces[i])))
        self.lengths = np.array([len(pieces[i]) for i in self.ids])
        self.letters = np.zeros((len(self.ids), int(self.lengths[0])), np.uint8)
        for row, i in enumerate(self.ids):
            self.letters[row, : len(pieces[i])] = np.frombuffer(pieces[i], np.uint8)

    def mask(self, automaton: Automaton, state: int) -> np.ndarray:
        """Which ids may come next: bool [width]."""
        table = np.vstack([automaton.table, np.full((1, 256), -1, np.int32)])
        states = np.full(len(self.ids), state)
        for depth in range(self.letters.shape[1]):
            reading = int((self.lengths > depth).sum())
            states[:reading] = table[states[:reading], self.letters[:reading, depth]]
        mask = np.zeros(self.width, bool)
        mask[self.ids[states >= 0]] = True
        mask[self.ends] = bool(automaton.accepting[state])
        return mask
