"""When generated requests arrive: all at once, one after the other, by a rate or by steps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from pydantic import ConfigDict, Field, model_validator

from engine.config import Asked
from workbench.workloads.traffic import MOST_REQUESTS, MOST_TOKENS


class Timed(Asked):
    """What kinds have in common whose requests are independent of each other."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str
    sequential: bool = Field(False, description="each after the one before has ended")
    think: float = Field(0.0, ge=0, allow_inf_nan=False, description="seconds between them (sequential)")
    rate: float | None = Field(None, gt=0, allow_inf_nan=False, description="requests a second, at random (Poisson)")
    every: int | None = Field(None, ge=1, description="steps from one arrival to the next")

    @model_validator(mode="after")
    def _one_timing(self) -> Timed:
        timing = [k for k in ("sequential", "rate", "every") if getattr(self, k)]
        if len(timing) > 1:
            raise ValueError(f"{timing[1]}: give at most one of sequential, rate, every; got {', '.join(timing)}")
        if self.think and not self.sequential:
            raise ValueError("think: counts from the end of the request before; give sequential: true as well")
        return self

    def moments(self, names: Sequence[str], rng: Random) -> Iterator[dict[str, Any]]:
        """When each request arrives; no word of it: all at once, when they are submitted."""
        now = 0.0
        for i in range(len(names)):
            if self.sequential:
                yield {"after": names[i - 1], "think": self.think} if i else {}
            elif self.rate is not None:
                now -= math.log(1 - rng.random()) / self.rate
                yield {"at": round(now, 6)}
            elif self.every is not None:
                yield {"at_step": 1 + i * self.every}
            else:
                yield {}


def not_too_many(key: str, requests: int, tokens: int = 0) -> None:
    """Raises ValueError naming the key where more is asked for than a generator makes."""
    if requests > MOST_REQUESTS:
        raise ValueError(f"{key}: {requests:,} requests are asked for; at most {MOST_REQUESTS:,} are made")
    if tokens > MOST_TOKENS:
        raise ValueError(f"{key}: {tokens:,} prompt tokens are asked for; at most {MOST_TOKENS:,} are made")
