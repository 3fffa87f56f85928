"""llguidance behind the door: a grammar library in Rust that works out masks on the fly, without an automaton to show."""

from __future__ import annotations

import time
from functools import lru_cache

import llguidance
import numpy as np

from engine.grammar.library import LibraryGrammar, LibraryWalk
from engine.grammar.notations import to_lark
from engine.grammar.syntax import GrammarError, Node
from engine.grammar.vocabulary import Vocabulary


class GuidanceGrammar(LibraryGrammar):
    """A compiled grammar."""

    backend = "llguidance"

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

    def walk(self) -> GuidanceWalk:
        """A fresh walk from the start."""
        return GuidanceWalk(self.vocabulary, self._matcher.deep_copy())


class GuidanceWalk(LibraryWalk):
    """One request's matcher."""

    def __init__(self, vocabulary: Vocabulary, matcher: llguidance.LLMatcher) -> None:
        super().__init__(vocabulary)
        self._matcher = matcher

    @property
    def complete(self) -> bool:
        """Whether the end may come, or has come."""
        return self._matcher.is_accepting()

    def forced(self) -> bytes:
        """The bytes that must come next; b"" where there is a choice or the end may come."""
        return b"" if self.complete else self._matcher.compute_ff_bytes()

    def _bits(self) -> np.ndarray:
        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        if self._matcher.is_error():  # it has become too complex on the way
            raise self._trouble()
        return bits

    def _take(self, token: int) -> bool:
        return self._matcher.try_consume_tokens([token]) == 1

    def _give_back(self, tokens: int) -> None:
        if not self._matcher.rollback(tokens):
            raise self._trouble()

    def _trouble(self) -> GrammarError:
        return GrammarError(f"llguidance gives up: {_first_line(self._matcher.get_error())}")


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
