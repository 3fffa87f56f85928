"""An agent's prompts, put together by a function of the caller's: the same calls as kind `agent`, in any order of their parts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from workbench.workloads.agent import Agent, Call
from workbench.workloads.prompt_order import Part
from workbench.workloads.texts import Words
from workbench.workloads.traffic import Maker


@dataclass(frozen=True)
class Pieces:
    """What one prompt is made of, each piece a text."""

    tools: list[str]
    """One a tool, in whatever order the registry of tools gave them this time."""
    instructions: str
    """The same in every call."""
    session: str
    """Whose session it is: the same in all its calls."""
    clock: str
    """The time and the request's id: another with every call."""
    note: str
    """The agent's working memory: another with every call."""
    history: list[str]
    """What was said and found so far, oldest first; every call lengthens it."""

    @property
    def all(self) -> list[str]:
        """Every piece once."""
        return [*self.tools, self.instructions, self.session, self.clock, self.note, *self.history]

    def name_of(self, text: str) -> str:
        """Which piece a text is, in a word or two."""
        names = {self.instructions: "instructions", self.session: "session line", self.clock: "time and request id", self.note: "note"}
        return names.get(text) or ("tool " + _called(text) if text in self.tools else "history" if text in self.history else "something else")


Assemble = Callable[[Pieces], list[str]]


def pieces(knobs: dict[str, Any], seed: int = 0) -> list[tuple[Call, Pieces]]:
    """Every call of an `agent` workload that reads a file, in order of arrival, and its pieces."""
    calls, _ = Agent(**{"kind": "agent", "text": "words", **knobs}).calls(Maker(seed=seed, files=True))
    return [(call, _pieces(call, Random(f"{seed}/{call.id}"))) for call in calls]


def requests(made: list[tuple[Call, Pieces]], assemble: Assemble) -> list[dict[str, Any]]:
    """The calls as a scenario's requests, each prompt as `assemble` puts it together; prompts alone, no answers."""
    spell = Words().encode
    return [
        {"id": call.id, "label": call.label, "tokens": [i for text in assemble(parts) for i in spell(text)], "max_new_tokens": 0, "ignore_eos": True, **call.when()}
        for call, parts in made
    ]  # fmt: skip


def _pieces(call: Call, rng: Random) -> Pieces:
    tools = [_said(part) for part in call.session.tools]
    rng.shuffle(tools)
    history = [part for step in call.session.steps[: call.call - 1] for part in (*step.new, *([step.said] if step.said else []))]
    history += call.step.new
    changing = (call.dynamic.header, call.dynamic.stamp, call.dynamic.note)
    return Pieces(tools, "\n".join(map(_said, call.session.system)), *(f"{part.text}\n" for part in changing), [_said(part) for part in history])


def _said(part: Part) -> str:
    return f"{part.role}\n{part.text}\n"


def _called(tool: str) -> str:
    """A tool's name, from its schema."""
    try:
        schema = json.loads(tool.partition("\n")[2])
    except ValueError:
        return tool.strip()[:20]
    return str(schema.get("function", schema).get("name", "without a name"))
