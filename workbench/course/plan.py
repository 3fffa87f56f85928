"""The teacher's page: a class of 50 minutes made of three lessons, and what to ask when."""

from __future__ import annotations

import functools

import yaml
from pydantic import Field, ValidationError

from workbench.course.cards import CourseError, Part, folder


class Stage(Part):
    """One part of the class."""

    minutes: int = Field(ge=1)
    title: str
    lesson: str | None = None
    run: str | None = None
    """The lesson's run that is shown,"""
    moment: int = 0
    """and the number of its moment."""
    do: str
    ask: tuple[str, ...] = ()
    listen_for: str = ""


class Plan(Part):
    """The whole class."""

    title: str
    minutes: int
    before: tuple[str, ...]
    """What to have ready."""
    stages: tuple[Stage, ...]
    after: tuple[str, ...] = ()
    """What to give them to do at home, and how to adapt the plan."""


@functools.cache
def plan() -> Plan:
    """The plan in `teacher.yaml`. Raises CourseError naming the field that is wrong."""
    try:
        return Plan(**yaml.safe_load((folder() / "teacher.yaml").read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        raise CourseError(f"teacher.yaml: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
