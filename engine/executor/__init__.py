"""What computes the tokens: a real model, a roofline, a script, or a recording, behind one small interface."""

from __future__ import annotations

from typing import Any

from engine.config import EngineConfig
from engine.executor.base import Executor
from engine.executor.cost import CostExecutor
from engine.executor.puppet import PuppetExecutor
from engine.hardware import MEASURED, PROFILES, Profile


def make_executor(config: EngineConfig, loaded: Any = None) -> Executor:
    """The executor that the configuration names; `model` loads torch and the weights."""
    if config.executor in ("puppet", "replay"):
        # A replay is a puppet whose script is a recording.
        return PuppetExecutor(
            config.pages, config.page_size, config.executor, config.clock, config.second_tier, config.host_bandwidth
        )
    if config.executor == "cost":
        return CostExecutor(_profile(config, loaded), config.pages, config.page_size, config.host_bandwidth)
    from engine.executor.model import load_executor  # torch only where a model runs

    return load_executor(config, loaded)


def _profile(config: EngineConfig, loaded: Any) -> Profile:
    if config.hardware != MEASURED:
        return PROFILES[config.hardware]
    from engine.calibration import calibrated  # torch only where this machine is asked for

    return calibrated(config.model, device=config.device, dtype=config.dtype, loaded=loaded).profile
