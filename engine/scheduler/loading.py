"""What the host tier holds of a request's prompt: load it, or compute it again? Whichever takes less.

Loading waits for what this step loads already: the link carries one thing after the other. The constants (bytes
a token, prefill tokens and host bytes a second) stand in the trace's header; no clock is read.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.cache.base import Match
from engine.config import EngineConfig


@dataclass(slots=True, frozen=True)
class Choice:
    """`held` tokens lie on the host, `tokens` of them are to be loaded: all or none. Seconds are None where unknown."""

    held: int = 0
    tokens: int = 0
    load_seconds: float | None = None
    recompute_seconds: float | None = None


NOTHING = Choice()


class Loading:
    """One step's view of the link between host and device."""

    def __init__(self, config: EngineConfig, rates: dict[str, float]) -> None:
        self._rates = rates
        self._bandwidth = config.host_bandwidth
        self._bytes = 0.0

    def begin(self) -> None:
        """A step begins: the link is free."""
        self._bytes = 0.0

    @property
    def seconds(self) -> float:
        """What this step's loads take."""
        return self._bytes / self._link if self._bytes and self._link else 0.0

    @property
    def per_token(self) -> tuple[float, float]:
        """Seconds a token: to load, and to compute. Only where a load was chosen, so that both are known."""
        assert self._link
        return self._rates["kv_bytes"] / self._link, 1 / self._rates["prefill_rate"]

    @property
    def _link(self) -> float | None:
        return self._bandwidth or self._rates.get("host_bandwidth")

    def choose(self, match: Match) -> Choice:
        """What to do about the part of a match that the host holds. Without a prefill rate computing is free."""
        held = match.host_length
        if not held:
            return NOTHING
        rate, each = self._rates.get("prefill_rate"), self._rates.get("kv_bytes")
        compute = held / rate if rate else 0.0
        if each is None or not self._link:
            return Choice(held, 0, None, compute)
        load = (self._bytes + held * each) / self._link
        return Choice(held, held if load < compute else 0, round(load, 9), round(compute, 9))

    def started(self, choice: Choice) -> None:
        """These are being loaded in this step."""
        self._bytes += choice.tokens * self._rates["kv_bytes"]
