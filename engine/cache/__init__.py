"""The prefix cache: one small interface (`base`), several implementations, one key function a policy."""

from __future__ import annotations

from engine.cache.base import Copies, PrefixCache, plain
from engine.cache.blocks import BlockCache, chained
from engine.cache.brought import BroughtMatch
from engine.cache.host import HostTier
from engine.cache.off import NoCache
from engine.cache.pins import budget
from engine.cache.radix import RadixCache
from engine.cache.tiered import TieredCache
from engine.config import EngineConfig
from engine.events import Trace
from engine.plugs import NOTHING, Plugs, block_hash, node_key
from engine.totals import Totals


def make_cache(config: EngineConfig, trace: Trace, copies: Copies, totals: Totals, plugs: Plugs = NOTHING) -> PrefixCache:
    """The cache that the configuration names; with a host tier, `copies` moves pages and `totals` counts them."""
    if config.cache == "off":
        return NoCache()
    pins = budget(config.pin_budget, config.pages)
    if config.cache == "blocks":
        hasher = block_hash(plugs.hasher, plain) if plugs.hasher else chained
        return BlockCache(config.page_size, config.block_order, trace, hasher, pins)
    if config.second_tier:
        write_back = config.host_policy == "write-back"
        host = HostTier(config.host_pages, config.page_size, copies, write_back=write_back, threshold=config.host_threshold)
        return TieredCache(config.page_size, config.eviction, config.eviction_unit, trace, pins, host, totals)
    eviction = node_key(plugs.eviction) if plugs.eviction else config.eviction
    if plugs.match:
        return BroughtMatch(plugs.match, config.page_size, eviction, config.eviction_unit, trace, pins)
    return RadixCache(config.page_size, eviction, config.eviction_unit, trace, pins)
