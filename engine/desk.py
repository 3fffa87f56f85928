"""The desk: turns what is asked into requests, checked and with ids that are new in the run. Replicas share one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from engine.asking import (
    SubmitError,
    check_content,
    check_facts,
    check_ids,
    check_says,
    check_score,
    check_times,
    namespace_of,
)
from engine.config import describe
from engine.events import Namespace
from engine.executor.base import Executor
from engine.request import Request, SamplingParams

CONTENTS = 2047
"""Different contents that one run can tell apart."""


@dataclass(slots=True)
class When:
    """When a request arrives: at `at` seconds, before step `at_step`, or `think` seconds after the end of `after`."""

    at: float | None = None
    at_step: int | None = None
    after: str | None = None
    think: float = 0.0
    abort_at_step: int | None = None

    @property
    def now(self) -> bool:
        """Whether it arrives at once."""
        return self.at is None and self.at_step is None and self.after is None


class Desk:
    """Makes requests for one run."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._contents: dict[str, int] = {}
        self.ids: set[str] = set()
        """The ids of all requests that were taken."""

    def make(
        self,
        prompt: str | Sequence[int] | None = None,
        *,
        messages: Sequence[dict[str, str]] | None = None,
        id: str | None = None,
        at: float | None = None,
        at_step: int | None = None,
        after: str | None = None,
        think: float = 0.0,
        abort_at_step: int | None = None,
        fail_at_step: int | None = None,
        namespace: Namespace | None = None,
        content_at: int = 0,
        priority: int = 0,
        store: bool = True,
        pin: int = 0,
        label: str | None = None,
        says: list[Any] | None = None,
        **params: Any,
    ) -> tuple[Request, When]:
        """A request and when it arrives. Raises SubmitError naming the field that is wrong; its id is not taken yet.

        The content of its namespace stands for all of it, or for the tokens from `content_at` on: a picture after a
        text. `params` are SamplingParams fields.
        """
        name = id if id is not None else self._fresh_id()
        if not isinstance(name, str) or not name or name in self.ids:
            raise SubmitError(f"id: must be a new, non-empty string; got {name!r}")
        try:
            sampling = SamplingParams.model_validate(params)
        except ValidationError as error:
            raise SubmitError(describe(error)) from None
        check_times(at, at_step, after, think, abort_at_step, fail_at_step)
        if after is not None and after not in self.ids:
            raise SubmitError(f"after: {after!r} is no request of this run")
        namespace = namespace_of(namespace)
        check_facts(priority, store, label, pin)
        check_says(says, self._executor.vocab_size)
        ids = self._prompt_ids(prompt, messages)
        check_score(sampling.score_from, len(ids))
        check_content(content_at, namespace, len(ids))
        content, number = None, 0
        if namespace is not None and content_at:
            content = namespace[2]
            namespace = namespace_of((*namespace[:2], None))
            number = self._content_number(str(content))
        if sampling.stop and self._executor.tokenizer is None:
            raise SubmitError("stop: needs a tokenizer, and this executor has none")
        request = Request(
            id=name, prompt=ids, params=sampling, arrived=0.0, index=0, namespace=namespace, priority=priority,
            content=content, content_at=content_at, content_number=number, store=store, pin=pin, label=label, says=says, fail_at_step=fail_at_step,
        )  # fmt: skip
        return request, When(at, at_step, after, think, abort_at_step)

    def _content_number(self, content: str) -> int:
        number = self._contents.setdefault(content, len(self._contents) + 1)
        if number > CONTENTS:
            raise SubmitError(f"content: more than {CONTENTS} different contents in one run")
        return number

    def _fresh_id(self) -> str:
        number = len(self.ids) + 1
        while f"R{number}" in self.ids:
            number += 1
        return f"R{number}"

    def _prompt_ids(
        self, prompt: str | Sequence[int] | None, messages: Sequence[dict[str, str]] | None
    ) -> list[int]:
        if (prompt is None) == (messages is None):
            raise SubmitError("prompt: give either prompt (a text or token ids) or messages")
        tokenizer = self._executor.tokenizer
        if prompt is None or isinstance(prompt, str):
            if tokenizer is None:
                raise SubmitError("prompt: this executor has no tokenizer; give token ids")
            try:
                ids = tokenizer.chat(messages or []) if prompt is None else tokenizer.encode(prompt)
            except ValueError as error:
                raise SubmitError(f"{'messages' if prompt is None else 'prompt'}: {error}") from None
            return check_ids(ids, self._executor.vocab_size)
        return check_ids(prompt, self._executor.vocab_size)
