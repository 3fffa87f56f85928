"""The interface between the engine and whatever computes the tokens.

The engine plans a step as rows; the executor writes their KV into the rows' pages, reads what lies
before, and says which token each row goes on with. Tree changes move no KV: pages keep their place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from engine.request import Request


@dataclass(slots=True)
class Row:
    """One request's part of a step: forward `tokens`, whose first one has position `start`.

    `pages` is the request's whole page table: position p lives in page pages[p // page_size] at offset
    p % page_size. KV of positions 0 ... start-1 is already in place. `sample`: the last token's
    logits are wanted (false for a prompt's chunk that is not its last).
    """

    request: Request
    tokens: list[int]
    start: int
    pages: list[int]
    sample: bool


@dataclass(slots=True)
class Sampled:
    """What a row goes on with. `token` None: the script has nothing more to say (end of sequence)."""

    token: int | None
    logprob: float | None = None
    top: list[tuple[int, float]] | None = None


@dataclass(slots=True)
class StepResult:
    """One entry a row, None where nothing was to be sampled; seconds as measured (0 on a virtual clock)."""

    rows: list[Sampled | None]
    forward_seconds: float = 0.0
    sample_seconds: float = 0.0


class Executor(Protocol):
    """Computes steps. Implementations hold `pages` x `page_size` slots of KV."""

    name: str
    virtual: bool
    """True: times are simulated by the config's clock. False: wall clock."""
    vocab_size: int
    max_positions: int
    eos_ids: frozenset[int]
    facts: dict[str, str | None]
    """Header facts: model, device, dtype."""
    rates: dict[str, float]

    def execute(self, rows: list[Row]) -> StepResult:
        """Run one forward pass. May raise anything; then no row of this step is kept."""
        ...

    def end(self, request: Request) -> None:
        """A request ended or was retracted: forget whatever is kept per request."""
        ...
