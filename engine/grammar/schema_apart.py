"""Objects and arrays that must not satisfy another alternative: they cannot be subtracted as texts.

A tree writes objects closed and in order, so what one tree writes minus what another one writes says nothing about
the schemas. So first one difference is looked for that every document shows: a key that one side needs and the
other never has, or a place that both have with values that differ. Where there is none, an object is written so
that it shows one: without a key that the other needs, or with a key under which the other allows other values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.grammar.schema_alternatives import Alternative, ImpossibleError, Plain, common_types
from engine.grammar.schema_arrays import item_counts
from engine.grammar.schema_measure import states_of
from engine.grammar.schema_objects import about, declared
from engine.grammar.syntax import Both

if TYPE_CHECKING:
    from engine.grammar.schema_writer import Writer


def apart(written: Alternative, other: Alternative, writer: Writer) -> bool:
    """Whether no value that is written for one alternative satisfies the other, as far as that can be shown."""
    if written.never or written.cut or other.never:
        return True
    for listing in (written, other):
        if listed := listing.values():
            return not any(
                writer.judge.alternative(v, written) and writer.judge.alternative(v, other) for v in listed[0]
            )
    if written.open:
        return False
    types = common_types(written.types_meant(), other.types())
    return all(_apart_as(name, written, other, writer) for name in types)


def _apart_as(name: str, written: Alternative, other: Alternative, writer: Writer) -> bool:
    """Whether two alternatives exclude each other among values of one type."""
    match name:
        case "null":
            return not writer.judge.alternative(None, other)
        case "boolean":
            return not any(writer.judge.alternative(v, other) for v in (True, False))
        case "array":
            return _arrays(written, other, writer)
        case "object":
            return _objects(written, other, writer)
    try:
        return not states_of(Both(writer.scalar(written, name), writer.wide_scalar(other, name)))
    except ImpossibleError:
        return True


def _objects(written: Alternative, other: Alternative, writer: Writer) -> bool:
    needed, other_needed = _required(written), _required(other)
    if not written.stated("additionalProperties") and not written.stated("patternProperties"):
        known = {*declared(written), *needed}
        if any(name not in known for name in other_needed):
            return True
    return any(_values(about(written, name), about(other, name), writer) for name in {**needed, **other_needed})


def differences(other: Alternative) -> list[Plain]:
    """Schemas of an object, each of which makes sure that the other alternative does not hold."""
    needed = _required(other)
    found: list[Plain] = []
    for plain in other.plains:
        for name, schema in plain.get("properties", {}).items():
            words: dict[str, Any] = {"properties": {name: {"not": schema}}}
            if name not in needed:
                words["required"] = [name]
            found.append(Plain(words, f"{plain.at('properties', name)} not", plain.opened))
    for name in needed.keys() - set(declared(other)):
        found.append(Plain({"properties": {name: False}}, f"{other.stated('required')[0][1]} without {name}"))
    return sorted(found, key=lambda plain: plain.path)


def _required(alternative: Alternative) -> dict[str, None]:
    return {name: None for names, _ in alternative.stated("required") for name in names}


def _arrays(written: Alternative, other: Alternative, writer: Writer) -> bool:
    try:
        (least, most), (other_least, other_most) = item_counts(written), item_counts(other)
    except ImpossibleError:
        return True
    if (most is not None and other_least > most) or (other_most is not None and least > other_most):
        return True
    return max(least, other_least) > 0 and _values(_items(written), _items(other), writer)


def _items(alternative: Alternative) -> tuple[Plain, ...]:
    return tuple(plain.below("items") for plain in alternative.plains if "items" in plain)


def _values(written: tuple[Plain, ...], other: tuple[Plain, ...], writer: Writer) -> bool:
    """The same for two conjunctions of schemas, each with all its branches."""
    return all(
        apart(one, another, writer)
        for one in writer.branches.alternatives(written)
        for another in writer.branches.alternatives(other)
    )
