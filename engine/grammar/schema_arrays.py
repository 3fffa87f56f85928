"""Arrays of a schema: items of one schema, between two counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.grammar.schema_alternatives import Alternative, ImpossibleError
from engine.grammar.syntax import Node, Repeat, Seq, either, text

if TYPE_CHECKING:
    from engine.grammar.schema_writer import Writer


def array_node(alternative: Alternative, writer: Writer, depth: int) -> Node:
    """The arrays that an alternative allows. Raises ImpossibleError where there must be items and none is possible."""
    least, most = item_counts(alternative)
    where = alternative.path
    if most is None:
        most = max(writer.bounds.items, least)
        writer.notes.add(f"arrays without `maxItems` have at most {most} items", where)
    elif most > max(4 * writer.bounds.items, least):
        most = max(4 * writer.bounds.items, least)
        writer.notes.add(f"arrays have at most {most} items, although `maxItems` allows more", where)
    if not most:
        return text("[]")
    said = tuple(plain.below("items") for plain in alternative.plains if "items" in plain)
    if not said:
        writer.note_free(where)
    try:
        item = writer.value(said, depth + 1)
    except ImpossibleError as reason:
        if least:
            raise
        writer.left_out(reason, said[0].path)
        return text("[]")
    return brackets(item, least, most, writer, depth)


def item_counts(alternative: Alternative) -> tuple[int, int | None]:
    """The narrowest of all `minItems` and `maxItems`. Raises ImpossibleError where they contradict each other."""
    least = max(alternative.stated("minItems"), default=(0, ""))
    most = min(alternative.stated("maxItems"), default=None)
    if most is not None and least[0] > most[0]:
        raise ImpossibleError(f"`minItems` {int(least[0])} is above `maxItems` {int(most[0])}", least[1])
    return int(least[0]), None if most is None else int(most[0])


def brackets(item: Node, least: int, most: int, writer: Writer, depth: int) -> Node:
    """An array of `least` to `most` items, `most` at least 1, in the writer's spacing."""
    comma = text(writer.layout.comma(depth))
    more = Repeat(Seq((comma, item)), max(least, 1) - 1, most - 1)
    opening, closing = text("[" + writer.layout.opening(depth)), text(writer.layout.closing(depth) + "]")
    filled = Seq((opening, item, more, closing))
    return filled if least else either((text("[]"), filled))
