"""A typed grammar that cannot be used: the complaint, and where in the text its place is."""

from __future__ import annotations

import json

import pytest

from engine.config import EngineConfig
from workbench.ui.grammar_place import TypedError, around, locate, narrowed, read, shown

SCHEMA = json.dumps(
    {"type": "object", "properties": {"a/b": {"enum": ["x", "y"]}, "list": {"items": [{"a": 1}, {"type": "nul"}]}}},
    indent=2,
)


def complaint(kind: str, text: str) -> TypedError:
    with pytest.raises(TypedError) as caught:
        read(kind, text, EngineConfig())
    return caught.value


def test_a_pattern_that_can_be_used_is_what_the_request_takes() -> None:
    assert read("regex", "[0-9]{4}", EngineConfig()) == ({"regex": "[0-9]{4}"}, [])


@pytest.mark.parametrize(("pattern", "at"), [("ab(cd", 2), ("ab)", 2), ("a{3,2}", 1), ("x(?=y)", 1)])
def test_a_pattern_is_complained_about_where_it_is_wrong(pattern: str, at: int) -> None:
    assert complaint("regex", pattern).at == at


def test_what_is_no_json_is_complained_about_where_reading_stopped() -> None:
    error = complaint("json_schema", '{\n "type": "object",\n "properties": }')
    assert error.at == len('{\n "type": "object",\n "properties": ')
    assert "not JSON" in str(error)


@pytest.mark.parametrize("text", ["", "   ", "[1]", "3"])
def test_what_is_no_schema_is_refused(text: str) -> None:
    complaint("json_schema", text)


def test_an_empty_pattern_is_refused() -> None:
    assert "write" in str(complaint("regex", ""))


@pytest.mark.parametrize(
    ("pointer", "begins"),
    [
        ("#", "{"), ("#/type", '"type": "object"'), ("#/properties/a~1b", '"a/b"'), ("#/properties/a~1b/enum/1", '"y"'),
        ("#/properties/list/items/1/type", '"type": "nul"'),
    ],
)  # fmt: skip
def test_a_pointer_is_found_in_the_text_as_it_was_typed(pointer: str, begins: str) -> None:
    at = locate(SCHEMA, pointer)
    assert at is not None and SCHEMA[at:].startswith(begins)


@pytest.mark.parametrize("pointer", ["#/nothing", "#/type/more", "#/properties/a~1b/enum/7"])
def test_a_pointer_to_what_is_not_there_has_no_place(pointer: str) -> None:
    assert locate(SCHEMA, pointer) is None


def test_the_caret_stands_under_the_place() -> None:
    text = 'first\nsecond "here" line'
    html = shown(TypedError("wrong", text.index('"here"')), text)
    line, caret = html.split("<pre>")[1].split("</pre>")[0].split("\n")
    assert line == "line 2: second &quot;here&quot; line"
    assert caret == f"<b>{' ' * len('line 2: second ')}^</b>"


def test_of_a_long_line_the_part_around_the_place_is_shown() -> None:
    text = "x" * 200 + "!" + "y" * 200
    line, start, column = around(text, 200)
    assert line[column] == "!" and len(line) < 80 and start == "…"


def test_a_complaint_is_escaped() -> None:
    assert "<img" not in shown(TypedError("<img src=x>", 0), "<img src=x>")


def test_a_schema_is_complained_about_at_its_keyword() -> None:
    text = '{\n  "type": "object",\n  "properties": {\n    "year": {"type": "integr"}\n  }\n}'
    error = complaint("json_schema", text)
    assert error.at is not None and text[error.at :].startswith('"type": "integr"')
    assert str(error).startswith("#/properties/year/type: ")


def test_what_is_narrower_than_the_schema_is_told() -> None:
    asked, notes = read("json_schema", '{"type": "array", "items": {"type": "integer"}}', EngineConfig())
    assert asked == {"json_schema": {"type": "array", "items": {"type": "integer"}}}
    assert any("maxItems" in note and "(#)" in note for note in notes)
    assert "maxItems" in narrowed(notes) and narrowed([]) == ""
