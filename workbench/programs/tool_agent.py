"""An agent that uses two tools: it selects one, fills in its arguments by a JSON schema, reads the result, and goes on."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine import Engine, State, program
from workbench.programs.perform import Example

TURNS = 4
ANSWER = "answer"
HOURS = {"Monday": 0, "Tuesday": 9, "Wednesday": 9, "Thursday": 12, "Friday": 9, "Saturday": 7, "Sunday": 0}
"""Hours a day for which the library is open."""
OPERATIONS: dict[str, Callable[[int, int], float]] = {
    "plus": operator.add, "minus": operator.sub, "times": operator.mul, "divided by": operator.truediv,
}  # fmt: skip


@dataclass(frozen=True)
class Tool:
    """A function of the arguments that its schema describes."""

    schema: dict[str, Any]
    use: Callable[[dict[str, Any]], str]


def _calculate(asked: dict[str, Any]) -> str:
    try:
        return f"{OPERATIONS[asked['operation']](asked['left'], asked['right']):g}"
    except ZeroDivisionError:
        return "nothing can be divided by 0"


def _look_up(asked: dict[str, Any]) -> str:
    return f"{HOURS[asked['day']]} hours"


NUMBER = {"type": "integer", "minimum": 0, "maximum": 9999}
TOOLS = {
    "calculator": Tool(
        {
            "type": "object",
            "properties": {"left": NUMBER, "operation": {"enum": list(OPERATIONS)}, "right": NUMBER},
            "required": ["left", "operation", "right"],
        },
        _calculate,
    ),
    "opening hours": Tool(
        {"type": "object", "properties": {"day": {"enum": list(HOURS)}}, "required": ["day"]}, _look_up
    ),
}
EXAMPLES = """\
Questions about a library, answered with tools. `opening hours` says for how many hours the library is open on a day. \
`calculator` takes two whole numbers. `answer` ends it.

Question: What are 12 times 30?
Tool: calculator
Arguments: {"left": 12, "operation": "times", "right": 30}
Result: 360
Tool: answer
Answer: 12 times 30 are 360.

Question: For how many hours is the library open on Friday?
Tool: opening hours
Arguments: {"day": "Friday"}
Result: 9 hours
Tool: answer
Answer: On Friday it is open for 9 hours.

Question: What are 5 minus 4?
Tool: calculator
Arguments: {"left": 5, "operation": "minus", "right": 4}
Result: 1
Tool: answer
Answer: 5 minus 4 are 1.

Question: Is the library open on Sunday?
Tool: opening hours
Arguments: {"day": "Sunday"}
Result: 0 hours
Tool: answer
Answer: On Sunday it is closed.

Question: """
QUESTION = "How many hours is the library open on Thursday?"


@program
def agent(s: State, question: str) -> None:
    """At most so many turns of: select a tool, write its arguments, use it, read the result."""
    s += f"{EXAMPLES}{question}\n"
    for turn in range(1, TURNS + 1):
        s += "Tool: "
        s.select(f"tool {turn}", [*TOOLS, ANSWER])
        name = s[f"tool {turn}"]
        s += "\n"
        if name == ANSWER:
            break
        s += "Arguments: "
        s.gen(f"arguments {turn}", max_tokens=60, json_schema=TOOLS[name].schema)
        s += f"\nResult: {_use(name, s[f'arguments {turn}'])}\n"
    s += "Answer: "
    s.gen("answer", max_tokens=30, stop=("\n",))


def _use(name: str, arguments: str) -> str:
    """A tool's result; an answer that was cut off is no JSON, and the model is told so."""
    try:
        return TOOLS[name].use(json.loads(arguments))
    except json.JSONDecodeError:
        return "the arguments are not whole"


def play(engine: Engine) -> State:
    """Ask the question."""
    state: State = agent.run(engine, question=QUESTION)
    return state


def found(state: State) -> dict[str, Any]:
    """The tools that were used with their arguments and results, and the answer."""
    out: dict[str, Any] = {"question": QUESTION}
    for turn in range(1, TURNS + 1):
        if f"arguments {turn}" in state:
            name, arguments = state[f"tool {turn}"], state[f"arguments {turn}"]
            out[f"turn {turn}"] = f"{name} {arguments} gives {_use(name, arguments)}"
    return out | {"answer": state["answer"].strip()}


EXAMPLE = Example("tool-agent", "What does an agent reuse from turn to turn?", play, found)
