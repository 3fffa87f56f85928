"""Strings of a schema: how they are spelled, how long they are, patterns and formats."""

from __future__ import annotations

import datetime
import random
import re
import uuid

import pytest

from engine.grammar.schema import node_of, read
from engine.grammar.schema_formats import FORMATS
from engine.grammar.syntax import GrammarError
from tests.engine.grammar.documents import Asked, serialised

CHARACTERS = ["a", " ", '"', "\\", "/", "\b", "\f", "\n", "\r", "\t", "\x7f", "é", "\u2028", "日", "\ud7ff", "\ue000", "\uffff", "😀", "\U0010ffff"]  # fmt: skip


def test_every_string_has_the_spelling_of_pythons_writer_and_no_other() -> None:
    asked = Asked({"type": "string", "maxLength": 1})
    for character in CHARACTERS:
        assert asked.takes(character), character
    for text in ('"', '""a', '"\\/"', '"\\u0041"', '"\\u000a"', '"\n"', '"\t"', '"\\x"', '"\\"', "'a'", '"aa"'):
        assert not asked.takes_text(text), text


def test_bytes_that_are_no_utf8_are_refused() -> None:
    asked = Asked({"type": "string"})
    for bad in (b"\xff", b"\xc3", b"\xa9", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe0\x80\x80"):
        assert not asked.automaton.accepts(b'"' + bad + b'"'), bad


def test_rare_control_characters_stand_only_where_a_pattern_or_a_list_has_them() -> None:
    assert not Asked({"type": "string"}).takes("\x01")
    assert Asked({"enum": ["\x01"]}).takes_text('"\\u0001"')
    assert Asked({"type": "string", "pattern": "^\x01$"}).takes("\x01")


@pytest.mark.parametrize("character", ["a", "é", "日", "😀", '"', "\n"])
def test_length_counts_characters(character: str) -> None:
    asked = Asked({"type": "string", "minLength": 2, "maxLength": 4})
    assert [n for n in range(8) if asked.takes(character * n)] == [2, 3, 4]


def test_a_string_without_a_bound_gets_one_that_is_told() -> None:
    reading = read({"type": "string"}, "compact")
    asked = Asked({"type": "string"})
    most = reading.bounds.characters
    assert asked.takes("x" * most) and not asked.takes("x" * (most + 1))
    assert [(note.message, note.places) for note in reading.notes] == [
        (f"strings without `maxLength` have at most {most} characters", ("#",))
    ]


def test_a_bound_beyond_what_is_affordable_is_cut_and_told() -> None:
    schema = {"type": "string", "maxLength": 10**9, "minLength": 2000}
    asked = Asked(schema)
    assert asked.takes("x" * 2000) and not asked.takes("x" * 2001)
    assert any("although `maxLength` allows more" in note.message for note in read(schema, "compact").notes)


PATTERNS = ["abc", "^abc", "abc$", "^abc$", "^(ab|c)+$", "a|^b", "^a|b$", "[^a-c]x", "^.{3}$", "é", r"^\d{2}$", r"\$", r"[$^]", "^$", ""]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_is_found_anywhere_unless_anchored(pattern: str) -> None:
    rng = random.Random(pattern)
    asked = Asked({"type": "string", "pattern": pattern})
    words = ["".join(rng.choices("abcxé$12 ", k=rng.randrange(6))) for _ in range(400)] + ["abc", "xabc", "abcx", ""]
    assert any(asked.takes(word) for word in words)
    for word in words:
        assert asked.takes(word) == bool(re.search(pattern, word, re.ASCII)), word


def test_a_pattern_works_on_characters_whatever_their_spelling() -> None:
    asked = Asked({"type": "string", "pattern": r'^"[^\n]\\$'})
    assert asked.takes('"x\\') and asked.takes('""\\') and not asked.takes('"\n\\') and not asked.takes('"\\')


def test_patterns_and_lengths_hold_together() -> None:
    asked = Asked({"type": "string", "pattern": "^a*b*$", "minLength": 2, "maxLength": 3, "allOf": [{"pattern": "b$"}]})
    assert [w for w in ("b", "ab", "bb", "aab", "abb", "aaab", "aa", "ba") if asked.takes(w)] == [
        "ab",
        "bb",
        "aab",
        "abb",
    ]


def test_a_pattern_that_ends_by_itself_gets_no_bound() -> None:
    schema = {"type": "string", "pattern": "^x{300}$"}
    assert Asked(schema).takes("x" * 300) and not read(schema, "compact").notes


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("(?=a)b", "look-ahead"),
        ("(^a|b)", r"\^"),
        ("a(b$|c)d", r"\$"),
        (r"\bfoo", r"\\b"),
        ("(a", "position"),
        (r"\Aa", "anchor"),
    ],
)
def test_a_pattern_that_cannot_be_read_is_refused_with_its_path_and_position(pattern: str, says: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}
    with pytest.raises(GrammarError, match=says) as caught:
        node_of(schema, "compact")
    assert caught.value.where == "#/properties/a/pattern" and "position" in str(caught.value)


def test_dates_are_those_of_the_calendar() -> None:
    asked = Asked({"type": "string", "format": "date"})
    day = datetime.date(1895, 1, 1)
    while day.year < 1906:
        assert asked.takes(day.isoformat()), day
        day += datetime.timedelta(1)
    for year in (1600, 1900, 1904, 2000, 2023, 2024, 2100, 2400):
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        assert asked.takes(f"{year:04}-02-29") == leap
    for wrong in (
        "0000-01-01",
        "2020-00-10",
        "2020-13-10",
        "2020-01-00",
        "2020-04-31",
        "2020-01-32",
        "20-01-01",
        "2020-1-1",
        "2020-01-01 ",
    ):
        assert not asked.takes(wrong), wrong


RIGHT = {
    "time": ["00:00:00Z", "23:59:59Z", "12:30:00.5+02:00", "12:30:00-11:45"],
    "date-time": ["2021-06-15T09:16:47.765072012+02:00", "2024-02-29T00:00:00Z"],
    "uuid": [str(uuid.UUID(int=n)) for n in (0, 2**128 - 1)] + ["AF6727BF-29c7-43dd-b42f-a5d7ede28337"],
    "email": ["a@b.c", "first.last+tag@sub-domain.example.org", "x@localhost"],
    "uri": ["https://charts.bitnami.com/bitnami", "mailto:a@b.c", "http://h:80/p/%20?q=1&r#f", "urn:isbn:1"],
}
WRONG = {
    "time": ["24:00:00Z", "12:60:00Z", "12:00:60Z", "12:00Z", "12:00:00", "12:00:00+2", "12:00:00.Z"],
    "date-time": ["2023-02-29T00:00:00Z", "2024-02-29 00:00:00Z", "2024-02-29T00:00:00", "2024-02-29"],
    "uuid": ["af6727bf29c743ddb42fa5d7ede28337", "af6727bf-29c7-43dd-b42f-a5d7ede2833g", ""],
    "email": ["a", "@b", "a@", "a@@b", "a b@c", ".a@b", "a@b..c", "a@-b", "a" * 65 + "@b"],
    "uri": ["/relative", "no scheme", "1a:b", "http://a b", "http://", "a:%2"],
}


@pytest.mark.parametrize("name", RIGHT)
def test_formats_are_languages(name: str) -> None:
    asked = Asked({"type": "string", "format": name})
    assert [word for word in RIGHT[name] if not asked.takes(word)] == []
    assert [word for word in WRONG[name] if asked.takes(word)] == []


@pytest.mark.parametrize("name", [name for name, form in FORMATS.items() if form.type == "string"])
def test_what_is_written_for_a_format_is_also_in_its_wide_reading(name: str) -> None:
    other = Asked({"type": "string", "maxLength": 200, "not": {"type": "string", "format": name}})
    asked = Asked({"type": "string", "format": name})
    rng = random.Random(name)
    for _ in range(40):
        text = asked.draw(rng)
        assert not other.takes_text(text), text
    assert other.takes("nothing of the sort")


def test_listed_strings_keep_to_what_else_is_said() -> None:
    asked = Asked({"type": "string", "enum": ["ab", "abc", "xy", 5], "maxLength": 2, "pattern": "^a"})
    assert [w for w in ("ab", "abc", "xy") if asked.takes(w)] == ["ab"] and not asked.takes(5)


def test_a_lone_surrogate_is_never_written() -> None:
    assert not Asked({"enum": ["\ud800", "a"]}).takes_text(serialised("b")) and Asked({"enum": ["\ud800", "a"]}).takes(
        "a"
    )
    with pytest.raises(GrammarError, match="none of the values") as caught:
        node_of({"const": "\ud800"}, "compact")
    assert caught.value.where == "#/const"
    with pytest.raises(GrammarError, match="surrogate") as caught:
        node_of({"type": "object", "properties": {"\ud800": {"type": "null"}}, "required": ["\ud800"]}, "compact")
    assert caught.value.where == "#/required"
