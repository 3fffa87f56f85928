"""Asks an OpenAI-compatible server how its prefix cache behaves: prompts that grow by a word, and one that comes again after others.

The answers are what the server sends, unchanged; reading them is left to the caller. `recorded` holds answers that were written for
the course in the formats that SGLang and vLLM publish, so that the same can be done without a server.
"""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workbench.presets import assets

VARIABLE = "RADIX_PROBE_URL"
SECONDS = 20.0
"""The longest that one answer may take."""
WORDS = ["time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world", "school", "state", "family", "student", "group", "country", "problem", "hand", "part", "place", "case", "week", "company", "system", "program", "question", "work", "night", "point", "home", "water", "room", "mother", "area", "money", "story", "fact", "month", "lot", "right", "study", "book", "eye", "job", "word", "business", "issue", "side"]
"""Short common words, most of them one token each."""
Answer = dict[str, Any]


class ProbeError(RuntimeError):
    """A server that cannot be asked; one sentence."""


@dataclass(frozen=True)
class Recorded:
    """One recorded answer. `words`: of the prompt. `fillers`: other prompts between its two sendings; None: it was sent as one of a growing row."""

    server: str
    words: int
    fillers: int | None
    answer: Answer


def recorded() -> list[Recorded]:
    """The answers that come with the workbench, in the order in which they were given."""
    lines = (assets() / "probe" / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    return [Recorded(**json.loads(line)) for line in lines[1:]]


def about() -> str:
    """What the recorded answers are."""
    with (assets() / "probe" / "answers.jsonl").open(encoding="utf-8") as file:
        return str(json.loads(file.readline())["about"])


@dataclass(frozen=True)
class Server:
    """A server that answered: its address up to and with `/v1`, and the model that it named."""

    url: str
    model: str
    seconds: float = SECONDS

    def ask(self, words: Sequence[str]) -> Answer:
        """Its answer of one token to a prompt of these words. Raises ProbeError."""
        asked = {"model": self.model, "prompt": " ".join(words), "max_tokens": 1, "temperature": 0}
        return _json("POST", f"{self.url}/completions", self.seconds, asked)

    def grow(self, most: int, seed: int | None = None) -> list[Answer]:
        """Its answers to prompts of 1, 2, ... `most` words, each a word longer than the one before. Raises ProbeError."""
        words = _fresh(most, seed)
        return [self.ask(words[:count]) for count in range(1, most + 1)]

    def again(self, words: int, fillers: int, seed: int | None = None) -> Answer:
        """Its second answer to a prompt, after `fillers` others of the same length have come between. Raises ProbeError."""
        drawn = random.Random(secrets.randbits(64) if seed is None else seed)
        prompt = _fresh(words, drawn.getrandbits(32))
        self.ask(prompt)
        for _ in range(fillers):
            self.ask(_fresh(words, drawn.getrandbits(32)))
        return self.ask(prompt)


def connect(url: str, seconds: float = SECONDS) -> Server:
    """The server at an address such as `http://localhost:30000`. Raises ProbeError where none answers."""
    address = url.strip().rstrip("/")
    if not address:
        raise ProbeError(f"No server is named. Set {VARIABLE}, or write an address such as http://localhost:30000 into the cell; without one the recorded answers are all there is.")
    address = address if address.endswith("/v1") else f"{address}/v1"
    listed = _json("GET", f"{address}/models", seconds).get("data")
    if not isinstance(listed, list) or not listed or not isinstance(listed[0], dict) or not isinstance(listed[0].get("id"), str):
        raise ProbeError(f"{address}/models names no model; is this an OpenAI-compatible server?")
    return Server(address, listed[0]["id"], seconds)


def prompt_tokens(answer: Answer) -> int | None:
    """How many tokens the server counted in the prompt; None where it does not say."""
    for part in ("usage", "meta_info"):
        said = answer.get(part)
        if isinstance(said, dict) and isinstance(said.get("prompt_tokens"), int):
            return int(said["prompt_tokens"])
    return None


def _fresh(count: int, seed: int | None) -> list[str]:
    """Words in an order that nobody has sent before, or that of a seed."""
    rng = random.Random(secrets.randbits(64) if seed is None else seed)
    return [rng.choice(WORDS) for _ in range(count)]


def _json(method: str, url: str, seconds: float, body: dict[str, Any] | None = None) -> Answer:
    import httpx  # only where a server is asked

    try:
        said = httpx.request(method, url, json=body, timeout=seconds)
    except httpx.TimeoutException:
        raise ProbeError(f"{url} gave no answer within {seconds:g} s.") from None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise ProbeError(f"{url} cannot be reached ({type(error).__name__}: {str(error) or 'no reason given'}).") from None
    if said.status_code != 200:
        raise ProbeError(f"{url} refused with status {said.status_code}: {' '.join(said.text.split())[:120] or 'it said nothing more'}.")
    try:
        answer = said.json()
    except ValueError:
        raise ProbeError(f"{url} answered with something that is not JSON; is this an OpenAI-compatible server?") from None
    if not isinstance(answer, dict):
        raise ProbeError(f"{url} answered with JSON of another kind; is this an OpenAI-compatible server?")
    return answer
