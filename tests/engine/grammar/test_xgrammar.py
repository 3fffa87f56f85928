"""xgrammar behind the door: refused in words where it is not installed, and otherwise the same language."""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest

from engine.grammar import regex
from engine.grammar.compile import Compiler
from engine.grammar.notations import to_ebnf
from engine.grammar.own import OwnGrammar
from engine.grammar.syntax import Both, GrammarError, Minus, text
from engine.grammar.xgr import XGrammar
from tests.engine.grammar.patterns import pattern
from tests.engine.grammar.words import END, small


def test_without_the_library_it_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xgrammar", None)
    with pytest.raises(GrammarError, match=r"xgrammar is not installed here; install radix-workbench\[xgrammar\]"):
        Compiler().grammar("xgrammar", "regex", "a", "compact", small())


def test_its_notation_has_no_intersections_and_differences() -> None:
    for node in (Both(text("a"), text("b")), Minus(text("a"), text("b"))):
        with pytest.raises(GrammarError, match="xgrammar knows no texts"):
            to_ebnf(node)


def test_masks_of_random_patterns_are_the_same() -> None:
    pytest.importorskip("xgrammar")
    vocabulary = small("ab", "abc", "é", "cé", "😀"[:1], "aa", "7_", "\n\n", "-é")
    for seed in range(60):
        draw = random.Random(seed)
        node = regex.parse(pattern(draw))
        try:
            own = OwnGrammar("", node, vocabulary)
        except GrammarError:
            with pytest.raises(GrammarError, match="nothing can match"):
                XGrammar("", node, vocabulary)
            continue
        other = XGrammar("", node, vocabulary)
        for _ in range(3):
            here, there = own.walk(), other.walk()
            for _ in range(12):
                mask = here.allowed()
                assert np.array_equal(mask, there.allowed()) and here.complete == there.complete
                assert here.forced().startswith(there.forced())
                if not mask.any():
                    break
                token = draw.choice(np.flatnonzero(mask).tolist())
                assert here.advance(token) and there.advance(token)


def test_its_walks_end_and_go_back_like_our_own() -> None:
    pytest.importorskip("xgrammar")
    walk = XGrammar("ab+", regex.parse("ab+"), small("bb")).walk()
    assert not walk.advance(END) and not walk.advance(300) and walk.advance(ord("a")) and not walk.complete
    assert np.flatnonzero(walk.allowed()).tolist() == [ord("b"), 257]
    assert walk.advance(257) and walk.complete and walk.allowed()[END] and walk.advance(END)
    assert not walk.allowed().any() and not walk.advance(ord("b"))
    walk.back(2)
    assert not walk.complete and walk.advance(ord("b"))
    walk.back(2)
    assert np.flatnonzero(walk.allowed()).tolist() == [ord("a")]


def test_its_notation_writes_characters_as_code_points_and_counts_as_chains() -> None:
    assert to_ebnf(regex.parse("é[a-c]{2}")) == 'root ::= ( "\\U000000e9" ( [\\U00000061-\\U00000063] ){2,2} )'
    assert to_ebnf(regex.parse("(ab|c){1,2}")).splitlines() == [
        "root ::= chain1left2",
        'rule1 ::= ( "\\U00000062" )',
        'chain1left0 ::= ""',
        'chain1left1 ::= "" | [\\U00000061-\\U00000061] rule1 chain1left0 | [\\U00000063-\\U00000063] chain1left0',
        "chain1left2 ::= [\\U00000061-\\U00000061] rule1 chain1left1 | [\\U00000063-\\U00000063] chain1left1",
    ]
