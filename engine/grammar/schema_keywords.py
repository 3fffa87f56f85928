"""Which words of JSON Schema are read, which are remarks, and the check that a schema holds no others.

A word that is not supported is refused by its name and place, whether or not it would have changed anything:
who wrote it expects it to hold. So is one that the standard does not know (`elements` for `items`); the
standard would read it as a remark, and the schema would not say what its author meant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from engine.grammar.schema_formats import FORMATS
from engine.grammar.schema_patterns import searched
from engine.grammar.schema_refs import parts, refuse_loops, resolve, step
from engine.grammar.syntax import GrammarError

ANNOTATIONS = frozenset(
    ("title", "description", "default", "examples", "$comment", "$schema", "deprecated", "readOnly", "writeOnly")
)
"""Remarks to a reader: they never decide whether a document is valid. So are words that begin with `x-`."""

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")

SPEAKS_OF = {
    "minimum": "number",
    "maximum": "number",
    "exclusiveMinimum": "number",
    "exclusiveMaximum": "number",
    "multipleOf": "number",
    "minLength": "string",
    "maxLength": "string",
    "pattern": "string",
    "items": "array",
    "minItems": "array",
    "maxItems": "array",
    "uniqueItems": "array",
    "properties": "object",
    "required": "object",
    "additionalProperties": "object",
    "patternProperties": "object",
    "minProperties": "object",
    "maxProperties": "object",
}
"""The type that each word says something about; of other types it says nothing."""


def check(root: Any) -> None:
    """Raise GrammarError, with the path, for a word that is not supported or whose value makes no sense.

    What no reference reaches in `$defs` or `definitions` is not looked at.
    """
    seen: set[str] = set()
    waiting: list[tuple[Any, str]] = [(root, "#")]
    while waiting:
        schema, path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        if isinstance(schema, bool):
            continue
        if not isinstance(schema, dict):
            raise GrammarError("a schema is an object, or true or false", path)
        for word, value in schema.items():
            _check_word(word, value, path)
        if "$ref" in schema:
            waiting.append(resolve(root, schema["$ref"], step(path, "$ref")))
        waiting += parts(schema, path)
    refuse_loops(root)


def _check_word(word: str, value: Any, path: str) -> None:
    """Check one word of a schema and its value, but not the schemas below it."""
    here = step(path, word)
    if word in ANNOTATIONS or word.startswith("x-"):
        return
    if word in ("$id", "id"):
        if path != "#" and not (isinstance(value, str) and value.startswith("#")):
            raise GrammarError(f"`{word}` below the top is not supported: references would start from it", here)
        return
    if word not in _CHECKS:
        raise GrammarError(f"`{word}` is not supported", here)
    says, holds = _CHECKS[word]
    if not holds(value):
        raise GrammarError(f"`{word}` must be {says}", here)
    if word == "uniqueItems" and value:
        raise GrammarError("`uniqueItems` is not supported", here)
    for pattern in value if word == "patternProperties" else [value] if word == "pattern" else []:
        searched(pattern, here)
    if word == "format" and value not in FORMATS:
        raise GrammarError(f"`format` {value!r} is not supported; there are {', '.join(FORMATS)}", here)


def _is_number(value: Any) -> bool:
    is_int = isinstance(value, int) and not isinstance(value, bool)
    return is_int or (isinstance(value, float) and math.isfinite(value))


def _is_json(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_json, value))
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_json(part) for name, part in value.items())
    return value is None or isinstance(value, (bool, str)) or _is_number(value)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_type(value: Any) -> bool:
    names = [value] if isinstance(value, str) else value
    return isinstance(names, list) and bool(names) and all(name in TYPES for name in names)


_Check: TypeAlias = "tuple[str, Callable[[Any], bool]]"
_NUMBER: _Check = ("a number", _is_number)
_COUNT: _Check = ("a whole number from 0", _is_count)
_LIMIT: _Check = ("a number, or (draft 4) true or false", lambda v: isinstance(v, bool) or _is_number(v))
_BRANCHES: _Check = ("a list of schemas, at least one", lambda v: isinstance(v, list) and bool(v))
_TEXT: _Check = ("a string", lambda v: isinstance(v, str))
_MAP: _Check = ("an object of schemas", lambda v: isinstance(v, dict))
_SCHEMA: _Check = ("a schema: an object, or true or false", lambda v: isinstance(v, (dict, bool)))

_CHECKS: dict[str, _Check] = {
    "$defs": _MAP,
    "definitions": _MAP,
    "$ref": _TEXT,
    "type": ("one or more of " + ", ".join(TYPES), _is_type),
    "enum": ("a list of values", lambda v: isinstance(v, list) and _is_json(v)),
    "const": ("a value", _is_json),
    "format": _TEXT,
    "allOf": _BRANCHES,
    "anyOf": _BRANCHES,
    "oneOf": _BRANCHES,
    "not": _SCHEMA,
    "minimum": _NUMBER,
    "maximum": _NUMBER,
    "exclusiveMinimum": _LIMIT,
    "exclusiveMaximum": _LIMIT,
    "multipleOf": ("a number above 0", lambda v: _is_number(v) and v > 0),
    "minLength": _COUNT,
    "maxLength": _COUNT,
    "pattern": _TEXT,
    "items": _SCHEMA,
    "minItems": _COUNT,
    "maxItems": _COUNT,
    "uniqueItems": ("true or false", lambda v: isinstance(v, bool)),
    "properties": _MAP,
    "patternProperties": _MAP,
    "required": ("a list of names", _is_names),
    "additionalProperties": _SCHEMA,
    "minProperties": _COUNT,
    "maxProperties": _COUNT,
}
