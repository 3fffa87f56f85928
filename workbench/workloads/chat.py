"""A replay of recorded chats: each turn's prompt is the whole chat so far, and waits for the turn before.

Scripted executors say the recorded answers, so that the cache meets real conversations; a model answers
for itself, and the next prompt holds the recorded answer all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, Literal

from pydantic import ConfigDict, Field

from engine.config import Asked
from workbench.workloads import sharegpt
from workbench.workloads.sharegpt import Conversation
from workbench.workloads.traffic import MOST_REQUESTS, Maker, Tokenizer, Traffic

ANSWER = 16
"""Tokens that a model answers where `output` does not say."""
LABEL = 60
"""Characters of a question that a request is labelled with."""


class Chat(Asked):
    """Which conversations, and how many are open at a time."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["chat"]
    file: str = Field(min_length=1, description="ShareGPT layout: a JSON list, or one JSON object a line")
    conversations: int | None = Field(None, ge=1, description="how many; null: all of the file")
    pick: Literal["first", "random"] = Field("first", description="which, and in which order they begin")
    open: int = Field(8, ge=1, description="chats going on at a time; another begins when one has ended")
    min_turns: int = Field(1, ge=1, description="shorter conversations are left out")
    max_turns: int | None = Field(None, ge=1, description="longer ones are cut after so many")
    output: int | None = Field(
        None, ge=1, le=1_000_000, description="tokens to answer at most; null: the recorded answer, a model 16"
    )
    think: float = Field(0.0, ge=0, allow_inf_nan=False, description="seconds from an answer to the next question")
    sequential: bool = Field(False, description="one request at a time over all chats, the next chat drawn at random")

    def traffic(self, maker: Maker) -> Traffic:
        """The requests, the same for the same file and seed. Raises ValueError naming the key."""
        if not maker.files:
            raise ValueError(
                "file: a page cannot name a file of the machine that serves it; run this scenario from the command line"
            )
        try:
            chats = sharegpt.read(Path(self.file).expanduser())
        except sharegpt.ReadError as error:
            raise ValueError(f"file: {error}") from None
        rng = Random(maker.seed)
        chosen = self._chosen(chats.conversations, rng)
        turns = sum(len(c.turns) for c in chosen)
        if turns > MOST_REQUESTS:
            raise ValueError(f"conversations: {turns:,} requests are asked for; at most {MOST_REQUESTS:,} are made")
        order = self._one_by_one(chosen, rng) if self.sequential else self._side_by_side(chosen)
        said = {number: self._said(one, number, maker) for number, one in enumerate(chosen, 1)}
        requests = []
        for number, turn, after in order:
            when = {"after": after, "think": self.think} if after else {}
            requests.append(
                {"id": _id(number, turn), "label": _label(chosen[number - 1], turn), **said[number][turn - 1], **when}
            )
        return Traffic(requests, chats.told)

    def _chosen(self, conversations: list[Conversation], rng: Random) -> list[Conversation]:
        usable = [c for c in conversations if len(c.turns) >= self.min_turns]
        wanted = self.conversations or len(usable)
        if not usable or wanted > len(usable):
            raise ValueError(
                f"conversations: {wanted:,} of {self.min_turns} or more turns are asked for; the file has {len(usable):,}"
            )
        chosen = rng.sample(usable, wanted) if self.pick == "random" else usable[:wanted]
        return [Conversation(c.id, c.turns[: self.max_turns], c.system) for c in chosen]

    def _side_by_side(self, chosen: list[Conversation]) -> Iterator[tuple[int, int, str | None]]:
        """(chat, turn, whom it waits for): `open` users, each with one chat after another."""
        for number, one in enumerate(chosen, 1):
            before = number - self.open
            after = _id(before, len(chosen[before - 1].turns)) if before > 0 else None
            for turn in range(1, len(one.turns) + 1):
                yield number, turn, after
                after = _id(number, turn)

    def _one_by_one(self, chosen: list[Conversation], rng: Random) -> Iterator[tuple[int, int, str | None]]:
        """The same, every request waiting for the one before it."""
        coming = iter(range(1, len(chosen) + 1))
        going = [[number, 0] for number in islice(coming, self.open)]
        after = None
        while going:
            place = int(rng.random() * len(going))
            number, turn = going[place][0], going[place][1] + 1
            going[place][1] = turn
            yield number, turn, after
            after = _id(number, turn)
            if turn == len(chosen[number - 1].turns):
                fresh = next(coming, None)
                going[place : place + 1] = [[fresh, 0]] if fresh else []

    def _said(self, one: Conversation, number: int, maker: Maker) -> list[dict[str, Any]]:
        """Each turn's prompt and answer: as messages for a model, as ids for a script."""
        history = [{"role": "system", "content": one.system}] if one.system else []
        out: list[dict[str, Any]] = []
        for question, answer in one.turns:
            history.append({"role": "user", "content": question})
            if maker.executor == "model":
                out.append({"messages": list(history), "max_new_tokens": self.output or ANSWER})
            else:
                out.append(self._scripted(history, answer, number, maker))
            history.append({"role": "assistant", "content": answer or ""})
        return out

    def _scripted(self, history: list[dict[str, str]], answer: str | None, number: int, maker: Maker) -> dict[str, Any]:
        """Ids of a prompt and of its recorded answer, with the end marker that a model would close it with."""
        assert maker.tokenizer is not None
        tokenizer: Tokenizer = maker.tokenizer()
        try:
            prompt, says = tokenizer.chat(history), tokenizer.encode(answer) if answer is not None else []
        except ValueError as error:
            raise ValueError(f"file: conversation {number}: {error}") from None
        end = tokenizer.eos_id
        if says and end is not None:
            says.append(end)
        says = says[: self.output]
        return {
            "tokens": prompt,
            "says": says,
            "max_new_tokens": len(says),
            "stop_token_ids": [end] if says and end is not None else [],
        }


def _id(number: int, turn: int) -> str:
    return f"C{number}-{turn}"


def _label(one: Conversation, turn: int) -> str:
    words = " ".join(one.turns[turn - 1][0].split())
    return words if len(words) <= LABEL else words[: LABEL - 1] + "…"
