"""Walks through a grammar: forward, back, to the end, and how far that still is."""

from __future__ import annotations

import random
from collections import deque

import numpy as np
import pytest

from engine.grammar.compile import compile_regex
from engine.grammar.own import OwnGrammar, OwnWalk
from tests.engine.grammar.words import END, small

BOOK = r'\{"title": "[^"]{0,9}", "year": [0-9]{4}\}'


def said(walk: OwnWalk, text: str | bytes) -> bool:
    return all(walk.advance(byte) for byte in (text.encode() if isinstance(text, str) else text))


def test_a_walk_takes_what_the_mask_allows_and_refuses_the_rest_without_moving() -> None:
    grammar = compile_regex(r"(ab|cd)*e?", small("abc", "cdab", "e"))
    draw = random.Random(1)
    for _ in range(30):
        walk = grammar.walk()
        for _ in range(12):
            allowed, state = walk.allowed().copy(), walk.state
            for token in np.flatnonzero(~allowed).tolist():
                assert not walk.advance(token)
            assert walk.state == state and np.array_equal(walk.allowed(), allowed)
            assert walk.advance(draw.choice(np.flatnonzero(allowed).tolist()))
            if not walk.allowed().any():
                break
        assert not walk.advance(260)


def test_the_end_is_allowed_exactly_where_the_document_is_complete() -> None:
    walk = compile_regex("a(bc)*", small()).walk()
    seen = []
    for byte in b"abcbc":
        seen.append((walk.complete, bool(walk.allowed()[END])))
        assert walk.advance(byte)
    assert seen == [(False, False), (True, True), (False, False), (True, True), (False, False)]
    assert walk.complete and walk.advance(END)
    assert walk.complete and walk.closing() == 0
    assert not walk.allowed().any() and not walk.advance(END) and not walk.advance(ord("b"))


def test_going_back_undoes_tokens_and_the_end() -> None:
    walk = compile_regex("ab{0,3}c", small("bb")).walk()
    assert said(walk, "a") and walk.advance(257) and walk.advance(ord("b"))
    deep = walk.state
    assert said(walk, "c") and walk.advance(END)
    walk.back(2)
    assert walk.state == deep and not walk.complete and not walk.advance(ord("b"))
    walk.back(1)
    assert walk.advance(ord("b")) and walk.state == deep
    walk.back(0)
    assert walk.state == deep
    walk.back(3)
    assert walk.state == 0
    with pytest.raises(ValueError, match="take back 1 tokens of 0"):
        walk.back(1)


def test_walks_of_one_grammar_do_not_know_of_one_another() -> None:
    grammar = compile_regex("ab*c", small())
    one, other = grammar.walk(), grammar.walk()
    assert said(one, "abb") and said(other, "ac")
    assert not one.complete and other.complete and one.advance(ord("b"))


def test_forced_bytes_are_those_that_every_continuation_has() -> None:
    walk = compile_regex(BOOK, small()).walk()
    assert walk.forced() == b'{"title": "'
    assert said(walk, walk.forced()) and walk.forced() == b""
    assert said(walk, 'é"') and walk.forced() == b', "year": '
    assert said(walk, walk.forced() + b"1999") and walk.forced() == b"}"
    assert said(walk, "}") and walk.forced() == b"" and walk.complete


def test_forced_bytes_stop_where_the_end_may_come() -> None:
    walk = compile_regex("ab(cd)?", small()).walk()
    assert walk.forced() == b"ab"
    assert said(walk, "ab") and walk.forced() == b"" and walk.complete
    assert said(walk, "c") and walk.forced() == b"d"


def test_forced_bytes_may_end_within_a_character() -> None:
    walk = compile_regex("[😀-😏]!", small()).walk()
    assert walk.forced() == "😀".encode()[:3]
    assert said(walk, "😁".encode()) and walk.forced() == b"!"


# --- how far the end is


def fewest_by_trying(grammar: OwnGrammar, state: int) -> int:
    """Fewest tokens of any way to the end, breadth first."""
    masks = grammar.masks
    seen, queue = {state}, deque([(state, 0)])
    while queue:
        at, count = queue.popleft()
        if grammar.automaton.accepting[at]:
            return count
        for token in np.flatnonzero(masks.mask(at)).tolist():
            after = masks.next(at, token)
            if after not in seen:
                seen.add(after)
                queue.append((after, count + 1))
    raise AssertionError("no way to the end")


@pytest.mark.parametrize("source", [BOOK, "(ab|cd)*e", "a{3,7}b", '"[^"]{2,6}"', "x(y|zz)(w|vv){2}"])
def test_closing_counts_the_fewest_tokens_to_the_end(source: str) -> None:
    grammar = compile_regex(
        source,
        small('{"', '{"title', '": "', '", "year": ', '"}', "aa", "aaaa", "es, ", "sir", "zz", "19", "1999}", "ab"),
    )
    for state in range(grammar.states):
        assert grammar.closing.tokens(state) == fewest_by_trying(grammar, state)


def test_closing_goes_by_the_shortest_text_and_says_what_can_be_kept() -> None:
    grammar = compile_regex("no, sir|yes, sir", small("es, ", "sir"))
    assert grammar.walk().closing() == 5  # n|o|,| |sir, though y|es, |sir is fewer
    assert fewest_by_trying(grammar, 0) == 3


def test_closing_of_a_long_document_is_no_trouble() -> None:
    grammar = compile_regex(f"({'ab' * 300}|x{{700}})c", small("ab" * 4))
    assert grammar.walk().closing() == 300 // 4 + 1


def test_a_grammar_says_what_it_took() -> None:
    grammar = compile_regex("a[bc]{2}", small())
    assert (grammar.backend, grammar.source, grammar.states) == ("own", "a[bc]{2}", 4)
    assert grammar.seconds > 0
