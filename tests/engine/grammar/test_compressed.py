"""The automaton as it is shown: characters instead of bytes, forced runs as one edge."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from engine.events import GrammarEdge
from engine.grammar import regex
from engine.grammar.automaton import Automaton, build
from engine.grammar.compressed import Compressed
from engine.grammar.syntax import GrammarError
from tests.engine.grammar.patterns import pattern


def compiled(source: str) -> Automaton:
    return build(regex.parse(source))


def edges(source: str) -> list[GrammarEdge]:
    return Compressed(compiled(source)).edges()


def labels(source: str) -> list[str]:
    return [edge.label for edge in edges(source)]


def test_a_run_with_one_way_on_is_one_forced_edge() -> None:
    found = edges('{"name": "[a-z]*", "age": [0-9]+}'.replace("{", r"\{").replace("}", r"\}"))
    assert [(e.label, e.forced) for e in found] == [
        ('{"name": "', True),
        ("[a-z]", False),
        ('"', False),
        (', "age": ', True),
        ("[0-9]", False),
        ("[0-9]", False),
        ("}", False),
    ]


def test_a_run_ends_where_another_way_comes_in_and_where_the_text_may_end() -> None:
    assert [(e.label, e.forced) for e in edges("abcd|x(c|y)d")] == [
        ("a", False),
        ("x", False),
        ("bc", True),
        ("[cy]", False),
        ("d", True),
    ]
    assert [(e.label, e.forced) for e in edges("ab(cd)?")] == [("ab", True), ("c", False), ("d", True)]


@pytest.mark.parametrize(
    ("source", "label"),
    [
        ("[0-9]+", "[0-9]"), (r'[^"\\]+', r'[^"\\]'), (r"\d+", r"\d"), (r"\w+", r"\w"), (r"\S+", r"\S"), (".+", r"[^\n]"),
        (r"[\s\S]+", "any character"), (r"[\]^-]+", r"[\-\]\^]"), ("[ab]+", "[ab]"), ("[abx-z]+", "[abx-z]"), ("[é-ü]+", "[é-ü]"),
        ("[😀-😏]+", "[😀-😏]"), (r"[\n\x00]+", r"[\x00\n]"), (r"[^\x00-\x1f]+", r"[^\x00-\x1f]"), (r"[^\u2028]+", r"[^\u2028]"),
    ],
)  # fmt: skip
def test_labels_read_as_classes_are_written(source: str, label: str) -> None:
    assert set(labels(source)) == {label}


def test_characters_of_several_bytes_are_shown_whole() -> None:
    assert labels("né😀") == ["né😀"]
    assert labels("é|ü") == ["[éü]"]


def test_what_does_not_print_is_shown_as_an_escape() -> None:
    assert labels(r"a\n\x07\\") == [r"a\n\x07\\"]


def test_a_class_of_many_pieces_is_cut_short() -> None:
    (label,) = set(labels("[acegikmoqsuwy]+"))
    assert label == "[acegikmo…]"


def test_forced_runs_are_what_every_matching_text_begins_with() -> None:
    automaton = compiled("foo(bar|baz)qux?")
    runs = Compressed(automaton)
    expected = {"": "fooba", "f": "ooba", "fooba": "", "foobar": "qu", "foobarq": "u", "foobarqu": "", "foobarqux": ""}
    for said, forced in expected.items():
        assert runs.forced(automaton.step(0, said.encode())) == forced.encode()


def test_forced_runs_leave_no_choice_in_any_state_of_random_patterns() -> None:
    draw = random.Random(5)
    for _ in range(60):
        try:
            automaton = compiled(pattern(draw))
        except GrammarError:
            continue
        runs, table = Compressed(automaton), automaton.table
        for state in range(min(automaton.states, 100)):
            at = state
            for byte in runs.forced(state):
                assert np.flatnonzero(table[at] >= 0).tolist() == [byte] and not automaton.accepting[at]
                at = int(table[at, byte])
            assert automaton.accepting[at] or (table[at] >= 0).sum() > 1


def test_the_edges_describe_the_same_texts_as_the_pattern() -> None:
    for source in ["(ab|cd)*e?", r'"[^"]{0,3}"', "né(😀|x)+", r"\d{1,3}(\.\d{1,3}){2}", "foo(bar|baz)qux?"]:
        automaton = compiled(source)
        found = Compressed(automaton).edges()
        draw = random.Random(2)
        for _ in range(200):
            state, text = 0, ""
            for _ in range(draw.randrange(8)):
                ways = [edge for edge in found if edge.source == state]
                if not ways:
                    break
                edge = draw.choice(ways)
                text += edge.label if edge.forced or len(edge.label) == 1 else one_of(edge.label, draw)
                state = edge.target
            assert automaton.step(0, text.encode()) == state
            assert bool(re.fullmatch(source, text)) == bool(automaton.accepting[state])


def one_of(label: str, draw: random.Random) -> str:
    return draw.choice([c for c in "0123456789abcdexrzé😀 " if re.fullmatch(label, c)])
