"""Answers about a whole run, of one replica or of several: each replica has an explainer of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from engine import events as ev
from workbench.explain.answer import Answer, ExplainError
from workbench.explain.explainer import Explainer
from workbench.replicas import Parts, count


class RunExplainer:
    """Built over a run's events, or along a live run with `extend`; one thread at a time."""

    def __init__(self, header: ev.Header, events: Iterable[ev.Event] = ()) -> None:
        self.header = header
        self.replicas = [Explainer([], header) for _ in range(count(header))]
        self._parts = Parts(len(self.replicas))
        self.extend(events)

    def __len__(self) -> int:
        return len(self._parts)

    def extend(self, events: Iterable[ev.Event]) -> None:
        """Go on by further events of the run."""
        for event in events:
            self.replicas[event.replica].extend([self._parts.take(event)])

    def ask(self, seq: int, selection: Mapping[str, Any], replica: int | None = None) -> Answer:
        """Why: an answer for a selection (node, request or page), or for the event itself. Raises ExplainError.

        With `replica`, `seq` counts that one's events. Without, it counts the run's, and the one asked is that of the
        request, or else the one that told this event.
        """
        which, at = self.place(seq, selection.get("request"), replica)
        one = self.replicas[which]
        if "request" in selection:
            return one.request(at, str(selection["request"]))
        if "node" in selection:
            return one.node(at, int(selection["node"]))
        if "page" in selection:
            return one.page(at, int(selection["page"]))
        return one.event(at)

    def place(self, seq: int, request: str | None = None, replica: int | None = None) -> tuple[int, int]:
        """The replica that is asked, and its event. Raises ExplainError where there is none such."""
        last = len(self.replicas) - 1
        if replica is not None:
            if not 0 <= replica <= last:
                raise ExplainError(f"replica: must be 0 to {last}; got {replica}")
            return replica, seq
        if not 0 <= seq < len(self):
            raise ExplainError(f"seq: must be 0 to {len(self) - 1}; got {seq}")
        home = next((i for i, one in enumerate(self.replicas) if request is not None and one.knows(request)), self._parts.told_by(seq))
        return home, max(0, self._parts.at(seq, home))

    def last(self, replica: int | None = None) -> int:
        """The run's last event, or a replica's own last one."""
        return len(self) - 1 if replica is None or not 0 <= replica < len(self.replicas) else len(self.replicas[replica]) - 1

    def at(self, seq: int, replica: int, other: int) -> int:
        """Where another replica stood when `replica` stood at its event `seq`; -1: it had told nothing yet."""
        return seq if other == replica else self._parts.at(self._parts.numbers[replica][seq], other)
