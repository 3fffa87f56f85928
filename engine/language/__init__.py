"""The language: programs of text, answers and choices, run on an engine.

    @program
    def advice(s: State, question: str) -> None:
        s += f"Question: {question}\\nIs it about opening hours? Answer:"
        s.select("hours", [" yes", " no"])

    advice.run(engine, question="When do you close?")["hours"]

`gen` and `select` only queue; reading a value, `s["hours"]`, drives the engine until it is there, and everything
that can run meanwhile runs in the same steps. `s.fork(3)` gives three branches, which run as one batch: what they
share is computed first, so that each of them finds it in the cache.
"""

from __future__ import annotations

from engine.language.choosing import RULES, Option, Selection, Token
from engine.language.programs import Program, program
from engine.language.state import State
from engine.language.values import ProgramError

__all__ = ["RULES", "Option", "Program", "ProgramError", "Selection", "State", "Token", "program"]
