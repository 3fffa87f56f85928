"""The kinds of generated traffic, by name."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from engine.config import describe
from workbench.workloads.chat import Chat
from workbench.workloads.shared_prefix import SharedPrefix
from workbench.workloads.traffic import Maker, Traffic

Workload = SharedPrefix | Chat

KINDS: dict[str, type[SharedPrefix] | type[Chat]] = {"shared_prefix": SharedPrefix, "chat": Chat}
LATER = ("mooncake", "template")
"""Kinds that the format knows and this version cannot make yet."""

__all__ = ["KINDS", "Maker", "Traffic", "Workload", "read"]


def read(data: Any) -> Workload:
    """A workload from a scenario's mapping. Raises ValueError with one sentence that names the key."""
    if isinstance(data, Workload):
        return data
    if not isinstance(data, dict):
        raise ValueError(f"must be a mapping with a kind, one of {', '.join(KINDS)}; got {data!r}")
    kind = data.get("kind")
    if kind in LATER:
        raise ValueError(f"kind: {kind!r} comes with a later release; this one has {', '.join(KINDS)}")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind: must be one of {', '.join(KINDS)}; got {kind!r}")
    try:
        return KINDS[kind].model_validate(data)
    except ValidationError as error:
        raise ValueError(describe(error)) from None
