"""From what a request asks for to a compiled grammar, each once: also what failed is remembered."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock

from engine.grammar import regex, schema
from engine.grammar.door import Grammar
from engine.grammar.own import OwnGrammar
from engine.grammar.syntax import GrammarError, Node
from engine.grammar.vocabulary import Vocabulary

FRONT_ENDS: dict[str, Callable[[str, str], Node]] = {
    "regex": lambda source, spacing: regex.parse(source),
    "json_schema": schema.parse,
}
"""Kind of grammar -> its front end, from source and spacing."""

Backend = Callable[[str, str, str, Vocabulary], Grammar]
"""Makes a grammar of a kind, source and spacing for a vocabulary. Raises GrammarError."""

Key = tuple[str, str, str, str, Vocabulary]


def own(kind: str, source: str, spacing: str, vocabulary: Vocabulary) -> Grammar:
    """A grammar by this project's own backend. Raises GrammarError."""
    began = time.perf_counter()
    grammar = OwnGrammar(source, tree(kind, source, spacing), vocabulary, began)
    grammar.edges()  # here, beside the engine's steps, and not when they are told
    return grammar


def guidance(kind: str, source: str, spacing: str, vocabulary: Vocabulary) -> Grammar:
    """A grammar by llguidance. Raises GrammarError."""
    from engine.grammar.guidance import GuidanceGrammar

    began = time.perf_counter()
    return GuidanceGrammar(source, tree(kind, source, spacing), vocabulary, began)


def xgrammar(kind: str, source: str, spacing: str, vocabulary: Vocabulary) -> Grammar:
    """A grammar by xgrammar. Raises GrammarError, also where it is not installed."""
    from engine.grammar.xgr import XGrammar

    began = time.perf_counter()
    return XGrammar(source, tree(kind, source, spacing), vocabulary, began)


def tree(kind: str, source: str, spacing: str) -> Node:
    """What a kind of grammar's front end makes of a source. Raises GrammarError."""
    if kind not in FRONT_ENDS:
        raise GrammarError(f"{kind} is no kind of grammar; there are {', '.join(FRONT_ENDS)}")
    return FRONT_ENDS[kind](source, spacing)


BACKENDS: dict[str, Backend] = {"own": own, "llguidance": guidance, "xgrammar": xgrammar}


class Compiler:
    """Compiled grammars, the last `keep` that were asked for. May be asked from several threads.

    Who asks for what another thread is compiling waits for that.
    """

    def __init__(self, keep: int = 32) -> None:
        self._keep = keep
        self._made: OrderedDict[Key, Future[Grammar]] = OrderedDict()
        self._lock = Lock()

    def grammar(self, backend: str, kind: str, source: str, spacing: str, vocabulary: Vocabulary) -> Grammar:
        """A compiled grammar. Raises GrammarError, the same again for the same."""
        key = (backend, kind, source, spacing, vocabulary)
        with self._lock:
            known = self._made.get(key)
            future: Future[Grammar] = known or Future()
            self._made[key] = future
            self._made.move_to_end(key)
            while len(self._made) > self._keep:
                self._made.popitem(last=False)
        if known is None:
            self._compile(future, key)
        error = future.exception()
        if isinstance(error, GrammarError):
            # A fresh one: an exception that is raised again and again would gather tracebacks.
            raise GrammarError(str(error), error.where)
        return future.result()

    def made(self, backend: str, kind: str, source: str, spacing: str, vocabulary: Vocabulary) -> bool:
        """Whether a grammar is there already, or known to be none."""
        with self._lock:
            known = self._made.get((backend, kind, source, spacing, vocabulary))
        return known is not None and known.done()

    def _compile(self, future: Future[Grammar], key: Key) -> None:
        backend, kind, source, spacing, vocabulary = key
        try:
            future.set_result(BACKENDS[backend](kind, source, spacing, vocabulary))
        except GrammarError as error:
            future.set_exception(error)
        except BaseException as error:
            # No word about the grammar: the next who asks tries again.
            with self._lock:
                self._made.pop(key, None)
            future.set_exception(error)
            raise


def compile_regex(pattern: str, vocabulary: Vocabulary) -> OwnGrammar:
    """The grammar of a regular expression, not remembered. Raises GrammarError."""
    began = time.perf_counter()
    return OwnGrammar(pattern, regex.parse(pattern), vocabulary, began)
