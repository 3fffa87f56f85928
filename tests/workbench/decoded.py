"""Puppet runs of one request under a grammar, with the texts of the puppet's own vocabulary."""

from __future__ import annotations

from functools import cache
from typing import Any

from engine import Engine
from engine import events as ev
from engine.config import EngineConfig
from engine.executor.words import PIECES

RECORD = r'\{"name": "[a-z]{1,6}", "year": [0-9]{1,4}, "city": "[a-z]{1,6}"\}'
"""A record of three keys: what lies between the values is forced."""


def run(
    jump: str, regex: str = RECORD, says: tuple[Any, ...] | None = None, tokens: int = 60, **knobs: Any
) -> ev.Trace:
    """A run of one request, to its end."""
    trace = ev.Trace(ev.Header(scenario="record"), keep=True)
    config = EngineConfig(executor="puppet", pages=knobs.pop("pages", 200), page_size=2, jump=jump, **knobs)
    engine = Engine(config=config, trace=trace, check=True)
    engine.submit([300, 301, 302, 303], id="R1", max_new_tokens=tokens, regex=regex, says=list(says) if says else None)
    while engine.step() is not None:
        pass
    engine.finish()
    trace.header.texts = {str(i): piece.decode(errors="backslashreplace") for i, piece in enumerate(PIECES)}
    return trace


known = cache(run)


def ids(text: str) -> list[int]:
    """A text as single bytes, as the puppet may say it."""
    return list(text.encode())
