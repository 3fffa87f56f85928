"""Objects and arrays of a schema: undeclared keys, counts, any value at all, and the three spacings."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from engine.grammar.schema import node_of, parse, read
from engine.grammar.schema_layout import SPACINGS
from engine.grammar.syntax import GrammarError
from tests.engine.grammar.documents import Asked, serialised

DIGIT = {"type": "integer", "minimum": 0, "maximum": 9}
TWO = {"a": DIGIT, "b": DIGIT}


def test_objects_are_closed_where_the_schema_is_silent_and_that_is_told() -> None:
    schema = {"type": "object", "properties": TWO}
    assert Asked(schema).takes({"a": 1}) and not Asked(schema).takes({"a": 1, "c": 1})
    assert any("not declared are refused" in note.message for note in read(schema, "compact").notes)
    closed = read({**schema, "additionalProperties": False}, "compact")
    assert not any("not declared" in note.message for note in closed.notes)


@pytest.mark.parametrize("spacing", SPACINGS)
@pytest.mark.parametrize("required", [[], ["a"], ["b"], ["a", "b"]])
def test_undeclared_keys_come_after_the_declared_ones_where_a_schema_is_given_for_them(
    spacing: str, required: list[str]
) -> None:
    asked = Asked(
        {"type": "object", "properties": TWO, "required": required, "additionalProperties": {"type": "null"}}, spacing
    )
    for value in ({}, {"a": 1}, {"b": 1}, {"a": 1, "b": 2}):
        for more in ({}, {"c": None}, {"c": None, "": None, "aa": None}):
            assert asked.takes({**value, **more}) == (set(required) <= value.keys()), (value, more)
    assert not asked.takes({"c": None, "a": 1, "b": 1})
    for wrong in ({"a": 1, "b": 1, "c": 1}, {"a": None, "b": 1}, {"a": 1, "b": None}):
        assert not asked.takes(wrong)


def test_an_undeclared_key_is_never_a_declared_one_in_another_spelling() -> None:
    asked = Asked({"type": "object", "properties": {"a": False, "é": DIGIT}, "additionalProperties": True})
    assert asked.takes({"b": 1}) and asked.takes({"é": 1, "b": "x"})
    for text in ('{"a": 1}', '{"\\u0061": 1}', '{"\\u00e9": "x"}', '{"é": "x"}', '{"é": 1, "é": 2}'):
        assert not asked.takes_text(text), text


def test_patterns_of_keys_say_what_their_values_are() -> None:
    schema = {
        "type": "object",
        "properties": {"x1": {"type": "integer"}, "y": DIGIT},
        "patternProperties": {"^x": {"maximum": 5}, "n$": {"type": ["null", "integer"]}},
    }
    asked = Asked(schema)
    for value in ({}, {"x1": 5}, {"x1": 3, "y": 1, "x2": 4}, {"on": None}, {"xn": 5}, {"x": -1, "on": 77}):
        assert asked.takes(value), value
    for value in ({"x1": 6}, {"x2": 6}, {"on": "a"}, {"xn": 6}, {"z": 1}):
        assert not asked.takes(value), value
    open_ended = Asked({**schema, "additionalProperties": {"const": "z"}})
    assert open_ended.takes({"z": "z", "xz": 1}) and not open_ended.takes({"xz": "z"})
    with pytest.raises(GrammarError, match="more than 3 patterns"):
        node_of({"type": "object", "patternProperties": dict.fromkeys("abcd", True)}, "compact")


def test_required_keys_need_no_declaration() -> None:
    assert Asked({"type": "object", "required": ["z"]}).takes({"z": [1, "x", {"y": None}]})
    assert not Asked({"type": "object", "required": ["z"]}).takes({})
    asked = Asked({"type": "object", "required": ["z"], "additionalProperties": DIGIT})
    assert asked.takes({"z": 4}) and not asked.takes({"z": "x"})


@pytest.mark.parametrize(
    ("counts", "right"),
    [
        ({"minProperties": 1}, [1, 2]),
        ({"minProperties": 2}, [2]),
        ({"maxProperties": 2}, [0, 1, 2]),
        ({"maxProperties": 1}, [0, 1]),
        ({"maxProperties": 0}, [0]),
        ({"minProperties": 1, "maxProperties": 1}, [1]),
    ],
)
def test_counts_of_keys(counts: dict[str, int], right: list[int]) -> None:
    asked = Asked({"type": "object", "properties": TWO, **counts})
    for value in ({}, {"a": 1}, {"b": 1}, {"a": 1, "b": 1}):
        assert asked.takes(value) == (len(value) in right), value


def test_counts_that_would_need_optional_keys_to_be_counted_are_refused_by_name() -> None:
    three = {**TWO, "c": DIGIT}
    for word in ("minProperties", "maxProperties"):
        with pytest.raises(GrammarError, match=f"`{word}`") as caught:
            node_of({"type": "object", "properties": three, word: 2}, "compact")
        assert caught.value.where == f"#/{word}"


def test_counts_of_undeclared_keys() -> None:
    asked = Asked({"type": "object", "additionalProperties": DIGIT, "minProperties": 1, "maxProperties": 3})
    values = [dict.fromkeys("wxyz"[:n], 1) for n in range(5)]
    assert [asked.takes(value) for value in values] == [False, True, True, True, False]


@pytest.mark.parametrize("spacing", SPACINGS)
def test_arrays_are_counted(spacing: str) -> None:
    for least in range(4):
        for most in range(least, 4):
            asked = Asked({"type": "array", "items": DIGIT, "minItems": least, "maxItems": most}, spacing)
            assert [n for n in range(6) if asked.takes([7] * n)] == list(range(least, most + 1))
            assert not asked.takes(["x"] * max(least, 1))


def test_arrays_without_a_bound_get_one_that_is_told() -> None:
    reading = read({"type": "array", "items": DIGIT}, "compact")
    asked = Asked({"type": "array", "items": DIGIT})
    assert asked.takes([1] * reading.bounds.items) and not asked.takes([1] * (reading.bounds.items + 1))
    assert any(f"at most {reading.bounds.items} items" in note.message for note in reading.notes)
    exact = {"type": "array", "items": DIGIT, "minItems": 100}
    assert Asked(exact).takes([1] * 100)


def test_items_that_cannot_be_leave_the_empty_array() -> None:
    asked = Asked({"type": "array", "items": False})
    assert asked.takes([]) and not asked.takes([1])


ANYTHING: list[Any] = [None, True, 0, -1.5, "x", [], {}, [1, "a", None], {"a": 1, "b": [2, False]}, [[1], {}]]


@pytest.mark.parametrize("spacing", SPACINGS)
@pytest.mark.parametrize("schema", [True, {}, {"description": "anything"}])
def test_any_value_may_stand_where_the_schema_says_nothing(schema: Any, spacing: str) -> None:
    asked = Asked(schema, spacing)
    assert all(map(asked.takes, ANYTHING))
    deep: Any = 1
    for _ in range(4):
        deep = [deep]
    assert not asked.takes(deep)
    for text in ("", "nul", "[1", "{1: 2}", "[1,, 2]", "01", "'a'"):
        assert not asked.takes_text(text)


def test_words_of_one_type_speak_of_that_type_where_none_is_given() -> None:
    assert not any(map(Asked({"maximum": 3}).takes, ["x", None, [], 4])) and Asked({"maximum": 3}).takes(2)
    untyped = Asked({"properties": {"a": DIGIT}})
    assert untyped.takes({"a": 1}) and not untyped.takes([])


def test_a_union_of_types_keeps_what_is_said_of_each() -> None:
    asked = Asked({"type": ["string", "integer", "null", "array"], "maxLength": 2, "minimum": 3, "items": DIGIT})
    assert all(map(asked.takes, ["ab", 3, None, [1]])) and not any(map(asked.takes, ["abc", 2, 3.5, ["x"], {}, True]))


@pytest.mark.parametrize("spacing", SPACINGS)
def test_listed_objects_and_arrays_are_written_in_the_spacing(spacing: str) -> None:
    value = {"b": [1, {"c": []}], "a": {}}
    asked = Asked({"type": "object", "properties": {"v": {"const": value}}}, spacing)
    assert asked.takes({"v": value}) and not asked.takes({"v": {"a": {}, "b": value["b"]}})


@pytest.mark.parametrize("spacing", SPACINGS)
def test_drawn_documents_are_written_as_pythons_writer_writes_them(spacing: str) -> None:
    schema = {
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": {"type": "object", "properties": TWO}, "maxItems": 3},
            "free": {},
            "text": {"type": "string", "maxLength": 5},
        },
        "additionalProperties": {"type": "boolean"},
    }
    asked = Asked(schema, spacing)
    rng = random.Random(3)
    seen = set()
    for _ in range(60):
        text = asked.draw(rng)
        # Numbers keep their zeros at the end, and a key may come twice, when read as pairs and written again.
        pairs = json.loads(text, parse_float=_Written, parse_int=_Written, object_pairs_hook=_Pairs)
        assert _again(pairs, spacing, 0) == text
        seen.add(text)
    assert len(seen) > 15


class _Written(str):
    """A number as it was written."""


class _Pairs(list[tuple[str, Any]]):
    """An object as it was written."""


def _again(value: Any, spacing: str, depth: int) -> str:
    if isinstance(value, _Written):
        return str(value)
    if not isinstance(value, list):
        return serialised(value)
    is_object = isinstance(value, _Pairs)
    opening, closing = "{}" if is_object else "[]"
    if not value:
        return opening + closing
    colon = ":" if spacing == "compact" else ": "
    items = (
        [serialised(k) + colon + _again(v, spacing, depth + 1) for k, v in value]
        if is_object
        else [_again(v, spacing, depth + 1) for v in value]
    )
    if spacing == "pretty":
        line = "\n" + "  " * (depth + 1)
        return opening + line + f",{line}".join(items) + "\n" + "  " * depth + closing
    return opening + (", " if spacing == "one-space" else ",").join(items) + closing


MALFORMED: list[tuple[Any, str]] = [
    ("text", "#"), (5, "#"), ([], "#"), (None, "#"),
    ({"type": "strange"}, "#/type"), ({"type": []}, "#/type"), ({"type": 5}, "#/type"),
    ({"properties": []}, "#/properties"), ({"properties": {"a": 5}}, "#/properties/a"),
    ({"required": "a"}, "#/required"), ({"required": [1]}, "#/required"),
    ({"items": [{}]}, "#/items"), ({"items": {"type": "array", "items": 3}}, "#/items/items"),
    ({"minimum": "3"}, "#/minimum"), ({"minimum": True}, "#/minimum"), ({"maximum": float("nan")}, "#/maximum"),
    ({"minLength": -1}, "#/minLength"), ({"minLength": 1.5}, "#/minLength"), ({"maxItems": None}, "#/maxItems"),
    ({"multipleOf": 0}, "#/multipleOf"), ({"enum": 5}, "#/enum"), ({"const": float("inf")}, "#/const"),
    ({"anyOf": []}, "#/anyOf"), ({"allOf": {}}, "#/allOf"), ({"oneOf": [3]}, "#/oneOf/0"), ({"not": []}, "#/not"),
    ({"pattern": 5}, "#/pattern"), ({"format": 5}, "#/format"), ({"additionalProperties": 1}, "#/additionalProperties"),
    ({"$ref": 5}, "#/$ref"), ({"$ref": "#/nowhere"}, "#/$ref"), ({"$ref": "other.json"}, "#/$ref"),
    ({"$ref": "#name"}, "#/$ref"), ({"$defs": []}, "#/$defs"), ({"$ref": "#/title", "title": "x"}, "#/title"),
    ({"properties": {"a": {"$id": "http://x/y"}}}, "#/properties/a/$id"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "path"), MALFORMED)
def test_a_schema_that_makes_no_sense_is_refused_with_the_path(schema: Any, path: str) -> None:
    with pytest.raises(GrammarError) as caught:
        node_of(schema, "compact")
    assert caught.value.where == path


def test_a_schema_as_text_is_read_as_json() -> None:
    assert parse('{"type": "null"}', "compact") is not None
    for text in ("", "{", "{'type': 'null'}"):
        with pytest.raises(GrammarError, match="not JSON"):
            parse(text, "compact")


@pytest.mark.parametrize("words", [("items",), ("properties", "a"), ("not",)])
def test_a_schema_nested_without_end_is_refused(words: tuple[str, ...]) -> None:
    schema: Any = {"type": "integer"}
    for _ in range(700):
        inner = [schema] if words == ("allOf",) else {"a": schema} if len(words) == 2 else schema
        schema = {words[0]: inner}
    with pytest.raises(GrammarError, match="nested"):
        Asked(schema)


def test_an_unknown_spacing_is_refused() -> None:
    with pytest.raises(GrammarError, match="compact, one-space, pretty"):
        node_of({}, "wide")


def test_bounds_narrow_as_a_schema_grows_so_that_its_automaton_stays_affordable() -> None:
    def strings(count: int) -> dict[str, Any]:
        item = {"type": "object", "properties": {f"k{i}": {"type": "string"} for i in range(count)}}
        return {"type": "array", "items": item}

    readings = [read(strings(count), "compact") for count in (1, 4, 16)]
    sizes = [reading.bounds.characters for reading in readings]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > sizes[-1]
    assert all(reading.states < 150_000 and reading.longest for reading in readings)


def test_the_longest_document_is_told() -> None:
    schema = {"type": "object", "properties": {"a": DIGIT, "b": {"type": "string", "maxLength": 3}}, "required": ["a"]}
    for spacing in SPACINGS:
        longest = serialised({"a": 1, "b": "😀😀😀"}, spacing)
        assert read(schema, spacing).longest == len(longest.encode()) and Asked(schema, spacing).takes_text(longest)
