"""Finds a lesson's moment in a run that was just made."""

from __future__ import annotations

from collections.abc import Sequence

from engine import events as ev
from workbench.course.cards import CourseError, Moment


def find(events: Sequence[ev.Event], moment: Moment) -> int:
    """The number of the event that a moment names. Raises CourseError where the run has none such."""
    left = moment.nth
    for event in events:
        if event.__struct_config__.tag != moment.kind:
            continue
        if moment.request is not None and getattr(event, "request", None) != moment.request:
            continue
        if moment.node is not None and getattr(event, "node", None) != moment.node:
            continue
        left -= 1
        if not left:
            return event.seq
    whose = f" of {moment.request}" if moment.request else f" of node {moment.node}" if moment.node is not None else ""
    raise CourseError(f"moment: the run has no {moment.kind}{whose} number {moment.nth}")
