"""A prompt template with parts that stay, change with the tenant, or change with every request; the order is a knob.

Everything behind the first part that changes is lost to the cache: what the order of the parts decides.
"""

from __future__ import annotations

from random import Random
from typing import Literal

from pydantic import ConfigDict, Field, model_validator

from engine.config import Asked
from workbench.workloads.arrivals import Timed, not_too_many
from workbench.workloads.runs import IDS, Range, check_ids, runs
from workbench.workloads.traffic import Maker, Traffic


class Part(Asked):
    """One part of a template."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1, max_length=60)
    tokens: int = Field(ge=1, description="its length")
    changes: Literal["never", "tenant", "request"] = Field("never", description="with whom its words change")


class Template(Timed):
    """Requests made from one template for several tenants."""

    kind: Literal["template"]
    parts: list[Part] = Field(min_length=1, max_length=64)
    order: list[str] | None = Field(None, description="the parts' names as they stand in the prompt; null: as listed")
    requests: int = Field(ge=1, description="how many, over all tenants")
    tenants: int = Field(1, ge=1, description="each request's is drawn evenly")
    output: int = Field(16, ge=0, le=1_000_000, description="tokens to answer; 0: prefill only")
    ids: Range = Field(IDS, description="token ids are drawn from the first up to the second, itself left out")

    @model_validator(mode="after")
    def _consistent(self) -> Template:
        names = [part.name for part in self.parts]
        if len(set(names)) < len(names):
            raise ValueError(f"parts: each needs a name of its own; got {', '.join(names)}")
        if self.order is not None and sorted(self.order) != sorted(names):
            raise ValueError(f"order: must name each part once ({', '.join(names)}); got {', '.join(self.order)}")
        not_too_many("requests", self.requests, self.requests * sum(part.tokens for part in self.parts))
        check_ids(self.ids, max(self.requests, self.tenants))
        return self

    def traffic(self, maker: Maker) -> Traffic:
        """The requests, the same for the same seed; another order moves the same parts."""
        rng = Random(maker.seed)
        tenants = [int(rng.random() * self.tenants) for _ in range(self.requests)]
        kinds = {"never": 1, "tenant": self.tenants, "request": self.requests}
        texts = {part.name: runs(rng, kinds[part.changes], part.tokens, self.ids) for part in self.parts}
        names = [f"R{i}" for i in range(1, self.requests + 1)]
        changes = {part.name: part.changes for part in self.parts}
        order = self.order or [part.name for part in self.parts]
        requests = []
        for i, (name, when) in enumerate(zip(names, self.moments(names, rng), strict=True)):
            which = {"never": 0, "tenant": tenants[i], "request": i}
            prompt = [token for part in order for token in texts[part][which[changes[part]]]]
            requests.append(
                {
                    "id": name, "label": f"tenant {tenants[i] + 1}", "tokens": prompt,
                    "max_new_tokens": self.output, "ignore_eos": True, **when,
                }
            )  # fmt: skip
        return Traffic(requests)
