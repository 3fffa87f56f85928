"""llguidance behind the door: a grammar library in Rust that works out masks on the fly, without an automaton to show."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache

import llguidance
import numpy as np

from engine.events import GrammarEdge
from engine.grammar.notations import to_lark
from engine.grammar.syntax import GrammarError, Node
from engine.grammar.vocabulary import Vocabulary


class GuidanceGrammar:
    """A compiled grammar."""

    backend = "llguidance"
    states = 0

    def __init__(self, source: str, node: Node, vocabulary: Vocabulary, began: float | None = None) -> None:
        """Raises GrammarError where llguidance refuses it, and where nothing can match."""
        began = time.perf_counter() if began is None else began
        self.source = source
        self.vocabulary = vocabulary
        grammar = llguidance.LLMatcher.grammar_from_lark(to_lark(node))
        self._matcher = llguidance.LLMatcher(_tokenizer(vocabulary), grammar, log_level=0)
        if self._matcher.is_error():
            raise GrammarError(f"llguidance refuses the grammar: {_first_line(self._matcher.get_error())}")
        if _is_dead(self._matcher.deep_copy()):
            raise GrammarError("nothing can match")
        self.seconds = time.perf_counter() - began

    def edges(self) -> Sequence[GrammarEdge]:
        """None: this backend has no automaton to show."""
        return ()

    def ends(self) -> Sequence[int]:
        """None, as there are no edges."""
        return ()

    def walk(self) -> GuidanceWalk:
        """A fresh walk from the start."""
        return GuidanceWalk(self.vocabulary, self._matcher.deep_copy())


class GuidanceWalk:
    """One request's matcher."""

    state = -1

    def __init__(self, vocabulary: Vocabulary, matcher: llguidance.LLMatcher) -> None:
        self._vocabulary, self._matcher = vocabulary, matcher
        self._ends = np.array(sorted(vocabulary.ends), np.int64)
        self._taken = 0
        """Tokens taken, not counting the end."""
        self._ended = False

    @property
    def complete(self) -> bool:
        """Whether the end may come, or has come."""
        return self._matcher.is_accepting()

    def allowed(self) -> np.ndarray:
        """Which ids may come next: bool [width], read-only. None after the end.

        Raises GrammarError where the grammar has become too complex for llguidance on the way.
        """
        width = self._vocabulary.width
        if self._ended:
            return np.zeros(width, bool)
        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        if self._matcher.is_error():
            raise GrammarError(f"llguidance gives up: {_first_line(self._matcher.get_error())}")
        mask = np.unpackbits(bits, count=width, bitorder="little").view(bool)
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
        if not 0 <= token < len(pieces) or not pieces[token] or self._matcher.try_consume_tokens([token]) != 1:
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
            if not self._matcher.rollback(tokens):
                raise GrammarError(f"llguidance gives up: {_first_line(self._matcher.get_error())}")
            self._taken -= tokens

    def forced(self) -> bytes:
        """The bytes that must come next; b"" where there is a choice or the end may come."""
        return b"" if self.complete else self._matcher.compute_ff_bytes()

    def closing(self) -> int | None:
        """None: llguidance does not say."""
        return None


@lru_cache(maxsize=4)
def _tokenizer(vocabulary: Vocabulary) -> llguidance.LLTokenizer:
    """The vocabulary as llguidance wants it."""
    ends = sorted(vocabulary.ends)
    return llguidance.LLTokenizer(
        llguidance.TokenizerWrapper(_Tokens(vocabulary)), n_vocab=vocabulary.width, eos_token=ends or None
    )


class _Tokens:
    """What llguidance asks of a tokenizer. Without forced tokens it never has any text cut into tokens."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        padding = [b""] * (vocabulary.width - len(vocabulary.pieces))
        self.tokens = vocabulary.pieces + padding
        self.eos_token_id = min(vocabulary.ends, default=vocabulary.width - 1)
        self.bos_token_id = None
        self.special_token_ids: list[int] = []

    def __call__(self, text: bytes) -> list[int]:
        return []


def _is_dead(matcher: llguidance.LLMatcher) -> bool:
    """Whether nothing at all may come, not even the end. Works out a mask, which stops the matcher if so."""
    accepting = matcher.is_accepting()
    some = any(matcher.compute_bitmask())
    return not accepting and (not some or matcher.get_error().startswith("NoExtensionBias"))


def _first_line(error: str) -> str:
    return error.strip().partition("\n")[0]
