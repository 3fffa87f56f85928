"""Requests that are still to come: by step, by time, or after another one has ended."""

from __future__ import annotations

from dataclasses import dataclass

from engine.request import Request


@dataclass(slots=True)
class Coming:
    """One request and when it is due: at a step, at a time (seconds), or `think` seconds after another's end."""

    request: Request
    number: int
    at: float | None = None
    at_step: int | None = None
    after: str | None = None
    think: float = 0.0


class Arrivals:
    """Pending arrivals in the order in which they fall due; together: in the order of submission."""

    def __init__(self) -> None:
        self._coming: list[Coming] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._coming)

    def add(
        self, request: Request, at: float | None, at_step: int | None, after: str | None, think: float
    ) -> None:
        """Expect a request."""
        self._coming.append(Coming(request, self._count, at, at_step, after, think))
        self._count += 1

    def expects(self, request: str) -> bool:
        """Whether a request is still to come."""
        return any(c.request.id == request for c in self._coming)

    def forget(self, request: str) -> Request | None:
        """Drop an arrival that has not happened; returns it, or None when there is none."""
        for coming in self._coming:
            if coming.request.id == request:
                self._coming.remove(coming)
                return coming.request
        return None

    def ended(self, request: str, t: float) -> None:
        """A request ended at `t`: those that waited for it now have a time."""
        for coming in self._coming:
            if coming.after == request:
                coming.after, coming.at = None, t + coming.think

    def due(self, step: int, t: float) -> list[tuple[Request, float]]:
        """Take out what has fallen due, each with the time it was due at."""
        now = [
            c for c in self._coming
            if (c.at is not None and c.at <= t) or (c.at_step is not None and max(c.at_step, 1) <= step)
        ]  # fmt: skip
        if not now:
            return []
        self._coming = [c for c in self._coming if c not in now]
        now.sort(key=lambda c: (t if c.at is None else c.at, c.number))
        return [(c.request, t if c.at is None else c.at) for c in now]

    def next(self) -> tuple[int | None, float | None]:
        """The nearest step and the nearest time at which something falls due (None: nothing does)."""
        steps = [c.at_step for c in self._coming if c.at_step is not None]
        times = [c.at for c in self._coming if c.at is not None]
        return min(steps, default=None), min(times, default=None)
