"""A lesson's card: the file beside its source that says what it is about, what it runs, what it asks."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

Needs = Literal["puppet", "cost", "model", "numpy", "recorded"]
NEEDS: dict[Needs, str] = {
    "puppet": "no weights: the engine runs on scripted answers, on a virtual clock",
    "cost": "no weights: times are those of a simulated machine, on a virtual clock",
    "model": "the embedded model, 135 million parameters, on this machine",
    "numpy": "no weights and no engine but a few lines of NumPy; then the engine on scripted answers",
    "recorded": "no weights: answers of servers that were recorded, and your own server if you name one",
}
"""What a lesson needs, in words."""


class CourseError(ValueError):
    """A lesson's card or source that cannot be used; one sentence."""


class Part(BaseModel):
    """Anything a card holds: unknown keys are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Prediction(Part):
    """What the learner is asked before a run: a number, or one of `choices`."""

    ask: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    whole: bool = True
    choices: tuple[str, ...] = ()
    within: float = Field(0.0, ge=0, description="how far off a number may be and still count, as a share of what came")

    @property
    def allowed(self) -> str:
        """What may be said, in words."""
        if self.choices:
            return "one of " + ", ".join(f'"{choice}"' for choice in self.choices)
        kind = "a whole number" if self.whole else "a number"
        if self.low is not None and self.high is not None:
            return f"{kind} from {self.low:g} to {self.high:g}"
        return kind


class Moment(Part):
    """A place in a run that is worth opening: the `nth` event of a kind, of one request or node where named."""

    label: str
    kind: str
    request: str | None = None
    node: int | None = None
    nth: int = Field(1, ge=1)


class Run(Part):
    """One of a lesson's runs: a scenario as in contract 2."""

    label: str
    scenario: dict[str, Any]
    moments: tuple[Moment, ...] = ()


class Question(Part):
    """A question of the quiz: `right` is one of `options`, `because` says why, and why not the tempting one."""

    ask: str
    options: tuple[str, ...] = Field(min_length=2)
    right: str
    because: str

    @model_validator(mode="after")
    def _offered(self) -> Question:
        if self.right not in self.options:
            raise ValueError(f"right: {self.right!r} is not among the options of {self.ask!r}")
        return self


class Card(Part):
    """One lesson."""

    id: Annotated[str, Field(pattern=r"^(L([1-9]|1[0-2])|capstone)$")]
    title: str
    objective: str
    minutes: int = Field(ge=10, le=120)
    needs: Needs
    core: bool = False
    after: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    """Terms that it uses and other lessons define,"""
    defines: dict[str, str] = {}
    """and those that it defines itself, each in a sentence or two."""
    predictions: dict[str, Prediction]
    runs: dict[str, Run]
    exercises: dict[str, str]
    """Name of each exercise -> what it asks for, in a few words."""
    quiz: tuple[Question, ...] = Field(min_length=6)
    teacher: str = ""
    """What a teacher should ask, and where learners stumble."""
    stem: str = ""
    """The name of its files, without ending."""

    @property
    def needs_in_words(self) -> str:
        """What has to be there."""
        return NEEDS[self.needs]


def folder() -> Path:
    """Where the lessons lie, in a checkout or in an installed wheel."""
    packaged = Path(__file__).resolve().parent / "lessons"
    return packaged if packaged.is_dir() else Path(__file__).resolve().parents[2] / "lessons"


def read(path: Path) -> Card:
    """One card. Raises CourseError naming the file and the field."""
    try:
        return Card(**yaml.safe_load(path.read_text(encoding="utf-8")), stem=path.stem)
    except ValidationError as error:
        first = error.errors()[0]
        raise CourseError(f"{path.name}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except (yaml.YAMLError, TypeError) as error:
        raise CourseError(f"{path.name}: {' '.join(str(error).split())}") from None


@functools.cache
def cards() -> dict[str, Card]:
    """All lessons in the order of the course, by id."""
    found = [read(path) for path in sorted((folder() / "source").glob("*.yaml"))]
    return {card.id: card for card in found}


def card(lesson: str) -> Card:
    """One lesson's card. Raises CourseError for one that does not exist."""
    there = cards()
    if lesson not in there:
        raise CourseError(f"lesson: {lesson!r} does not exist; there are {', '.join(there)}")
    return there[lesson]


@functools.cache
def glossary() -> dict[str, str]:
    """Term -> what it means, of the whole course. Raises CourseError for a term that two lessons define."""
    told: dict[str, str] = {}
    for one in cards().values():
        twice = told.keys() & one.defines.keys()
        if twice:
            raise CourseError(f"{one.stem}.yaml: defines: {', '.join(sorted(twice))} is defined by an earlier lesson; name it under terms")
        told |= one.defines
    return told
