"""The host tier's tensors: a copy of whole pages, all layers of a page together.

On cuda the buffer is pinned and copies are asynchronous; they run in the current stream, as the forwards do, so each
sees what came before it and is seen by what comes after. On a cpu it is a second buffer in the same memory: it shows
the bookkeeping, and what a load costs there is a copy from memory to memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import torch

from engine.executor.kv import KV

PROBE_BYTES = 64 * 2**20
"""At most so much is copied to measure the link."""
TIMES = 3


class HostKV:
    """`pages` [host pages, layers, numbers a page and layer], beside the device's KV. Raises RuntimeError when out of memory."""

    def __init__(self, kv: KV, pages: int) -> None:
        self._kv = kv
        first = kv.layers[0]
        self.pinned = first.device.type == "cuda"
        numbers = first[: kv.page_size].numel()
        self.pages = torch.empty((pages, len(kv.layers), numbers), dtype=first.dtype, device="cpu", pin_memory=self.pinned)
        self.name = "pinned memory" if self.pinned else "a second buffer in the cpu's memory"

    @property
    def page_bytes(self) -> int:
        """Bytes a page takes in all layers."""
        return self.pages[0].nbytes

    @torch.inference_mode()
    def demote(self, pages: Sequence[int], host_pages: Sequence[int]) -> None:
        """Copy pages of the device to host pages."""
        here = torch.tensor(pages, device=self._kv.layers[0].device)
        found = torch.stack([self._by_page(layer).index_select(0, here) for layer in self._kv.layers], 1)
        for at, start, count in _runs(host_pages):
            self.pages[start : start + count].copy_(found[at : at + count], non_blocking=self.pinned)

    @torch.inference_mode()
    def restore(self, host_pages: Sequence[int], pages: Sequence[int]) -> None:
        """Copy host pages to pages of the device."""
        first = self._kv.layers[0]
        found = torch.empty((len(pages), *self.pages.shape[1:]), dtype=first.dtype, device=first.device)
        for at, start, count in _runs(host_pages):
            found[at : at + count].copy_(self.pages[start : start + count], non_blocking=self.pinned)
        here = torch.tensor(pages, device=first.device)
        for number, layer in enumerate(self._kv.layers):
            self._by_page(layer).index_copy_(0, here, found[:, number])

    def _by_page(self, layer: torch.Tensor) -> torch.Tensor:
        return layer.view(layer.shape[0] // self._kv.page_size, -1)

    def bandwidth(self) -> float:
        """Bytes a second from host to device: some pages, the median of a few times. Overwrites the device's first pages."""
        slots = self._kv.layers[0].shape[0] // self._kv.page_size
        count = max(1, min(len(self.pages), slots, PROBE_BYTES // self.page_bytes))
        some = list(range(count))
        seconds = median_seconds(lambda: self.restore(some, some), self._kv.layers[0].device)
        return rounded(count * self.page_bytes / seconds)


def _runs(pages: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Neighbours together: where in the list, their first page, how many."""
    for _, group in groupby(enumerate(pages), key=lambda pair: pair[1] - pair[0]):
        run = list(group)
        yield run[0][0], run[0][1], len(run)


def median_seconds(action: Callable[[], object], device: torch.device) -> float:
    """What an action takes: once to warm up, then the median of a few times."""
    taken = []
    for _ in range(1 + TIMES):
        started = time.perf_counter()
        action()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        elif device.type == "mps":
            torch.mps.synchronize()
        taken.append(time.perf_counter() - started)
    return sorted(taken[1:])[TIMES // 2]


def rounded(rate: float) -> float:
    """Three digits: a measured rate has no more, and stands in the header."""
    return float(f"{rate:.3g}")
