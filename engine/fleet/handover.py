"""Separate prefill and decode engines: a prompt is computed on one, its KV travels, and another says the rest.

A request is served as two: the first ends with its first token; `ID+` has that token at the end of its prompt and
arrives where it decodes when the KV has come over the link. Only times and counts travel here: the cost executor
holds no KV.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.request import Request, SamplingParams, Status

GOES_ON = "+"
"""Ends the id of a request's second half."""


@dataclass(slots=True)
class Transfer:
    """KV on its way: of how many tokens, from which replica, and how long it takes (seconds)."""

    tokens: int
    source: int
    seconds: float

    @property
    def told(self) -> dict[str, Any]:
        """As `request.routed` tells it."""
        return {"transferred": self.tokens, "source": self.source, "seconds": self.seconds}


class Handover:
    """Cuts requests in two and knows what is on its way. `seconds_per_token`: what the link takes for one token's KV."""

    def __init__(self, seconds_per_token: float) -> None:
        self._each = seconds_per_token
        self._whole: dict[str, SamplingParams] = {}
        self._coming: dict[str, Transfer] = {}

    def first_half(self, request: Request) -> None:
        """Let a request end with its first token."""
        self._whole[request.id] = request.params
        request.params = request.params.model_copy(update={"max_new_tokens": min(1, request.params.max_new_tokens)})

    def second_half(self, request: Request, source: int) -> Request | None:
        """What is left of a request whose first half has ended on replica `source`; None where nothing is."""
        params = self._whole.pop(request.id, None)
        if params is None or request.status is not Status.FINISHED or request.reason != "length" or params.max_new_tokens < 2:
            return None
        size = len(request.prompt)
        rest = Request(
            id=request.id + GOES_ON, prompt=request.tokens, arrived=0.0, index=0,
            params=params.model_copy(update={"max_new_tokens": params.max_new_tokens - 1}),
            namespace=request.namespace, priority=request.priority, store=request.store,
            label=f"{request.label or request.id} goes on", says=None if request.says is None else request.says[1:], received=size,
        )  # fmt: skip
        self._coming[rest.id] = Transfer(size, source, round(size * self._each, 9))
        return rest

    def coming(self, request: Request) -> Transfer | None:
        """The KV that comes with a second half; None for a request that has not been anywhere yet."""
        return self._coming.get(request.id)
