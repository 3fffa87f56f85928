"""Models of the hub: what is said before anything is fetched, what is fetched, and how it fails."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import HfApi, constants

from engine import hub
from engine.failures import ModelError
from engine.models import fetch_model, load_model
from engine.needs import Needs, model_needs
from tests.engine.fake_hub import serving
from tests.engine.tiny_files import tiny_files

NAME = "owner/tiny"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the hub has: a tiny model, and files beside it that nobody loads."""
    folder = tiny_files(tmp_path_factory.mktemp("hub") / "tiny")
    (folder / "README.md").write_text("read me")
    (folder / "tiny.gguf").write_bytes(b"x" * 1_000_000)
    (folder / "pytorch_model.bin").write_bytes(b"x" * 1_000_000)
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the hub's."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    monkeypatch.setenv("HF_HUB_CACHE", str(folder))
    return folder


@pytest.fixture
def asked(source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The hub is on this machine; the list of what it was asked for."""
    with serving({NAME: source}, pause=0.1) as (url, asked):
        monkeypatch.setattr(constants, "ENDPOINT", url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")
        monkeypatch.setenv("HF_ENDPOINT", url)
        yield asked


def bytes_of(folder: Path) -> int:
    names = (
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
        "model.safetensors",
    )
    return sum((folder / n).stat().st_size for n in names)


def test_the_size_is_the_hubs_own_answer_about_the_files_that_are_loaded(asked: list[str], source: Path) -> None:
    needs = model_needs(NAME)
    assert needs.download == needs.whole == bytes_of(source)
    assert needs.host == "127.0.0.1"
    assert needs.own_dtype == "bfloat16"
    assert needs.weight_bytes("float32") == 4 * 494032768
    assert not [line for line in asked if "/resolve/" in line]


def test_it_is_fetched_once_and_from_then_on_no_network_is_needed(asked: list[str], source: Path, cache: Path) -> None:
    told: list[tuple[str, float | None]] = []
    loaded = load_model(NAME, device="cpu", progress=lambda *a: told.append(a))
    assert loaded.name == NAME
    assert told[0][0].startswith("downloading tiny (") and told[0][1] == 0.0
    assert not [line for line in asked if "gguf" in line or ".bin" in line or "README" in line]
    weights = (source / "model.safetensors").stat().st_size
    asked.clear()
    assert model_needs(NAME) == Needs(
        0, parameters={"F32": 320 * 96 * 2 + 3 * (96 * 96 * 2 + 96 * 32 * 2 + 3 * 96 * 128 + 2 * 96) + 96}
    )
    assert model_needs(NAME).weight_bytes("float32") == pytest.approx(weights, rel=0.01)
    load_model(NAME, device="cpu")
    assert asked == []


def test_a_download_can_be_stopped_and_what_came_before_is_not_asked_again(
    asked: list[str], source: Path, cache: Path
) -> None:
    class StoppedError(Exception):
        pass

    def stop(stage: str, fraction: float | None) -> None:
        if [line for line in asked if line.startswith("GET") and line.endswith("model.safetensors")]:
            raise StoppedError

    with pytest.raises(StoppedError):
        fetch_model(NAME, stop)
    assert not list(cache.rglob("*.incomplete")) and not list(cache.rglob("*.safetensors"))
    needs = model_needs(NAME)
    assert needs.download == (source / "model.safetensors").stat().st_size
    assert needs.whole == bytes_of(source)


def test_what_the_engine_cannot_serve_is_refused_before_its_weights_are_fetched(
    asked: list[str], source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(config: object, name: str) -> None:
        raise ModelError(f"{name} has layers of type sliding_attention")

    monkeypatch.setattr("engine.models.check_config", refuse)
    with pytest.raises(ModelError, match="layers of type"):
        load_model(NAME, device="cpu")
    assert not [line for line in asked if line.endswith("model.safetensors")]


def test_a_model_that_the_hub_does_not_have_is_one_sentence(asked: list[str]) -> None:
    with pytest.raises(
        ModelError, match=r"^'owner/none' is neither a local folder nor an open model on the Hugging Face hub$"
    ):
        model_needs("owner/none")
    with pytest.raises(ModelError, match="neither a local folder nor an open model"):
        load_model("not an id!", device="cpu")


def test_no_room_is_told_before_anything_is_fetched(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub.shutil, "disk_usage", lambda _: hub.shutil._ntuple_diskusage(10**9, 10**9, 1000))
    with pytest.raises(ModelError, match=r"^the disk is full: owner/tiny needs 1 MB and 0 MB are free$"):
        fetch_model(NAME)
    assert not [line for line in asked if "/resolve/" in line]


def test_without_a_network_the_size_is_unknown_and_loading_fails_at_the_first_question(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []

    def unreachable(self: HfApi, *_: object, **options: object) -> None:
        tries.append(options)
        raise ConnectionError("Name or service not known")

    monkeypatch.setattr(HfApi, "model_info", unreachable)
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waits for another try"))
    assert model_needs(NAME) == Needs(None, host="huggingface.co", unknown="huggingface.co cannot be reached")
    with pytest.raises(
        ModelError,
        match=r"^'owner/tiny' is not on this machine, and the Hugging Face hub \(huggingface.co\) cannot be reached$",
    ):
        load_model(NAME, device="cpu")
    assert len(tries) == 2 and all(t["timeout"] for t in tries)


def test_the_files_that_are_loaded() -> None:
    small = ["config.json", "tokenizer.json"]
    shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"]
    assert (
        hub.loaded_files([*small, *shards, "pytorch_model.bin", "onnx/model.onnx", "original/model.safetensors"])
        == small + shards
    )
    assert hub.loaded_files(["model.safetensors", *shards]) == ["model.safetensors"]
    assert hub.loaded_files(["pytorch_model.bin", "LICENSE"]) == ["pytorch_model.bin"]


def test_a_model_is_whole_with_its_last_shard(tmp_path: Path) -> None:
    for name in ("tokenizer.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors"):
        (tmp_path / name).touch()
    assert not hub.is_whole(tmp_path)
    (tmp_path / "model-00002-of-00002.safetensors").touch()
    assert hub.is_whole(tmp_path)


@pytest.mark.parametrize("path", ["/no/such/folder", "./nowhere", "a/b/c", "~/nowhere-at-all"])
def test_a_path_without_a_folder_is_one_sentence(path: str) -> None:
    for ask in (model_needs, load_model):
        with pytest.raises(ModelError, match=f"^{path}: no such folder$"):
            ask(path)


def test_more_than_the_memory_holds_is_refused_before_the_weights_are_read(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.models.free_bytes", lambda _: 1000)
    with pytest.raises(
        ModelError,
        match=r"tiny takes 0\.0 GB in float32 and 0\.0 GB are free on cpu: choose a smaller model or bfloat16$",
    ):
        load_model(str(source), device="cpu")


def test_the_embedded_models_size_is_known_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADIX_CACHE", str(tmp_path))
    assert model_needs("embedded") == Needs(92_871_040, 92_871_040, "pypi.org")
