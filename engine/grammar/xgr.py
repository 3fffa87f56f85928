"""xgrammar behind the door: the library most engines use, where it is installed (`pip install radix-workbench[xgrammar]`)."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

import numpy as np

from engine.grammar.library import LibraryGrammar, LibraryWalk
from engine.grammar.notations import to_ebnf
from engine.grammar.syntax import GrammarError, Node
from engine.grammar.vocabulary import Vocabulary


class XGrammar(LibraryGrammar):
    """A compiled grammar."""

    backend = "xgrammar"

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

    def walk(self) -> XGrammarWalk:
        """A fresh walk from the start."""
        return XGrammarWalk(self.vocabulary, self._matcher(self._compiled))


class XGrammarWalk(LibraryWalk):
    """One request's matcher."""

    def __init__(self, vocabulary: Vocabulary, matcher: Any) -> None:
        super().__init__(vocabulary)
        self._matcher = matcher
        self._words = np.zeros((1, -(-vocabulary.width // 32)), np.int32)

    @property
    def complete(self) -> bool:
        """Whether the end may come, or has come."""
        return bool(self._matcher.is_completed())

    def forced(self) -> bytes:
        """The bytes that must come next, as far as they are whole characters; b"" where there is a choice."""
        return b"" if self.complete else self._matcher.find_jump_forward_string().encode()

    def _bits(self) -> np.ndarray:
        self._matcher.fill_next_token_bitmask(self._words)
        bits: np.ndarray = self._words.view(np.uint8)[0]
        return bits

    def _take(self, token: int) -> bool:
        return bool(self._matcher.accept_token(token))

    def _give_back(self, tokens: int) -> None:
        self._matcher.rollback(tokens)


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
