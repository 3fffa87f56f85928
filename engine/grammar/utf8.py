"""Sets of characters as byte states: which bytes may follow one another in their UTF-8.

A character of n bytes is a lead byte and n - 1 continuation bytes of six bits each. What may still follow is
therefore a set of numbers below 64 ** (bytes to come), and two places in which that set is the same are one
state. So the states of a set of characters come out deterministic and minimal at once.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby

from engine.grammar.syntax import LAST

Ranges = tuple[tuple[int, int], ...]
"""Pairs of numbers, both ends included, rising and apart."""

Arc = tuple[int, int, int]
"""First byte, last byte, state they lead to."""

LEADS = ((0, 0x7F, 0x00), (0x80, 0x7FF, 0xC0), (0x800, 0xFFFF, 0xE0), (0x10000, LAST, 0xF0))
"""First and last code point of each length, and the lead byte of code point 0 at this length."""

SURROGATES = (0xD800, 0xDFFF)


@lru_cache(maxsize=4096)
def states(ranges: Ranges) -> tuple[tuple[Arc, ...], ...]:
    """The states that read one character out of `ranges`: 0 is the start, 1 the end; surrogates are left out.

    Returns the arcs of each state. No character at all: state 0 has no arc.
    """
    rows: list[tuple[Arc, ...]] = [(), ()]
    known: dict[tuple[int, Ranges], int] = {(0, ((0, 0),)): 1}

    def state(more: int, rest: Ranges) -> int:
        """The state in which `more` bytes are still to come, which together are a number in `rest`."""
        key = (more, rest)
        if key not in known:
            known[key] = len(rows)
            rows.append(())
            rows[known[key]] = arcs(more, rest, 0x80)
        return known[key]

    def arcs(count: int, numbers: Ranges, base: int) -> tuple[Arc, ...]:
        """The arcs of a state with `count` bytes to come; the first of them counts from `base`."""
        return tuple((base + a, base + b, state(count - 1, rest)) for a, b, rest in _tops(64 ** (count - 1), numbers))

    usable = without(ranges, SURROGATES)
    for more, (low, high, base) in enumerate(LEADS):
        here = tuple((max(a, low), min(b, high)) for a, b in usable if a <= high and b >= low)
        rows[0] += arcs(more + 1, here, base)
    return tuple(rows)


def _tops(size: int, numbers: Ranges) -> list[tuple[int, int, Ranges]]:
    """Split numbers into their top part (number // size) and what is left: (first top, last top, rests)."""
    full = ((0, size - 1),)
    split: list[tuple[int, int, Ranges]] = []
    for a, b in numbers:
        first, last = a // size, b // size
        if first == last:
            split.append((first, first, ((a % size, b % size),)))
            continue
        if a % size:
            split.append((first, first, ((a % size, size - 1),)))
            first += 1
        whole = last if b % size == size - 1 else last - 1
        if first <= whole:
            split.append((first, whole, full))
        if whole < last:
            split.append((last, last, ((0, b % size),)))
    merged: list[tuple[int, int, Ranges]] = []
    for top, parts in groupby(split, key=lambda part: part[:2]):
        rest: Ranges = ()
        for *_, more in parts:
            rest = _joined(rest, more)
        if merged and merged[-1][1] + 1 == top[0] and merged[-1][2] == rest:
            top = (merged.pop()[0], top[1])
        merged.append((*top, rest))
    return merged


def _joined(left: Ranges, right: Ranges) -> Ranges:
    """Both, where `right` begins after `left` ends."""
    if left and left[-1][1] + 1 == right[0][0]:
        return (*left[:-1], (left[-1][0], right[0][1]), *right[1:])
    return left + right


def without(ranges: Ranges, hole: tuple[int, int]) -> Ranges:
    """What lies outside the hole."""
    kept: list[tuple[int, int]] = []
    for a, b in ranges:
        kept += [(x, y) for x, y in ((a, min(b, hole[0] - 1)), (max(a, hole[1] + 1), b)) if x <= y]
    return tuple(kept)
