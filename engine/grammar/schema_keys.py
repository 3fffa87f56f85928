"""Which schemas speak of the value under a key of an object."""

from __future__ import annotations

from engine.grammar.schema_alternatives import Plain
from engine.grammar.schema_patterns import found_in


def about_key(plain: Plain, name: str) -> list[Plain]:
    """All that one object schema says of the value under this key; nothing: any value."""
    found = []
    if "properties" in plain and name in plain["properties"]:
        found.append(plain.below("properties", name))
    if "patternProperties" in plain:
        found += [plain.below("patternProperties", p) for p in plain["patternProperties"] if found_in(p, name)]
    if not found and "additionalProperties" in plain:
        found.append(plain.below("additionalProperties"))
    return found
