"""Mooncake traces: requests of a real service without their words, each 512-token block of a prompt under a hash id.

An id names its block and everything before it, so equal leading ids are a prefix that two prompts share. A
line has `timestamp` (milliseconds), `input_length`, `output_length` (tokens) and `hash_ids`; the last block
may be partial. Format: github.com/kvcache-ai/Mooncake (FAST 25).
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from engine.config import Asked, describe
from workbench.workloads import lines
from workbench.workloads.arrivals import not_too_many
from workbench.workloads.runs import IDS
from workbench.workloads.traffic import Maker, Traffic

BLOCK = 512
LOW, KNOWN = IDS[0], IDS[1] - IDS[0]
"""Token ids of a block are drawn from so many."""


class Line(Asked):
    """One request of a trace."""

    model_config = ConfigDict(extra="ignore", strict=True)

    timestamp: float = Field(ge=0, allow_inf_nan=False)
    input_length: int = Field(ge=1)
    output_length: int = Field(ge=0)
    hash_ids: list[int]


class Mooncake(Asked):
    """Which part of a trace, and at which size."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["mooncake"]
    file: str = Field(min_length=1, description="a trace, one JSON object a line")
    requests: int | None = Field(None, ge=1, description="the first so many; null: all of the file")
    block: int = Field(
        BLOCK, ge=2, le=BLOCK,
        description="tokens that stand for a block of 512. With page_size the same, hits are those of the full size, block by block",
    )  # fmt: skip
    arrivals: Literal["recorded", "sequential", "at once"] = Field("recorded", description="when the requests come")
    output: int | None = Field(None, ge=0, le=1_000_000, description="tokens to answer; null: as recorded, shortened as `block` says")

    def traffic(self, maker: Maker) -> Traffic:
        """The requests, the same for the same file. Raises ValueError naming the key."""
        with lines.under():
            found, tally = lines.collect(lines.find(self.file, maker), parsed, "request")
        found = found[: self.requests]
        not_too_many("requests", len(found))
        not_too_many("block", 0, sum(-(-line.input_length * self.block // BLOCK) for line in found))
        known: dict[int, list[int]] = {}
        requests: list[dict[str, Any]] = []
        for number, line in enumerate(found, 1):
            when: dict[str, Any] = {"at": line.timestamp / 1000} if self.arrivals == "recorded" else {}
            if self.arrivals == "sequential" and number > 1:
                when = {"after": f"R{number - 1}"}
            answer = -(-line.output_length * self.block // BLOCK) if self.output is None else self.output
            requests.append(
                {"id": f"R{number}", "tokens": self._prompt(line, known), "max_new_tokens": answer, "ignore_eos": True, **when}
            )
        told = [f"a block of {BLOCK} tokens is shown as {self.block}: counts of tokens are those of the trace times {self.block}/{BLOCK}"]
        return Traffic(requests, tally.told + (told if self.block < BLOCK else []))

    def _prompt(self, line: Line, known: dict[int, list[int]]) -> list[int]:
        """Token ids of a prompt; a partial last block stays partial."""
        last = line.input_length - BLOCK * (len(line.hash_ids) - 1)
        out: list[int] = []
        for hash_id in line.hash_ids:
            if hash_id not in known:
                known[hash_id] = tokens(hash_id, self.block)
            out += known[hash_id]
        short = self.block - max(1, last * self.block // BLOCK)
        return out[:-short] if short else out


def tokens(hash_id: int, block: int) -> list[int]:
    """The ids that stand for a block: the first two are the hash id itself, so that no two blocks are alike."""
    first, second = hash_id % KNOWN, hash_id // KNOWN
    return [LOW + first, LOW + second, *(LOW + (first * 31 + second * 17 + i * 7919) % KNOWN for i in range(2, block))]


def parsed(record: Any) -> Line:
    """One line of a trace. Raises ValueError saying what is wrong with it."""
    if not isinstance(record, dict):
        raise ValueError("is no JSON object")
    try:
        line = Line.model_validate(record)
    except ValidationError as error:
        raise ValueError(describe(error)) from None
    blocks = -(-line.input_length // BLOCK)
    if len(line.hash_ids) != blocks:
        raise ValueError(f"hash_ids: {line.input_length:,} tokens make {blocks:,} blocks of {BLOCK}; got {len(line.hash_ids):,} ids")
    if not all(0 <= i < KNOWN**2 for i in line.hash_ids):
        raise ValueError(f"hash_ids: must be 0 or more and under {KNOWN**2:,}")
    return line
