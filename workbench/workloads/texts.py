"""Texts as ids for executors that have no tokenizer of their own: a model's, or words that stand in for one."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from workbench.workloads.traffic import Maker, Tokenizer

Spelt = Literal["tokenizer", "words"]
SPELT: Any = Field(
    None,
    description="how a scripted run's texts become ids: by the tokenizer of engine.model, or an id a word; null: by words where "
    "that tokenizer is not on this machine. A model takes texts as they are",
)
PIECE = re.compile(r"\w+|[^\w\s]")
FIRST, LAST = 256, 50_000
"""Ids of words: from the first up to the last, itself left out; unscripted answers lie above."""
ROLES = {"system": 3, "user": 4, "assistant": 5, "tool": 6}
TOLD_WORDS = (
    f"texts became ids without a tokenizer: one id a word or punctuation mark, its hash from {FIRST} to {LAST - 1:,}; counts are in "
    "words, not in a model's tokens, and two words may share an id"
)
TOLD_TOKENIZER = "texts became ids by the tokenizer of engine.model, which runs nothing else here"


class Words:
    """One id a word or punctuation mark: its CRC-32. A message is its role's id, its words and an end marker."""

    eos_id: int | None = 2

    def encode(self, text: str) -> list[int]:
        """Text -> ids; spaces and line breaks have none."""
        return [FIRST + zlib.crc32(piece.encode()) % (LAST - FIRST) for piece in PIECE.findall(text)]

    def chat(self, messages: Sequence[dict[str, str]]) -> list[int]:
        """Messages -> ids, open for the assistant's answer."""
        out: list[int] = []
        for message in messages:
            out += [ROLES.get(message["role"], 7), *self.encode(message["content"]), 2]
        return [*out, ROLES["assistant"]]


def tokenizer(maker: Maker, spelt: Spelt | None) -> tuple[Tokenizer, list[str]]:
    """The tokenizer of a scripted run, and what is to be told of it. Raises ValueError where one is missing that is asked for."""
    if spelt != "words" and maker.tokenizer is not None:
        try:
            return maker.tokenizer(), [] if spelt else [TOLD_TOKENIZER]
        except ValueError as error:
            if spelt == "tokenizer":
                raise ValueError(f"{error}; text: words stands in for it") from None
    return Words(), [TOLD_WORDS]
