"""Field notes I5 and I7: padding that sees nothing, and a device that does not say how much memory is free."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from engine.executor import memory
from engine.executor.model import ModelExecutor
from engine.executor.step import pack
from engine.loaded import LoadedModel
from engine.models import _check_room
from tests.engine.driving import Driver, prompts
from tests.engine.lab import Lab

UNEVEN = (1, 2, 4, 5, 7, 19, 33, 40)


def driver(loaded: LoadedModel, page_size: int, fill: float = 3e4) -> Driver:
    return Driver(ModelExecutor(loaded, 512 // page_size, page_size, fill=fill))


@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_i5_every_row_sees_something_however_much_of_it_is_padding(tiny_llama: LoadedModel, page_size: int) -> None:
    """There are no padded rows; a row's padded keys are hidden, and its own token never is."""
    drive = driver(tiny_llama, page_size)
    requests = [drive.start(p, f"R{i}") for i, p in enumerate(prompts(tiny_llama, UNEVEN))]
    drive.run([drive.row(r, r.size) for r in requests])
    suffix = drive.start(prompts(tiny_llama, [40], seed=7)[0], "suffix")
    drive.run([drive.row(suffix, 13)])
    step = pack([drive.row(r, r.size) for r in [*requests, suffix]], page_size, torch.device("cpu"), torch.float32)
    masks = [g.mask[:, 0, 0] for g in step.decodes if g.mask is not None] + [
        b.mask for p in step.prefills for b in p.blocks
    ]
    assert masks and sum(len(m) for m in masks) > 20
    for mask in masks:
        assert ((mask == 0).any(-1)).all() and ((mask == 0) | (mask == -torch.inf)).all()


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_i5_padding_gives_no_nan_and_is_never_sampled_from(
    tiny_llama: LoadedModel, page_size: int, plain: bool
) -> None:
    drive = driver(tiny_llama, page_size)
    drive.executor.kv.plain = plain
    requests = [drive.start(p, f"R{i}") for i, p in enumerate(prompts(tiny_llama, UNEVEN))]
    drive.run([drive.row(r, r.size) for r in requests])
    chunk = drive.start(prompts(tiny_llama, [40], seed=7)[0], "chunk")
    rows = [drive.row(r, r.size) for r in requests] + [drive.row(chunk, 13)]
    logits, order = drive.executor.logits(rows)
    assert logits.isfinite().all()
    assert sorted(order) == list(range(len(requests))) and len(logits) == len(requests)


def test_i7_a_device_that_does_not_tell_its_free_memory_gets_the_pool_that_was_asked_for(
    tiny_llama: LoadedModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(memory, "Path", lambda _: tmp_path / "no such file")
    monkeypatch.setattr(os, "sysconf_names", {})
    assert memory.free_bytes(torch.device("cpu")) is None
    lab = Lab(loaded=tiny_llama, pages=24, page_size=4)
    assert len(lab.engine.executor.kv.layers[0]) == 24 * 4
    assert len(lab.serve("R1", [5, 6, 7], 3)) == 3
    _check_room(tmp_path, "a model", torch.device("cpu"), torch.float32)


def test_i7_without_a_list_of_free_memory_the_machines_own_size_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(memory, "Path", lambda _: tmp_path / "no such file")
    if "SC_PHYS_PAGES" in os.sysconf_names:
        assert memory.free_bytes(torch.device("cpu")) == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
