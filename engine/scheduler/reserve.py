"""The reserve: which share of their possible output running requests are expected to need.

Adaptive as SGLang's new_token_ratio (facts: reference engines.md 2.5): it falls slowly while decoding
goes well, and jumps to what the survivors really used when a request had to be retracted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine.config import EngineConfig
from engine.request import Request

CLIP = 4096
"""Possible output beyond this many tokens is not reserved for."""
STEPS = 600
"""Decode steps without retraction from the start value to the least."""
HEADROOM = 20
"""Tokens a survivor may produce before the next retraction, after one."""


class Reserve:
    """The current estimate (`value`) and the pages that it asks for."""

    def __init__(self, config: EngineConfig) -> None:
        self._full = config.admission == "full"
        self._start = config.reserve_start
        self._least = config.reserve_min
        self._retract_max = config.retract_max
        self.value = 1.0 if self._full else self._start

    def tokens(self, request: Request) -> float:
        """Output tokens to keep room for. A request at its retraction bound gets all it may need."""
        left = request.params.max_new_tokens - len(request.output)
        if request.retractions >= self._retract_max:
            return left
        return left if self._full else self.value * min(left, CLIP)

    def pages(self, running: Sequence[Request], page_size: int) -> int:
        """Pages to keep free for the running requests' output."""
        return sum(math.ceil(self.tokens(r) / page_size) for r in running)

    def decoded(self) -> None:
        """A decode step went by without retraction."""
        if not self._full:
            self.value = max(self._least, self.value - (self._start - self._least) / STEPS)

    def retracted(self, survivors: Sequence[Request]) -> None:
        """Estimate anew from what the survivors have produced."""
        if not self._full:
            produced = sum(len(r.output) for r in survivors) + HEADROOM * len(survivors)
            self.value = min(1.0, produced / (sum(r.params.max_new_tokens for r in survivors) + 1))

    def idle(self) -> None:
        """Nothing runs: back to the start value."""
        if not self._full:
            self.value = self._start
