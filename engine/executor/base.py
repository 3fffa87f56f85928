"""The interface between the engine and whatever computes the tokens.

The engine plans a step as rows; the executor writes their KV into the rows' pages, reads what lies
before, and says which token each row goes on with. Tree changes move no KV: pages keep their place. Only between the
tiers it is copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from engine.grammar.settle import Look
from engine.grammar.vocabulary import Vocabulary
from engine.request import Request

AWAITED = -1
"""Stands for the token that the step in flight will bring."""


@dataclass(slots=True)
class Row:
    """One request's part of a step: forward `tokens`, whose first one has position `start`.

    `pages` is the request's whole page table: position p lives in page pages[p // page_size] at offset
    p % page_size. KV of positions 0 ... start-1 is already in place. `sample`: the last token's
    logits are wanted (false for a prompt's chunk that is not its last). The last `drafted` tokens are what the
    request's grammar forces, or what followed the same words before: the logits before each of them are wanted too, to see whether the model agrees.
    """

    request: Request
    tokens: list[int]
    start: int
    pages: list[int]
    sample: bool
    drafted: int = 0

    def fill(self) -> bool:
        """Put in the token that was not there when the row was planned; False where none has come."""
        if self.tokens[0] != AWAITED:
            return True
        if self.start >= self.request.size:
            return False
        self.tokens = [self.request.tokens_at(self.start)]
        return True

    @property
    def scored(self) -> range:
        """Positions of the prompt's tokens that this row scores: the one before each of them runs here."""
        first = self.request.params.score_from
        if first is None:
            return range(0)
        return range(max(first, self.start + 1), min(self.start + len(self.tokens) + 1, len(self.request.prompt)))

    @property
    def draft(self) -> list[int]:
        """The drafted tokens."""
        return self.tokens[len(self.tokens) - self.drafted :]


@dataclass(slots=True)
class Sampled:
    """What a row goes on with. `last`: the script ends the sequence here (`token` None: without a token).

    Under a grammar `looks` tells every token that the pass settled, drafted ones first; `token` is the last. `error`:
    the grammar lets this request say nothing more; the others of the step are not touched by it.
    """

    token: int | None
    logprob: float | None = None
    top: list[tuple[int, float]] | None = None
    last: bool = False
    looks: list[Look] = field(default_factory=list)
    error: str | None = None
    agreed: list[int] = field(default_factory=list)
    """Drafted tokens, without a grammar, that the row goes on with before `token`."""
    likely: list[tuple[float, list[tuple[int, float]]]] = field(default_factory=list)
    """Where asked for: log-probability and top few of each of `agreed`."""
    scores: list[float] = field(default_factory=list)
    """The log-probabilities of the row's `scored` tokens."""

    @property
    def tokens(self) -> list[int]:
        """All tokens that the row goes on with."""
        if self.looks:
            return [look.token for look in self.looks]
        return self.agreed if self.token is None else [*self.agreed, self.token]


@dataclass(slots=True)
class StepResult:
    """One entry a row, None where nothing was to be sampled; seconds as measured, or as simulated by an executor that is `virtual`."""

    rows: list[Sampled | None]
    forward_seconds: float = 0.0
    sample_seconds: float = 0.0


class Detokenizer(Protocol):
    """Turns ids into text as they come, never half a character, nothing from a stop string on."""

    stopped: str | None
    """The stop string that was met."""

    def push(self, ids: list[int]) -> str: ...
    def push_bytes(self, data: bytes) -> str: ...
    def finish(self) -> str: ...


class Tokenizer(Protocol):
    """Text to ids and back."""

    def encode(self, text: str) -> list[int]: ...
    def chat(self, messages: Sequence[dict[str, str]]) -> list[int]: ...
    def remark(self, ids: Sequence[int]) -> str | None: ...
    def ids(self, text: str) -> list[int]: ...
    def detokenizer(self, stop: Sequence[str] = ()) -> Detokenizer: ...
    def texts(self, ids: Iterable[int]) -> dict[str, str]: ...


class Executor(Protocol):
    """Computes steps. Implementations hold `pages` x `page_size` slots of KV."""

    name: str
    virtual: bool
    """True: times are simulated, a forward takes what `StepResult` says. False: wall clock."""
    vocab_size: int
    max_positions: int
    eos_ids: frozenset[int]
    facts: dict[str, str | None]
    """Header facts: model, device, dtype; host: what the second tier's pages lie in."""
    rates: dict[str, float]
    """Constants of the run. With a host tier: `kv_bytes` (bytes a token), `prefill_rate` (tokens a second; not there
    where computing is free) and `host_bandwidth` (bytes a second)."""
    hardware: dict[str, str]
    """The machine that is simulated: its name, model and where its figures come from; empty where none is."""
    tokenizer: Tokenizer | None

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The bytes of its tokens, for grammars; None where it has none."""
        ...

    def execute(self, rows: list[Row]) -> StepResult:
        """Run one forward pass. May raise anything; then no row of this step is kept."""
        ...

    def end(self, request: Request) -> None:
        """A request ended or was retracted: forget whatever is kept per request."""
        ...

    def demote(self, pages: Sequence[int], host_pages: Sequence[int]) -> None:
        """Copy pages to host pages, one for one, as they are now: after the forwards so far, before the next."""
        ...

    def restore(self, host_pages: Sequence[int], pages: Sequence[int]) -> None:
        """Copy host pages to pages, one for one, before the next forward."""
        ...


class HoldsNothing:
    """Part of an executor whose pages hold nothing: there is nothing to copy between the tiers."""

    def demote(self, pages: Sequence[int], host_pages: Sequence[int]) -> None:
        """Nothing to copy."""

    def restore(self, host_pages: Sequence[int], pages: Sequence[int]) -> None:
        """Nothing to copy."""
