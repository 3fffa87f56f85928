"""The Decode page's own script and style: tapes, masks and the automaton. It builds on the player's small helpers."""

from __future__ import annotations

from functools import cache
from importlib import resources

SCRIPTS = ("tape.js", "mask.js", "walk.js", "twins.js", "decode.js")
"""In the order in which they must run, behind the player's."""


@cache
def sources() -> str:
    """The script."""
    return "\n".join(read(name) for name in SCRIPTS)


def read(name: str) -> str:
    """One of the files."""
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
