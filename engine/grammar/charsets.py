"""Sets of characters as ranges of code points, and the sets that \\d, \\w and \\s name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

import numpy as np

from engine.grammar.syntax import LAST

Ranges = tuple[tuple[int, int], ...]
"""Pairs of code points, both ends included, rising and apart."""


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Ranges in any order as rising ones that neither overlap nor touch."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)


def complement(ranges: Ranges) -> Ranges:
    """Every other character."""
    firsts = [0, *(last + 1 for _, last in ranges)]
    lasts = [*(first - 1 for first, _ in ranges), LAST]
    return tuple((first, last) for first, last in zip(firsts, lasts, strict=True) if first <= last)


@cache
def category(letter: str, ascii: bool) -> Ranges:
    r"""What \d, \w or \s matches in Python's `re`, by asking it; the upper-case letters match all others.

    With `ascii` as under re.ASCII: [0-9], [a-zA-Z0-9_] and [ \t\n\r\f\v].
    """
    if letter.isupper():
        return complement(category(letter.lower(), ascii))
    every = np.arange(LAST + 1, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    found = re.finditer(rf"\{letter}+", every, re.ASCII if ascii else re.NOFLAG)
    return tuple((match.start(), match.end() - 1) for match in found)
