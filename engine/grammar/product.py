"""What two deterministic pieces both match, or what one matches and the other does not: walk both at once."""

from __future__ import annotations

import numpy as np

from engine.grammar.joined import Fragment, check_size, never
from engine.grammar.minimise import minimise
from engine.grammar.order import distances, renumber


def product(left: Fragment, right: Fragment, minus: bool) -> Fragment:
    """Both, or with `minus` left without right. Raises GrammarError where it gets too large.

    A state is a pair of states, as the number `left * width + right`; with `minus` the right side goes on as
    state `len(right)` once it has come to no way on.
    """
    width = len(right) + 1
    right_moves = np.vstack([right.moves, np.full((1, right.moves.shape[1]), -1, np.int32)])
    accepts_right = np.append(right.accepting, False)
    if minus:
        right_moves = np.where(right_moves < 0, len(right), right_moves)
        accepts_right = ~accepts_right
    pairs = np.zeros(1, np.int64)
    numbers = {0: 0}
    rows: list[np.ndarray] = []
    found: list[np.ndarray] = [pairs]
    while len(pairs):
        a, b = left.moves[pairs // width], right_moves[pairs % width]
        targets = np.where((a >= 0) & (b >= 0), a.astype(np.int64) * width + b, -1)
        fresh = [pair for pair in np.unique(targets).tolist() if pair >= 0 and pair not in numbers]
        numbers.update((pair, len(numbers) + i) for i, pair in enumerate(fresh))
        check_size(len(numbers))
        rows.append(targets)
        pairs = np.array(fresh, np.int64)
        found.append(pairs)
    every = np.concatenate(found)
    moves = _places(np.concatenate(rows), every)
    accepting = left.accepting[every // width] & accepts_right[every % width]
    piece = Fragment(moves, accepting)
    keep = distances(piece) >= 0
    if not keep[0]:
        return never(moves.shape[1])
    return minimise(renumber(piece, np.flatnonzero(keep)))


def _places(targets: np.ndarray, every: np.ndarray) -> np.ndarray:
    """Each pair's place in `every`, -1 for -1."""
    order = np.argsort(every)
    places = order[np.searchsorted(every[order], np.maximum(targets, 0).ravel()).clip(max=len(every) - 1)]
    return np.where(targets >= 0, places.reshape(targets.shape), -1).astype(np.int32)
