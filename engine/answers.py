"""Answers as they come: their tokens, their text, and what ends them."""

from __future__ import annotations

from collections.abc import Sequence

from engine.executor.base import Detokenizer, Executor
from engine.request import Request


class Answers:
    """The answers of an engine's live requests. Without a tokenizer they have no text."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.texts: dict[str, Detokenizer] = {}
        self._fresh: dict[str, str] = {}

    def begin(self, request: Request) -> None:
        """A request has come."""
        if self._executor.tokenizer is not None:
            self.texts[request.id] = self._executor.tokenizer.detokenizer(request.params.stop)

    def take(self, request: Request, tokens: Sequence[int]) -> list[int]:
        """Append tokens to an answer and its text, up to the one that ends it; returns those that were taken."""
        for count, token in enumerate(tokens, 1):
            request.output.append(token)
            detokenizer = self.texts.get(request.id)
            if detokenizer is not None and not self.is_end(request, token):
                self._said(request, detokenizer.push([token]))
            if count < len(tokens) and self.ended_by(request, token) is not None:
                return list(tokens[:count])
        return list(tokens)

    def push_bytes(self, request: Request, data: bytes) -> None:
        """Text of an answer whose tokens are spelt elsewhere."""
        detokenizer = self.texts.get(request.id)
        if detokenizer is not None:
            self._said(request, detokenizer.push_bytes(data))

    def _said(self, request: Request, text: str) -> None:
        request.text += text
        self._fresh[request.id] = self._fresh.get(request.id, "") + text

    def fresh(self, request: Request) -> str:
        """What has been said since the last call."""
        return self._fresh.pop(request.id, "")

    def stopped(self, request: Request) -> str | None:
        """The stop string that was met, if one was."""
        detokenizer = self.texts.get(request.id)
        return detokenizer.stopped if detokenizer is not None else None

    def ended_by(self, request: Request, token: int | None) -> tuple[str, str | int | None] | None:
        """How an answer with this last token ends, and by which stop string or id; None where it goes on."""
        stopped = self.stopped(request)
        if stopped is not None:
            return "stop", stopped
        if token is not None and self.is_end(request, token):
            return "stop", token
        if len(request.output) >= request.params.max_new_tokens:
            return "length", None
        return None

    def is_end(self, request: Request, token: int) -> bool:
        """Whether a token ends the request: an end of text, or one that it named."""
        params = request.params
        return token in params.stop_token_ids or (not params.ignore_eos and token in self._executor.eos_ids)

    def finish(self, request: Request) -> str | None:
        """The request has ended: adds what was held back, and returns the whole text (None without a tokenizer)."""
        detokenizer = self.texts.pop(request.id, None)
        request.tail = detokenizer.finish() if detokenizer is not None else ""
        request.text += request.tail
        return request.text if self._executor.tokenizer is not None else None
