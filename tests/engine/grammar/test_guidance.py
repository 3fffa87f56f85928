"""llguidance behind the door says of every grammar what our own backend says."""

from __future__ import annotations

import random

import numpy as np
import pytest

from engine.grammar import regex
from engine.grammar.guidance import GuidanceGrammar
from engine.grammar.notations import to_lark
from engine.grammar.own import OwnGrammar
from engine.grammar.syntax import NEVER, Both, Chars, Either, GrammarError, Minus, Node, Repeat, Seq, either, text
from engine.grammar.vocabulary import Vocabulary
from tests.engine.grammar.patterns import pattern
from tests.engine.grammar.test_masks import VISITED
from tests.engine.grammar.words import END, embedded_vocabulary, small


def compare(node: Node, vocabulary: Vocabulary, draw: random.Random, walks: int, steps: int) -> int:
    """Walk both backends through random answers, sometimes back; returns how many masks were the same."""
    own, other = OwnGrammar("", node, vocabulary), GuidanceGrammar("", node, vocabulary)
    same = 0
    for _ in range(walks):
        here, there = own.walk(), other.walk()
        for _ in range(steps):
            mask = here.allowed()
            assert np.array_equal(mask, there.allowed())
            assert (here.complete, here.forced()) == (there.complete, there.forced())
            same += 1
            if not mask.any():
                break
            token = draw.choice(np.flatnonzero(mask).tolist())
            if token in vocabulary.ends and draw.random() < 0.7:
                continue
            assert here.advance(token) and there.advance(token)
            back = draw.choice([0, 0, 0, 1, 2])
            if back <= there._taken:
                here.back(back)
                there.back(back)
    return same


@pytest.mark.parametrize("source", VISITED)
def test_every_mask_of_the_embedded_model_is_the_same(source: str) -> None:
    assert compare(regex.parse(source), embedded_vocabulary(), random.Random(1), walks=2, steps=25) > 20


@pytest.mark.parametrize("seeds", [range(30), pytest.param(range(30, 1000), marks=pytest.mark.slow)], ids=["30", "970"])
def test_random_patterns_are_the_same_everywhere(seeds: range) -> None:
    vocabulary = small("ab", "abc", "é", "cé", "😀"[:1], "aa", "7_", "\n\n", "-é")
    for seed in seeds:
        draw = random.Random(seed)
        node = regex.parse(pattern(draw))
        try:
            OwnGrammar("", node, vocabulary)
        except GrammarError as error:
            assert str(error) == "nothing can match"
            continue
        assert compare(node, vocabulary, draw, walks=3, steps=15)


def test_intersections_and_differences_are_the_same() -> None:
    word, digits = regex.parse("[a-z0-9]{2,6}"), regex.parse("[0-9]+")
    names = Either((text("ab"), text("abc"), text("99")))
    for node in (
        Minus(word, digits),
        Minus(word, names),
        Both(word, regex.parse("a.*|.*z")),
        Seq((text("x"), Minus(Both(word, digits), names), text("!"))),
    ):
        assert compare(node, small("ab", "99", "abc"), random.Random(2), walks=6, steps=10) > 10


def test_a_part_that_stands_in_many_places_is_written_once() -> None:
    node: Node = text("}")
    for i in range(40):
        node = either([Seq((text(f"k{i}"), node)), node])
    written = to_lark(node)
    assert len(written) < 40 * 120
    assert compare(node, small("k1"), random.Random(3), walks=3, steps=20) > 5


@pytest.mark.parametrize(
    "node",
    [NEVER, Chars(((0xD800, 0xDFFF),)), Seq((text("a"), NEVER)), Both(text("a"), text("b")), Repeat(text("a"), 3, 2)],
)
def test_a_grammar_that_nothing_can_match_is_refused(node: Node) -> None:
    with pytest.raises(GrammarError, match="nothing can match"):
        GuidanceGrammar("", node, small())


def test_a_tree_too_deep_to_be_written_is_refused() -> None:
    node: Node = text("a")
    for _ in range(3000):
        node = Seq((text("("), node))
    with pytest.raises(GrammarError, match="nested too deep for llguidance"):
        GuidanceGrammar("", node, small())


def test_its_walks_end_and_go_back_like_our_own() -> None:
    walk = GuidanceGrammar("ab+", regex.parse("ab+"), small("bb", "bb")).walk()
    assert not walk.advance(END) and not walk.advance(300) and not walk.advance(-1)
    assert walk.advance(ord("a")) and not walk.complete
    assert np.flatnonzero(walk.allowed()).tolist() == [ord("b"), 257, 258]
    assert walk.advance(258) and walk.complete and walk.allowed()[END]
    assert walk.advance(END) and not walk.allowed().any() and not walk.advance(ord("b"))
    walk.back(2)
    assert not walk.complete and walk.advance(ord("b"))
    walk.back(2)
    assert np.flatnonzero(walk.allowed()).tolist() == [ord("a")]
    with pytest.raises(ValueError, match="take back 1 tokens of 0"):
        walk.back(1)
    with pytest.raises(ValueError, match="read-only"):
        walk.allowed()[0] = True


def test_what_it_does_not_know_it_does_not_say() -> None:
    grammar = GuidanceGrammar("ab", regex.parse("ab"), small())
    assert (grammar.backend, grammar.states, list(grammar.edges())) == ("llguidance", 0, [])
    assert grammar.walk().state == -1 and grammar.walk().closing() is None and grammar.seconds > 0
