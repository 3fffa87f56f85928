"""The kinds of generated traffic, by name."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from engine.config import describe
from workbench.workloads.agent import Agent
from workbench.workloads.chat import Chat
from workbench.workloads.mooncake import Mooncake
from workbench.workloads.prompts import Prompts
from workbench.workloads.rag import Rag
from workbench.workloads.random_prompts import RandomPrompts
from workbench.workloads.requests_log import RequestLog
from workbench.workloads.shared_prefix import SharedPrefix
from workbench.workloads.template import Template
from workbench.workloads.traffic import Maker, Traffic, Upload, Uploads

Workload = SharedPrefix | RandomPrompts | Rag | Agent | Template | Chat | Mooncake | RequestLog | Prompts

KINDS: dict[str, type[Workload]] = {
    "shared_prefix": SharedPrefix, "random": RandomPrompts, "rag": Rag, "agent": Agent, "template": Template,
    "chat": Chat, "mooncake": Mooncake, "requests": RequestLog, "prompts": Prompts,
}  # fmt: skip
"""Generators first, then readers of files."""

__all__ = ["KINDS", "Maker", "Traffic", "Upload", "Uploads", "Workload", "read"]


def read(data: Any) -> Workload:
    """A workload from a scenario's mapping. Raises ValueError with one sentence that names the key."""
    if isinstance(data, Workload):
        return data
    if not isinstance(data, dict):
        raise ValueError(f"must be a mapping with a kind, one of {', '.join(KINDS)}; got {data!r}")
    kind = data.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind: must be one of {', '.join(KINDS)}; got {kind!r}")
    try:
        return KINDS[kind].model_validate(data)
    except ValidationError as error:
        raise ValueError(describe(error)) from None
