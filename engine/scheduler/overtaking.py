"""How far later arrivals have overtaken a waiting request, in prompt tokens computed."""

from __future__ import annotations


class Overtaking:
    """A Fenwick tree over arrival numbers: O(log n) to add and to ask."""

    def __init__(self) -> None:
        self._sums: list[int] = [0]
        self._total = 0

    def arrive(self) -> int:
        """Make room for the next arrival; returns its number (0, 1, 2, ...)."""
        index = len(self._sums)
        low = index & -index
        value, step = 0, 1
        while step < low:
            value += self._sums[index - step]
            step <<= 1
        self._sums.append(value)
        return index - 1

    def computed(self, arrival: int, tokens: int) -> None:
        """`tokens` prompt tokens were computed for this arrival."""
        self._total += tokens
        index = arrival + 1
        while index < len(self._sums):
            self._sums[index] += tokens
            index += index & -index

    def of(self, arrival: int) -> int:
        """Prompt tokens computed for those that arrived after this one."""
        upto, index = 0, arrival + 1
        while index > 0:
            upto += self._sums[index]
            index -= index & -index
        return self._total - upto
