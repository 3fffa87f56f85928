"""The prefix cache: one small interface (`base`), several implementations, one key function a policy."""

from __future__ import annotations

from engine.cache.base import PrefixCache
from engine.cache.blocks import BlockCache
from engine.cache.off import NoCache
from engine.cache.pins import budget
from engine.cache.radix import RadixCache
from engine.config import EngineConfig
from engine.events import Trace


def make_cache(config: EngineConfig, trace: Trace) -> PrefixCache:
    """The cache that the configuration names."""
    if config.cache == "off":
        return NoCache()
    pins = budget(config.pin_budget, config.pages)
    if config.cache == "blocks":
        return BlockCache(config.page_size, config.block_order, trace, pin_budget=pins)
    return RadixCache(config.page_size, config.eviction, config.eviction_unit, trace, pins)
