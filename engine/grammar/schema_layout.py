"""The three spacings of a JSON document, each with exactly one place for every blank."""

from __future__ import annotations

from dataclasses import dataclass

SPACINGS = ("compact", "one-space", "pretty")


@dataclass(frozen=True, slots=True)
class Layout:
    """What stands between the parts of an object or array that is `depth` containers deep."""

    spacing: str

    @property
    def colon(self) -> str:
        """Between a key and its value."""
        return ":" if self.spacing == "compact" else ": "

    def comma(self, depth: int) -> str:
        """Between two members or items."""
        if self.spacing == "pretty":
            return "," + _line(depth + 1)
        return "," if self.spacing == "compact" else ", "

    def opening(self, depth: int) -> str:
        """After the opening bracket of what is not empty."""
        return _line(depth + 1) if self.spacing == "pretty" else ""

    def closing(self, depth: int) -> str:
        """Before the closing bracket of what is not empty."""
        return _line(depth) if self.spacing == "pretty" else ""

    def level(self, depth: int) -> int:
        """What of the depth shows in the text: nothing unless lines are indented."""
        return depth if self.spacing == "pretty" else 0


def _line(depth: int) -> str:
    return "\n" + "  " * depth
