"""What a question is asked of: the state at one event, and the trace around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from engine import events as ev
from workbench.explain import words
from workbench.explain.answer import Link
from workbench.explain.index import Index
from workbench.replay import State


@dataclass(frozen=True, slots=True)
class Moment:
    """One position in a trace. `at` gives the state after any other event."""

    seq: int
    state: State
    events: Sequence[ev.Event]
    index: Index
    header: ev.Header
    at: Callable[[int], State]

    @property
    def texts(self) -> words.Texts:
        """Token id -> text."""
        return self.header.texts

    def config(self, key: str) -> Any:
        """A knob of this run; None where the header does not say."""
        return self.header.config.get(key)

    def last(self, request: str, kind: type[ev.Event]) -> Any:
        """The last event of a kind about a request up to here; None where there is none."""
        seq = self.index.last(request, kind, self.seq)
        return None if seq is None else self.events[seq]

    def eviction_of(self, removal: int) -> ev.Eviction | None:
        """The eviction that a removal belongs to; None where the trace does not say."""
        seq = self.index.eviction_of.get(removal)
        event = None if seq is None else self.events[seq]
        return event if isinstance(event, ev.Eviction) else None

    def node(self, id: int) -> str:
        """A node by its name."""
        return words.node_name(self.state, id, self.texts)


def to_event(seq: int, what: str) -> Link:
    """A link to an event."""
    return Link("event", seq, f"event {seq}: {what}")


def to_request(id: str) -> Link:
    """A link to a request."""
    return Link("request", id, id)


def to_node(id: int) -> Link:
    """A link to a node."""
    return Link("node", id, f"node #{id}")


def unique(links: Sequence[Link]) -> list[Link]:
    """Links in their order, each thing once."""
    return list({(link.kind, link.id): link for link in reversed(links)}.values())[::-1]
