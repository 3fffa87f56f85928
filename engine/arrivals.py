"""Requests that are still to come: by step, by time, or after another one has ended."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

from engine.request import Request

DIGITS = 9
"""Clocks tell nanoseconds: what is due at 0.30000000000000004 s is due when it is 0.3."""


@dataclass(slots=True, eq=False)
class Coming:
    """One request and when it is due: at a step, at a time (seconds), or `think` seconds after another's end."""

    request: Request
    number: int
    at: float | None = None
    think: float = 0.0


class Arrivals:
    """Pending arrivals in the order in which they fall due; together: in the order of submission."""

    def __init__(self) -> None:
        self._coming: dict[str, Coming] = {}
        self._by_step: list[tuple[float, int, Coming]] = []
        self._by_time: list[tuple[float, int, Coming]] = []
        self._after: dict[str, list[Coming]] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._coming)

    def add(
        self, request: Request, at: float | None, at_step: int | None, after: str | None, think: float
    ) -> None:
        """Expect a request."""
        at = None if at is None else round(at, DIGITS)
        coming = self._coming[request.id] = Coming(request, self._count, at, think)
        self._count += 1
        if at is not None:
            heappush(self._by_time, (at, coming.number, coming))
        if at_step is not None:
            heappush(self._by_step, (max(at_step, 1), coming.number, coming))
        if after is not None:
            self._after.setdefault(after, []).append(coming)

    def expects(self, request: str) -> bool:
        """Whether a request is still to come."""
        return request in self._coming

    def forget(self, request: str) -> Request | None:
        """Drop an arrival that has not happened; returns it, or None when there is none."""
        coming = self._coming.pop(request, None)
        return None if coming is None else coming.request

    def ended(self, request: str, t: float) -> None:
        """A request ended at `t`: those that waited for it now have a time."""
        for coming in self._after.pop(request, ()):
            coming.at = round(t + coming.think, DIGITS)
            heappush(self._by_time, (coming.at, coming.number, coming))

    def due(self, step: int, t: float) -> list[tuple[Request, float]]:
        """Take out what has fallen due, each with the time it was due at."""
        now: list[Coming] = []
        for heap, reached in ((self._by_step, step), (self._by_time, t)):
            while (first := self._first(heap)) is not None and heap[0][0] <= reached:
                heappop(heap)
                del self._coming[first.request.id]
                now.append(first)
        now.sort(key=lambda c: (t if c.at is None else c.at, c.number))
        return [(c.request, t if c.at is None else c.at) for c in now]

    def next(self) -> tuple[int | None, float | None]:
        """The nearest step and the nearest time at which something falls due (None: nothing does)."""
        step = int(self._by_step[0][0]) if self._first(self._by_step) is not None else None
        return step, self._by_time[0][0] if self._first(self._by_time) is not None else None

    def _first(self, heap: list[tuple[float, int, Coming]]) -> Coming | None:
        """What falls due first in a heap; those that were forgotten or have come by the other way leave it."""
        while heap and self._coming.get(heap[0][2].request.id) is not heap[0][2]:
            heappop(heap)
        return heap[0][2] if heap else None
