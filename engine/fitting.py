"""Fits a roofline to measured passes: an overhead, something a row, the rates of arithmetic and of memory, and what KV costs more.

A pass is bound by its arithmetic where it asks for more operations a byte than some ridge, and by memory
below it. Once the passes are sorted by operations a byte, every possible ridge is one cut, and for each cut the model is linear: all are
tried, each by least squares of relative errors, and the one with the smallest error is taken. How a byte of KV counts in the sorting is
part of what is looked for, so a few weights are tried.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from engine.roofline import Work

Numbers = npt.NDArray[np.float64]

WEIGHTS = (1.0, 2.0, 4.0, 8.0)
"""Of a byte of KV beside one of the weights, while passes are sorted."""


AT_MOST = 0.15
"""Median relative error above which passes were disturbed rather than measured."""


class FitError(ValueError):
    """Passes that no roofline goes through."""


@dataclass(frozen=True)
class Fitted:
    """Seconds a pass and a row; operations and bytes a second, as they are reached (not peaks); how often KV is moved."""

    overhead: float
    row: float
    flops: float
    bandwidth: float
    kv_moves: float

    def seconds(self, asked: Work) -> float:
        """What it says of a pass."""
        moving = (asked.weight_bytes + self.kv_moves * asked.kv_bytes) / self.bandwidth
        return self.overhead + self.row * asked.rows + max(asked.flops / self.flops, moving)


def fit(passes: Sequence[tuple[Work, float]]) -> Fitted:
    """The roofline with the least sum of squared relative errors over (work, seconds). Raises FitError."""
    best: tuple[float, Fitted] | None = None
    for weight in WEIGHTS:
        ordered = sorted(passes, key=lambda one: one[0].flops / (one[0].weight_bytes + weight * one[0].kv_bytes))
        for found in _cuts(ordered):
            error = sum((found.seconds(asked) / took - 1) ** 2 for asked, took in passes)
            if best is None or error < best[0]:
                best = error, found
    if best is None:
        raise FitError("no roofline goes through the measured passes")
    off = statistics.median(abs(best[1].seconds(asked) / took - 1) for asked, took in passes)
    if off > AT_MOST:
        raise FitError(f"even the best roofline is off by {off:.0%} (median) from the measured passes, and {AT_MOST:.0%} is the most that is taken")
    return best[1]


def _cuts(ordered: Sequence[tuple[Work, float]]) -> Iterator[Fitted]:
    """What fits for every ridge: passes before the cut are bound by memory, those after it by arithmetic."""
    table = np.array([(w.rows, w.flops, w.weight_bytes, w.kv_bytes, took) for w, took in ordered], float)
    rows, flops, weights, kv, took = table.T
    for cut in range(1, len(ordered)):
        memory = np.arange(len(ordered)) < cut
        columns = np.stack([np.ones(len(ordered)), rows, flops * ~memory, weights * memory, kv * memory], 1)
        for kept in product((True, False), (True, False)):
            found = _solve(columns, took, [*kept, True, True, True])
            if found is not None:
                yield found


def _solve(columns: Numbers, took: Numbers, kept: list[bool]) -> Fitted | None:
    """Least squares of relative errors with some columns; None where a rate would not be positive, or a time negative."""
    used = columns[:, kept] / took[:, None]
    scale = np.linalg.norm(used, axis=0)
    if not scale.all():
        return None
    solution = np.zeros(columns.shape[1])
    solution[kept] = np.linalg.lstsq(used / scale, np.ones(len(took)), rcond=None)[0] / scale
    overhead, row, computing, moving, gathering = (float(x) for x in solution)
    if min(overhead, row, gathering) < 0 or min(computing, moving) <= 0:
        return None
    return Fitted(overhead, row, 1 / computing, 1 / moving, gathering / moving)
