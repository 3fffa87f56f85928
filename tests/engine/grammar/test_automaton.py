"""Trees as automata: the language, the fewest states, numbers that stay the same, and limits that are stated."""

from __future__ import annotations

import itertools
import random
import re

import numpy as np
import pytest

from engine.grammar import regex
from engine.grammar.automaton import Automaton, build
from engine.grammar.syntax import (
    ANY,
    EMPTY,
    NEVER,
    Both,
    Chars,
    Either,
    GrammarError,
    Minus,
    Node,
    Repeat,
    Seq,
    either,
    optional,
    text,
)  # fmt: skip
from tests.engine.grammar.patterns import pattern

LETTER = Chars(((97, 122),))


def compiled(source: str) -> Automaton:
    return build(regex.parse(source))


def words(alphabet: str, longest: int) -> list[str]:
    return ["".join(w) for n in range(longest + 1) for w in itertools.product(alphabet, repeat=n)]


def told_apart(automaton: Automaton) -> int:
    """How many states can be told apart by some text, by the textbook's table of pairs."""
    table = np.append(automaton.table, np.full((1, 256), -1, np.int32), axis=0)
    accepting = np.append(automaton.accepting, False)
    apart = accepting[:, None] != accepting[None, :]
    while True:
        more = apart.copy()
        for byte in range(256):
            more |= apart[np.ix_(table[:, byte], table[:, byte])]
        if (more == apart).all():
            break
        apart = more
    return len({tuple(row) for row in apart.tolist()}) - 1  # the state of no way on is not one of ours


# --- the language


def test_a_text_is_itself_and_nothing_else() -> None:
    automaton = build(text("hällo 😀"))
    assert automaton.accepts("hällo 😀".encode())
    assert not any(automaton.accepts(wrong.encode()) for wrong in ("", "hällo 😀!", "hallo 😀", "hällo "))


def test_both_and_minus_are_what_they_say() -> None:
    left, right = regex.parse("(a|b)*a(a|b)?"), regex.parse("a?(ba)*b?")
    of_left, of_right = re.compile("(a|b)*a(a|b)?"), re.compile("a?(ba)*b?")
    both, minus = build(Both(left, right)), build(Minus(left, right))
    for word in words("ab", 7):
        one, other = bool(of_left.fullmatch(word)), bool(of_right.fullmatch(word))
        assert both.accepts(word.encode()) == (one and other)
        assert minus.accepts(word.encode()) == (one and not other)


def test_combinations_of_random_patterns_are_what_they_say() -> None:
    draw = random.Random(3)
    for _ in range(60):
        sources = [draw.choice(["a", "b", "[ab]", "(a|bb)*", "a+b?", "(ab){1,2}"]) for _ in range(2)]
        sources = [f"({s}){draw.choice(['', '*', '{1,3}', '?'])}" for s in sources]
        left, right = sources
        for node, holds in (
            (Both, lambda w, a=left, b=right: re.fullmatch(a, w) and re.fullmatch(b, w)),
            (Minus, lambda w, a=left, b=right: re.fullmatch(a, w) and not re.fullmatch(b, w)),
        ):
            expected = {w for w in words("ab", 6) if holds(w)}
            try:
                automaton = build(node(regex.parse(left), regex.parse(right)))
            except GrammarError as error:
                assert str(error) == "nothing can match" and not expected
                continue
            assert {w for w in words("ab", 6) if automaton.accepts(w.encode())} == expected


@pytest.mark.parametrize(
    ("least", "most"), [(0, 0), (0, 1), (1, 1), (0, 3), (2, 2), (2, 5), (0, None), (1, None), (3, None)]
)
@pytest.mark.parametrize("part", ["a", "ab", "a|ab", "a*", "a?b?", "(a|b)*a", "", "a|b|ab"])
def test_a_counted_repetition_counts(part: str, least: int, most: int | None) -> None:
    automaton = build(Repeat(regex.parse(part), least, most))
    expected = re.compile(f"(?:{part}){{{least},{'' if most is None else most}}}")
    for word in words("ab", 8):
        assert automaton.accepts(word.encode()) == bool(expected.fullmatch(word)), word


def test_a_part_that_stands_in_several_places_is_the_same_in_each() -> None:
    shared = either([text("x"), text("yz")])
    automaton = build(Seq((shared, optional(shared), Repeat(Seq((text(","), shared)), 0, 2))))
    expected = re.compile("(x|yz)(x|yz)?(,(x|yz)){0,2}")
    for word in words("xyz,", 6):
        assert automaton.accepts(word.encode()) == bool(expected.fullmatch(word))


@pytest.mark.parametrize(
    "node", [NEVER, Chars(()), Seq((text("a"), NEVER)), Minus(LETTER, ANY), Both(text("a"), text("b")), Repeat(text("a"), 3, 2),
             Chars(((0xD800, 0xDFFF),)), Repeat(NEVER, 1, None)],
)  # fmt: skip
def test_a_grammar_that_nothing_can_match_is_refused(node: Node) -> None:
    with pytest.raises(GrammarError, match="nothing can match"):
        build(node)


def test_an_option_that_nothing_can_match_is_left_out() -> None:
    automaton = build(Either((NEVER, Seq((text("ab"), NEVER)), text("ac"), Repeat(NEVER))))
    assert [w for w in words("abc", 3) if automaton.accepts(w.encode())] == ["", "ac"]
    assert automaton.states == 3


def test_the_empty_text_is_a_grammar() -> None:
    assert build(EMPTY).accepts(b"") and not build(EMPTY).accepts(b"a")


# --- its states


def test_there_are_no_two_equal_states_and_no_dead_end() -> None:
    draw = random.Random(7)
    for _ in range(40):
        source = pattern(draw)
        try:
            automaton = compiled(source)
        except GrammarError:
            continue
        if automaton.states < 80:
            assert told_apart(automaton) == automaton.states, source
        ends = automaton.accepting.copy()
        for _ in range(automaton.states):
            ends |= np.where(automaton.moves >= 0, ends[automaton.moves], False).any(axis=1)
        assert ends.all(), source


@pytest.mark.parametrize("source", ["(a|b)*abb", "[a-z]{1,20}", "(foo|bar|baz){2}", r"\d+(\.\d+)?", "(x|xy|y)*"])
def test_interegular_finds_as_many_states(source: str) -> None:
    import interegular

    reduced = interegular.parse_pattern(source.replace(r"\d", "[0-9]")).to_fsm().reduce()
    live = sum(reduced.islive(state) for state in reduced.states)
    assert compiled(source.replace(r"\d", "[0-9]")).states == live


def test_equal_grammars_written_differently_have_the_same_numbers() -> None:
    pairs = [
        ("abc|abd", "ab[cd]"),
        ("(a|b)*", "(a*b*)*"),
        ("a{2,4}", "aa(a|aa)?"),
        ("x(y|z)|x(z|w)", "x[w-z]".replace("w-z", "yzw")),
    ]
    for one, other in pairs:
        left, right = compiled(one), compiled(other)
        assert np.array_equal(left.table, right.table) and np.array_equal(left.accepting, right.accepting)


def test_states_are_numbered_breadth_first_from_the_start() -> None:
    automaton = compiled("(ab|cd)(e|f)[x-z]*")
    first_entered: list[int] = [0]
    for state in range(automaton.states):
        assert state < len(first_entered)  # entered before it is left
        first_entered += [
            t for t in dict.fromkeys(automaton.table[state].tolist()) if t >= 0 and t not in first_entered
        ]
    assert first_entered == list(range(automaton.states))


def test_bytes_that_are_never_told_apart_share_a_column() -> None:
    automaton = compiled('"[^"]*"')
    assert automaton.classes[ord("a")] == automaton.classes[ord("z")] != automaton.classes[ord('"')]
    assert automaton.moves.shape[1] < 20 and automaton.table.shape == (automaton.states, 256)


# --- size


@pytest.mark.parametrize(
    ("source", "states"),
    [
        ("[a-z]{1,1000}", 1001),
        (r'"([^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-f]{4}){0,256}"', 256 * (1 + 1 + 4 + 7) + 3),
        (r"([a-z]{1,20} ?){1,50}", 1051),
        ("((a{0,9}b){0,9}c){0,9}", 9 * (9 * 10 + 1) + 1),
    ],
)
def test_counted_repetitions_take_as_many_states_as_they_count(source: str, states: int) -> None:
    assert compiled(source).states == states


def test_optional_parts_in_a_row_do_not_double_the_states() -> None:
    rest: Node = text("}")
    for i in range(30):
        rest = either([Seq((text(f'"k{i}":'), Repeat(LETTER, 0, 20), text(","), rest)), rest])
    assert build(rest).states < 30 * 40


def test_deep_trees_are_no_trouble() -> None:
    node: Node = EMPTY
    for _ in range(5000):
        node = Seq((text("a"), node))
    assert build(node).states == 5001


@pytest.mark.parametrize("source", ["a{1000000}", "((a{1,1000}){1,1000}){1,1000}", "(a|b)*a(a|b){30}"])
def test_a_grammar_that_is_too_large_is_refused_in_words(source: str) -> None:
    with pytest.raises(GrammarError, match=r"more than 200,000 states|too many ways"):
        compiled(source)


def test_repetitions_nested_beyond_the_limit_are_refused() -> None:
    node: Node = text("a")
    for _ in range(150):
        node = Repeat(Seq((node, text("b"))), 0, None)
    with pytest.raises(GrammarError, match="nested more than 100 deep"):
        build(node)
