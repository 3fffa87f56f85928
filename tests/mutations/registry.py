"""The named ways to break the engine, and how one is put in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MUTATIONS: dict[str, Callable[[], None]] = {}


def mutation(function: Callable[[], None]) -> Callable[[], None]:
    MUTATIONS[function.__name__] = function
    return function


def swap(owner: Any, name: str, other: Any) -> None:
    """Put `other` in the place of `owner.name`. What is not there cannot be broken: AttributeError."""
    getattr(owner, name)
    setattr(owner, name, other)


def wrap(owner: Any, name: str, around: Callable[..., Any]) -> None:
    """Replace the method `owner.name` by `around(original, self, ...)`."""
    original = getattr(owner, name)
    swap(owner, name, lambda self, *args, **named: around(original, self, *args, **named))
