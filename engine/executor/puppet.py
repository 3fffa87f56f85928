"""The puppet: a scripted model whose slots know what they hold. No weights, a virtual clock.

Each slot holds (id, position, chained hash of the namespace and all ids up to and including this one).
A forward gathers what lies before through the page table and raises when a slot does not hold what the
sequence needs there, so a wrong page, an early match or a lost lock shows at once.
"""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from engine.config import Clock
from engine.events import Namespace
from engine.executor.base import Row, Sampled, StepResult, Tokenizer
from engine.executor.scripted import VOCABULARY, answer, spelling
from engine.grammar.vocabulary import Vocabulary
from engine.request import Request

LINK = 1e9
"""Bytes a second between the tiers, where the configuration names none."""

UNRANKED = 8
"""Places behind the last of a ranking at which the puppet puts what the ranking does not name."""

_BASE = np.uint64(0x9E3779B97F4A7C15)
Hashes = npt.NDArray[np.uint64]


class WrongSlot(RuntimeError):  # noqa: N818 - it names what was found
    """A slot did not hold what the sequence needs at that position."""


class Chain:
    """Chained hashes of a growing sequence: h[i] covers the namespace and ids 0 ... i.

    A polynomial modulo 2^64 (odd base), so that a run of any length is hashed in bulk.
    """

    def __init__(self, namespace: Namespace | None) -> None:
        self._seed = np.uint64(zlib.crc32(repr(namespace).encode()))
        self.hashes: Hashes = np.empty(0, np.uint64)
        self.ids: npt.NDArray[np.int64] = np.empty(0, np.int64)

    def extend(self, ids: Sequence[int], keyed: Sequence[int]) -> None:
        """Append ids; `keyed` are the same with what they stand for, and that is hashed."""
        if not ids:
            return
        new = np.asarray(keyed, np.int64)
        start = len(self.ids)
        powers = np.power(_BASE, np.arange(start + 1, start + len(new) + 1, dtype=np.uint64))
        terms = (new.astype(np.uint64) + np.uint64(1)) * powers
        before = self.hashes[-1] if start else self._seed
        self.hashes = np.concatenate([self.hashes, before + np.cumsum(terms, dtype=np.uint64)])
        self.ids = np.concatenate([self.ids, np.asarray(ids, np.int64)])

    def cut(self, size: int) -> None:
        """Keep the first `size` ids: what followed was drafted, or has been spelt anew."""
        self.hashes, self.ids = self.hashes[:size], self.ids[:size]


class PuppetExecutor:
    """Answers by script (`Request.says`), or with ids that hash what it reads back from its pages (`scripted`).

    It scores a prompt's tokens likewise: the r-th of a ranking has probability 2^-r.
    """

    virtual = True
    vocab_size = VOCABULARY
    max_positions = 1 << 30
    eos_ids: frozenset[int] = frozenset()
    tokenizer: Tokenizer | None = None

    def __init__(
        self, pages: int, page_size: int, name: str = "puppet", clock: Clock | None = None,
        host_pages: int = 0, host_bandwidth: float | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.clock = clock or Clock()
        self.page_size = page_size
        slots, host = pages * page_size, host_pages * page_size
        self._ids = np.full(slots, -1, np.int64)
        self._positions = np.full(slots, -1, np.int64)
        self._hashes = np.zeros(slots, np.uint64)
        self._slots_of = (self._ids, self._positions, self._hashes)
        self._host = [np.full(host, -1, np.int64), np.full(host, -1, np.int64), np.zeros(host, np.uint64)]
        self._chains: dict[str, Chain] = {}
        self.facts: dict[str, str | None] = {"model": None, "device": None, "dtype": None, "host": "puppet" if host else None}
        self.rates: dict[str, float] = self._rates(host_bandwidth) if host else {}
        self.hardware: dict[str, str] = {}

    @functools.cached_property
    def vocabulary(self) -> Vocabulary:
        """The bytes of its ids."""
        return spelling(self.eos_ids)

    def execute(self, rows: list[Row]) -> StepResult:
        """Check what lies before each row, write its slots, answer. Raises WrongSlot."""
        for row in rows:
            self._write(row)
        read = [self._read(row) for row in rows]
        answers = [answer(row, h.tolist(), self.eos_ids) if row.sample else self._score(row) for row, h in zip(rows, read, strict=True)]
        return StepResult(answers, self.clock.step + self.clock.token * sum(len(row.tokens) for row in rows))

    def _rates(self, host_bandwidth: float | None) -> dict[str, float]:
        """Simulated: a token is one byte; computing one takes what the clock says, or nothing."""
        rates = {"kv_bytes": 1.0, "host_bandwidth": host_bandwidth or LINK}
        return rates | ({"prefill_rate": 1 / self.clock.token} if self.clock.token else {})

    def demote(self, pages: Sequence[int], host_pages: Sequence[int]) -> None:
        """Copy what the pages' slots hold to the host's."""
        there, here = self._pages_slots(host_pages), self._pages_slots(pages)
        for host, device in zip(self._host, self._slots_of, strict=True):
            host[there] = device[here]

    def restore(self, host_pages: Sequence[int], pages: Sequence[int]) -> None:
        """Copy what the host's slots hold to the pages'."""
        there, here = self._pages_slots(host_pages), self._pages_slots(pages)
        for host, device in zip(self._host, self._slots_of, strict=True):
            device[here] = host[there]

    def _pages_slots(self, pages: Sequence[int]) -> npt.NDArray[np.int64]:
        """All slots of some pages, in order."""
        first = np.asarray(pages, np.int64)[:, None] * self.page_size
        return (first + np.arange(self.page_size)).ravel()

    def end(self, request: Request) -> None:
        """Forget the request's chain."""
        self._chains.pop(request.id, None)

    def _slots(self, row: Row, start: int, stop: int) -> npt.NDArray[np.int64]:
        positions = np.arange(start, stop)
        pages = np.asarray(row.pages, np.int64)
        slots: npt.NDArray[np.int64] = pages[positions // self.page_size] * self.page_size + positions % self.page_size
        return slots

    def _write(self, row: Row) -> None:
        request = row.request
        chain = self._chains.setdefault(request.id, Chain(request.namespace))
        size = row.start + len(row.tokens)
        chain.cut(row.start)
        known = len(chain.ids)
        ids = request.tokens[known : row.start] + row.tokens
        chain.extend(ids, request.keyed(known, size - row.drafted) + row.draft)
        slots = self._slots(row, row.start, size)
        self._ids[slots] = row.tokens
        self._positions[slots] = np.arange(row.start, size)
        self._hashes[slots] = chain.hashes[row.start : size]

    def _read(self, row: Row) -> Hashes:
        """Gather all that the row's tokens attend to; returns the hashes read at those whose logits are wanted."""
        request = row.request
        size = row.start + len(row.tokens)
        chain = self._chains[request.id]
        slots = self._slots(row, 0, size)
        wrong = (
            (self._ids[slots] != chain.ids[:size])
            | (self._positions[slots] != np.arange(size))
            | (self._hashes[slots] != chain.hashes[:size])
        )
        if wrong.any():
            at = int(np.argmax(wrong))
            raise WrongSlot(
                f"{request.id}: position {at} should hold id {chain.ids[at]}, slot {slots[at]} (page "
                f"{slots[at] // self.page_size}) holds id {self._ids[slots[at]]} of position {self._positions[slots[at]]}"
            )
        return self._hashes[slots[-1 - row.drafted :]]

    def _score(self, row: Row) -> Sampled | None:
        """Scores of a prompt's tokens: by their place in the script's rankings, or from a hash of all that came before.

        A script that is over has no scores.
        """
        request, chain = row.request, self._chains[row.request.id]
        scores: list[float] = []
        for position in row.scored:
            token = request.prompt[position]
            if request.says is None:
                mixed = (int(chain.hashes[position - 1]) ^ token) * 0x9E3779B97F4A7C15 % (1 << 64)
                scores.append(-8 * (mixed >> 11) / (1 << 53))
                continue
            at = position - (request.params.score_from or 0)
            if at >= len(request.says):
                return None
            item = request.says[at]
            ranking = [item] if isinstance(item, int) else item
            place = ranking.index(token) if token in ranking else len(ranking) + UNRANKED
            scores.append(-(place + 1) * math.log(2))
        return Sampled(None, scores=scores) if scores else None
