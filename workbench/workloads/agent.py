"""Agents at work: tools and instructions in front, then a history that every call sends again and lengthens.

From a file of trajectories, or generated; the order of a prompt's parts is a knob (`prompt_order`).
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from pydantic import ConfigDict, Field, model_validator

from engine.config import Asked
from workbench.workloads import lines, texts, trajectories
from workbench.workloads.arrivals import not_too_many
from workbench.workloads.interleave import Turn, one_by_one, side_by_side
from workbench.workloads.prompt_order import Dynamic, Order, Part, Session, Step, prompt
from workbench.workloads.runs import IDS, Range, check_ids, run, runs
from workbench.workloads.texts import SPELT, Spelt
from workbench.workloads.traffic import MOST_TOKENS, Maker, Tokenizer, Traffic

GENERATED = ("tools", "tool", "system", "step", "steps")
STAMP, HEADER, NOTE = 12, 24, 48
"""Tokens of the parts that change, where they are generated."""


@dataclass(frozen=True)
class Call:
    """One call of an agent as it comes: its session, the parts that change, and the call that it waits for."""

    session: Session
    number: int
    call: int
    """The session's number and the call's in it, both from 1."""
    after: Turn | None
    dynamic: Dynamic

    @property
    def id(self) -> str:
        """The request's name."""
        return f"A{self.number}-{self.call}"

    @property
    def label(self) -> str:
        """The same, for people."""
        return f"agent {self.number}, call {self.call}"

    @property
    def step(self) -> Step:
        """What is new in it, and what the agent then said."""
        return self.session.steps[self.call - 1]

    def when(self, think: float = 0.0) -> dict[str, Any]:
        """When it arrives, in a scenario's words."""
        return {"after": f"A{self.after[0]}-{self.after[1]}", "think": think} if self.after else {}


class Agent(Asked):
    """Sessions of an agent; lengths in tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["agent"]
    file: str | None = Field(None, min_length=1, description="trajectories, a JSON object with messages a line or a JSON list; null: generated")
    tools_file: str | None = Field(None, min_length=1, description="tools of all trajectories, one as JSON a line; null: each brings its own")
    sessions: int | None = Field(None, ge=1, description="how many; null: all of the file")
    steps: int = Field(6, ge=1, description="calls a session (generated)")
    tools: int = Field(8, ge=0, description="tools in the prompt (generated)")
    tool: int = Field(60, ge=1, description="tokens of each tool (generated)")
    system: int = Field(200, ge=1, description="tokens of the instructions (generated)")
    step: tuple[int, int] = Field((20, 80), description="fewest and most tokens that a call adds: a question or a tool's result (generated)")
    order: Order = Field("canonical", description="where in the prompt the parts stand")
    open: int = Field(8, ge=1, description="sessions going on at a time; another begins when one has ended")
    sequential: bool = Field(False, description="one request at a time over all sessions, the next session drawn at random")
    output: int = Field(
        16, ge=0, le=1_000_000, description="tokens to answer at most; scripted ones say what was recorded. 0: prefill only"
    )
    think: float = Field(0.0, ge=0, allow_inf_nan=False, description="seconds from an answer to the next call")
    ids: Range = Field(IDS, description="token ids are drawn from the first up to the second, itself left out (generated)")
    text: Spelt | None = SPELT

    @model_validator(mode="after")
    def _consistent(self) -> Agent:
        if self.file is None:
            if self.sessions is None:
                raise ValueError("sessions: is missing; say how many to generate, or name a file")
            if not 1 <= self.step[0] <= self.step[1]:
                raise ValueError(f"step: must be two numbers, 1 or more, the second no smaller; got [{self.step[0]}, {self.step[1]}]")
            if self.tools_file is not None:
                raise ValueError("tools_file: belongs to a file of trajectories; give file as well")
            not_too_many("sessions", self.sessions * self.steps)
            check_ids(self.ids, self.sessions * self.steps + self.tools + 1)
        else:
            given = [key for key in GENERATED if key in self.model_fields_set]
            if given:
                raise ValueError(f"{given[0]}: the file says; leave it out, or leave file out")
        return self

    def calls(self, maker: Maker) -> tuple[list[Call], list[str]]:
        """Every call in order of arrival, and what is to be told of the file. Raises ValueError naming the key."""
        rng = Random(maker.seed)
        modelled = self.file is not None and maker.executor == "model"
        tokenizer, told = (None, []) if modelled or self.file is None else texts.tokenizer(maker, self.text)
        sessions, said = (self._made(rng), []) if self.file is None else self._read(maker, tokenizer)
        turns = [len(one.steps) for one in sessions]
        not_too_many("sessions", sum(turns))
        order = one_by_one(turns, self.open, rng) if self.sequential else side_by_side(turns, self.open)
        moving = Random(maker.seed + 1)  # parts that change are the same in every order
        made = [
            Call(sessions[number - 1], number, call, after, self._dynamic(number, place, tokenizer, moving))
            for place, ((number, call), after) in enumerate(order)
        ]
        return made, said + told

    def traffic(self, maker: Maker) -> Traffic:
        """The requests, the same for the same file and seed. Raises ValueError naming the key."""
        made, told = self.calls(maker)
        modelled = self.file is not None and maker.executor == "model"
        shuffles = Random(maker.seed + 2)
        requests: list[dict[str, Any]] = []
        total = 0
        for call in made:
            parts = prompt(call.session, call.call - 1, self.order, call.dynamic, shuffles)
            asked = {"messages": _messages(parts)} if modelled else {"tokens": [i for part in parts for i in part.ids]}
            total += len(asked.get("tokens", ()))
            requests.append({"id": call.id, "label": call.label, **asked, **self._answer(call.step, maker), **call.when(self.think)})
            if total > MOST_TOKENS:
                raise ValueError(f"sessions: more than {MOST_TOKENS:,} prompt tokens are asked for; take fewer sessions")
        return Traffic(requests, told)

    def _answer(self, step: Step, maker: Maker) -> dict[str, Any]:
        if maker.executor == "model" or step.said is None or not step.said.ids:
            return {"max_new_tokens": self.output, **({"ignore_eos": True} if maker.executor != "model" else {})}
        says = step.said.ids[: self.output]
        return {"says": says, "max_new_tokens": len(says)}

    def _read(self, maker: Maker, tokenizer: Tokenizer | None) -> tuple[list[Session], list[str]]:
        assert self.file is not None
        tools = lines.find(self.tools_file, maker, "tools_file") if self.tools_file is not None else None
        with lines.under():
            spell = tokenizer.encode if tokenizer else lambda _: []
            found, tally = trajectories.read(lines.find(self.file, maker), tools, spell, self.sessions)
        if self.sessions is not None and self.sessions > len(found):
            raise ValueError(f"sessions: {self.sessions:,} are asked for; the file has {len(found):,}")
        return found, tally.told

    def _made(self, rng: Random) -> list[Session]:
        assert self.sessions is not None
        tools = [Part(ids) for ids in runs(rng, self.tools, self.tool, self.ids)]
        system = [Part(run(rng, self.system, self.ids))]
        firsts = iter(rng.sample(range(*self.ids), self.sessions * self.steps))

        def step() -> Step:
            new = Part([next(firsts), *run(rng, rng.randint(*self.step) - 1, self.ids)])
            return Step([new], Part(run(rng, self.output, self.ids)) if self.output else None)

        return [Session(tools, system, [step() for _ in range(self.steps)]) for _ in range(self.sessions)]

    def _dynamic(self, number: int, made: int, tokenizer: Tokenizer | None, rng: Random) -> Dynamic:
        """The parts that change: with the session, and with every call."""
        seconds = 36_000 + 7 * made
        clock = f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        mark = f"{rng.getrandbits(48):012x}"
        said = {
            "header": f"Session {number:05}, customer {Random(number).getrandbits(32):08x}",
            "stamp": f"Now: 2026-01-05T{clock}Z, request {mark}",
            "note": f"Working memory, revision {made + 1} ({mark}): what the last call found has been noted and is to be used in the next.",
        }
        if self.file is not None:
            spell = tokenizer.encode if tokenizer else lambda _: []
            return Dynamic(*(Part(spell(f"{said[k]}\n"), said[k]) for k in ("header", "stamp", "note")))
        own = Random(number)
        return Dynamic(
            Part(run(own, HEADER, self.ids)), *(Part(run(rng, length, self.ids)) for length in (STAMP, NOTE))
        )


def _messages(parts: list[Part]) -> list[dict[str, str]]:
    """Parts as chat messages; neighbours of one role that are no turns of their own become one system message."""
    out: list[dict[str, str]] = []
    for part in parts:
        if out and out[-1]["role"] == part.role == "system":
            out[-1]["content"] += f"\n{part.text}"
        else:
            out.append({"role": part.role, "content": part.text})
    return out
