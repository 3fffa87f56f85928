"""Calibration: the fit finds what passes were made from, and what was measured is kept. No time is asserted."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from engine import Engine, EngineConfig, calibration
from engine.calibration import PASSES, Timed, calibrate, calibrated, shape_of, work_of
from engine.fitting import FitError, Fitted, fit
from engine.hardware import LLAMA_8B, QWEN_1_5B, Shape
from engine.loaded import LoadedModel, wrap
from engine.roofline import Work, seconds
from tests.engine.tiny import TINY

SMOL = Shape(
    name="smol", layers=30, hidden=576, heads=9, kv_heads=3, head_width=64, intermediate=1536, vocabulary=49_152, positions=8192,
    tied=True, dtype="float32", source="made up",
)  # fmt: skip
MADE = [
    (SMOL, Fitted(0.004, 0.002, 120e9, 25e9, 3.0)), (SMOL, Fitted(0.0, 0.0, 60e9, 10e9, 1.0)), (SMOL, Fitted(0.03, 0.0, 80e9, 20e9, 6.0)),
    (QWEN_1_5B, Fitted(0.01, 0.001, 2e12, 80e9, 2.0)), (LLAMA_8B, Fitted(0.002, 0.0001, 500e12, 2e12, 1.5)),
]  # fmt: skip


def parameters(found: Fitted) -> list[float]:
    return [found.overhead, found.row, found.flops, found.bandwidth, found.kv_moves]


@pytest.mark.parametrize(("shape", "made"), MADE)
def test_a_fit_of_passes_without_noise_finds_the_roofline_they_were_made_from(shape: Shape, made: Fitted) -> None:
    asked = [work_of(shape, one) for one in PASSES]
    found = fit([(w, made.seconds(w)) for w in asked])
    assert parameters(found) == pytest.approx(parameters(made), rel=1e-5, abs=1e-8)


def test_noise_of_five_per_cent_moves_predictions_by_about_as_much() -> None:
    rng, made = random.Random(1), MADE[0][1]
    asked = [work_of(SMOL, one) for one in PASSES]
    found = fit([(w, made.seconds(w) * rng.uniform(0.95, 1.05)) for w in asked])
    assert all(abs(found.seconds(w) / made.seconds(w) - 1) < 0.1 for w in asked)


def test_passes_that_no_roofline_goes_through_are_refused() -> None:
    with pytest.raises(FitError, match=r"^no roofline goes through"):
        fit([(Work(1, 10**6, 10**6, 10**3), 1.0)])
    with pytest.raises(FitError, match=r"^even the best roofline is off by \d+% \(median\)"):
        fit([(Work(1, 10**k, 10**6, 10**3), 1 / 10**k) for k in range(4, 12)])


# --- what is kept ------------------------------------------------------------------------------


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LoadedModel:
    """A tiny model in memory, a cache folder of its own, and passes that take what a known roofline says."""
    monkeypatch.setenv("RADIX_CACHE", str(tmp_path))
    torch.manual_seed(0)
    loaded = wrap(LlamaForCausalLM(LlamaConfig(**{**TINY, "max_position_embeddings": 4096})), None, "tiny")

    def times(loaded: LoadedModel, passes: Any, *rest: Any) -> list[float]:
        return [Fitted(0.01, 0.001, 1e9, 1e9, 2.0).seconds(work_of(shape_of(loaded), one)) for one in passes]

    monkeypatch.setattr(calibration, "_time", times)
    return loaded


def test_a_calibration_is_kept_by_model_device_dtype_and_threads(tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    made = calibrate(loaded=tiny)
    assert made.profile.accelerator.source == f"calibrated on {made.date} on this machine" and made.threads == torch.get_num_threads()
    monkeypatch.setattr(calibration, "_time", lambda *rest: pytest.fail("measured again"))
    assert calibrated(loaded=tiny) == made
    other = torch.get_num_threads() + 1
    monkeypatch.setattr(torch, "get_num_threads", lambda: other)
    with pytest.raises(pytest.fail.Exception, match="measured again"):
        calibrated(loaded=tiny)


def test_a_file_that_cannot_be_read_is_measured_anew(tiny: LoadedModel, tmp_path: Path) -> None:
    made = calibrate(loaded=tiny)
    [file] = (tmp_path / "calibrations").iterdir()
    file.write_text("{}")
    assert calibrated(loaded=tiny).profile.accelerator.flops == pytest.approx(made.profile.accelerator.flops)
    assert file.stat().st_size > 1000


def test_the_measured_profile_predicts_its_own_passes_and_runs(tiny: LoadedModel) -> None:
    made = calibrate(loaded=tiny)
    assert made.passes[0] == Timed(1, 0, 32, made.passes[0].seconds, made.passes[0].fitted)
    for one in made.passes:
        asked = work_of(made.profile.shape, (one.rows, one.before, one.new))
        assert seconds(made.profile.accelerator, asked) == pytest.approx(one.seconds, rel=1e-3)
    engine = Engine(config=EngineConfig(executor="cost", pages=64), loaded=tiny)
    header = engine.trace.header
    assert header.model == "tiny" and header.device is not None and header.device.endswith(", simulated")
    assert header.hardware["source"].startswith(f"calibrated on {made.date} on this machine")


def test_passes_of_a_real_model_are_timed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    loaded = wrap(LlamaForCausalLM(LlamaConfig(**TINY)), None, "tiny")
    told: list[float | None] = []
    ticks = iter(range(1000))
    passes = [(1, 0, 32), (1, 64, 16), (8, 32, 1)]
    times = calibration._time(loaded, passes, lambda stage, fraction: told.append(fraction), lambda: float(next(ticks)))
    assert times == [1.0, 1.0, 1.0] and told[-1] == 1.0
