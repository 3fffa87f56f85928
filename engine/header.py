"""Fills a trace's header with the facts of a run."""

from __future__ import annotations

from importlib import metadata

from msgspec import UNSET

from engine.config import EngineConfig
from engine.events import Header
from engine.executor.base import Executor
from engine.plugs import NOTHING, OWN, Plugs

PACKAGES = ("radix-workbench", "torch", "transformers", "msgspec")


def header_for(header: Header, config: EngineConfig, executor: Executor, plugs: Plugs = NOTHING) -> None:
    """Write config, executor, model, device, dtype, clock, rates, hardware and versions into `header`."""
    header.config = config.model_dump(mode="json")
    header.config |= {field: OWN for field, given in (("eviction", plugs.eviction), ("policy", plugs.order)) if given}
    header.plugs = plugs.names or UNSET
    header.executor = executor.name
    header.model = executor.facts.get("model")
    header.device = executor.facts.get("device")
    header.dtype = executor.facts.get("dtype")
    header.clock = "virtual" if executor.virtual else "wall"
    header.pages, header.page_size = config.pages, config.page_size
    header.eos = sorted(executor.eos_ids)
    header.vocabulary = executor.vocab_size
    header.host = executor.facts.get("host") or UNSET
    header.rates = dict(executor.rates)
    header.hardware = dict(executor.hardware)
    header.versions = {p: v for p in PACKAGES if (v := _version(p))}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
