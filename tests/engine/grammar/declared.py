"""What a schema declares about the places of a document: the order of keys, and keys that it says nothing of.

Works on the schema's text alone, so that it can judge a front end without leaning on it.
"""

from __future__ import annotations

from typing import Any


def in_declared_order(value: Any, schema: Any) -> Any:
    """The value with the keys of every object as the schema declares them, undeclared ones last."""
    return _ordered(value, [schema], schema)


def undeclared(value: Any, schema: Any) -> list[str]:
    """Keys in the value that the schema neither declares nor speaks of."""
    return _undeclared(value, [schema], schema)


def _ordered(value: Any, schemas: list[Any], root: Any) -> Any:
    spread = _spread(schemas, root)
    if isinstance(value, list):
        return [_ordered(item, _under(spread, "items"), root) for item in value]
    if isinstance(value, dict):
        keys = _keys(spread)
        names = [name for name in keys if name in value] + [name for name in value if name not in keys]
        return {name: _ordered(value[name], keys.get(name) or _others(spread), root) for name in names}
    return value


def _undeclared(value: Any, schemas: list[Any], root: Any) -> list[str]:
    spread = _spread(schemas, root)
    found: list[str] = []
    if _under(spread, "enum") or _under(spread, "const"):
        return found
    if isinstance(value, list):
        for item in value:
            found += _undeclared(item, _under(spread, "items"), root)
    if isinstance(value, dict) and any(_says_something(schema) for schema in spread):
        keys, others = _keys(spread), _others(spread)
        for name, part in value.items():
            if name not in keys and not others:
                found.append(name)
            else:
                found += _undeclared(part, keys.get(name) or others, root)
    return found


def _says_something(schema: Any) -> bool:
    return isinstance(schema, dict) and bool(schema.keys() - {"description", "title", "default", "examples"})


def _spread(schemas: list[Any], root: Any) -> list[Any]:
    """The schemas with all that they refer to, join or choose between."""
    found: list[Any] = []
    for schema in schemas:
        found.append(schema)
        if isinstance(schema, dict):
            if "$ref" in schema:
                found += _spread([_target(root, schema["$ref"])], root)
            for word in ("allOf", "anyOf", "oneOf"):
                found += _spread(schema.get(word, []), root)
    return found


def _target(root: Any, reference: str) -> Any:
    for name in reference.split("/")[1:]:
        root = root[name]
    return root


def _under(schemas: list[Any], word: str) -> list[Any]:
    return [schema[word] for schema in schemas if isinstance(schema, dict) and word in schema]


def _keys(schemas: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for properties in _under(schemas, "properties"):
        for name, schema in properties.items():
            found.setdefault(name, []).append(schema)
    return found


def _others(schemas: list[Any]) -> list[Any]:
    """What is said of undeclared keys, where they are not refused."""
    patterns = [schema for found in _under(schemas, "patternProperties") for schema in found.values()]
    return [schema for schema in [*patterns, *_under(schemas, "additionalProperties")] if schema is not False]
