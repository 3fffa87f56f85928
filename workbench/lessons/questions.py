"""Three questions about a run of the learner's own: drawn from their number, answered by a reference, shown by the trace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from workbench.runner import Run


@dataclass(frozen=True)
class Asked:
    """One question: `key` comes from a reference that is not the engine; `event` is where the trace shows it."""

    ask: str
    key: Any
    event: int | None = None
    unit: str = ""
    within: float = 0.0
    """How far off a number may be, as a share of the key."""
    hint: str = ""


@dataclass(frozen=True, repr=False)
class Own:
    """A learner's own run and what is asked of it."""

    run: Run
    asked: tuple[Asked, Asked, Asked]
    facts: dict[str, Any] = field(default_factory=dict)
    """What the learner may know beforehand, by name: the prompts, say."""

    def __repr__(self) -> str:
        return f"Own({self.run!r}, facts: {', '.join(self.facts) or 'none'})"


@dataclass(frozen=True)
class Published:
    """A value that a source states and that was not measured here."""

    value: Any
    source: str
