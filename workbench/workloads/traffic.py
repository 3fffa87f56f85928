"""What a workload is made for, and what it makes: requests in the words of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

MOST_REQUESTS = 100_000
MOST_TOKENS = 8_000_000
"""Requests and prompt tokens that a generator makes at most."""


class Tokenizer(Protocol):
    """Text to ids, as the model that would be asked does it."""

    @property
    def eos_id(self) -> int | None: ...
    def encode(self, text: str) -> list[int]: ...
    def chat(self, messages: Sequence[dict[str, str]]) -> list[int]: ...


@dataclass(frozen=True)
class Upload:
    """A file that came through a page: held in memory, and never on the disk where a path could reach it."""

    name: str
    content: bytes

    def __str__(self) -> str:
        return self.name

    def read_bytes(self) -> bytes:
        """Its content, as a path would read it."""
        return self.content


File = Path | Upload
Uploads = Callable[[str], Upload | None]
"""Finds an upload by the name that a scenario has for it; None where none is held under it."""


@dataclass(frozen=True)
class Maker:
    """Who asks for the traffic: the scenario's seed, its executor, and a tokenizer where ids are needed.

    `files`: whether a file of this machine may be read; a scenario from a browser may not. `uploads`: finds what
    was uploaded to the page that asks; None: no page asks.
    """

    seed: int = 0
    executor: str = "puppet"
    tokenizer: Callable[[], Tokenizer] | None = None
    files: bool = False
    uploads: Uploads | None = None


@dataclass
class Traffic:
    """Requests, each a mapping as in a scenario's `requests`, and what a reader of a file has to tell."""

    requests: list[dict[str, Any]]
    told: list[str] = field(default_factory=list)
