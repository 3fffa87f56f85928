"""How long an engine spends in its prefix cache: every call of the cache's interface, timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from engine import Engine

CALLS = ("match", "to_lock", "acquire", "release", "insert", "evict")


class Stopwatch:
    """`start` puts it on an engine that has not run yet; a call inside another counts once."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls = 0
        self._inside = False

    def start(self, engine: Engine) -> None:
        """Time the cache's calls from now on, the events that they tell included."""
        for name in CALLS:
            setattr(engine.cache, name, self._timed(getattr(engine.cache, name)))

    def _timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            if self._inside:
                return call(*args, **kwargs)
            self._inside = True
            start = time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                self.seconds += time.perf_counter() - start
                self.calls += 1
                self._inside = False

        return timed
