"""Whether a pool of KV fits into a device's memory."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from engine.failures import ModelError
from engine.loaded import LoadedModel

SHARE = 0.9
"""Of the free memory; the rest is left for the forward pass."""


def pool_bytes(loaded: LoadedModel, slots: int) -> int:
    """Bytes that `slots` token slots of KV take."""
    return slots * loaded.kv_bytes_per_token


def free_bytes(device: torch.device) -> int | None:
    """Free memory of a device; None where it cannot be asked."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if device.type == "mps":
        return torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory()
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    if "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def check_memory(loaded: LoadedModel, slots: int) -> None:
    """Raise ModelError when a pool of `slots` cannot fit, saying how many would."""
    free = free_bytes(loaded.device)
    needed = pool_bytes(loaded, slots)
    if free is not None and needed > SHARE * free:
        most = int(SHARE * free / loaded.kv_bytes_per_token)
        raise ModelError(
            f"KV for {slots:,} tokens takes {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB are free on "
            f"{loaded.device.type}: at most {most:,} tokens (pages x page_size) fit"
        )
