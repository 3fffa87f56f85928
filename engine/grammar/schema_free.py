"""Any JSON value at all, to a bounded depth: what a schema leaves open (`true`, `{}`, no `items`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.grammar import schema_decimals as decimals
from engine.grammar.schema_arrays import brackets
from engine.grammar.schema_bounds import DIGITS, PLACES
from engine.grammar.schema_strings import SAYABLE, spelled
from engine.grammar.syntax import Node, Repeat, Seq, either, text

if TYPE_CHECKING:
    from engine.grammar.schema_writer import Writer

FREE_TYPES = ("null", "boolean", "number", "string", "array", "object")


def free_node(types: frozenset[str], containers: int, writer: Writer, depth: int) -> Node:
    """Any value of these types, where at most so many containers may stand within one another."""
    return either([_of_type(name, containers, writer, depth) for name in FREE_TYPES if name in types])


def _of_type(name: str, containers: int, writer: Writer, depth: int) -> Node:
    bounds = writer.bounds
    match name:
        case "null":
            return text("null")
        case "boolean":
            return either((text("true"), text("false")))
        case "number":
            return decimals.plain(DIGITS, PLACES)
        case "string":
            return spelled(Repeat(SAYABLE, 0, bounds.free_characters))
    if not containers:
        return text("[]" if name == "array" else "{}")
    inner = writer.free(frozenset(FREE_TYPES), depth + 1, containers - 1)
    if name == "array":
        return brackets(inner, 0, bounds.free_items, writer, depth)
    comma = text(writer.layout.comma(depth))
    member = Seq((spelled(Repeat(SAYABLE, 0, bounds.free_characters)), text(writer.layout.colon), inner))
    members = Seq((member, Repeat(Seq((comma, member)), 0, bounds.free_items - 1)))
    opening, closing = text("{" + writer.layout.opening(depth)), text(writer.layout.closing(depth) + "}")
    return either((text("{}"), Seq((opening, members, closing))))
