"""Fits a roofline to measured passes: an overhead, something a row, and the rates of arithmetic and of memory.

A pass is bound by its arithmetic where it asks for more operations a byte than some ridge, and by memory
below it. Once the passes are sorted by operations a byte, every possible ridge is one cut, and for each cut the model is linear: all are
tried, each by least squares of relative errors, and the one with the smallest error is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from engine.roofline import Work

Numbers = npt.NDArray[np.float64]


class FitError(ValueError):
    """Passes that no roofline goes through."""


@dataclass(frozen=True)
class Fitted:
    """Seconds a pass and a row; operations and bytes a second, as they are reached (not peaks)."""

    overhead: float
    row: float
    flops: float
    bandwidth: float

    def seconds(self, asked: Work) -> float:
        """What it says of a pass."""
        return self.overhead + self.row * asked.rows + max(asked.flops / self.flops, asked.bytes / self.bandwidth)


def fit(passes: Sequence[tuple[Work, float]]) -> Fitted:
    """The roofline with the least sum of squared relative errors over (work, seconds). Raises FitError."""
    ordered = sorted(passes, key=lambda one: one[0].flops / one[0].bytes)
    flops = np.array([w.flops for w, _ in ordered], float)
    moved = np.array([w.bytes for w, _ in ordered], float)
    rows = np.array([w.rows for w, _ in ordered], float)
    took = np.array([t for _, t in ordered], float)
    best: tuple[float, Fitted] | None = None
    for cut in range(1, len(ordered)):
        computing = np.arange(len(ordered)) >= cut
        columns = np.stack([np.ones(len(ordered)), rows, flops * computing, moved * ~computing], 1)
        for kept in product((True, False), (True, False)):
            found = _solve(columns, took, [*kept, True, True])
            if found is None:
                continue
            error = sum((found.seconds(w) / t - 1) ** 2 for w, t in ordered)
            if best is None or error < best[0]:
                best = error, found
    if best is None:
        raise FitError("no roofline goes through the measured passes: some that ask for more took less")
    return best[1]


def _solve(columns: Numbers, took: Numbers, kept: list[bool]) -> Fitted | None:
    """Least squares of relative errors with some columns; None where a rate would not be positive, or a time negative."""
    used = columns[:, kept] / took[:, None]
    scale = np.linalg.norm(used, axis=0)
    if not scale.all():
        return None
    solution = np.zeros(4)
    solution[kept] = np.linalg.lstsq(used / scale, np.ones(len(took)), rcond=None)[0] / scale
    overhead, row, computing, moving = (float(x) for x in solution)
    if overhead < 0 or row < 0 or computing <= 0 or moving <= 0:
        return None
    return Fitted(overhead, row, 1 / computing, 1 / moving)
