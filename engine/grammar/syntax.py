"""What a grammar says, as a small tree over characters: the one language between the front ends and the automaton.

A front end (`regex`, `schema`) builds a tree; `automaton` turns a tree into states and edges over UTF-8
bytes. A tree is finite: recursion is unrolled by whoever builds it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

LAST = 0x10FFFF
"""The highest code point."""

Node: TypeAlias = "Chars | Seq | Either | Repeat | Both | Minus"


class GrammarError(ValueError):
    """A grammar cannot be used. `where` is the place: an offset into a pattern, or a path into a schema."""

    def __init__(self, message: str, where: int | str | None = None) -> None:
        super().__init__(message)
        self.where = where


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of `ranges`: pairs of code points, both ends included, rising and apart.

    No range at all: nothing matches. Surrogates (D800 to DFFF) have no UTF-8 and never match.
    """

    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Seq:
    """One part after the other. No parts: the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """Any one of the options. No options: nothing matches."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`part`, at least `least` and at most `most` times (None: without bound)."""

    part: Node
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Both:
    """Texts that both sides match."""

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Minus:
    """Texts that `left` matches and `right` does not."""

    left: Node
    right: Node


EMPTY = Seq(())
NEVER = Either(())
ANY = Chars(((0, LAST),))


def text(string: str) -> Node:
    """Exactly this text."""
    return Seq(tuple(Chars(((ord(c), ord(c)),)) for c in string))


def either(options: Iterable[Node]) -> Node:
    """Any one of the options; a single one is itself."""
    many = tuple(options)
    return many[0] if len(many) == 1 else Either(many)


def optional(part: Node) -> Node:
    """`part` or nothing."""
    return Repeat(part, 0, 1)
