"""Prompts that share nothing: the traffic on which no prefix cache can win."""

from __future__ import annotations

from random import Random
from typing import Literal

from pydantic import Field, model_validator

from workbench.workloads.arrivals import Timed, not_too_many
from workbench.workloads.runs import IDS, Range, check_ids, run
from workbench.workloads.traffic import Maker, Traffic

Lengths = tuple[int, int]
"""From the first up to and including the second."""


class RandomPrompts(Timed):
    """Prompts of random ids that part at their first; lengths in tokens, drawn evenly from their range."""

    kind: Literal["random"]
    requests: int = Field(ge=1, description="how many")
    length: Lengths = Field(description="shortest and longest prompt")
    output: Lengths = Field((16, 16), description="shortest and longest answer; 0: prefill only")
    ids: Range = Field(IDS, description="token ids are drawn from the first up to the second, itself left out")

    @model_validator(mode="after")
    def _consistent(self) -> RandomPrompts:
        for key, least in (("length", 1), ("output", 0)):
            low, high = getattr(self, key)
            if not least <= low <= high:
                raise ValueError(f"{key}: must be two numbers, {least} or more, the second no smaller; got [{low}, {high}]")
        not_too_many("requests", self.requests, self.requests * self.length[1])
        check_ids(self.ids, self.requests)
        return self

    def traffic(self, maker: Maker) -> Traffic:
        """The requests, the same for the same seed."""
        rng = Random(maker.seed)
        names = [f"R{i}" for i in range(1, self.requests + 1)]
        firsts = rng.sample(range(*self.ids), self.requests)
        prompts = [[first, *run(rng, rng.randint(*self.length) - 1, self.ids)] for first in firsts]
        return Traffic(
            [
                {"id": name, "tokens": prompt, "max_new_tokens": rng.randint(*self.output), "ignore_eos": True, **when}
                for name, prompt, when in zip(names, prompts, self.moments(names, rng), strict=True)
            ]
        )
