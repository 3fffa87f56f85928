"""A replay of recorded chats: each turn's prompt is the whole chat so far, and waits for the turn before.

Scripted executors say the recorded answers, so that the cache meets real conversations; a model answers
for itself, and the next prompt holds the recorded answer all the same.
"""

from __future__ import annotations

from random import Random
from typing import Any, Literal

from pydantic import ConfigDict, Field, model_validator

from engine.config import Asked
from workbench.workloads import lines, sharegpt, texts
from workbench.workloads.arrivals import not_too_many
from workbench.workloads.interleave import Turn, one_by_one, side_by_side
from workbench.workloads.sharegpt import Conversation
from workbench.workloads.texts import SPELT, Spelt
from workbench.workloads.traffic import Maker, Tokenizer, Traffic

ANSWER = 16
"""Tokens that a model answers where `output` does not say."""
LABEL = 60
"""Characters of a question that a request is labelled with."""


class Chat(Asked):
    """Which conversations, and how many are open at a time."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["chat"]
    file: str = Field(min_length=1, description="ShareGPT layout: a JSON list, or one JSON object a line; or a folder of such files")
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
    answers: Literal["decoded", "stored"] = Field(
        "decoded", description="stored: a scripted answer takes no step a token; a second request, ID+, stores what it would have left behind (sequential)"
    )
    text: Spelt | None = SPELT

    @model_validator(mode="after")
    def _one_after_the_other(self) -> Chat:
        if self.answers == "stored" and not self.sequential:
            raise ValueError("answers: stored ones need their turn before the next request; give sequential: true as well")
        return self

    def traffic(self, maker: Maker) -> Traffic:
        """The requests, the same for the same file and seed. Raises ValueError naming the key."""
        if self.answers == "stored" and maker.executor == "model":
            raise ValueError("answers: a model answers for itself; stored ones need a script")
        path = lines.find(self.file, maker)
        with lines.under():
            chats = sharegpt.read(path)
        rng = Random(maker.seed)
        chosen = self._chosen(chats.conversations, rng)
        turns = [len(c.turns) for c in chosen]
        not_too_many("conversations", sum(turns))
        order = one_by_one(turns, self.open, rng) if self.sequential else side_by_side(turns, self.open)
        tokenizer, told = (None, []) if maker.executor == "model" else texts.tokenizer(maker, self.text)
        said = {number: self._said(one, number, tokenizer) for number, one in enumerate(chosen, 1)}
        requests: list[dict[str, Any]] = []
        for (number, turn), after in order:
            asked = {"id": _id((number, turn)), "label": _label(chosen[number - 1], turn), **said[number][turn - 1]}
            if after:
                asked |= {"after": requests[-1]["id"] if self.sequential else _id(after), "think": self.think}
            requests += self._stored(asked) if self.answers == "stored" else [asked]
        return Traffic(requests, chats.told + told)

    def _stored(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        """A turn as prefill alone, and the request that stores its answer: all but the last token, which no pass would have read."""
        kept = asked["says"][:-1]
        asked |= {"says": [], "max_new_tokens": 0, "stop_token_ids": []}
        if not kept:
            return [asked]
        answer = {"id": f"{asked['id']}+", "label": "its answer, stored", "tokens": asked["tokens"] + kept}
        return [asked, {**answer, "says": [], "max_new_tokens": 0, "after": asked["id"]}]

    def _chosen(self, conversations: list[Conversation], rng: Random) -> list[Conversation]:
        usable = [c for c in conversations if len(c.turns) >= self.min_turns]
        wanted = self.conversations or len(usable)
        if not usable or wanted > len(usable):
            raise ValueError(
                f"conversations: {wanted:,} of {self.min_turns} or more turns are asked for; the file has {len(usable):,}"
            )
        chosen = rng.sample(usable, wanted) if self.pick == "random" else usable[:wanted]
        return [Conversation(c.id, c.turns[: self.max_turns], c.system) for c in chosen]

    def _said(self, one: Conversation, number: int, tokenizer: Tokenizer | None) -> list[dict[str, Any]]:
        """Each turn's prompt and answer: as ids for a script, as messages for a model, where there is no tokenizer."""
        history = [{"role": "system", "content": one.system}] if one.system else []
        out: list[dict[str, Any]] = []
        for question, answer in one.turns:
            history.append({"role": "user", "content": question})
            if tokenizer is None:
                out.append({"messages": list(history), "max_new_tokens": self.output or ANSWER})
            else:
                out.append(self._scripted(history, answer, number, tokenizer))
            history.append({"role": "assistant", "content": answer or ""})
        return out

    def _scripted(
        self, history: list[dict[str, str]], answer: str | None, number: int, tokenizer: Tokenizer
    ) -> dict[str, Any]:
        """Ids of a prompt and of its recorded answer, with the end marker that a model would close it with."""
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


def _id(turn: Turn) -> str:
    return f"C{turn[0]}-{turn[1]}"


def _label(one: Conversation, turn: int) -> str:
    words = " ".join(one.turns[turn - 1][0].split())
    return words if len(words) <= LABEL else words[: LABEL - 1] + "…"
