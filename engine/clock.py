"""The run's clock: the wall, or a virtual one that a step moves by a stated amount."""

from __future__ import annotations

import time


class WallClock:
    """Seconds since the run's start, measured."""

    kind = "wall"

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def now(self) -> float:
        """Seconds since the start, to the microsecond."""
        return round(time.perf_counter() - self._start, 6)

    def spend(self, seconds: float) -> None:
        """What is done here takes the time it takes."""

    def reach(self, t: float) -> None:
        """Whatever is due then has been waited for."""

    def jump(self, t: float) -> None:
        """Nothing to do until `t`: sleep, at most a tenth of a second, so that a stop is heard."""
        time.sleep(min(max(t - self.now(), 0.0), 0.1))


class VirtualClock:
    """Seconds that pass only when something is said to take them: planning, or a forward."""

    kind = "virtual"

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        """Simulated seconds since the start."""
        return round(self._now, 9)

    def spend(self, seconds: float) -> None:
        """So many simulated seconds pass."""
        self._now += seconds

    def reach(self, t: float) -> None:
        """Wait until `t`, where that still lies ahead."""
        self._now = max(self._now, t)

    def jump(self, t: float) -> None:
        """Go on to `t`."""
        self.reach(t)
