"""One step's tensors: all rows packed end to end, and where each token's KV lies.

Prefill rows come first, then single-token rows in groups of similar length; everything that attention
needs in each layer is worked out here, once a step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from engine.executor.base import Row

BLOCK = 256
"""Queries that attend together behind a cached prefix; a block skips the keys that lie after it."""


@dataclass(slots=True)
class Block:
    """Queries [start, stop) of the packed step against keys 0 ... `keys`-1 of their row.

    `mask` [stop - start, keys] is added to the scores: 0, or -inf where a key lies after the query.
    """

    start: int
    stop: int
    keys: int
    mask: torch.Tensor


@dataclass(slots=True)
class PrefillRow:
    """Packed tokens [start, stop) of one row. `pages` is None when nothing lies before them."""

    start: int
    stop: int
    pages: torch.Tensor | None
    """[pages of the whole row so far]"""
    blocks: list[Block]


@dataclass(slots=True)
class DecodeGroup:
    """Single-token rows at packed tokens [start, stop), padded to one length.

    `pages` [rows, pages]; `mask` [rows, 1, 1, pages x page_size] is added to the scores, None when no
    row is padded.
    """

    start: int
    stop: int
    pages: torch.Tensor
    mask: torch.Tensor | None


@dataclass(slots=True)
class Step:
    """A packed step of T tokens.

    `ids`, `positions` and `slots` are [T]; `sampled` [n] says at which packed tokens logits are wanted,
    and `sampled_rows` to which row of the plan each of them belongs: a row with drafted or scored tokens has several.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    slots: torch.Tensor
    prefills: list[PrefillRow]
    decodes: list[DecodeGroup]
    sampled: torch.Tensor
    sampled_rows: list[int]


def pack(rows: list[Row], page_size: int, device: torch.device, dtype: torch.dtype) -> Step:
    """Lay a plan's rows out for one forward pass; `dtype` is that of the masks."""
    prefill = [i for i, row in enumerate(rows) if len(row.tokens) > 1]
    decode = [i for i, row in enumerate(rows) if len(row.tokens) == 1]
    # Rows within a factor of two in length share one padded product.
    decode.sort(key=lambda i: rows[i].start.bit_length())
    order = prefill + decode
    starts = np.cumsum([0] + [len(rows[i].tokens) for i in order])
    prefills = [
        _prefill(rows[i], int(starts[k]), page_size, device, dtype) for k, i in enumerate(prefill)
    ]
    decodes, first = [], len(prefill)
    while first < len(order):
        size = rows[order[first]].start.bit_length()
        last = first
        while last < len(order) and rows[order[last]].start.bit_length() == size:
            last += 1
        members = [rows[i] for i in order[first:last]]
        decodes.append(_decode(members, int(starts[first]), page_size, device, dtype))
        first = last
    looks = [(int(starts[k]) + at, i) for k, i in enumerate(order) for at in _looks(rows[i])]
    return Step(
        ids=torch.tensor([t for i in order for t in rows[i].tokens], device=device),
        positions=_tensor(np.concatenate([_positions(rows[i]) for i in order]), device),
        slots=_tensor(np.concatenate([_slots(rows[i], page_size) for i in order]), device),
        prefills=prefills,
        decodes=decodes,
        sampled=torch.tensor([at for at, _ in looks], dtype=torch.long, device=device),
        sampled_rows=[i for _, i in looks],
    )


def _looks(row: Row) -> range:
    """Which of a row's tokens have their logits looked at."""
    if row.sample:
        return range(len(row.tokens) - row.drafted - 1, len(row.tokens))
    return range(row.scored.start - row.start - 1, row.scored.stop - row.start - 1) if row.scored else range(0)


def _tensor(array: np.ndarray, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(array).to(device)


def _positions(row: Row) -> np.ndarray:
    return np.arange(row.start, row.start + len(row.tokens))


def _slots(row: Row, page_size: int) -> np.ndarray:
    """The slot of each of the row's new tokens."""
    positions = _positions(row)
    first = row.start // page_size
    table = np.asarray(row.pages[first : (row.start + len(row.tokens) - 1) // page_size + 1])
    slots: np.ndarray = table[positions // page_size - first] * page_size + positions % page_size
    return slots


def _prefill(row: Row, start: int, page_size: int, device: torch.device, dtype: torch.dtype) -> PrefillRow:
    count = len(row.tokens)
    if row.start == 0:
        return PrefillRow(start, start + count, None, [])
    total = row.start + count
    pages = torch.tensor(row.pages[: -(-total // page_size)], device=device)
    blocks = []
    for a in range(0, count, BLOCK):
        b = min(a + BLOCK, count)
        keys = row.start + b
        after = torch.arange(keys, device=device) > torch.arange(row.start + a, keys, device=device)[:, None]
        mask = torch.zeros(b - a, keys, dtype=dtype, device=device).masked_fill_(after, -torch.inf)
        blocks.append(Block(start + a, start + b, keys, mask))
    return PrefillRow(start, start + count, pages, blocks)


def _decode(rows: list[Row], start: int, page_size: int, device: torch.device, dtype: torch.dtype) -> DecodeGroup:
    lengths = np.array([row.start + 1 for row in rows])
    width = int(-(-lengths.max() // page_size))
    # Padding points at the row's own first page, which holds finite numbers; the mask hides it.
    table = np.empty((len(rows), width), np.int64)
    for line, row, length in zip(table, rows, lengths, strict=True):
        own = -(-int(length) // page_size)
        line[:own] = row.pages[:own]
        line[own:] = row.pages[0]
    mask = None
    if (lengths != width * page_size).any():
        hidden = _tensor(np.arange(width * page_size) >= lengths[:, None], device)
        mask = torch.zeros(hidden.shape, dtype=dtype, device=device).masked_fill_(hidden, -torch.inf)[:, None, None]
    return DecodeGroup(start, start + len(rows), _tensor(table, device), mask)
