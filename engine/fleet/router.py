"""Routers: which replica a request goes to. One function a policy; none reads a clock.

After SGLang's gateway: `cache-aware` sends a request where most of its prompt was sent before, unless the replicas'
loads have drifted apart; load is the number of requests that were sent there and have not ended.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from engine.config import EngineConfig
from engine.fleet.guess import Guess
from engine.request import Request


@dataclass(slots=True)
class Choice:
    """The replica, why, each replica's load (requests), and the tokens it is believed to hold (cache-aware)."""

    chosen: int
    reason: str
    loads: list[int]
    matches: list[int] = field(default_factory=list)


class Router:
    """Chooses a replica for each request in the order of their arrival."""

    def __init__(self, config: EngineConfig, seed: int) -> None:
        self.replicas = config.prefill_replicas or config.replicas
        """Those that a request may go to when it arrives, the first ones."""
        self._config = config
        self._policy = POLICIES[config.router]
        self._random = random.Random(seed)
        self._turn = -1
        self._guesses: list[Guess] = []
        if config.router == "cache-aware":
            self._guesses = [Guess(config.pages * config.page_size) for _ in range(self.replicas)]

    def choose(self, request: Request, loads: Sequence[int]) -> Choice:
        """Where `request` goes, with `loads` requests outstanding at each replica."""
        return self._policy(self, request, list(loads))

    def _round_robin(self, request: Request, loads: list[int]) -> Choice:
        self._turn = (self._turn + 1) % len(loads)
        return Choice(self._turn, "its turn", loads)

    def _least_loaded(self, request: Request, loads: list[int]) -> Choice:
        return Choice(loads.index(min(loads)), "least loaded", loads)

    def _power_of_two(self, request: Request, loads: list[int]) -> Choice:
        pair = sorted(self._random.sample(range(len(loads)), min(2, len(loads))))
        chosen = min(pair, key=lambda replica: loads[replica])
        return Choice(chosen, f"less loaded of {' and '.join(map(str, pair))}", loads)

    def _cache_aware(self, request: Request, loads: list[int]) -> Choice:
        tokens = request.packed(len(request.prompt))
        matches = [guess.match(tokens, request.namespace) for guess in self._guesses]
        most, least = max(loads), min(loads)
        apart, times = self._config.router_balance
        best = max(range(len(loads)), key=lambda replica: (matches[replica], -loads[replica], -replica))
        idlest = loads.index(least)
        if most - least > apart and most > times * least:
            chosen, reason = idlest, f"loads too far apart ({most} and {least})"
        elif matches[best] > self._config.router_threshold * len(request.prompt):
            chosen, reason = best, "longest prefix"
        else:
            chosen, reason = idlest, "least loaded, as no replica was sent enough of it"
        self._guesses[chosen].sent(request, tokens)
        return Choice(chosen, reason, loads, matches)


POLICIES: dict[str, Callable[[Router, Request, list[int]], Choice]] = {
    "cache-aware": Router._cache_aware,
    "round-robin": Router._round_robin,
    "least-loaded": Router._least_loaded,
    "power-of-two": Router._power_of_two,
}
