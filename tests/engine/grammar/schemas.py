"""Random small schemas, and values that are near to satisfying them."""

from __future__ import annotations

import random
from typing import Any

WORDS = ["", "a", "ab", "é", "x\ny", 'q"\\', "日本", "😀", "abc", "zzzz"]
PATTERNS = ["^a", "b$", "^[a-c]+$", "^(ab|zz)", "é|日", "^.{2,3}$", "[^a]$"]
NUMBERS = [-3, -1, 0, 1, 2, 5, 10, 0.5, 1.5, -0.25, 2.5, 42, 100]
NAMES = ["a", "b", "c", "é"]
LISTED = [*WORDS, *NUMBERS, None, True, [1], {"a": 1}]

CLEAR = ["integer", "number", "string", "enum", "const", "null", "boolean", "anyOf", "allOf", "union", "format"]
"""Kinds of which every valid value that keeps the writer's order and bounds has to be accepted."""
TANGLED = [*CLEAR, "oneOf", "not", "anything", "untyped", "$ref"]
"""Kinds that may be narrowed further."""


def closed(schema: Any) -> Any:
    """The same schema with every object closed to what it does not declare."""
    if not isinstance(schema, dict):
        return schema
    found = {
        word: [closed(part) for part in value] if word in ("anyOf", "allOf") else value
        for word, value in schema.items()
    }
    if "properties" in schema:
        properties = {name: closed(part) for name, part in schema["properties"].items()}
        found |= {"properties": properties, "additionalProperties": False}
    if "items" in schema:
        found["items"] = closed(schema["items"])
    return found


class Schemas:
    """Draws schemas. `tangled`: of all supported kinds, else only of those that are never narrowed."""

    def __init__(self, draw: random.Random, tangled: bool) -> None:
        self.draw = draw
        self.tangled = tangled

    def maybe(self, chance: float) -> bool:
        return self.draw.random() < chance

    def top(self) -> dict[str, Any]:
        """A schema with two others to refer to; one of them refers to itself."""
        schema: dict[str, Any] = {"allOf": [self.schema(2)]} if self.maybe(0.2) else {"anyOf": [self.schema(2)]}
        if self.tangled:
            again = {"anyOf": [{"$ref": "#/$defs/again"}, {"type": "null"}]}
            schema["$defs"] = {
                "small": self.scalar(self.draw.choice(["integer", "string", "enum"])),
                "again": {"type": "object", "properties": {"a": self.schema(0), "b": again}},
            }
        return schema

    def schema(self, depth: int) -> Any:
        containers = ["object"] * 6 + ["array"] * 3 if depth else []
        kind = self.draw.choice((TANGLED if self.tangled else CLEAR) + containers)
        below = max(depth - 1, 0)
        match kind:
            case "anyOf" | "oneOf" | "allOf":
                if kind == "allOf" and not self.tangled:
                    below = 0
                schema = {kind: [self.schema(below) for _ in range(self.draw.randint(1, 3))]}
                if self.tangled and self.maybe(0.3):
                    schema["type"] = self.draw.choice(["string", "integer", "object"])
                return schema
            case "not":
                types = ["string", "integer", "number", "object", "array"]
                return {"type": self.draw.choice(types), "not": self.schema(below)}
            case "anything":
                return self.draw.choice([True, {}, False])
            case "$ref":
                return {"$ref": self.draw.choice(["#/$defs/small", "#/$defs/again"])}
            case "untyped":
                return {k: v for k, v in self.scalar(self.draw.choice(["integer", "string"])).items() if k != "type"}
            case "array":
                return self.array(below)
            case "object":
                return self.object(below)
        return self.scalar(kind)

    def scalar(self, kind: str) -> dict[str, Any]:
        match kind:
            case "enum":
                return {"enum": self.draw.choices(LISTED, k=self.draw.randint(1, 3))}
            case "const":
                return {"const": self.draw.choice(LISTED)}
            case "union":
                types = self.draw.sample(["string", "integer", "null", "boolean", "number"], 2)
                return {"type": types, "maxLength": 3, "minimum": 0}
            case "format":
                return {"type": "string", "format": self.draw.choice(["date", "uuid", "email"])}
        schema: dict[str, Any] = {"type": kind}
        if kind in ("integer", "number"):
            for word in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
                if self.maybe(0.3):
                    schema[word] = self.draw.choice(NUMBERS)
            if self.maybe(0.2):
                schema["multipleOf"] = self.draw.choice([1, 2, 4, 5, 10])
        if kind == "string":
            for word, choices in (("minLength", [0, 1, 2, 3]), ("maxLength", [0, 1, 2, 3, 5]), ("pattern", PATTERNS)):
                if self.maybe(0.3):
                    schema[word] = self.draw.choice(choices)
        return schema

    def array(self, depth: int) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "array"}
        if not self.tangled or self.maybe(0.9):
            schema["items"] = self.schema(depth)
        for word, most in (("minItems", 2), ("maxItems", 3)):
            if self.maybe(0.4):
                schema[word] = self.draw.randint(0, most)
        return schema

    def object(self, depth: int) -> dict[str, Any]:
        names = self.draw.sample(NAMES, self.draw.randint(0, 4))
        if not self.tangled:
            names.sort()  # or branches could ask for different orders
        schema: dict[str, Any] = {"type": "object", "properties": {name: self.schema(depth) for name in names}}
        if self.maybe(0.6):
            schema["required"] = self.draw.sample(names, self.draw.randint(0, len(names)))
        if names and self.maybe(0.2):
            schema["minProperties"] = self.draw.randint(0, 1)
        if self.maybe(0.2):
            schema["additionalProperties"] = False
        if self.tangled:
            if self.maybe(0.1):
                schema.setdefault("required", []).append("z")
            if self.maybe(0.2):
                schema["additionalProperties"] = self.draw.choice([True, self.schema(depth)])
            if self.maybe(0.1):
                schema["patternProperties"] = {self.draw.choice(["^x", "b"]): self.schema(depth)}
            if self.maybe(0.1):
                schema["maxProperties"] = self.draw.randint(0, 3)
        return schema

    def near(self, schema: Any) -> Any:
        """A value that often satisfies a schema of the clear kinds, its keys in declared order."""
        if self.maybe(0.05):
            return self.draw.choice(LISTED)
        for word in ("anyOf", "allOf"):
            if word in schema:
                return self.near(self.draw.choice(schema[word]))
        if "enum" in schema or "const" in schema:
            return self.draw.choice(schema.get("enum", [schema.get("const")]))
        match schema["type"] if isinstance(schema["type"], str) else self.draw.choice(schema["type"]):
            case "object":
                chosen = {
                    n: s for n, s in schema["properties"].items() if n in schema.get("required", ()) or self.maybe(0.5)
                }
                return {name: self.near(part) for name, part in chosen.items()}
            case "array":
                return [self.near(schema["items"]) for _ in range(self.draw.randint(0, 3))]
            case "string":
                return self.draw.choice([*WORDS, "2024-02-29", "a@b.c", "af6727bf-29c7-43dd-b42f-a5d7ede28337"])
            case "integer":
                return self.draw.choice([n for n in NUMBERS if isinstance(n, int)])
            case "number":
                return self.draw.choice(NUMBERS)
            case "boolean":
                return self.maybe(0.5)
        return None

    def anything(self, depth: int = 2) -> Any:
        """A value that has nothing to do with any schema."""
        kind = self.draw.choice(["listed", "object", "array"]) if depth else "listed"
        if kind == "object":
            names = self.draw.sample([*NAMES, "xy", "z"], self.draw.randint(0, 3))
            return {name: self.anything(depth - 1) for name in names}
        if kind == "array":
            return [self.anything(depth - 1) for _ in range(self.draw.randint(0, 3))]
        return self.draw.choice(LISTED)
