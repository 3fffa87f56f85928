"""Request logs: OpenAI-style calls one a line, and chat JSONL as it is kept for fine-tuning.

A line is a request body (`messages` or `prompt`, `tools`, `max_tokens`), or has one under `body` or
`request`; `response` or `output` beside it may hold the answer. Where the messages end with an assistant's,
that is the recorded answer and the rest is the prompt. Tools stand as JSON before the system message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field

from engine.config import Asked
from workbench.workloads import lines, texts
from workbench.workloads.arrivals import not_too_many
from workbench.workloads.messages import Message, plain, tool_texts
from workbench.workloads.texts import SPELT, Spelt
from workbench.workloads.traffic import Maker, Tokenizer, Traffic

ANSWER = 16
"""Tokens answered where neither the file nor `output` says."""
WRAPPERS = ("body", "request")
TIMES = ("timestamp", "created", "created_at", "time")


@dataclass(frozen=True)
class Logged:
    """One request of a log: messages or a bare text, the recorded answer, when it came (seconds)."""

    messages: list[Message] | None
    prompt: str | None
    answer: str | None
    most: int | None
    at: float | None


class RequestLog(Asked):
    """Which requests of a log, and when they come."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["requests"]
    file: str = Field(min_length=1, description="one request a line as JSON, or a JSON list of them")
    requests: int | None = Field(None, ge=1, description="the first so many; null: all of the file")
    arrivals: Literal["at once", "sequential", "recorded"] = Field("at once", description="recorded: by the lines' timestamps")
    output: int | None = Field(
        None, ge=0, le=1_000_000, description="tokens to answer at most; null: the recorded answer, else max_tokens, else 16"
    )
    text: Spelt | None = SPELT

    def traffic(self, maker: Maker) -> Traffic:
        """The requests, the same for the same file. Raises ValueError naming the key."""
        with lines.under():
            found, tally = lines.collect(lines.find(self.file, maker), parsed, "request")
        found = found[: self.requests]
        not_too_many("requests", len(found))
        tokenizer, told = (None, []) if maker.executor == "model" else texts.tokenizer(maker, self.text)
        start = self._start(found)
        requests = []
        for number, one in enumerate(found, 1):
            when: dict[str, Any] = {}
            if self.arrivals == "recorded" and one.at is not None:
                when = {"at": round(one.at - start, 6)}
            elif self.arrivals == "sequential" and number > 1:
                when = {"after": f"R{number - 1}"}
            asked = self._modelled(one) if tokenizer is None else self._scripted(one, tokenizer, number)
            requests.append({"id": f"R{number}", "label": label(one), **asked, **when})
        return Traffic(requests, tally.told + told)

    def _start(self, found: Sequence[Logged]) -> float:
        without = sum(one.at is None for one in found)
        if self.arrivals == "recorded" and without:
            raise ValueError(f"arrivals: {without:,} of {len(found):,} requests have no time ({', '.join(TIMES)}); take 'at once' or 'sequential'")
        return min((one.at for one in found if one.at is not None), default=0.0)

    def _modelled(self, one: Logged) -> dict[str, Any]:
        most = self.output if self.output is not None else one.most if one.most is not None else ANSWER
        return {**({"messages": one.messages} if one.messages else {"prompt": one.prompt}), "max_new_tokens": most}

    def _scripted(self, one: Logged, tokenizer: Tokenizer, number: int) -> dict[str, Any]:
        try:
            prompt = tokenizer.chat(one.messages) if one.messages else tokenizer.encode(one.prompt or "")
        except ValueError as error:
            raise ValueError(f"file: request {number}: {error}") from None
        if one.answer is None:
            return {"tokens": prompt, "max_new_tokens": self._modelled(one)["max_new_tokens"], "ignore_eos": True}
        end = tokenizer.eos_id
        says = [*tokenizer.encode(one.answer), *([end] if end is not None else [])][: self.output]
        return {"tokens": prompt, "says": says, "max_new_tokens": len(says), "stop_token_ids": [] if end is None else [end]}


def label(one: Logged) -> str:
    """The last question's beginning, for people."""
    words = " ".join((one.messages[-1]["content"] if one.messages else one.prompt or "").split())
    return words if len(words) <= 60 else words[:59] + "…"


def parsed(record: Any) -> Logged:
    """One line of a log. Raises ValueError saying what is wrong with it."""
    if not isinstance(record, dict):
        raise ValueError("is no JSON object")
    body = next((record[key] for key in WRAPPERS if isinstance(record.get(key), dict)), record)
    most = body.get("max_completion_tokens", body.get("max_tokens"))
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or not 0 <= most <= 1_000_000):
        raise ValueError(f"max_tokens must be a number from 0 to 1,000,000; got {most!r}")
    at = next((when(record[key]) for key in TIMES if record.get(key) is not None), None)
    answer = _answer(record)
    if "messages" not in body:
        if "prompt" not in body:
            raise ValueError("has neither messages nor a prompt")
        return Logged(None, nonempty(lines.whole_text(body["prompt"], "its prompt")), answer, most, at)
    messages = plain(body["messages"])
    if messages[-1]["role"] == "assistant":
        answer = messages.pop()["content"]
    if not messages:
        raise ValueError("nobody asks anything")
    tools = tool_texts(body.get("tools"))
    if tools:
        system = messages.pop(0)["content"] if messages[0]["role"] == "system" else ""
        messages.insert(0, {"role": "system", "content": "\n".join([*tools, *([system] if system else [])])})
    return Logged(messages, None, answer, most, at)


def nonempty(text: str) -> str:
    """The text. Raises ValueError where it is empty."""
    if not text.strip():
        raise ValueError("its prompt is empty")
    return text


def when(value: Any) -> float:
    """A time in seconds, from a number of seconds or an ISO 8601 text. Raises ValueError."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15:
        return float(value)
    try:
        return datetime.fromisoformat(value).timestamp()
    except (TypeError, ValueError):
        raise ValueError(f"its time is neither seconds nor ISO 8601; got {value!r}") from None


def _answer(record: dict[str, Any]) -> str | None:
    """The recorded answer: a text, or the first choice of an OpenAI response; None where there is none."""
    found = record.get("response", record.get("output"))
    if isinstance(found, dict):
        found = found.get("body", found)
        choices = found.get("choices") if isinstance(found, dict) else None
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        message = choice.get("message")
        found = message.get("content") if isinstance(message, dict) else choice.get("text")
    return lines.whole_text(found, "its answer") if found is not None else None
