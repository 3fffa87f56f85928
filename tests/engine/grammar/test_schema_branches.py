"""Branches of a schema: anyOf, oneOf, allOf, not, and references."""

from __future__ import annotations

from typing import Any

import pytest

from engine.grammar.schema import node_of, read
from engine.grammar.syntax import GrammarError
from tests.engine.grammar.documents import Asked

DIGIT = {"type": "integer", "minimum": 0, "maximum": 9}


def test_any_of_several_branches_may_hold() -> None:
    asked = Asked({"anyOf": [{"type": "null"}, DIGIT, {"type": "string", "maxLength": 1}], "description": "a few"})
    assert all(map(asked.takes, [None, 9, "x", ""])) and not any(map(asked.takes, [10, "xx", True, []]))


def test_what_stands_beside_branches_holds_in_each() -> None:
    asked = Asked(
        {
            "type": ["string", "integer"],
            "maxLength": 2,
            "anyOf": [{"minimum": 5, "pattern": "^c"}, {"maximum": 0, "pattern": "^a"}],
        }
    )
    assert all(map(asked.takes, [5, 0, "a", "ab", "cb"])) and not any(map(asked.takes, [4, "b", "abc", None]))


def test_all_of_joins_objects_with_their_keys_in_order_of_appearance() -> None:
    asked = Asked(
        {
            "type": "object",
            "properties": {"a": DIGIT},
            "required": ["c"],
            "allOf": [
                {"properties": {"b": DIGIT, "a": {"maximum": 5}}},
                {"properties": {"c": DIGIT}, "required": ["a"]},
            ],
        }
    )
    assert asked.takes({"a": 5, "b": 9, "c": 1}) and asked.takes({"a": 0, "c": 1})
    assert not any(map(asked.takes, [{"a": 6, "c": 1}, {"a": 1}, {"c": 1}, {"c": 1, "a": 1}]))


def test_all_of_keeps_each_schema_closed_to_its_own_keys() -> None:
    schema = {
        "allOf": [
            {"type": "object", "properties": {"a": DIGIT}, "additionalProperties": {"type": "string", "maxLength": 1}},
            {"properties": {"b": {"type": ["string", "null"]}}},
        ]
    }
    asked = Asked(schema)
    assert asked.takes({"a": 1, "b": "x", "c": "y"}) and not any(map(asked.takes, [{"b": None}, {"c": 5}, {"b": "xx"}]))


def test_all_of_takes_the_narrowest_numbers_and_lengths() -> None:
    asked = Asked(
        {
            "allOf": [
                {"type": "integer", "minimum": 3},
                {"type": "number", "maximum": 9},
                {"exclusiveMaximum": 8.5, "multipleOf": 2},
            ]
        }
    )
    assert [n for n in range(12) if asked.takes(n)] == [4, 6, 8]


def test_one_of_branches_of_different_types() -> None:
    asked = Asked({"oneOf": [{"type": "string"}, {"type": "null"}, {"type": "object", "properties": {"n": DIGIT}}]})
    assert all(map(asked.takes, ["x", None, {}, {"n": 1}])) and not asked.takes(1)


def test_one_of_leaves_out_what_two_branches_share() -> None:
    numbers = Asked(
        {"oneOf": [{"type": "integer", "minimum": 0, "maximum": 5}, {"type": "number", "minimum": 3, "maximum": 9}]}
    )
    assert [n for n in range(12) if numbers.takes(n)] == [0, 1, 2, 6, 7, 8, 9]
    assert numbers.takes_text("3.5") and not numbers.takes_text("3.0") and numbers.takes_text("6.0")
    words = Asked({"type": "string", "maxLength": 4, "oneOf": [{"pattern": "^a"}, {"pattern": "b$"}, {"maxLength": 1}]})
    assert [w for w in ("a", "b", "x", "ab", "ax", "xb", "axb") if words.takes(w)] == ["x", "ax", "xb"]
    listed = Asked({"oneOf": [{"enum": [1, 2, "x"]}, {"enum": [2.0, 3, "x"]}]})
    assert [v for v in (1, 2, 3, "x") if listed.takes(v)] == [1, 3]


def test_one_of_subtracts_strings_beyond_the_bounds_of_what_is_written() -> None:
    asked = Asked({"type": "string", "oneOf": [{}, {"minLength": 3}]})
    assert [n for n in (0, 2, 3, 200) if asked.takes("x" * n)] == [0, 2]


def branch(kind: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"kind": {"const": kind}, **properties}, "required": ["kind"]}


def test_one_of_objects_is_decided_by_a_key_that_tells_them_apart() -> None:
    asked = Asked(
        {
            "oneOf": [
                branch("a", n=DIGIT),
                branch("b", s={"type": "null"}),
                {**branch("c"), "properties": {"kind": {"enum": ["c", "d"]}}},
            ]
        }
    )
    for value in ({"kind": "a", "n": 1}, {"kind": "b", "s": None}, {"kind": "d"}, {"kind": "a"}):
        assert asked.takes(value)
    for value in ({"kind": "b", "n": 1}, {"n": 1}, {"kind": "e"}):
        assert not asked.takes(value)


def test_one_of_objects_is_decided_by_a_key_that_only_one_needs() -> None:
    asked = Asked(
        {
            "type": "object",
            "oneOf": [{"properties": {"a": DIGIT}, "required": ["a"]}, {"properties": {"b": DIGIT}, "required": ["b"]}],
        }
    )
    assert asked.takes({"a": 1}) and asked.takes({"b": 1}) and not asked.takes({"a": 1, "b": 1}) and not asked.takes({})


def test_one_of_objects_that_share_documents_is_written_so_that_only_one_holds() -> None:
    asked = Asked(
        {
            "type": "object",
            "oneOf": [{"properties": {"a": DIGIT}}, {"properties": {"a": {"type": "integer", "maximum": 4}}}],
        }
    )
    assert [n for n in range(-3, 12) if asked.takes({"a": n})] == [-3, -2, -1, 5, 6, 7, 8, 9] and not asked.takes({})


def test_one_of_arrays_is_decided_by_their_items_or_counts() -> None:
    strings, numbers = (
        {"type": "array", "items": {"type": t}, "minItems": 1, "maxItems": 2} for t in ("string", "integer")
    )
    asked = Asked({"oneOf": [strings, numbers, {**numbers, "minItems": 3, "maxItems": 3}]})
    assert all(map(asked.takes, [["x"], [1, 2], [1, 2, 3]])) and not any(map(asked.takes, [[], ["x", 1], ["x"] * 3]))


def test_one_of_arrays_that_cannot_be_told_apart_is_refused_by_name() -> None:
    with pytest.raises(GrammarError, match="`oneOf` is not supported here") as caught:
        node_of(
            {
                "oneOf": [
                    {"type": "array", "items": {"type": "integer"}},
                    {"type": "array", "items": {"type": "number"}},
                ]
            },
            "compact",
        )
    assert caught.value.where == "#/oneOf"


def test_not_of_an_array_that_might_be_written_is_refused_by_name() -> None:
    for schema in ({"type": "array", "not": {"const": [1]}}, {"type": "array", "not": {"minItems": 2}}):
        with pytest.raises(GrammarError, match="`not` is not supported here"):
            node_of(schema, "compact")
    assert Asked({"type": "array", "maxItems": 1, "not": {"minItems": 2}}).takes([1])
    assert Asked({"type": "array", "items": {"type": "string"}, "not": {"enum": [[1], {}]}}).takes([])


def test_not_takes_values_away() -> None:
    assert [n for n in range(9) if Asked({**DIGIT, "not": {"enum": [3, 4.0]}}).takes(n)] == [0, 1, 2, 5, 6, 7, 8]
    asked = Asked({"type": "string", "maxLength": 3, "not": {"anyOf": [{"pattern": "a"}, {"const": ""}]}})
    assert [w for w in ("", "a", "b", "bab", "bc") if asked.takes(w)] == ["b", "bc"]
    assert not Asked({"not": {"type": ["string", "array"]}}).takes("x") and Asked({"not": {"type": "string"}}).takes(1)
    assert Asked({"type": ["boolean", "null"], "not": {"const": True}}).takes(False)
    assert not Asked({"type": ["boolean", "null"], "not": {"const": True}}).takes(True)


def test_not_of_objects_is_written_as_a_difference() -> None:
    both = {"required": ["a", "b"], "properties": {"a": {"const": 1}}}
    asked = Asked({"type": "object", "properties": {"a": DIGIT, "b": DIGIT}, "not": both})
    assert all(map(asked.takes, [{}, {"a": 1}, {"b": 1}, {"a": 2, "b": 2}])) and not asked.takes({"a": 1, "b": 2})


def test_references_are_followed_with_what_stands_beside_them() -> None:
    schema = {
        "type": "object",
        "properties": {
            "x": {"$ref": "#/$defs/a~1b", "maximum": 5},
            "y": {"$ref": "#/definitions/per%20cent"},
            "z": {"$ref": "#/properties/x"},
        },
        "$defs": {"a/b": DIGIT},
        "definitions": {"per cent": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/a~1b"}]}, "unused": {"if": {}}},
    }
    asked = Asked(schema)
    assert asked.takes({"x": 5, "y": None, "z": 5}) and asked.takes({"y": 9})
    assert not any(map(asked.takes, [{"x": 6}, {"z": 6}, {"y": "x"}]))


def test_two_schemas_that_refer_to_each_other() -> None:
    schema = {
        "$ref": "#/$defs/even",
        "$defs": {
            "even": {"type": "object", "properties": {"odd": {"$ref": "#/$defs/odd"}}},
            "odd": {"type": "object", "properties": {"even": {"$ref": "#/$defs/even"}}, "required": ["even"]},
        },
    }
    asked = Asked(schema)
    assert asked.takes({}) and asked.takes({"odd": {"even": {"odd": {"even": {}}}}}) and not asked.takes({"odd": {}})


def test_recursion_through_a_branch_ends_in_the_other() -> None:
    schema = {
        "$ref": "#/$defs/list",
        "$defs": {
            "list": {
                "anyOf": [
                    {"type": "null"},
                    {"type": "array", "items": {"$ref": "#/$defs/list"}, "minItems": 2, "maxItems": 2},
                ]
            }
        },
    }
    asked = Asked(schema)
    assert asked.takes(None) and asked.takes([None, [None, None]]) and not asked.takes([None])


def test_a_branch_that_can_never_hold_is_left_out_and_told() -> None:
    schema = {"anyOf": [{"type": "integer", "minimum": 5, "maximum": 3}, {"type": "null"}]}
    assert Asked(schema).takes(None)
    assert [note.places for note in read(schema, "compact").notes] == [("#/anyOf/0/minimum",)]


def test_too_many_combinations_are_refused() -> None:
    one_bit = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    with pytest.raises(GrammarError, match="combinations"):
        node_of({"allOf": [one_bit] * 12}, "compact")


def test_annotations_change_nothing() -> None:
    remarks = {
        "title": "t", "description": "d", "default": 3, "examples": [1], "$comment": "c", "deprecated": True,
        "readOnly": True, "writeOnly": False, "$schema": "http://json-schema.org/draft-07/schema#", "$id": "x", "x-hint": 1,
    }  # fmt: skip
    asked = Asked({**remarks, **DIGIT})
    assert [n for n in range(-2, 12) if asked.takes(n)] == list(range(10))
    assert read({**remarks, **DIGIT}, "compact").notes == read(DIGIT, "compact").notes
