"""The run's clock: the wall, or a virtual one that a step moves by a stated amount."""

from __future__ import annotations

import time

from engine.config import Clock


class WallClock:
    """Seconds since the run's start, measured."""

    kind = "wall"

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def now(self) -> float:
        """Seconds since the start, to the microsecond."""
        return round(time.perf_counter() - self._start, 6)

    def spend(self, tokens: int) -> None:
        """A step took what it took."""

    def jump(self, t: float) -> None:
        """Nothing to do until `t`: sleep, at most a tenth of a second, so that a stop is heard."""
        time.sleep(min(max(t - self.now(), 0.0), 0.1))


class VirtualClock:
    """Seconds that pass only when a step is taken: plan, then step + token x tokens forwarded."""

    kind = "virtual"

    def __init__(self, costs: Clock) -> None:
        self._costs = costs
        self._now = 0.0

    def now(self) -> float:
        """Simulated seconds since the start."""
        return round(self._now, 9)

    def spend(self, tokens: int) -> None:
        """One step of `tokens` forwarded tokens."""
        self._now += self._costs.plan + self._costs.step + self._costs.token * tokens

    def jump(self, t: float) -> None:
        """Go on to `t`."""
        self._now = max(self._now, t)
