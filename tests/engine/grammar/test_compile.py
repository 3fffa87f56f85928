"""Compiled grammars are kept, failures too, and nothing is compiled twice."""

from __future__ import annotations

import threading

import pytest

from engine.grammar import compile as compile_module
from engine.grammar.compile import Compiler
from engine.grammar.door import Grammar
from engine.grammar.syntax import GrammarError
from engine.grammar.vocabulary import Vocabulary, vocabulary_of
from tests.engine.grammar.words import SMOLLM_ENDS, SMOLLM_WIDTH, small, smollm


class Counting:
    """A backend that counts, and waits for a word where it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, gate: threading.Event | None = None) -> None:
        self.calls: list[str] = []
        self.gate = gate
        monkeypatch.setitem(compile_module.BACKENDS, "counting", self)

    def __call__(self, kind: str, source: str, spacing: str, vocabulary: Vocabulary) -> Grammar:
        self.calls.append(source)
        if self.gate:
            assert self.gate.wait(20)
        if source == "trouble":
            raise MemoryError
        return compile_module.own(kind, source, spacing, vocabulary)


def test_the_same_grammar_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    backend, compiler, vocabulary = Counting(monkeypatch), Compiler(), small()
    one = compiler.grammar("counting", "regex", "a+", "compact", vocabulary)
    assert compiler.grammar("counting", "regex", "a+", "compact", vocabulary) is one
    assert backend.calls == ["a+"]


def test_whatever_makes_a_difference_makes_another_grammar(monkeypatch: pytest.MonkeyPatch) -> None:
    backend, compiler, vocabulary = Counting(monkeypatch), Compiler(), small()
    asked = [
        ("a", "compact", vocabulary),
        ("b", "compact", vocabulary),
        ("a", "pretty", vocabulary),
        ("a", "compact", small()),
    ]
    made = [compiler.grammar("counting", "regex", *each) for each in asked]
    assert len({id(grammar) for grammar in made}) == len(backend.calls) == 4


def test_a_failure_is_remembered_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    backend, compiler, vocabulary = Counting(monkeypatch), Compiler(), small()
    told = []
    for _ in range(2):
        with pytest.raises(GrammarError) as caught:
            compiler.grammar("counting", "regex", "a(?=b)", "compact", vocabulary)
        told.append((str(caught.value), caught.value.where))
    assert told[0] == told[1] == ("look-ahead cannot be turned into an automaton (position 1)", 1)
    assert backend.calls == ["a(?=b)"]


def test_trouble_that_is_not_the_grammars_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    backend, compiler, vocabulary = Counting(monkeypatch), Compiler(), small()
    for _ in range(2):
        with pytest.raises(MemoryError):
            compiler.grammar("counting", "regex", "trouble", "compact", vocabulary)
    assert backend.calls == ["trouble"] * 2


def test_who_asks_for_what_is_being_compiled_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    backend, compiler, vocabulary = Counting(monkeypatch, gate), Compiler(), small()
    made: list[Grammar] = []
    asks = [
        threading.Thread(target=lambda: made.append(compiler.grammar("counting", "regex", "a+", "compact", vocabulary)))
        for _ in range(4)
    ]
    for ask in asks:
        ask.start()
    gate.set()
    for ask in asks:
        ask.join(20)
    assert len(made) == 4 and len({id(grammar) for grammar in made}) == 1 and backend.calls == ["a+"]


def test_only_the_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    backend, compiler, vocabulary = Counting(monkeypatch), Compiler(keep=2), small()
    for source in ["a", "b", "a", "c", "a", "b"]:
        compiler.grammar("counting", "regex", source, "compact", vocabulary)
    assert backend.calls == ["a", "b", "c", "b"]


def test_an_unknown_kind_of_grammar_is_refused() -> None:
    with pytest.raises(GrammarError, match="ebnf is no kind of grammar"):
        Compiler().grammar("own", "ebnf", "a", "compact", small())


def test_a_models_vocabulary_is_made_once() -> None:
    tokenizer = smollm()
    one = vocabulary_of(tokenizer, SMOLLM_ENDS, SMOLLM_WIDTH)
    assert vocabulary_of(tokenizer, SMOLLM_ENDS, SMOLLM_WIDTH) is one
    assert one.width == SMOLLM_WIDTH and one.ends == SMOLLM_ENDS
    narrow = vocabulary_of(tokenizer, SMOLLM_ENDS | {49_000}, 1000)
    assert narrow.width == 1000 and narrow.ends == SMOLLM_ENDS
