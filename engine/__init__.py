"""The instrument: a small, complete LLM serving engine whose every decision is an event.

Lazy on purpose: `import engine.events` needs neither torch nor transformers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.calibration import Calibration, calibrate, calibrated
    from engine.config import EngineConfig
    from engine.engine import Engine
    from engine.failures import ModelError
    from engine.fleet.fleet import Fleet, open_engine
    from engine.grammar.grammars import check_grammar
    from engine.grammar.syntax import GrammarError
    from engine.language import Program, ProgramError, State, program
    from engine.loaded import give_back
    from engine.models import devices, fetch_model, free_memory, load_model, load_tokenizer
    from engine.needs import model_needs
    from engine.plugs import PlugError, Plugs
    from engine.request import SamplingParams

_HOMES = {
    "Calibration": "engine.calibration",
    "Engine": "engine.engine",
    "EngineConfig": "engine.config",
    "Fleet": "engine.fleet.fleet",
    "GrammarError": "engine.grammar.syntax",
    "ModelError": "engine.failures",
    "Program": "engine.language",
    "ProgramError": "engine.language",
    "SamplingParams": "engine.request",
    "calibrate": "engine.calibration",
    "calibrated": "engine.calibration",
    "State": "engine.language",
    "check_grammar": "engine.grammar.grammars",
    "devices": "engine.models",
    "fetch_model": "engine.models",
    "free_memory": "engine.models",
    "give_back": "engine.loaded",
    "load_model": "engine.models",
    "load_tokenizer": "engine.models",
    "model_needs": "engine.needs",
    "open_engine": "engine.fleet.fleet",
    "PlugError": "engine.plugs",
    "Plugs": "engine.plugs",
    "program": "engine.language",
}
__all__ = [
    "Calibration", "Engine", "EngineConfig", "Fleet", "GrammarError", "ModelError", "PlugError", "Plugs", "Program", "ProgramError", "SamplingParams", "State",
    "calibrate", "calibrated", "check_grammar", "devices", "fetch_model", "free_memory", "give_back", "load_model", "load_tokenizer", "model_needs",
    "open_engine", "program",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'engine' has no attribute {name!r}")
