"""A lesson's runs as scenarios."""

from __future__ import annotations

import copy
from typing import Any

from workbench import scenario as scenarios
from workbench.course.cards import Card, CourseError
from workbench.scenario import Scenario


def scenario(about: Card, name: str, **engine: Any) -> Scenario:
    """One of a card's runs, with other engine settings where given. Raises CourseError for one that it does not have."""
    if name not in about.runs:
        raise CourseError(f"run: {about.id} has no run {name!r}; there are {', '.join(about.runs) or 'none'}")
    data = copy.deepcopy(about.runs[name].scenario)
    data.setdefault("name", f"{about.id}: {about.runs[name].label}")
    data["engine"] = data.get("engine", {}) | engine
    return scenarios.parse(data, files=True)
