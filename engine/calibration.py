"""The `measured` profile: a few passes of the real model, timed on this machine, and the roofline fitted to them.

Kept as JSON in the user's cache folder, one file for each model, device, dtype and number of threads.
"""

from __future__ import annotations

import datetime
import hashlib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import torch

from engine.embedded import NAME as EMBEDDED_NAME
from engine.embedded import Progress, cache_folder
from engine.executor.base import Row
from engine.executor.memory import free_bytes
from engine.executor.model import ModelExecutor
from engine.failures import ModelError, model_error
from engine.fitting import FitError, Fitted, fit
from engine.hardware import Accelerator, Profile, Shape
from engine.loaded import LoadedModel
from engine.models import load_model, resolve
from engine.places import shown_name
from engine.request import Request, SamplingParams
from engine.roofline import Work, work

VERSION = 1
"""Rises whenever an older calibration must not be taken for one of this version."""
PAGE = 16
PASSES = (
    (1, 0, 32), (1, 0, 128), (1, 0, 512), (1, 0, 1536), (1, 512, 128), (1, 2048, 32), (1, 2048, 128), (1, 2048, 512),
    (1, 32, 1), (1, 512, 1), (1, 2048, 1), (8, 32, 1), (8, 256, 1), (8, 1024, 1),
)  # fmt: skip
"""(rows, tokens before each, tokens forwarded of each): prompts of several lengths and contexts, and decode steps."""
ROUNDS = 3
ENOUGH = 30.0
"""Seconds after which no further round begins: a slow or busy machine is calibrated by fewer."""
COPIED = 64 << 20
"""Bytes that are copied to see how fast the host's memory is reached."""


@dataclass(frozen=True)
class Timed:
    """One pass of the calibration: its rows, and the seconds it took (the least of a few) and would take by the fit."""

    rows: int
    before: int
    new: int
    seconds: float
    fitted: float


@dataclass(frozen=True)
class Calibration:
    """What was measured: the profile, the day, and the passes it was fitted to."""

    version: int
    profile: Profile
    device: str
    threads: int
    date: str
    passes: list[Timed]


def calibrated(
    model: str = "embedded", *, device: str = "auto", dtype: str = "auto",
    loaded: LoadedModel | None = None, progress: Progress | None = None,
) -> Calibration:  # fmt: skip
    """The stored calibration of a model on this machine; made now where there is none. Raises ModelError."""
    if loaded is not None:
        name, where, kind = loaded.name, loaded.device.type, _dtype(loaded)
    else:
        name = EMBEDDED_NAME if model == "embedded" else shown_name(model)
        where, kind = resolve(model, device, dtype, progress)
    found = _read(_file(name, where, kind))
    if found is not None:
        return found
    return calibrate(model, device=device, dtype=dtype, loaded=loaded, progress=progress)


def calibrate(
    model: str = "embedded", *, device: str = "auto", dtype: str = "auto",
    loaded: LoadedModel | None = None, progress: Progress | None = None,
) -> Calibration:  # fmt: skip
    """Measure now and store. Takes under a minute on the embedded model. Raises ModelError."""
    if loaded is None:
        loaded = load_model(model, device=device, dtype=dtype, progress=progress)
    made = measure(loaded, progress)
    file = _file(loaded.name, loaded.device.type, _dtype(loaded))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_suffix(".part")
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=1))
        fresh.replace(file)
    except OSError as error:
        raise model_error(error, f"keeping the calibration in {file.parent}") from error
    return made


def measure(loaded: LoadedModel, progress: Progress | None = None, clock: Callable[[], float] = time.perf_counter) -> Calibration:
    """Time the passes by a clock and fit a roofline to them; nothing is stored. Raises ModelError."""
    shape, passes = shape_of(loaded), [p for p in PASSES if p[1] + p[2] <= loaded.max_positions]
    times = _time(loaded, passes, progress or (lambda stage, fraction: None), clock)
    asked = [work_of(shape, one) for one in passes]
    try:
        found = fit(list(zip(asked, times, strict=True)))
    except FitError as error:
        raise ModelError(f"calibrating {loaded.name}: {error}; try again when the machine is quiet") from None
    date, threads = datetime.date.today().isoformat(), torch.get_num_threads()
    return Calibration(
        version=VERSION, profile=Profile(_machine(loaded, found, date, threads), shape), device=loaded.device.type, threads=threads, date=date,
        passes=[Timed(*p, round(t, 6), round(found.seconds(w), 6)) for p, t, w in zip(passes, times, asked, strict=True)],
    )  # fmt: skip


def work_of(shape: Shape, one: tuple[int, int, int]) -> Work:
    """The work of one of PASSES: every row's last logits are wanted."""
    rows, before, new = one
    return work(shape, [(before, new, 1)] * rows)


def shape_of(loaded: LoadedModel) -> Shape:
    """A loaded model as numbers; what its MLP has more or less of than a gated one is left to the fitted rates."""
    config = loaded.model.config.get_text_config()
    layers, kv_heads, width = loaded.kv_shape
    return Shape(
        name=loaded.name, layers=layers, hidden=config.hidden_size, heads=config.num_attention_heads, kv_heads=kv_heads,
        head_width=width, intermediate=getattr(config, "intermediate_size", None) or 4 * config.hidden_size, vocabulary=config.vocab_size, positions=loaded.max_positions,
        tied=bool(getattr(config, "tie_word_embeddings", False)), dtype=_dtype(loaded), source="the model's own configuration",
    )  # fmt: skip


def _machine(loaded: LoadedModel, found: Fitted, date: str, threads: int) -> Accelerator:
    """This machine as an accelerator: what is reached, so nothing is left to an efficiency."""
    device = loaded.device
    words = f"cpu, {threads} thread{'' if threads == 1 else 's'}" if device.type == "cpu" else device.type
    if device.type == "cuda":
        words = torch.cuda.get_device_name(device)
    weights = sum(p.numel() * p.element_size() for p in loaded.model.parameters())
    return Accelerator(
        name=f"this machine ({words})", flops=found.flops, bandwidth=found.bandwidth, memory=float((free_bytes(device) or 0) + weights),
        link=_link(device), source=f"calibrated on {date} on this machine", overhead=found.overhead, row=found.row,
        kv_moves=found.kv_moves, efficiency=1.0,
    )  # fmt: skip


def _time(loaded: LoadedModel, passes: Sequence[tuple[int, int, int]], tell: Progress, clock: Callable[[], float]) -> list[float]:
    """Least seconds of each pass over a few rounds, after two that warm up: what else runs here only makes a pass longer.

    The slots before a row hold nothing that was computed: a pass takes as long whatever they hold.
    """
    pages = max(rows * -(-(before + new) // PAGE) for rows, before, new in passes)
    executor = ModelExecutor(loaded, pages, PAGE)
    vocabulary = min(loaded.vocab_size, 1000)
    taken: list[list[float]] = [[] for _ in passes]
    for one in (passes[0], passes[-1]):
        executor.execute(_rows(one, vocabulary))
    began = time.perf_counter()
    for turn in range(ROUNDS):
        for at, one in enumerate(passes):
            tell(f"calibrating {loaded.name} on {loaded.device.type}", (turn + at / len(passes)) / ROUNDS)
            rows = _rows(one, vocabulary)
            started = clock()
            executor.execute(rows)
            taken[at].append(clock() - started)
        if time.perf_counter() - began > ENOUGH:
            break
    tell(f"calibrating {loaded.name} on {loaded.device.type}", 1.0)
    return [min(times) for times in taken]


def _rows(one: tuple[int, int, int], vocabulary: int) -> list[Row]:
    """The rows of a pass, each on pages of its own."""
    rows, before, new = one
    each = -(-(before + new) // PAGE)
    out = []
    for k in range(rows):
        ids = [(17 + k + i) % vocabulary for i in range(new)]
        request = Request(id=f"pass {k}", prompt=ids, params=SamplingParams(), arrived=0.0, index=k)
        out.append(Row(request, ids, before, list(range(k * each, (k + 1) * each)), True))
    return out


def _link(device: torch.device) -> float:
    """Bytes a second of a copy from the device into the host's memory."""
    there = torch.zeros(COPIED, dtype=torch.uint8, device=device)
    here = torch.zeros(COPIED, dtype=torch.uint8)
    here.copy_(there)
    started = time.perf_counter()
    here.copy_(there)
    return COPIED / (time.perf_counter() - started)


def _dtype(loaded: LoadedModel) -> str:
    return str(loaded.dtype).removeprefix("torch.")


def _file(model: str, device: str, dtype: str) -> Path:
    """Where a calibration is kept: readable, and told apart by a hash of the whole key."""
    key = f"{model}|{device}|{dtype}|{torch.get_num_threads()}|{VERSION}"
    words = re.sub(r"[^a-z0-9]+", "-", f"{model} {device} {dtype}".lower()).strip("-")
    return cache_folder() / "calibrations" / f"{words[:80]}-{hashlib.sha256(key.encode()).hexdigest()[:8]}.json"


def _read(file: Path) -> Calibration | None:
    """A stored calibration; None where there is none that can be read."""
    try:
        found = msgspec.json.decode(file.read_bytes(), type=Calibration)
    except (OSError, msgspec.MsgspecError):
        return None
    return found if found.version == VERSION else None
