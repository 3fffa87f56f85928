"""Many questions on few long passages: the traffic of prompts that begin alike.

A prompt is `common` + `prefix` + `question` tokens: the first are shared by all, the next by a group, the
last by nobody. Siblings part at their first token, so that nothing is shared by accident.
"""

from __future__ import annotations

from random import Random
from typing import Literal

from pydantic import Field, model_validator

from workbench.workloads.arrivals import Timed, not_too_many
from workbench.workloads.runs import IDS, Range, check_ids, runs
from workbench.workloads.traffic import Maker, Traffic


class SharedPrefix(Timed):
    """Groups of requests; lengths in tokens."""

    kind: Literal["shared_prefix"]
    groups: int = Field(ge=1, description="passages")
    per_group: int = Field(ge=1, description="questions on each passage")
    prefix: int = Field(ge=0, description="tokens that a group shares")
    question: int = Field(ge=0, description="tokens of one's own")
    common: int = Field(0, ge=0, description="tokens that all groups share, before the group's own")
    output: int = Field(16, ge=0, le=1_000_000, description="tokens to answer; 0: prefill only")
    order: Literal["grouped", "shuffled", "round-robin"] = Field("shuffled", description="in which they arrive")
    zipf: float = Field(
        0.0, ge=0, le=10, allow_inf_nan=False, description="the k-th passage is asked for in proportion to 1/k^zipf, per_group on average; 0: all alike"
    )
    ids: Range = Field(IDS, description="token ids are drawn from the first up to the second, itself left out")

    @model_validator(mode="after")
    def _consistent(self) -> SharedPrefix:
        if not self.length:
            raise ValueError("question: prompts are empty; common, prefix or question must be 1 or more")
        not_too_many("groups", self.count, self.count * self.length)
        one_group = self.count if self.zipf else self.per_group
        check_ids(self.ids, max(self.groups if self.prefix else self.count, one_group))
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
        sizes = self._sizes(rng)
        order = self._order(sizes, rng)
        prompts = self._prompts(sizes, rng)
        names = [f"R{i}" for i in range(1, self.count + 1)]
        return Traffic(
            [
                {
                    "id": name, "label": f"group {group}, question {question}", "tokens": prompts[group, question],
                    "max_new_tokens": self.output, "ignore_eos": True, **when,
                }
                for name, (group, question), when in zip(names, order, self.moments(names, rng), strict=True)
            ]
        )  # fmt: skip

    def _sizes(self, rng: Random) -> list[int]:
        """Questions on each passage."""
        if not self.zipf:
            return [self.per_group] * self.groups
        weights = [k**-self.zipf for k in range(1, self.groups + 1)]
        drawn = rng.choices(range(self.groups), weights, k=self.count)
        return [drawn.count(group) for group in range(self.groups)]

    def _order(self, sizes: list[int], rng: Random) -> list[tuple[int, int]]:
        """(group, question) as they arrive. Drawn before all prompts: it is the same for any lengths."""
        order = [(group, question) for group, size in enumerate(sizes, 1) for question in range(1, size + 1)]
        if self.order == "round-robin":
            return sorted(order, key=lambda one: (one[1], one[0]))
        if self.order == "shuffled":
            rng.shuffle(order)
        return order

    def _prompts(self, sizes: list[int], rng: Random) -> dict[tuple[int, int], list[int]]:
        """(group, question) -> token ids."""
        common = runs(rng, 1, self.common, self.ids)[0]
        passages = runs(rng, self.groups, self.prefix, self.ids)
        # Without passages all questions are siblings.
        families = sizes if self.prefix else [self.count]
        questions = iter([one for size in families for one in runs(rng, size, self.question, self.ids)])
        return {
            (group, question): common + passages[group - 1] + next(questions)
            for group, size in enumerate(sizes, 1)
            for question in range(1, size + 1)
        }
