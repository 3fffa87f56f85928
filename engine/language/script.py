"""What a program has written so far: texts, ids and values to come, in chat roles or without; and how it is spelt in ids.

Texts that stand side by side are tokenised together, as one text. An answer keeps the ids that the model said, so
what was computed for it is found again; a text after it is tokenised apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine.executor.base import Tokenizer

if TYPE_CHECKING:
    from engine.language.values import Value

ROLES = ("system", "user", "assistant")
Part = Any
"""A text, a tuple of token ids, or a Value."""


@dataclass(frozen=True)
class Turn:
    """A chat message that is closed."""

    role: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Script:
    """Closed messages, the role that is open (None: none), and what was written in it."""

    turns: tuple[Turn, ...] = ()
    role: str | None = None
    parts: tuple[Part, ...] = ()

    def add(self, *parts: Part) -> Script:
        """The same, and something more. Raises ValueError for a text outside of a role in a chat."""
        if self.turns and self.role is None:
            raise ValueError("in a chat every text stands in a role: with s.user(): ...")
        return replace(self, parts=self.parts + parts)

    def open(self, role: str) -> Script:
        """A new message; the one that was open is closed. Raises ValueError where plain text stands before it."""
        if self.role is None and self.parts:
            raise ValueError(f"{role}: plain text stands before it; a program is a chat from its beginning, or none")
        return Script(self.close().turns, role)

    def close(self) -> Script:
        """No message is open any more."""
        return self if self.role is None else Script((*self.turns, Turn(self.role, self.parts)))

    @property
    def chat(self) -> bool:
        """Whether it has roles."""
        return bool(self.turns) or self.role is not None

    def values(self) -> Iterable[Value]:
        """The values that it holds."""
        for parts in (*(t.parts for t in self.turns), self.parts):
            yield from (p for p in parts if not isinstance(p, str | tuple))

    # --- in ids --------------------------------------------------------------------------------

    def ids(self, tokenizer: Tokenizer | None) -> list[int]:
        """The prompt of an answer that goes on from here. All values must be there. Raises ValueError."""
        if not self.chat:
            return spell(self.parts, tokenizer, begins=True)
        if self.role != "assistant":
            raise ValueError("in a chat an answer is the assistant's: with s.assistant(): ...")
        return _tokenizer(tokenizer).chat(self._messages(self.turns)) + spell(self.parts, tokenizer)

    def shared(self, tokenizer: Tokenizer | None) -> list[int]:
        """The ids with which everything begins that goes on from here, but for what the next text may change in the last of them."""
        if not self.chat or self.role == "assistant":
            return self.ids(tokenizer)
        chat = _tokenizer(tokenizer).chat
        if self.role is None and self.turns[-1].role == "user":
            return chat(self._messages(self.turns))
        # A template may write what it likes around a message: what two different ones share is the beginning of all.
        turn = Turn(self.role or "user", self.parts)
        one, two = (chat(self._messages((*self.turns, replace(turn, parts=(*turn.parts, end))))) for end in (" x", "\ny"))
        return one[: common(one, two)]

    @staticmethod
    def _messages(turns: Iterable[Turn]) -> list[dict[str, str]]:
        return [{"role": t.role, "content": read(t.parts)} for t in turns]

    def text(self) -> str:
        """All that was written, messages apart by lines. All values must be there."""
        said = [f"{t.role}: {read(t.parts)}" for t in self.turns]
        if self.role is not None:
            return "\n".join([*said, f"{self.role}: {read(self.parts)}"])
        return "\n".join(said) if said else read(self.parts)


def read(parts: Iterable[Part]) -> str:
    """Parts as text. Raises ValueError for bare ids, which have none."""
    if any(isinstance(p, tuple) for p in parts):
        raise ValueError("token ids have no text here; write texts, or read the values one by one")
    return "".join(p if isinstance(p, str) else p.text for p in parts)


def spell(parts: Iterable[Part], tokenizer: Tokenizer | None, begins: bool = False) -> list[int]:
    """Parts in ids; `begins`: they begin the sequence, with the begin marker where the model wants one. Raises ValueError."""
    ids: list[int] = []
    run, at_start = "", begins
    for part in (*parts, ()):
        kept = part if isinstance(part, str | tuple) else part.text if part.ids is None else tuple(part.ids)
        if isinstance(kept, str):
            run += kept
            continue
        if run or (at_start and tokenizer is not None):
            ids += _tokenizer(tokenizer).encode(run) if at_start else _tokenizer(tokenizer).ids(run)
        ids += kept
        run, at_start = "", False
    return ids


def common(one: list[int], two: list[int]) -> int:
    """How many ids two sequences begin with alike."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(two)))


def _tokenizer(tokenizer: Tokenizer | None) -> Tokenizer:
    if tokenizer is None:
        raise ValueError("this executor has no tokenizer; a program writes token ids")
    return tokenizer
