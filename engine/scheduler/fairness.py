"""lpm-fair: how far a request may be overtaken before it goes first.

Own rule. From a request's arrival to its first admission, at most `bound` prompt tokens are admitted for
requests that arrived later. Tokens count when their request is admitted, not when a chunk of them runs: so
the bound also holds where a long prompt is computed over many steps. Of those that wait, the earliest
arrival has been overtaken most, so looking at it alone is enough. Bound 0 is fcfs, None is plain lpm.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.request import Request
from engine.scheduler.overtaking import Overtaking
from engine.scheduler.queue import Queue


class Fairness:
    """Knows what was admitted past whom."""

    def __init__(self, bound: int | None) -> None:
        self.bound = bound
        self._promised = Overtaking()
        self._known = 0

    def overtaken(self, request: Request) -> int:
        """Prompt tokens admitted for later arrivals since it arrived."""
        self._grow(request.index)
        return self._promised.of(request.index)

    def before(self, request: Request, queue: Queue, to_compute: Callable[[Request], int]) -> Request | None:
        """Who has to be admitted before `request` because the bound leaves no room to overtake it."""
        oldest = queue.oldest
        if self.bound is None or oldest is None or oldest.index >= request.index or request not in queue:
            return None
        over = self.overtaken(oldest) + to_compute(request)
        return oldest if over > self.bound else None

    def admitted(self, request: Request, tokens: int) -> None:
        """`tokens` of its prompt will be computed."""
        if self.bound is not None:
            self._grow(request.index)
            self._promised.computed(request.index, tokens)

    def _grow(self, index: int) -> None:
        while self._known <= index:
            self._promised.arrive()
            self._known += 1
