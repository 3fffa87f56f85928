"""Field notes E on what a schema allows: bounds, order, spelling, recursion, and what is refused by name."""

from __future__ import annotations

import itertools
import random
import re
from typing import Any

import pytest

from engine.grammar.schema import node_of, read
from engine.grammar.schema_bounds import DEPTH
from engine.grammar.schema_layout import SPACINGS
from engine.grammar.syntax import GrammarError
from tests.engine.grammar.documents import Asked, serialised

each_spacing = pytest.mark.parametrize("spacing", SPACINGS)

NESTED = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 3},
        "parts": {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
        "inner": {"type": "object", "properties": {"on": {"type": "boolean"}}},
    },
    "required": ["name"],
}


def refusal(schema: Any, spacing: str = "compact") -> GrammarError:
    with pytest.raises(GrammarError) as caught:
        node_of(schema, spacing)
    return caught.value


@each_spacing
def test_e8_blanks_stand_only_where_the_spacing_has_them(spacing: str) -> None:
    asked = Asked(NESTED, spacing)
    value = {"name": "a b", "parts": [1, 23], "inner": {"on": True}}
    text = serialised(value, spacing)
    assert asked.takes_text(text)
    for other in set(SPACINGS) - {spacing}:
        assert not asked.takes_text(serialised(value, other))
    outside = [at for at in range(len(text) + 1) if text[:at].count('"') % 2 == 0]
    assert len(outside) > 20
    for at in outside:
        for blank in " \n\t":
            assert not asked.takes_text(text[:at] + blank + text[at:])


@each_spacing
def test_e8_blanks_never_run_on_outside_strings(spacing: str) -> None:
    asked = Asked({**NESTED, "properties": {**NESTED["properties"], "name": {"enum": ["x"]}}}, spacing)
    rng = random.Random(8)
    most = {"compact": 0, "one-space": 1, "pretty": 5}[spacing]
    texts = [asked.draw(rng) for _ in range(40)]
    assert max(len(run) for text in texts for run in re.findall(r"\s*", text)) == most


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("$anchor", "here"),
        ("$dynamicRef", "#here"),
        ("additionalItems", False),
        ("contains", {"type": "integer"}),
        ("contentEncoding", "base64"),
        ("dependencies", {"a": ["b"]}),
        ("dependentRequired", {"a": ["b"]}),
        ("dependentSchemas", {"a": {"required": ["b"]}}),
        ("else", {"required": ["a"]}),
        ("if", {"required": ["a"]}),
        ("maxContains", 2),
        ("minContains", 1),
        ("nullable", True),
        ("prefixItems", [{"type": "integer"}]),
        ("propertyNames", {"pattern": "^a"}),
        ("then", {"required": ["a"]}),
        ("unevaluatedItems", False),
        ("unevaluatedProperties", False),
        ("uniqueItems", True),
        ("format", "hostname"),
        ("elements", {"type": "integer"}),
    ],
)
@pytest.mark.parametrize("place", ["top", "property", "items", "branch", "reference"])
def test_e10_every_word_that_is_not_supported_is_refused_by_name_and_path(word: str, value: Any, place: str) -> None:
    bad = {"type": ["object", "array", "string"], word: value}
    schema, path = {
        "top": (bad, "#"),
        "property": ({"type": "object", "properties": {"a/b": bad}}, "#/properties/a~1b"),
        "items": ({"type": "array", "items": bad}, "#/items"),
        "branch": ({"anyOf": [{"type": "null"}, bad]}, "#/anyOf/1"),
        "reference": ({"$ref": "#/$defs/x", "$defs": {"x": bad}}, "#/$defs/x"),
    }[place]
    error = refusal(schema)
    assert f"`{word}`" in str(error) and error.where == f"{path}/{word}"


def test_e11_integers_between_minus_123_and_42() -> None:
    asked = Asked({"type": "integer", "minimum": -123, "maximum": 42})
    accepted = [n for n in range(-2000, 2000) if asked.takes_text(str(n))]
    assert accepted == list(range(-123, 43))
    for text in ("-124", "43", "007", "-", "4.0", "+4", "01", "-0", "-01", "4e0", "", " 4", "4 "):
        assert not asked.takes_text(text), text
    # It may end at 4 or go on to 42.
    state = asked.automaton.step(0, b"4")
    assert asked.automaton.accepting[state] and asked.automaton.step(state, b"2") >= 0


@each_spacing
@pytest.mark.parametrize("names", ["r", "ro", "or", "oro", "oor", "roo", "ooo", "rr", "orro"])
def test_e12_required_and_optional_keys_in_every_order_leave_no_stray_comma(names: str, spacing: str) -> None:
    keys = [f"{kind}{i}" for i, kind in enumerate(names)]
    required = [key for key in keys if key.startswith("r")]
    properties = {key: {"type": "integer", "minimum": 0, "maximum": 1} for key in keys}
    asked = Asked({"type": "object", "properties": properties, "required": required}, spacing)
    for count in range(len(keys) + 1):
        for chosen in itertools.permutations(keys, count):
            in_order = list(chosen) == [key for key in keys if key in chosen]
            right = in_order and set(required) <= set(chosen)
            assert asked.takes(dict.fromkeys(chosen, 1)) == right, chosen
    whole = serialised(dict.fromkeys(keys, 1), spacing)
    comma = "," if spacing == "compact" else ", " if spacing == "one-space" else ",\n  "
    for wrong in (whole.replace("{", "{" + comma), whole.replace("}", comma + "}"), whole.replace(comma, comma * 2)):
        assert wrong == whole or not asked.takes_text(wrong), wrong


def test_e13_a_key_has_the_value_declared_for_it_and_its_place_in_the_order() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"const": "foo"}, "b": {"const": "bar"}},
        "required": ["b"],
    }
    asked = Asked(schema, "compact")
    assert asked.takes({"b": "bar"}) and asked.takes({"a": "foo", "b": "bar"})
    for wrong in (
        {"b": "bar", "a": "bar"},
        {"b": "bar", "a": "foo"},
        {"a": "bar", "b": "bar"},
        {"a": "foo"},
        {"b": "foo"},
    ):
        assert not asked.takes(wrong)


def test_e23_words_with_accents_mean_the_same_raw_and_escaped() -> None:
    raw = Asked({"enum": ["café", "naïve"]})
    escaped = Asked({"enum": ["caf\u00e9", "na\u00efve"]})
    rng = random.Random(23)
    said = {asked.draw(rng) for asked in (raw, escaped) for _ in range(20)}
    assert said == {'"café"', '"naïve"'}
    for asked in (raw, escaped):
        assert not asked.takes_text('"caf\\u00e9"') and not asked.takes_text('"cafe"')


def test_e23_free_strings_keep_their_accents() -> None:
    asked = Asked({"type": "string"})
    for word in ("café", "Ærøskøbing", "日本語", "😀", 'a "b" \\ c', "line\nline\t."):
        assert asked.takes(word)


TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "value": {"type": "integer", "minimum": 0, "maximum": 9},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2},
            },
            "required": ["value"],
        }
    },
}


def nested(levels: int) -> dict[str, Any]:
    return {"value": 1} if levels == 1 else {"value": 1, "children": [nested(levels - 1), nested(levels - 1)]}


def test_e25_a_tree_goes_to_a_depth_that_is_told() -> None:
    reading = read(TREE, "compact")
    asked = Asked(TREE, "compact")
    assert [asked.takes(nested(levels)) for levels in range(1, DEPTH + 3)] == [True] * DEPTH + [False] * 2
    assert asked.takes({"value": 1, "children": []})
    told = [note for note in reading.notes if "recursion" in note.message]
    assert [note.places for note in told] == [("#/$defs/node",)] and str(DEPTH) in told[0].message


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"$ref": "#"}, "#/$ref"),
        ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "#/anyOf/0/$ref"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, "#/$defs/a/$ref"),
        ({"type": "object", "properties": {"x": {"not": {"$ref": "#/properties/x"}}}}, "#/properties/x/not/$ref"),
    ],
)
def test_e25_a_reference_that_leads_back_to_itself_at_once_is_refused(schema: Any, path: str) -> None:
    error = refusal(schema)
    assert "leads back to itself" in str(error) and error.where == path


def test_e25_recursion_that_can_never_end_is_refused() -> None:
    error = refusal({"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]})
    assert "never ends" in str(error)
    assert Asked({"type": "object", "properties": {"next": {"$ref": "#"}}}).takes({"next": {"next": {}}})


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"enum": []}, "#/enum"),
        ({"type": "integer", "minimum": 5, "maximum": 3}, "#/minimum"),
        ({"type": "number", "exclusiveMinimum": 1, "maximum": 1}, "#/exclusiveMinimum"),
        ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}, "#/exclusiveMinimum"),
        ({"type": "string", "minLength": 5, "maxLength": 3}, "#/minLength"),
        ({"type": "array", "minItems": 5, "maxItems": 3}, "#/minItems"),
        ({"type": "object", "properties": {"name": False}, "required": ["name"]}, "#/properties/name"),
        ({"type": "object", "additionalProperties": False, "required": ["name"]}, "#/required"),
        ({"allOf": [{"type": "integer"}, {"type": "string"}]}, "#/allOf/1/type"),
        ({"type": "string", "const": 1}, "#/const"),
        ({"type": "integer", "enum": ["a", 1.5]}, "#/enum"),
        ({"type": "string", "pattern": "^a{5}$", "maxLength": 3}, "#"),
        ({"type": "integer", "minimum": 1, "maximum": 6, "multipleOf": 7}, "#"),
        ({"type": "object", "required": ["a"], "properties": {"a": {}}, "maxProperties": 0}, "#/maxProperties"),
        ({"type": "array", "items": {"enum": []}, "minItems": 1}, "#/items/enum"),
        (
            {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": False}, "required": ["b"]}}, "required": ["a"]},
            "#/properties/a/properties/b",
        ),
        (False, "#"),
    ],
)  # fmt: skip
def test_e29_what_nothing_satisfies_is_refused_with_the_path_of_the_impossible_part(schema: Any, path: str) -> None:
    assert refusal(schema).where == path


def test_e29_an_impossible_part_that_may_be_absent_is_left_out_and_told() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 5, "maximum": 3}, "b": {"type": "null"}, "c": False},
    }
    asked = Asked(schema)
    assert asked.takes({}) and asked.takes({"b": None}) and not asked.takes({"a": 4})
    told = [note for note in read(schema, "compact").notes if "left out" in note.message]
    assert [note.places for note in told] == [("#/properties/a/minimum",)]
