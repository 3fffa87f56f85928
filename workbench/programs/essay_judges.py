"""Three judges read one essay, each for its own criterion; a summary follows from what they say."""

from __future__ import annotations

from typing import Any

from engine import Engine, State, program
from workbench.programs.perform import Example

ESSAY = (
    "Why our town should keep its ferry. The ferry across the river takes six minutes and the bridge takes twenty, because the bridge is four miles "
    "upstream. Every morning eighty people cross by it to the cannery, and most of them own no car. Last winter the council said that the boat loses money. "
    "That is true, but so does the bridge, which was painted last year for more than the ferry costs in ten. My grandmother says a town that gives up its "
    "boat forgets it has a river. I think she is right, and I would rather pay a penny more for bread that comes across the water."
)
CRITERIA = {"argument": "how well its argument holds", "facts": "whether it gives facts and figures", "style": "the beauty of its style"}
GRADES = ["A", "B", "C", "D"]


@program
def judges(s: State, essay: str, words: int = 32) -> None:
    """Fork into one judge a criterion, select a grade each, join, and sum up; `words`: tokens of a remark."""
    with s.system():
        s += "You judge school essays. You answer in one short sentence."
    with s.user():
        s += f"Here is an essay.\n\n{essay}"
        forks = s.fork(len(CRITERIA))
        for aspect, branch in zip(CRITERIA.values(), forks, strict=True):
            branch += f"\n\nJudge only {aspect}. Give one remark and then a grade from A (best) to D."
            with branch.assistant():
                branch += "Remark: "
                branch.gen("remark", max_tokens=words, stop=("\n",))
                branch += "\nGrade: "
                branch.select("grade", GRADES)
        s.join(forks)
        said = [f"{name}: {remark} ({grade})" for name, remark, grade in zip(CRITERIA, s["remark"], s["grade"], strict=True)]
        s += "\n\nThree judges have said:\n" + "\n".join(said) + "\nSum up what they think of the essay."
    with s.assistant():
        s.gen("summary", max_tokens=2 * words, stop=("\n\n",))


def play(engine: Engine) -> State:
    """Judge the essay."""
    state: State = judges.run(engine, essay=ESSAY)
    return state


def found(state: State) -> dict[str, Any]:
    """Each judge's remark and grade, and the summary."""
    verdicts = zip(CRITERIA, state["remark"], state["grade"], strict=True)
    return {name: f"{remark.strip()} Grade {grade}." for name, remark, grade in verdicts} | {"summary": state["summary"].strip()}


EXAMPLE = Example("essay-judges", "What do three judges share who read one essay?", play, found)
