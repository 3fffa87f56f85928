"""Reading a run's trace in a notebook."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any

from workbench.runner import Run

STAMPED = ("radix-workbench", "torch", "transformers", "plotly")


def events(run: Run, kind: str, **fields: Any) -> list[Any]:
    """The events of a kind, as `request.matched`, in order; those alone whose fields are as given, as `request="R3"`."""
    of_kind = (e for e in run.trace.events if e.__struct_config__.tag == kind)
    return [e for e in of_kind if all(getattr(e, name) == value for name, value in fields.items())]


def stamp() -> str:
    """With which versions this notebook was run."""
    return ", ".join([f"Python {platform.python_version()}", *(f"{name} {metadata.version(name)}" for name in STAMPED)])
