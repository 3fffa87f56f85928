"""Calls a learner's function: what it raises is told as its own error, in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.lessons.verdicts import CheckFailed, Told


def attempt(what: str, function: Any, *given: Any) -> Any:
    """`function(*given)`. Raises CheckFailed for what is no function, and for an error of its own."""
    if not callable(function):
        raise CheckFailed(f"{what}: expected a function, got {function!r}")
    try:
        return function(*given)
    except Told:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a learner wrote
        raise CheckFailed(f"{what}: your {named(function)} stopped with {type(error).__name__}: {error}") from None


def named(function: Callable[..., Any]) -> str:
    """What to call it."""
    return getattr(function, "__name__", "function")
