"""Paths into a schema: how a place is written, and what a local `$ref` points at.

A place is written as a reference would write it: `#/properties/year/minimum` (RFC 6901 as a URI fragment,
except that only `~` and `/` are escaped, for the reader).
"""

from __future__ import annotations

from typing import Any, TypeAlias
from urllib.parse import unquote

from engine.grammar.syntax import GrammarError

Schema: TypeAlias = "dict[str, Any] | bool"


def step(path: str, name: str | int) -> str:
    """The path of what lies below `path` under a name or number."""
    return f"{path}/{str(name).replace('~', '~0').replace('/', '~1')}"


def resolve(root: Any, reference: str, where: str) -> tuple[Any, str]:
    """What `reference` points at, and its path. Raises GrammarError at `where` for one that is not in this schema."""
    if reference != "#" and not reference.startswith("#/"):
        raise GrammarError(
            f"`$ref` must point into this schema, as #/$defs/name does; {reference!r} is not supported", where
        )
    found, path = root, "#"
    for part in reference.split("/")[1:]:
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        elif isinstance(found, dict) and name in found:
            found = found[name]
        else:
            raise GrammarError(f"`$ref` points at {reference!r}, which is not in the schema", where)
        path = step(path, name)
    return found, path


def parts(schema: Schema, path: str) -> list[tuple[Any, str]]:
    """The schemas that stand in a schema, with their paths, without those that only wait to be pointed at."""
    found = parts_in_place(schema, path)
    if isinstance(schema, dict):
        for word in ("properties", "patternProperties"):
            found += [(part, step(step(path, word), name)) for name, part in schema.get(word, {}).items()]
        found += [(schema[word], step(path, word)) for word in ("items", "additionalProperties") if word in schema]
    return found


def parts_in_place(schema: Schema, path: str) -> list[tuple[Any, str]]:
    """Those of them that speak of the same value as the schema itself."""
    found: list[tuple[Any, str]] = []
    if isinstance(schema, dict):
        for word in ("allOf", "anyOf", "oneOf"):
            found += [(part, step(step(path, word), i)) for i, part in enumerate(schema.get(word, ()))]
        if "not" in schema:
            found.append((schema["not"], step(path, "not")))
    return found


def recursive(root: Schema) -> frozenset[str]:
    """The paths of all schemas that a `$ref` somewhere inside them leads back to."""
    references, leads, _ = _leads(root)
    return frozenset(target for target in references.values() if _returns(leads, target))


def refuse_loops(root: Schema) -> None:
    """Raise GrammarError for a `$ref` that leads back to itself without entering an object or an array."""
    references, _, leads = _leads(root)
    for source in references:
        if _returns(leads, source):
            where = step(source, "$ref")
            raise GrammarError("`$ref` leads back to itself without entering an object or an array", where)


def _leads(root: Schema) -> tuple[dict[str, str], dict[str, list[str]], dict[str, list[str]]]:
    """The references by their places; where each place leads, and where it leads without leaving its value."""
    references: dict[str, str] = {}
    everywhere: dict[str, list[str]] = {}
    in_place: dict[str, list[str]] = {}
    waiting: list[tuple[Schema, str]] = [(root, "#")]
    while waiting:
        schema, path = waiting.pop()
        if path in everywhere:
            continue
        below = parts(schema, path)
        in_place[path] = [place for _, place in parts_in_place(schema, path)]
        if isinstance(schema, dict) and "$ref" in schema:
            target = resolve(root, schema["$ref"], step(path, "$ref"))
            references[path] = target[1]
            below.append(target)
            in_place[path].append(target[1])
        everywhere[path] = [place for _, place in below]
        waiting += below
    return references, everywhere, in_place


def _returns(leads: dict[str, list[str]], place: str) -> bool:
    """Whether a place leads back to itself."""
    seen: set[str] = set()
    waiting = list(leads[place])
    while waiting:
        at = waiting.pop()
        if at == place:
            return True
        if at not in seen:
            seen.add(at)
            waiting += leads[at]
    return False
