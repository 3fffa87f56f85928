"""A JSON schema as a tree: every text of it is JSON that the schema accepts.

Not everything that the schema accepts is such a text. Keys come in declared order, those that are not declared
only where the schema speaks of them, blanks only where the spacing has them, every string and number in one
form; and everything ends. What was narrowed is told in `Reading.notes`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from engine.grammar.schema_alternatives import Plain
from engine.grammar.schema_bounds import DEPTH, STATES, TIERS, TOO_MANY, Bounds, Note
from engine.grammar.schema_keywords import check
from engine.grammar.schema_layout import SPACINGS, Layout
from engine.grammar.schema_measure import Lengths
from engine.grammar.schema_writer import Writer
from engine.grammar.syntax import GrammarError, Node


@dataclass(frozen=True, slots=True)
class Reading:
    """What became of a schema."""

    node: Node
    bounds: Bounds
    """Where the schema sets none itself."""
    notes: tuple[Note, ...]
    """What the grammar does not allow although the schema does."""
    states: int
    """About how many states the automaton will have at most."""
    longest: int | None
    """No document has more bytes, and so none takes more tokens."""


def node_of(schema: Any, spacing: str) -> Node:
    """The tree of a schema. Raises GrammarError with the path of what is not supported or impossible."""
    return read(schema, spacing).node


def parse(source: str, spacing: str) -> Node:
    """The tree of a schema that is given as JSON text. Raises GrammarError, also for what is no JSON."""
    try:
        schema = json.loads(source)
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"the schema is not JSON: {error}", "#") from error
    return node_of(schema, spacing)


def read(schema: Any, spacing: str) -> Reading:
    """The tree of a schema, and what was bounded or narrowed on the way.

    The bounds are the widest with which the automaton stays affordable. Raises GrammarError with the path of
    what is not supported, or of the part that makes the whole impossible.
    """
    if spacing not in SPACINGS:
        raise GrammarError(f"the spacing is one of {', '.join(SPACINGS)}, not {spacing!r}")
    try:
        return _read(schema, spacing)
    except RecursionError as error:
        raise GrammarError("the schema is nested too deep", "#") from error


def _read(schema: Any, spacing: str) -> Reading:
    check(schema)
    for bounds in TIERS:
        writer = Writer(schema, Layout(spacing), bounds, DEPTH)
        node = writer.value((Plain(schema, "#"),), 0)
        states = writer.sizes.of(node)
        if states <= STATES:
            break
    if states > TOO_MANY:
        raise GrammarError(f"the grammar would need more than {TOO_MANY:,} states; lower its counts and lengths", "#")
    return Reading(node, bounds, writer.notes.all(), states, Lengths(in_bytes=True).longest(node))
