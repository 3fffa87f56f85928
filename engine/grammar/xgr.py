"""xgrammar behind the door: the library most engines use, where it is installed (`pip install radix-workbench[xgrammar]`)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from engine.events import GrammarEdge
from engine.grammar.notations import to_ebnf
from engine.grammar.syntax import GrammarError, Node
from engine.grammar.vocabulary import Vocabulary


class XGrammar:
    """A compiled grammar."""

    backend = "xgrammar"
    states = 0

    def __init__(self, source: str, node: Node, vocabulary: Vocabulary, began: float | None = None) -> None:
        """Raises GrammarError where xgrammar is not installed or refuses the grammar, and where nothing can match."""
        began = time.perf_counter() if began is None else began
        self.source = source
        self.vocabulary = vocabulary
        library = _library()
        try:
            self._compiled = _compiler(vocabulary).compile_grammar(to_ebnf(node))
        except RuntimeError as error:
            raise GrammarError(f"xgrammar refuses the grammar: {str(error).strip().splitlines()[-1]}") from None
        self._matcher = library.GrammarMatcher
        if not self.walk().allowed().any():
            raise GrammarError("nothing can match")
        self.seconds = time.perf_counter() - began

    def edges(self) -> Sequence[GrammarEdge]:
        """None: this backend shows no automaton."""
        return ()

    def ends(self) -> Sequence[int]:
        """None either."""
        return ()

    def walk(self) -> XGrammarWalk:
        """A fresh walk from the start."""
        return XGrammarWalk(self.vocabulary, self._matcher(self._compiled))


class XGrammarWalk:
    """One request's matcher."""

    state = -1

    def __init__(self, vocabulary: Vocabulary, matcher: Any) -> None:
        self._vocabulary, self._matcher = vocabulary, matcher
        self._ends = np.array(sorted(vocabulary.ends), np.int64)
        self._bits = np.zeros((1, -(-vocabulary.width // 32)), np.int32)
        self._taken = 0
        """Tokens taken, not counting the end."""
        self._ended = False

    @property
    def complete(self) -> bool:
        """Whether the end may come, or has come."""
        return bool(self._matcher.is_completed())

    def allowed(self) -> np.ndarray:
        """Which ids may come next: bool [width], read-only. None after the end."""
        width = self._vocabulary.width
        if self._ended:
            return np.zeros(width, bool)
        self._matcher.fill_next_token_bitmask(self._bits)
        mask = np.unpackbits(self._bits.view(np.uint8)[0], count=width, bitorder="little").view(bool)
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
        if not 0 <= token < len(pieces) or not pieces[token] or not self._matcher.accept_token(token):
            return False
        self._taken += 1
        return True

    def back(self, tokens: int) -> None:
        """Take back the last `tokens` tokens. Raises ValueError where there were fewer."""
        if not 0 <= tokens <= self._taken + self._ended:
            raise ValueError(f"cannot take back {tokens} tokens of {self._taken + self._ended}")
        if tokens and self._ended:
            self._ended, tokens = False, tokens - 1
        if tokens:
            self._matcher.rollback(tokens)
            self._taken -= tokens

    def forced(self) -> bytes:
        """The bytes that must come next, as far as they are whole characters; b"" where there is a choice."""
        return b"" if self.complete else self._matcher.find_jump_forward_string().encode()

    def closing(self) -> int | None:
        """None: xgrammar does not say."""
        return None


def _library() -> Any:
    """The library. Raises GrammarError where it is not installed."""
    try:
        import xgrammar
    except ImportError:
        raise GrammarError(
            "grammar: xgrammar is not installed here; install radix-workbench[xgrammar], or take own or llguidance"
        ) from None
    return xgrammar


@lru_cache(maxsize=4)
def _compiler(vocabulary: Vocabulary) -> Any:
    """A compiler for a vocabulary."""
    library = _library()
    info = library.TokenizerInfo(
        list(vocabulary.pieces), vocab_type=library.VocabType.RAW, vocab_size=vocabulary.width,
        stop_token_ids=sorted(vocabulary.ends), add_prefix_space=False,
    )  # fmt: skip
    return library.GrammarCompiler(info, max_threads=1, cache_enabled=False)
