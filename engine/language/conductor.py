"""Drives one engine for the states of a program: asks what can be asked, steps, and takes what has come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.engine import Engine
from engine.request import Request

if TYPE_CHECKING:
    from engine.language.values import Value


class Conductor:
    """Everything that several states have asked of one engine and that has not come yet."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.tokenizer = engine.tokenizer
        self.eos_ids = engine.executor.eos_ids
        self._waiting: list[Value] = []

    def expect(self, value: Value) -> None:
        """Something was asked for."""
        self._waiting.append(value)

    def submit(self, prompt: Sequence[int], label: str, after: Request | None, **asked: Any) -> Request:
        """Ask the engine, behind another request where that has not ended. Raises SubmitError."""
        behind = after.id if after is not None and not after.done else None
        request, when = self.engine.make(prompt, label=label, after=behind, **asked)
        self.engine.enter(request, when)
        return request

    def turn(self) -> bool:
        """One step, with all that can run in it; false when nothing is left to run."""
        if self.look():
            return True
        ran = self.engine.step() is not None
        return self.look() or ran

    def until(self, value: Value) -> None:
        """Drive until a value is there, or cannot be had."""
        while not value.done:
            if not self.turn():
                raise RuntimeError(f"{value.name}: the engine has nothing left to run, and it has not come")

    def finish(self) -> None:
        """Drive until everything is there that was asked for."""
        while self._waiting:
            self.until(self._waiting[0])

    def look(self) -> bool:
        """Ask what can be asked and take what has come, until nothing changes; whether anything ended."""
        before = len(self._waiting)
        while any([value.advance(self) for value in self._waiting]):
            self._waiting = [value for value in self._waiting if not value.done]
        return len(self._waiting) < before
