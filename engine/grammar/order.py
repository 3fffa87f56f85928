"""States in another order: which can be reached, which lead to an end, and numbers that stay the same."""

from __future__ import annotations

import numpy as np

from engine.grammar.joined import Fragment


def renumber(piece: Fragment, order: np.ndarray) -> Fragment:
    """The states named in `order`, in that order; moves to others become -1."""
    place = np.full(len(piece) + 1, -1, np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return Fragment(place[piece.moves[order]], piece.accepting[order])


def breadth_first(piece: Fragment) -> np.ndarray:
    """The states that can be reached, nearest to the start first, and within that by the bytes that lead there."""
    seen = np.zeros(len(piece), bool)
    seen[0] = True
    level = np.zeros(1, np.int64)
    order = [level]
    while len(level):
        targets = piece.moves[level].ravel()
        targets = targets[targets >= 0]
        targets = targets[~seen[targets]]
        fresh, firsts = np.unique(targets, return_index=True)
        level = fresh[np.argsort(firsts)]
        seen[level] = True
        order.append(level)
    return np.concatenate(order)


def distances(piece: Fragment) -> np.ndarray:
    """Fewest bytes from each state to an accepting one, int32 [states]; -1 from where there is none."""
    sources, begins = entries(piece.moves)
    found = np.where(piece.accepting, 0, -1).astype(np.int32)
    level, distance = np.flatnonzero(piece.accepting), 0
    while len(level):
        distance += 1
        before = gather(sources, begins, level)
        level = np.unique(before[found[before] < 0])
        found[level] = distance
    return found


def entries(moves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Moves the other way round: the sources of the moves into state s are sources[begins[s] : begins[s + 1]].

    A source that enters a state by several neighbouring classes stands there once.
    """
    differs = np.ones(moves.shape, bool)
    differs[:, 1:] = moves[:, 1:] != moves[:, :-1]
    source, column = np.nonzero(differs & (moves >= 0))
    target = moves[source, column]
    order = np.argsort(target, kind="stable")
    return source[order], np.searchsorted(target[order], np.arange(len(moves) + 1))


def gather(values: np.ndarray, begins: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The values of several rows, one after the other."""
    first = begins[rows]
    counts = begins[rows + 1] - first
    ends = np.cumsum(counts)
    if not len(ends) or not ends[-1]:
        return values[:0]
    gathered: np.ndarray = values[np.repeat(first - (ends - counts), counts) + np.arange(ends[-1])]
    return gathered
