"""Example programs in the engine's language: one module each, found by name."""

from __future__ import annotations

from workbench.programs import essay_judges, tool_agent
from workbench.programs.perform import Example, Performed, perform

PROGRAMS: dict[str, Example] = {m.EXAMPLE.name: m.EXAMPLE for m in (essay_judges, tool_agent)}

__all__ = ["PROGRAMS", "Example", "Performed", "find", "perform"]


def find(name: str) -> Example:
    """A program by its name. Raises ValueError naming those that are there."""
    if name not in PROGRAMS:
        raise ValueError(f"{name!r} is no program; there are {', '.join(PROGRAMS)}")
    return PROGRAMS[name]
