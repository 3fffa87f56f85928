"""Many questions on few long passages: the traffic of prompts that begin alike.

A prompt is `common` + `prefix` + `question` tokens: the first are shared by all, the next by a group, the
last by nobody. Siblings part at their first token, so that nothing is shared by accident.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random
from typing import Any, Literal

from pydantic import ConfigDict, Field, model_validator

from engine.config import Asked
from workbench.workloads.traffic import MOST_REQUESTS, MOST_TOKENS, Maker, Traffic


class SharedPrefix(Asked):
    """Groups of requests; lengths in tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["shared_prefix"]
    groups: int = Field(ge=1, description="passages")
    per_group: int = Field(ge=1, description="questions on each passage")
    prefix: int = Field(ge=0, description="tokens that a group shares")
    question: int = Field(ge=0, description="tokens of one's own")
    common: int = Field(0, ge=0, description="tokens that all groups share, before the group's own")
    output: int = Field(16, ge=0, le=1_000_000, description="tokens to answer; 0: prefill only")
    order: Literal["grouped", "shuffled", "round-robin"] = Field("shuffled", description="in which they arrive")
    ids: tuple[int, int] = Field(
        (256, 32_000), description="token ids are drawn from the first up to the second, itself left out"
    )
    sequential: bool = Field(False, description="each after the one before has ended")
    think: float = Field(0.0, ge=0, allow_inf_nan=False, description="seconds between them (sequential)")
    rate: float | None = Field(None, gt=0, allow_inf_nan=False, description="requests a second, at random (Poisson)")
    every: int | None = Field(None, ge=1, description="steps from one arrival to the next")

    @model_validator(mode="after")
    def _consistent(self) -> SharedPrefix:
        low, high = self.ids
        if not 0 <= low < high:
            raise ValueError(f"ids: must be two numbers, 0 or more, the second above the first; got [{low}, {high}]")
        if not self.length:
            raise ValueError("question: prompts are empty; common, prefix or question must be 1 or more")
        timing = [k for k in ("sequential", "rate", "every") if getattr(self, k)]
        if len(timing) > 1:
            raise ValueError(f"{timing[1]}: give at most one of sequential, rate, every; got {', '.join(timing)}")
        if self.think and not self.sequential:
            raise ValueError("think: counts from the end of the request before; give sequential: true as well")
        if self.count > MOST_REQUESTS:
            raise ValueError(f"groups: {self.count:,} requests are asked for; at most {MOST_REQUESTS:,} are made")
        if self.count * self.length > MOST_TOKENS:
            raise ValueError(
                f"groups: {self.count * self.length:,} prompt tokens are asked for; at most {MOST_TOKENS:,} are made"
            )
        siblings = self.groups if self.prefix else self.count
        if max(siblings, self.per_group) > high - low:
            raise ValueError(
                f"ids: {max(siblings, self.per_group):,} runs must begin with different ids, and there are {high - low:,}"
            )
        return self

    @property
    def count(self) -> int:
        """Requests."""
        return self.groups * self.per_group

    @property
    def length(self) -> int:
        """Tokens of each prompt."""
        return self.common + self.prefix + self.question

    def traffic(self, maker: Maker) -> Traffic:
        """The requests, the same for the same seed."""
        rng = Random(maker.seed)
        order = self._order(rng)
        prompts = self._prompts(rng)
        return Traffic(
            [
                {
                    "id": f"R{i}", "label": f"group {group}, question {question}", "tokens": prompts[group, question],
                    "max_new_tokens": self.output, "ignore_eos": True, **when,
                }
                for i, ((group, question), when) in enumerate(zip(order, self._arrivals(rng), strict=True), 1)
            ]
        )  # fmt: skip

    def _order(self, rng: Random) -> list[tuple[int, int]]:
        """(group, question) as they arrive. Drawn before all else: it is the same for any lengths."""
        groups, questions = range(1, self.groups + 1), range(1, self.per_group + 1)
        if self.order == "round-robin":
            return [(group, question) for question in questions for group in groups]
        order = [(group, question) for group in groups for question in questions]
        if self.order == "shuffled":
            rng.shuffle(order)
        return order

    def _arrivals(self, rng: Random) -> Iterator[dict[str, Any]]:
        """When each request arrives; no word of it: all at once, when they are submitted."""
        now = 0.0
        for i in range(self.count):
            if self.sequential:
                yield {"after": f"R{i}", "think": self.think} if i else {}
            elif self.rate is not None:
                now -= math.log(1 - rng.random()) / self.rate
                yield {"at": round(now, 6)}
            elif self.every is not None:
                yield {"at_step": 1 + i * self.every}
            else:
                yield {}

    def _prompts(self, rng: Random) -> dict[tuple[int, int], list[int]]:
        """(group, question) -> token ids."""
        common = self._runs(rng, 1, self.common)[0]
        passages = self._runs(rng, self.groups, self.prefix)
        # Without passages all questions are siblings.
        families = [self.per_group] * self.groups if self.prefix else [self.count]
        questions = [run for size in families for run in self._runs(rng, size, self.question)]
        return {
            (group, question): common + passage + questions[(group - 1) * self.per_group + question - 1]
            for group, passage in enumerate(passages, 1)
            for question in range(1, self.per_group + 1)
        }

    def _runs(self, rng: Random, count: int, length: int) -> list[list[int]]:
        """So many runs of random ids, no two of which begin with the same one."""
        if not length:
            return [[] for _ in range(count)]
        low, high = self.ids
        firsts = rng.sample(range(low, high), count)
        return [[first, *(low + int(rng.random() * (high - low)) for _ in range(length - 1))] for first in firsts]
