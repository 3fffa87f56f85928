"""Whether what a learner said is what came."""

from __future__ import annotations

from typing import Any

from workbench.course.cards import Prediction
from workbench.lessons.verdicts import Unfinished


def said(name: str, prediction: Prediction, value: Any) -> Any:
    """A prediction as it is kept. Raises Unfinished for none, and for one that cannot be."""
    if value is None or value is ...:
        raise Unfinished(f"{name}: say what you expect before you run it. {prediction.ask} Write {prediction.allowed} in the cell above the run.")
    wrong = Unfinished(f"{name}: {value!r} cannot be; write {prediction.allowed}")
    if prediction.choices:
        if value not in prediction.choices:
            raise wrong
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or (prediction.whole and value != int(value)):
        raise wrong
    if (prediction.low is not None and value < prediction.low) or (prediction.high is not None and value > prediction.high):
        raise wrong
    return int(value) if prediction.whole else float(value)


def same(value: Any, came: Any, within: float = 0.0) -> bool:
    """Whether an answer counts: equal, or within a share of what came. A bool is no number."""
    if isinstance(value, bool) != isinstance(came, bool):
        return False
    if isinstance(came, (int, float)) and isinstance(value, (int, float)):
        return abs(value - came) <= max(within * abs(came), 1e-9)
    if isinstance(came, (list, tuple)) and isinstance(value, (list, tuple)):
        return len(value) == len(came) and all(same(a, b, within) for a, b in zip(value, came, strict=True))
    if isinstance(came, str) and isinstance(value, str):
        return value.strip().lower() == came.strip().lower()
    return bool(value == came)


def number(value: Any, unit: str = "") -> str:
    """A value in words, with its unit."""
    text = f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return f"{text} {unit}".rstrip()
