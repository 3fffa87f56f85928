"""Runs an example program on a fresh engine: what it found out, and the run's trace and report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from engine import Engine, State
from engine import events as ev
from engine.config import config_from
from workbench.report import Report, build
from workbench.runner import texts


@dataclass(frozen=True)
class Example:
    """A program: `play` runs it and returns its state, `found` reads from that what is worth showing."""

    name: str
    question: str
    play: Callable[[Engine], State]
    found: Callable[[State], dict[str, Any]]


class Performed(msgspec.Struct, kw_only=True):
    """What a program found out, by name, and the report of its run."""

    program: str
    question: str
    found: dict[str, Any]
    run: Report


def perform(example: Example, model: str, loaded: Any = None, check: bool = False, **knobs: Any) -> tuple[Performed, ev.Trace]:
    """Run a program on a model. Raises ProgramError for a value that could not be had, ConfigError for a wrong knob."""
    header = ev.Header(scenario=example.name, note=example.question)
    trace = ev.Trace(header, keep=True)
    engine = Engine(
        config=config_from({"executor": "model", "model": model, "pages": 4096, **knobs}), loaded=loaded, trace=trace, check=check
    )
    state = example.play(engine)
    found = example.found(state)
    engine.finish()
    header.texts = texts(engine, trace.events)
    report = build(header, trace.events, checked=check)
    return Performed(program=example.name, question=example.question, found=found, run=report), trace
