"""Reading a run's trace in a notebook."""

from __future__ import annotations

from typing import Any

from workbench.runner import Run


def events(run: Run, kind: str, **fields: Any) -> list[Any]:
    """The events of a kind, as `request.matched`, in order; those alone whose fields are as given, as `request="R3"`."""
    of_kind = (e for e in run.trace.events if e.__struct_config__.tag == kind)
    return [e for e in of_kind if all(getattr(e, name) == value for name, value in fields.items())]
