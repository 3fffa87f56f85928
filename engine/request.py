"""A request: what was asked, what it has produced, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import ConfigDict, Field, model_validator

from engine.cache.base import PLAIN, WIDTH, pack
from engine.config import Asked
from engine.events import Namespace
from engine.grammar.door import Walk


class Status(StrEnum):
    """The states of a request; the last four are ends."""

    WAITING = "waiting"
    PREFILL = "prefill"
    DECODE = "decode"
    FINISHED = "finished"
    REFUSED = "refused"
    ABORTED = "aborted"
    FAILED = "failed"


class SamplingParams(Asked):
    """How tokens are chosen and when to stop. Temperature 0 is greedy."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_new_tokens: int = Field(16, ge=0, le=1_000_000, description="0: prefill only")
    ignore_eos: bool = False
    temperature: float = Field(0.0, ge=0, le=100, allow_inf_nan=False)
    top_p: float = Field(1.0, gt=0, le=1, allow_inf_nan=False)
    top_k: int | None = Field(None, ge=1)
    seed: int | None = Field(None, ge=0, le=2**63 - 1)
    stop: tuple[str, ...] = Field((), max_length=16)
    stop_token_ids: tuple[int, ...] = Field((), max_length=64, description="end after any of these, as after an end of text")
    logprobs: int | None = Field(None, ge=1, le=20, description="top few to report with each token")
    score_from: int | None = Field(None, ge=1, description="log-probabilities of the prompt's tokens from this one on")
    regex: str | None = Field(None, max_length=100_000, description="the answer matches this pattern, from end to end")
    json_schema: dict[str, Any] | bool | None = Field(None, description="the answer is JSON that follows this schema")

    @property
    def constrained(self) -> bool:
        """Whether a grammar says what may come."""
        return self.regex is not None or self.json_schema is not None

    @model_validator(mode="after")
    def _one_grammar(self) -> SamplingParams:
        if self.regex is not None and self.json_schema is not None:
            raise ValueError("regex: give either regex or json_schema; both are there")
        if self.constrained and self.ignore_eos:
            raise ValueError("ignore_eos: a grammar says where the answer may end; leave one of them out")
        if self.score_from is not None and self.max_new_tokens:
            raise ValueError(f"score_from: scores a prompt and answers nothing; max_new_tokens must be 0, got {self.max_new_tokens}")
        return self


@dataclass(slots=True, eq=False)
class Request:
    """One request's whole state inside the engine. Counts in tokens.

    `pages` is its page table; the first `shared` pages belong to the tree, the rest to the request.
    `kv` tokens have their KV computed; `target` is where the current prefill ends.
    """

    id: str
    prompt: list[int]
    params: SamplingParams
    arrived: float
    index: int
    """Arrival number, for ties and for overtaking."""
    seat: int = field(default=0, init=False)
    """Its place in the queue, rising from the front."""
    namespace: Namespace | None = None
    priority: int = 0
    store: bool = True
    pin: int = 0
    """Steps for which its stored prompt is held, from its end."""
    content: str | None = None
    """What its tokens from `content_at` on stand for; `content_number` is its number in this engine."""
    content_at: int = 0
    content_number: int = 0
    label: str | None = None
    received: int = 0
    """Tokens whose KV comes with it from another engine."""
    says: list[Any] | None = None
    scores: list[float] = field(default_factory=list)
    """Log-probabilities of the prompt's tokens from `score_from` on, as far as they are computed."""
    fail_at_step: int | None = None
    walk: Walk | None = None
    """Where it stands in its grammar; None without one, and until that is compiled."""
    forced: int = 0
    """Answer tokens that its grammar left no choice for; `jumped`: those that needed no pass of their own."""
    jumped: int = 0
    rolled_back: int = 0
    """Drafted tokens that were taken back."""
    status: Status = Status.WAITING
    output: list[int] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)
    shared: int = 0
    node: Any = None
    """The tree node at the end of its locked path; None while it holds none."""
    kv: int = 0
    flying: int = 0
    """Tokens of it that the step in flight forwards; `awaited`: that step will also bring its next token."""
    awaited: bool = False
    target: int = 0
    cached: int | None = None
    computed: int | None = None
    recovered: int = 0
    recomputed: int = 0
    reached: int = 0
    """Most tokens that ever had KV: what lies before is recomputed, not computed."""
    retractions: int = 0
    admitted: float | None = None
    first_token: float | None = None
    finished: float | None = None
    reason: str | None = None
    text: str = ""
    tail: str = ""
    """Text that was held back until the end."""
    error: str | None = None
    _packed: bytearray = field(default_factory=bytearray)
    _query: bytes | None = None

    @property
    def tokens(self) -> list[int]:
        """Prompt and output."""
        return self.prompt + self.output

    def tokens_at(self, position: int) -> int:
        """The token id at a position of prompt + output."""
        n = len(self.prompt)
        return self.prompt[position] if position < n else self.output[position - n]

    def keyed(self, start: int, stop: int) -> list[int]:
        """Tokens [start, stop) as the cache and the puppet know them: the first one that stands for content says which."""
        ids = self.tokens[start:stop]
        if self.content_number and start <= self.content_at < stop:
            ids[self.content_at - start] |= self.content_number * (PLAIN + 1)
        return ids

    def packed(self, stop: int) -> bytes:
        """Tokens [0, stop) of prompt and output, packed for the cache."""
        return bytes(memoryview(self._all_packed())[: stop * WIDTH])

    def respell(self, keep: int, ids: list[int]) -> None:
        """Keep the first `keep` answer tokens and go on with `ids` instead of what followed."""
        self.output[keep:] = ids
        del self._packed[(len(self.prompt) + keep) * WIDTH :]
        self._query = None

    def begins_with(self, packed: bytes) -> bool:
        """Whether prompt and output begin with these packed tokens."""
        return self._all_packed().startswith(packed)

    def _all_packed(self) -> bytearray:
        if len(self._packed) < self.size * WIDTH:
            self._packed += pack(self.keyed(len(self._packed) // WIDTH, self.size))
        return self._packed

    def packed_but_last(self) -> bytes:
        """What may be looked up: all but the last token, which must run.

        Where tokens are to be scored, so must the one before the first of them: its logits say how likely that is.
        """
        known = self.size - 1 if self.params.score_from is None else self.params.score_from - 1
        if self._query is None or len(self._query) != known * WIDTH:
            self._query = self.packed(known)
        return self._query

    def take_scores(self, at: int, scores: list[float]) -> None:
        """Note the log-probabilities of the prompt's tokens from position `at` on; a second run of a prefill replaces the first."""
        assert self.params.score_from is not None
        self.scores[at - self.params.score_from :] = scores

    @property
    def size(self) -> int:
        """Tokens of prompt and output."""
        return len(self.prompt) + len(self.output)

    @property
    def reach(self) -> int:
        """Tokens that have KV, or will have it when the step in flight is back."""
        return self.kv + self.flying

    @property
    def prefilling(self) -> bool:
        """Whether a next step would go on with its prefill."""
        return self.status is Status.PREFILL and self.reach < self.target

    def decoding(self, most: int) -> bool:
        """Whether a next step would decode it: not while the token in flight is its last, among `most` positions."""
        if self.status is not Status.DECODE and not (self.status is Status.PREFILL and self.reach >= self.target):
            return False
        produced = len(self.output) + self.awaited
        return not self.flying or (produced < self.params.max_new_tokens and self.size + self.awaited < most)

    @property
    def done(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.status in (Status.FINISHED, Status.REFUSED, Status.ABORTED, Status.FAILED)
