"""The instrument: a small, complete LLM serving engine whose every decision is an event.

Lazy on purpose: `import engine.events` needs neither torch nor transformers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.config import EngineConfig
    from engine.engine import Engine
    from engine.failures import ModelError
    from engine.models import load_model
    from engine.request import SamplingParams

_HOMES = {
    "Engine": "engine.engine",
    "EngineConfig": "engine.config",
    "ModelError": "engine.failures",
    "SamplingParams": "engine.request",
    "load_model": "engine.models",
}
__all__ = ["Engine", "EngineConfig", "ModelError", "SamplingParams", "load_model"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'engine' has no attribute {name!r}")
