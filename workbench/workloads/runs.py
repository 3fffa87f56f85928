"""Runs of random token ids that part at their first token, so that nothing is shared by accident."""

from __future__ import annotations

from random import Random

Range = tuple[int, int]
"""Ids are drawn from the first up to the second, itself left out."""
IDS: Range = (256, 32_000)


def runs(rng: Random, count: int, length: int, ids: Range = IDS) -> list[list[int]]:
    """So many runs of random ids, no two of which begin with the same one."""
    if not length:
        return [[] for _ in range(count)]
    firsts = rng.sample(range(*ids), count)
    return [[first, *run(rng, length - 1, ids)] for first in firsts]


def run(rng: Random, length: int, ids: Range = IDS) -> list[int]:
    """One run of random ids."""
    low, high = ids
    return [low + int(rng.random() * (high - low)) for _ in range(length)]


def check_ids(ids: Range, siblings: int) -> None:
    """Raises ValueError naming `ids` where the range is none, or too small for so many runs side by side."""
    low, high = ids
    if not 0 <= low < high:
        raise ValueError(f"ids: must be two numbers, 0 or more, the second above the first; got [{low}, {high}]")
    if siblings > high - low:
        raise ValueError(f"ids: {siblings:,} runs must begin with different ids, and there are {high - low:,}")
