"""A learner's own code: given a limited time, and what it raises told in one sentence, with the line at which it stopped."""

from __future__ import annotations

import linecache
import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from workbench.lessons.verdicts import CheckFailed, Told

SECONDS = 30
"""How long a check may take before it is said that something does not end."""
PLAIN = (bool, int, float, str, list, tuple, dict, type(None))
"""What a sentence can repeat as it is written."""
LONGEST = 120
"""Characters of what a function was given that a sentence repeats."""


def attempt(what: str, function: Any, *given: Any) -> Any:
    """`function(*given)`. Raises CheckFailed for what is no function, and for an error of its own."""
    if not callable(function):
        raise CheckFailed(f"{what}: expected a function, got {function!r}")
    shown = ", ".join(repr(one) if isinstance(one, PLAIN) else "..." for one in given)
    shown = shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 3]}..."
    try:
        return function(*given)
    except Told:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a learner wrote
        raise CheckFailed(f"{what}: your {named(function)}({shown}) stopped with {in_words(error)}{where(error)}") from None


def named(function: Any) -> str:
    """What to call a function."""
    return str(getattr(function, "__name__", "function"))


def in_words(error: BaseException) -> str:
    """An error's kind and what it says."""
    said = str(error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def where(error: BaseException) -> str:
    """The line of the learner's own at which it stopped: the last one that does not belong to an installed or shipped module."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if _written_here(frame.filename)]
    if not own:
        return ""
    last = own[-1]
    line = (last.line or linecache.getline(last.filename, last.lineno or 0)).strip()
    return f", at line {last.lineno} of the cell" + (f": {line}" if line else "")


def _written_here(filename: str) -> bool:
    return "ipykernel" in filename or filename.startswith("<")


@contextmanager
def bounded(what: str, seconds: int = SECONDS) -> Iterator[None]:
    """Raises CheckFailed when the block takes longer: an endless loop, most likely. Only where the system has an alarm clock."""
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def rings(number: int, frame: FrameType | None) -> None:
        raise CheckFailed(f"{what}: after {seconds} s it has not ended; is there a loop in which nothing changes?")

    before = signal.signal(signal.SIGALRM, rings)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
