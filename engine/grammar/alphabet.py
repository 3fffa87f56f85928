"""Bytes that a grammar never tells apart, as one class: tables get a column for each class instead of 256."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from engine.grammar import utf8
from engine.grammar.syntax import Both, Chars, Either, Minus, Node, Repeat, Seq


class Alphabet:
    """The classes of a tree's bytes, numbered by their first byte. `classes[byte]` is a byte's class."""

    def __init__(self, node: Node) -> None:
        rows: set[tuple[tuple[int, int, int], ...]] = set()
        for chars in leaves(node):
            rows.update(utf8.states(chars.ranges))
        table = np.full((len(rows), 256), -1, np.int32)
        for i, arcs in enumerate(sorted(rows)):
            for first, last, target in arcs:
                table[i, first : last + 1] = target
        self.classes, self.firsts = merge_columns(table)

    @property
    def size(self) -> int:
        """How many classes there are."""
        return len(self.firsts)

    def row(self, arcs: Iterable[utf8.Arc]) -> np.ndarray:
        """A state's row of a table, int32 [classes], from its arcs."""
        row = np.full(256, -1, np.int32)
        for first, last, target in arcs:
            row[first : last + 1] = target
        picked: np.ndarray = row[self.firsts]
        return picked


def merge_columns(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number the different columns of [rows, columns] by first appearance.

    Returns each column's number, and the first column of each number.
    """
    if not len(table):
        return np.zeros(table.shape[1], np.int32), np.zeros(1, np.int64)
    columns = np.ascontiguousarray(table.T).view(np.dtype((np.void, table.itemsize * len(table)))).ravel()
    _, firsts, numbers = np.unique(columns, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(firsts))
    return rank[numbers].astype(np.int32), np.sort(firsts)


def leaves(node: Node) -> list[Chars]:
    """All sets of characters in a tree, each once. A part that stands in several places is entered once."""
    found: dict[Chars, None] = {}
    seen: set[int] = set()
    stack: list[Node] = [node]
    while stack:
        part = stack.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Chars):
            found[part] = None
        else:
            stack += children(part)
    return list(found)


def children(node: Node) -> tuple[Node, ...]:
    """The parts of a node."""
    match node:
        case Seq(parts) | Either(parts):
            return parts
        case Repeat(part):
            return (part,)
        case Both(left, right) | Minus(left, right):
            return (left, right)
    return ()
