"""What is bounded where a schema sets no bound itself, and the record of what was narrowed.

Every text of a grammar ends: what a schema leaves open gets a bound, and what was bounded, cut or left out is
told. A small schema gets generous bounds, a large one the widest with which its automaton stays affordable.
"""

from __future__ import annotations

from dataclasses import dataclass

STATES = 100_000
"""About so many states may a grammar have before narrower bounds are tried."""

TOO_MANY = 1_000_000
"""A grammar that seems to need more with the narrowest bounds is not even tried."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far a document may go where the schema does not say."""

    characters: int
    """Of a string without `maxLength`; a stated one counts up to four times this."""
    items: int
    """Of an array without `maxItems`; a stated one counts up to four times this."""
    keys: int
    """How many keys that are not declared an object may hold."""
    key_characters: int
    """Of a key that is not declared."""
    free_depth: int
    """Containers within containers where any JSON value may stand."""
    free_characters: int
    """Of a string there."""
    free_items: int
    """Items or keys of a container there."""


TIERS = (
    Bounds(256, 16, 16, 32, 2, 32, 4),
    Bounds(256, 16, 8, 32, 1, 64, 4),
    Bounds(128, 16, 8, 32, 1, 64, 4),
    Bounds(128, 12, 6, 32, 1, 48, 3),
    Bounds(96, 12, 6, 32, 1, 32, 3),
    Bounds(64, 12, 6, 32, 1, 32, 3),
    Bounds(48, 12, 4, 24, 1, 32, 3),
    Bounds(32, 10, 4, 24, 1, 32, 3),
    Bounds(32, 8, 4, 16, 1, 24, 2),
    Bounds(24, 6, 3, 12, 1, 16, 2),
    Bounds(16, 4, 2, 8, 0, 16, 2),
)
"""From generous to narrow."""

DEPTH = 3
"""So often is a recursive reference followed on one way down a document."""

DIGITS = 15
"""Digits of a whole number, or before a number's point, where no bound asks for more: a double holds them all."""

PLACES = 17
"""Digits after a number's point."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something that the grammar does not allow although the schema does, and the places where."""

    message: str
    places: tuple[str, ...]


class Notes:
    """Collects notes, one for each message."""

    def __init__(self) -> None:
        self._places: dict[str, dict[str, None]] = {}

    def add(self, message: str, place: str) -> None:
        """Note something about a place of the schema; saying it again changes nothing."""
        self._places.setdefault(message, {})[place] = None

    def all(self) -> tuple[Note, ...]:
        """All notes, in the order in which they came up."""
        return tuple(Note(message, tuple(places)) for message, places in self._places.items())
