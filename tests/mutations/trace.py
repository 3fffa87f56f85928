"""Faults of the trace: one event is not told."""

from __future__ import annotations

from typing import Any

from tests.mutations.registry import mutation, wrap


def _drop_first(kind: str) -> None:
    from engine import events as ev

    def emit(right: Any, self: Any, event: Any, **fields: Any) -> None:
        if event.__name__ == kind and not getattr(self, "dropped", False):
            self.dropped = True
            return
        right(self, event, **fields)

    def tell(right: Any, self: Any, event: Any) -> None:
        if type(event).__name__ == kind and not getattr(self, "dropped", False):
            self.dropped = True
            return
        right(self, event)

    wrap(ev.Trace, "emit", emit)
    wrap(ev.Trace, "tell", tell)


@mutation
def drops_one_split_event() -> None:
    _drop_first("NodeSplit")


@mutation
def drops_one_freed_event() -> None:
    _drop_first("PageFreed")


@mutation
def drops_one_touch_event() -> None:
    _drop_first("NodeTouched")
