"""Plain prompts, one a line."""

from __future__ import annotations

from random import Random
from typing import Any, Literal

from pydantic import Field

from workbench.workloads import lines, texts
from workbench.workloads.arrivals import Timed, not_too_many
from workbench.workloads.texts import SPELT, Spelt
from workbench.workloads.traffic import Maker, Traffic

LABEL = 60


class Prompts(Timed):
    """The prompts of a text file."""

    kind: Literal["prompts"]
    file: str = Field(min_length=1, description="a text file, one prompt a line; blank lines are none")
    requests: int | None = Field(None, ge=1, description="the first so many; null: all of the file")
    chat: bool = Field(False, description="put each into the chat template as a user's message")
    output: int = Field(16, ge=0, le=1_000_000, description="tokens to answer; 0: prefill only")
    text: Spelt | None = SPELT

    def traffic(self, maker: Maker) -> Traffic:
        """The requests, the same for the same file. Raises ValueError naming the key."""
        path = lines.find(self.file, maker)
        with lines.under():
            numbered = ((f"line {number}", line) for number, line in lines.lines(path))
            found, tally = lines.collect(path, parsed, "prompt", numbered)
        found = found[: self.requests]
        not_too_many("requests", len(found))
        names = [f"R{i}" for i in range(1, len(found) + 1)]
        tokenizer, told = (None, []) if maker.executor == "model" else texts.tokenizer(maker, self.text)
        requests = []
        for name, prompt, when in zip(names, found, self.moments(names, Random(maker.seed)), strict=True):
            asked: dict[str, Any] = {"messages": [{"role": "user", "content": prompt}]} if self.chat else {"prompt": prompt}
            if tokenizer is not None:
                asked = {"tokens": tokenizer.chat(asked["messages"]) if self.chat else tokenizer.encode(prompt)}
            label = prompt if len(prompt) <= LABEL else prompt[: LABEL - 1] + "…"
            requests.append({"id": name, "label": label, **asked, "max_new_tokens": self.output, **when})
        return Traffic(requests, tally.told + told)


def parsed(line: bytes) -> str:
    """One line as a prompt. Raises ValueError saying what is wrong with it."""
    try:
        text = line.decode().strip()
    except UnicodeDecodeError:
        raise ValueError("not readable as UTF-8") from None
    if not text:
        raise ValueError("holds nothing but spaces")
    return text
