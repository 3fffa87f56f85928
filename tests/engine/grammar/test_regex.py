"""Patterns mean what they mean to `re.fullmatch`, or are refused by name and place."""

from __future__ import annotations

import random
import re
import warnings

import interegular
import numpy as np
import pytest

from engine.grammar import regex
from engine.grammar.automaton import Automaton, build
from engine.grammar.syntax import GrammarError
from tests.engine.grammar.patterns import pattern, texts


def compiled(source: str, ascii: bool = False) -> Automaton:
    return build(regex.parse(source, ascii))


def agrees(source: str, draw: random.Random, flags: re.RegexFlag = re.NOFLAG) -> int:
    """How many of some texts matched, after holding each verdict against that of `re`."""
    expected = re.compile(source, flags)
    try:
        automaton = compiled(source, ascii=bool(flags & re.ASCII))
    except GrammarError as error:
        assert str(error) == "nothing can match"
        assert not any(expected.fullmatch(text) for text in texts(draw))
        return 0
    found = 0
    for text in [*texts(draw), *near(automaton, draw)]:
        matches = bool(expected.fullmatch(text))
        assert automaton.accepts(text.encode()) == matches, (source, text)
        found += matches
    return found


def near(automaton: Automaton, draw: random.Random, count: int = 20) -> list[str]:
    """Texts found by random steps through the automaton, which mostly match, and each with one character changed."""
    found, table = [], automaton.table
    for _ in range(count):
        state, text = 0, b""
        for _ in range(draw.randrange(1, 24)):
            ways = np.flatnonzero(table[state] >= 0).tolist()
            if not ways:
                break
            byte = draw.choice([b for b in ways if b < 0x80] or ways)
            state, text = int(table[state, byte]), text + bytes([byte])
        said = text.decode(errors="ignore")
        at = draw.randrange(len(said) + 1)
        found += [said, said[:at] + draw.choice("abcé_7\n ") + said[at + 1 :]]
    return found


def hold(seeds: range) -> None:
    matched = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # `[[` and the like, which mean today what we take them for
        for seed in seeds:
            draw = random.Random(seed)
            matched += agrees(pattern(draw), draw)
    assert matched > 5 * len(seeds)  # the texts are not all misses


def test_a_hundred_random_patterns_match_what_re_matches() -> None:
    hold(range(100))


@pytest.mark.slow
def test_a_thousand_random_patterns_match_what_re_matches() -> None:
    hold(range(1000))


@pytest.mark.parametrize("seed", range(25))
def test_interegular_accepts_the_same_texts(seed: int) -> None:
    draw = random.Random(1000 + seed)
    source = "".join(
        draw.choice(["a", "b", "(a|b)", "[a-c]", "(ab|c)"]) + draw.choice(["", "*", "+", "?", "{1,2}", "{2}"])
        for _ in range(5)
    )
    machine = interegular.parse_pattern(source).to_fsm()
    automaton = compiled(source)
    for _ in range(150):
        text = "".join(draw.choices("abcd", k=draw.randrange(12)))
        assert automaton.accepts(text.encode()) == machine.accepts(text)


SOURCES = [
    "", "a|", "()", "(|a)b", "a{0}", "a{,2}", "a{,}", "a{2", "a{b}", "{}", "a{}", "x{2,3}?", "(?#none)a(?#note)*(?#end)", "(?:a|b)+",
    "(?P<name>a)b", "[^]a]*", "[]-a]", "[a-]", "[-a]", "[a^]", r"[\]\-\\]", r"[\b]", r"[\x41-\u0043]", r"[\d.]", r"[^\W\d]", r"[\S ]",
    r"\x41\u00e9\U0001F600", r"\0", r"\012", r"\101", r"[\101\7]", r"\N{BULLET}", r"[\N{LATIN SMALL LETTER A}-c]", r"\t\n\r\f\v\a",
    r"\.\*\[\é\ ", ".", ".*", "[\n.]", "é+", "[à-ü]{2}", "[^é]", "[😀-😏]", "^a|b$", "^(a|b)$", r"\Aa\Z", "^", "$", "^$", "(^a|^b)c",
    "a(b$|c$)", "(^)*a", "(^a)?", "(^|b)a", "a$()", "^^a$$", "(a*)*", "(a|a)*", "(a?b?){2,3}", "((a{2}){2}){2}", "[a-zA-Z_]\\w*",
]  # fmt: skip


@pytest.mark.parametrize("source", SOURCES)
def test_what_each_notation_means_is_what_it_means_to_re(source: str) -> None:
    agrees(source, random.Random(1))


@pytest.mark.parametrize("source", [r"\d+", r"\w*", r"\s", r"[^\w\s]+", r"\D\W\S"])
def test_named_classes_are_unicode_unless_asked_for_ascii(source: str) -> None:
    for flags in (re.NOFLAG, re.ASCII):
        expected, automaton = re.compile(source, flags), compiled(source, ascii=bool(flags))
        for char in "7٣x_é字\u2028 \t.😀":
            for text in (char, char * 3, f"{char}ab", f"٣é{char}"):
                assert automaton.accepts(text.encode()) == bool(expected.fullmatch(text))


def test_a_dot_is_any_character_but_a_line_feed() -> None:
    automaton = compiled(".")
    assert all(automaton.accepts(c.encode()) for c in "a\r\x00\u2028😀") and not automaton.accepts(b"\n")


def test_a_lone_surrogate_never_matches() -> None:
    with pytest.raises(GrammarError, match="nothing can match"):
        compiled(r"\ud800")
    assert not compiled(r"[\ud7ff-\ue000]").accepts("\ud800".encode(errors="surrogatepass"))


REFUSED = [
    ("a(?=b)", "look-ahead", 1),
    ("(?!x).*", "look-ahead", 0),
    ("b(?<=a)", "look-behind", 1),
    ("(?<!a)b", "look-behind", 0),
    (r"\bfoo", "a word boundary", 0),
    (r"foo\B", "a word boundary", 3),
    (r"(a)\1", "a back-reference", 3),
    ("(?P<n>a)(?P=n)", "a back-reference", 8),
    ("(?i)a", "an inline flag", 0),
    ("a(?i:b)", "an inline flag", 1),
    ("(?-s:.)", "an inline flag", 0),
    ("(a)?(?(1)b|c)", "a conditional", 4),
    ("x(?>a)", "an atomic group", 1),
    ("ab*+", "a possessive quantifier", 2),
    ("a{2}+", "a possessive quantifier", 1),
    ("a^b", "a start anchor that is not at the start", 1),
    ("a?^", "a start anchor that is not at the start", 2),
    (r"x\A", "a start anchor that is not at the start", 1),
    ("a$b", "an end anchor that is not at the end", 1),
    ("(a$|b)c", "an end anchor that is not at the end", 2),
    ("(^a)+", "an anchor that is repeated", 1),
    ("(a$){2}", "an anchor that is repeated", 2),
]  # fmt: skip


@pytest.mark.parametrize(("source", "what", "where"), REFUSED)
def test_what_cannot_be_an_automaton_is_refused_by_name_and_place(source: str, what: str, where: int) -> None:
    re.compile(source)  # it is no mistake
    with pytest.raises(GrammarError) as caught:
        regex.parse(source)
    assert str(caught.value) == f"{what} cannot be turned into an automaton (position {where})"
    assert caught.value.where == where


MISTAKES = [
    ("(", 0), ("a(b", 1), ("a)", 1), ("[", 0), ("a[b", 1), ("[]", 0), ("*a", 0), ("a|+", 2), ("(?", 0), ("(?y)", 0), ("(?P<1>a)", 4),
    ("(?P<a", 4), ("a**", 2), ("a*??", 3), ("a{1}{2}", 4), ("^*", 1), ("a{3,2}", 1), ("[b-a]", 1), (r"[\d-z]", 1), (r"[a-\w]", 1),
    ("\\", 0), (r"\x4", 0), (r"\u12", 0), (r"\U00110000", 0), (r"\q", 0), (r"[\q]", 1), (r"[\8]", 1), (r"\N{NO SUCH}", 0), (r"\N", 0),
    (r"\777", 0), ("(?#", 0), ("{2}", 0),
]  # fmt: skip


@pytest.mark.parametrize(("source", "where"), MISTAKES)
def test_a_mistake_is_told_with_its_place(source: str, where: int) -> None:
    with pytest.raises(re.error):
        re.compile(source)
    with pytest.raises(GrammarError) as caught:
        regex.parse(source)
    assert caught.value.where == where and f"(position {where})" in str(caught.value)


def test_groups_nested_too_deep_are_refused_and_not_a_crash() -> None:
    assert compiled("(" * 99 + "a" + ")" * 99).accepts(b"a")
    with pytest.raises(GrammarError, match="nested more than 100 deep"):
        regex.parse("(" * 5000 + "a" + ")" * 5000)
