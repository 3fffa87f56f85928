"""Concrete values: how one is written, and whether one satisfies a schema."""

from __future__ import annotations

import json
from collections.abc import Hashable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from engine.grammar.schema_alternatives import Alternative, Plain
from engine.grammar.schema_formats import FORMATS
from engine.grammar.schema_keys import about_key
from engine.grammar.schema_layout import Layout
from engine.grammar.schema_numbers import decimal, limits
from engine.grammar.schema_patterns import found_in, is_format
from engine.grammar.schema_refs import Schema, resolve

TYPE_OF: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def written(value: Any, layout: Layout, depth: int) -> str:
    """A value as JSON, its keys in their order, where it stands `depth` containers deep."""
    if isinstance(value, dict):
        parts = [
            json.dumps(k, ensure_ascii=False) + layout.colon + written(v, layout, depth + 1) for k, v in value.items()
        ]
        return _bracketed("{", parts, "}", layout, depth)
    if isinstance(value, list):
        return _bracketed("[", [written(v, layout, depth + 1) for v in value], "]", layout, depth)
    return json.dumps(value, ensure_ascii=False)


def _bracketed(opening: str, parts: list[str], closing: str, layout: Layout, depth: int) -> str:
    if not parts:
        return opening + closing
    return opening + layout.opening(depth) + layout.comma(depth).join(parts) + layout.closing(depth) + closing


def canonical(value: Any) -> Hashable:
    """Something hashable that is equal for equal JSON values: 1 is 1.0, but not true."""
    if isinstance(value, list):
        return "array", tuple(map(canonical, value))
    if isinstance(value, dict):
        return "object", frozenset((name, canonical(part)) for name, part in value.items())
    return TYPE_OF[type(value)], value


def is_type(value: Any, name: str) -> bool:
    """Whether a value is of a type; 4.0 is a whole number."""
    if name == "integer":
        return TYPE_OF[type(value)] == "number" and value == int(value)
    return TYPE_OF[type(value)] == name


class Judge:
    """Says of concrete values whether they satisfy schemas of one text, which has been checked."""

    def __init__(self, root: Schema) -> None:
        self.root = root
        self._listed: dict[str, frozenset[Hashable]] = {}

    def alternative(self, value: Any, alternative: Alternative) -> bool:
        """Whether all plain schemas of an alternative hold, and nothing that must not."""
        return all(self._own(value, plain) for plain in alternative.plains) and not any(
            self.alternative(value, less) for less, _ in alternative.less
        )

    def schema(self, value: Any, plain: Plain) -> bool:
        """Whether a schema holds, with its references and branches."""

        def holding(word: str) -> list[bool]:
            return [self.schema(value, plain.below(word, i)) for i in range(len(plain[word]))]

        return (
            self._own(value, plain)
            and ("$ref" not in plain or self.schema(value, Plain(*resolve(self.root, plain["$ref"], plain.path))))
            and ("allOf" not in plain or all(holding("allOf")))
            and ("anyOf" not in plain or any(holding("anyOf")))
            and ("oneOf" not in plain or sum(holding("oneOf")) == 1)
            and ("not" not in plain or not self.schema(value, plain.below("not")))
        )

    def _own(self, value: Any, plain: Plain) -> bool:
        """Whether a schema's own words hold."""
        if isinstance(plain.schema, bool):
            return plain.schema
        if "type" in plain:
            names = [plain["type"]] if isinstance(plain["type"], str) else plain["type"]
            if not any(is_type(value, name) for name in names):
                return False
        if "enum" in plain and canonical(value) not in self._values(plain):
            return False
        if "const" in plain and canonical(value) != canonical(plain["const"]):
            return False
        match TYPE_OF[type(value)]:
            case "number":
                return _number(decimal(value), plain)
            case "string":
                return _string(value, plain)
            case "array":
                return _counted(len(value), plain, "minItems", "maxItems") and (
                    "items" not in plain or all(self.schema(item, plain.below("items")) for item in value)
                )
            case "object":
                return (
                    _counted(len(value), plain, "minProperties", "maxProperties")
                    and all(name in value for name in plain.get("required", ()))
                    and all(self.schema(part, said) for name, part in value.items() for said in about_key(plain, name))
                )
        return True

    def _values(self, plain: Plain) -> frozenset[Hashable]:
        """The values under an `enum`."""
        if plain.path not in self._listed:
            self._listed[plain.path] = frozenset(map(canonical, plain["enum"]))
        return self._listed[plain.path]


def _counted(count: int, plain: Plain, least: str, most: str) -> bool:
    return bool((least not in plain or count >= plain[least]) and (most not in plain or count <= plain[most]))


def _string(value: str, plain: Plain) -> bool:
    return (
        _counted(len(value), plain, "minLength", "maxLength")
        and ("pattern" not in plain or found_in(plain["pattern"], value))
        and ("format" not in plain or is_format(plain["format"], value))
    )


def _number(value: Decimal, plain: Plain) -> bool:
    if "format" in plain and FORMATS[plain["format"]].limits and value % 1:
        return False
    low, high = limits((plain,))
    if low and (value < low.value or (low.strict and value == low.value)):
        return False
    if high and (value > high.value or (high.strict and value == high.value)):
        return False
    return "multipleOf" not in plain or Fraction(value) % Fraction(decimal(plain["multipleOf"])) == 0
