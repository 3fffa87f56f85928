"""Documents for schema tests: serialised as a grammar writes them, put in declared order, drawn from an automaton."""

from __future__ import annotations

import json
import random
from functools import cached_property
from typing import Any

import numpy as np

from engine.grammar.automaton import build
from engine.grammar.joined import Fragment
from engine.grammar.order import distances
from engine.grammar.schema import node_of

SEPARATORS = {"compact": (",", ":"), "one-space": (", ", ": ")}


def serialised(value: Any, spacing: str = "one-space") -> str:
    """A value as Python's own writer spells it."""
    if spacing == "pretty":
        return json.dumps(value, indent=2, ensure_ascii=False)
    return json.dumps(value, separators=SEPARATORS[spacing], ensure_ascii=False)


class Asked:
    """A schema's automaton, asked about values and texts."""

    def __init__(self, schema: Any, spacing: str = "one-space") -> None:
        self.spacing = spacing
        self.automaton = build(node_of(schema, spacing))

    def takes(self, value: Any) -> bool:
        return self.automaton.accepts(serialised(value, self.spacing).encode())

    def takes_text(self, text: str) -> bool:
        return self.automaton.accepts(text.encode())

    @cached_property
    def away(self) -> np.ndarray:
        """How many bytes each state is from a whole text."""
        return distances(Fragment(self.automaton.moves, self.automaton.accepting))

    def draw(self, rng: random.Random, patience: int = 60) -> str:
        """A text of the automaton: bytes at random, and after so many of them straight to an end."""
        state, text = 0, bytearray()
        while True:
            choices = self._ways(state)
            if self.automaton.accepting[state] and (not choices or len(text) > patience or rng.random() < 0.3):
                return text.decode()
            if len(text) > patience:
                nearest = min(self.away[target] for target, _ in choices)
                choices = [choice for choice in choices if self.away[choice[0]] == nearest]
            state, leading = rng.choice(choices)
            text.append(rng.choice(leading))

    def _ways(self, state: int) -> list[tuple[int, list[int]]]:
        """Where a state leads, with the bytes that lead there."""
        row = self.automaton.moves[state][self.automaton.classes]
        return [(int(target), np.flatnonzero(row == target).tolist()) for target in np.unique(row[row >= 0])]
