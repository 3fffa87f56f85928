"""Models for the tests: the embedded one, and tiny random ones whose every page matters."""

from __future__ import annotations

import os

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from engine.failures import ModelError
from engine.loaded import LoadedModel
from engine.models import load_model
from tests.engine.tiny import TINY, accepted


def pytest_configure() -> None:
    """One thread each: two workers share the machine, and threads that wait for one another lose more than they gain."""
    torch.set_num_threads(1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything that holds the embedded model in memory runs in one worker; the browser's two groups have apps that hold it anyway."""
    for item in items:
        if "embedded" in getattr(item, "fixturenames", ()) or item.get_closest_marker("model"):
            item.add_marker("model")
            if not item.get_closest_marker("browser"):
                item.add_marker(pytest.mark.xdist_group("model"))


@pytest.fixture(scope="session")
def embedded() -> LoadedModel:
    """The embedded model in float32 on the CPU."""
    try:
        return load_model("embedded", device="cpu", dtype="float32")
    except ModelError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def tiny_llama() -> LoadedModel:
    """A random Llama, 3 layers, 6 heads on 2 KV heads, 199 ids."""
    torch.manual_seed(1)
    return accepted(LlamaForCausalLM(LlamaConfig(**TINY)), "tiny-llama")


@pytest.fixture(scope="session")
def tiny_qwen2() -> LoadedModel:
    """A random Qwen2 of the same size: biases on its projections, tied embeddings."""
    torch.manual_seed(2)
    return accepted(Qwen2ForCausalLM(Qwen2Config(**TINY, tie_word_embeddings=True)), "tiny-qwen2")
