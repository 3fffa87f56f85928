"""The cost executor: no weights, no tensors; a forward takes what a roofline says of a machine and a model.

What it says follows from the request alone, a running checksum of its tokens, so it is the same
whatever the cache holds, who else is in the batch and where prompts are cut.
"""

from __future__ import annotations

import functools
import zlib

from engine.cache.base import pack
from engine.config import ConfigError
from engine.executor.base import HoldsNothing, Row, StepResult, Tokenizer
from engine.executor.scripted import VOCABULARY, answer, spelling
from engine.grammar.vocabulary import Vocabulary
from engine.hardware import Profile
from engine.request import Request
from engine.roofline import rates, seconds, work


class CostExecutor(HoldsNothing):
    """Simulates `profile` serving `pages` x `page_size` slots of KV; `host_bandwidth` (bytes a second) replaces its link's.

    Answers as the puppet does (`scripted`). Raises ConfigError when the KV does not fit beside the weights.
    """

    name = "cost"
    virtual = True
    vocab_size = VOCABULARY
    eos_ids: frozenset[int] = frozenset()
    tokenizer: Tokenizer | None = None

    def __init__(self, profile: Profile, pages: int, page_size: int, host_bandwidth: float | None = None) -> None:
        try:
            profile.check_room(pages, page_size)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        self.profile = profile
        machine, shape = profile.accelerator, profile.shape
        self.max_positions = shape.positions
        self.facts: dict[str, str | None] = {
            "model": shape.name, "device": f"{machine.name}, simulated", "dtype": shape.dtype,
        }  # fmt: skip
        self.rates = rates(profile)
        if host_bandwidth is not None:
            self.rates["host_bandwidth"] = host_bandwidth
        self.hardware = {
            "name": machine.name, "model": shape.name, "source": f"{machine.source}; {shape.source}", "simulated": "yes",
        }  # fmt: skip
        self._sums: dict[str, tuple[int, int]] = {}
        """Request -> how many of its tokens its checksum covers, and that."""

    @functools.cached_property
    def vocabulary(self) -> Vocabulary | None:
        """The bytes of its ids."""
        return spelling()

    def execute(self, rows: list[Row]) -> StepResult:
        """Answer every row that samples; the time is that of one pass over all rows."""
        asked = work(self.profile.shape, ((r.start, len(r.tokens), r.drafted + 1 if r.sample else 0) for r in rows))
        answers = [answer(row, self._hashes(row)) if row.sample else None for row in rows]
        return StepResult(answers, seconds(self.profile.accelerator, asked))

    def end(self, request: Request) -> None:
        """Forget the request's checksum."""
        self._sums.pop(request.id, None)

    def _hashes(self, row: Row) -> list[int]:
        """A hash of the sequence up to each token whose logits are wanted; none for a script, which needs none."""
        request = row.request
        if request.says is not None:
            return []
        size = row.start + len(row.tokens) - row.drafted
        covered, value = self._sums.get(request.id, (0, 0))
        if not covered or covered > row.start:  # the first time, or what followed has been spelt anew
            value = zlib.crc32(request.packed(size), zlib.crc32(repr(request.namespace).encode()))
        else:
            prompt = len(request.prompt)
            value = zlib.crc32(pack(request.output[covered - prompt : size - prompt]), value)
        self._sums[request.id] = (size, value)
        sums = [value]
        for token in row.draft:
            sums.append(zlib.crc32(pack([token]), sums[-1]))
        return [one ^ (position * 0x9E3779B1 & 0xFFFFFFFF) for position, one in enumerate(sums, size)]
