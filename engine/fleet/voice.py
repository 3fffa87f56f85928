"""One replica's voice in the trace that all replicas share: its own step and time, everybody's numbers and sinks."""

from __future__ import annotations

from typing import Any

from engine import events as ev


class Voice(ev.Trace):
    """A trace to one engine; what it tells goes to `parent`, marked with the replica's number."""

    def __init__(self, parent: ev.Trace, replica: int) -> None:
        # Nothing of the base class is set up: whatever is shared is the parent's.
        self._parent = parent
        self.replica = replica
        self.t = 0.0
        self.step = 1

    @property
    def header(self) -> ev.Header:  # type: ignore[override]
        """The run's header."""
        return self._parent.header

    @property
    def on(self) -> bool:
        """Whether anybody listens to the run."""
        return self._parent.on

    @property
    def seq(self) -> int:  # type: ignore[override]
        """The run's next event's number."""
        return self._parent.seq

    def emit(self, event: type[ev.Event], **fields: Any) -> None:
        """Append one event of this replica's."""
        if self._parent.on:
            self.tell(event(seq=self.seq, t=self.t, step=self.step, replica=self.replica, **fields))

    def tell(self, event: ev.Event) -> None:
        """Append one event that was built with this voice's `seq`, `t`, `step` and `replica`."""
        self._parent.tell(event)

    def commit(self) -> None:
        """Close an operation of this replica's."""
        self._parent.commit()
