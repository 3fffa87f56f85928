"""The host tier with real tensors: pages that went to the host and came back hold what they held."""

from __future__ import annotations

import random

import msgspec
import pytest
import torch

from engine import Engine, EngineConfig
from engine import events as ev
from engine.executor.model import ModelExecutor
from engine.loaded import LoadedModel
from tests.engine.driving import explain, reference
from workbench.recording import run_again

NEW = 8


def rounds(vocabulary: int) -> list[list[int]]:
    """Four prompts of 40 to 60 tokens in two families; together far more than a pool of 100 tokens holds."""
    rng = random.Random(7)
    heads = [[rng.randrange(3, vocabulary) for _ in range(33)] for _ in range(2)]
    return [heads[i % 2] + [rng.randrange(3, vocabulary) for _ in range(7 + 6 * i)] for i in range(4)]


def serve(loaded: LoadedModel, asked: list[list[int]], **knobs: object) -> tuple[Engine, list[list[int]]]:
    """All prompts one after the other, three times over; the output ids of each."""
    engine = Engine(config=EngineConfig(executor="model", **knobs), loaded=loaded, check=True)  # type: ignore[arg-type]
    said: list[list[int]] = []
    for prompt in asked * 3:
        engine.submit(prompt, max_new_tokens=NEW, ignore_eos=True)
        said.append([i for progress in iter(engine.step, None) for p in progress for i in p.ids])
    return engine, said


@pytest.mark.parametrize("policy", ["write-through", "write-back"])
@pytest.mark.parametrize(("page_size", "bandwidth"), [(1, 1e15), (4, 1e15), (16, 1e15), (4, 1e-3)])
def test_a_tiny_model_says_the_same_with_the_tier_as_transformers_does(
    tiny_llama: LoadedModel, policy: str, page_size: int, bandwidth: float
) -> None:
    asked = rounds(tiny_llama.vocab_size)
    engine, said = serve(
        tiny_llama, asked, page_size=page_size, pages=112 // page_size, host_pages=400 // page_size, host_policy=policy,
        host_bandwidth=bandwidth,
    )  # fmt: skip
    for prompt, output in zip(asked * 3, said, strict=True):
        wanted = reference(tiny_llama, prompt, NEW)
        assert output == wanted, explain(tiny_llama, prompt, wanted, output)
    assert engine.totals.demoted_tokens > 0
    assert (engine.totals.loaded_tokens > 0) == (bandwidth > 1)
    computed_again = [e for e in engine.trace if isinstance(e, ev.NodeRestored) and e.request is not None]
    assert bandwidth > 1 or computed_again


def test_a_page_that_goes_and_comes_back_is_bit_for_bit_what_it_was(tiny_llama: LoadedModel) -> None:
    executor = ModelExecutor(tiny_llama, 12, 4, host_pages=6)
    for layer in executor.kv.layers:
        layer.copy_(torch.randn_like(layer))
    before = [layer.view(12, -1).clone() for layer in executor.kv.layers]
    executor.demote([7, 3, 8, 9], [5, 0, 1, 2])
    for layer in executor.kv.layers:
        layer.fill_(1e4)
    executor.restore([1, 2, 5], [4, 0, 11])
    for was, layer in zip(before, executor.kv.layers, strict=True):
        now = layer.view(12, -1)
        assert torch.equal(now[[4, 0, 11]], was[[8, 9, 7]])
        assert torch.all(now[[1, 2, 3, 5, 6, 7, 8, 9, 10]] == 1e4)


def test_the_rates_are_measured_once_only_where_there_is_a_tier_and_stand_in_the_header(tiny_llama: LoadedModel) -> None:
    plain = Engine(config=EngineConfig(executor="model", pages=64), loaded=tiny_llama)
    assert plain.trace.header.rates == {} and plain.trace.header.host is msgspec.UNSET
    off = Engine(config=EngineConfig(executor="model", pages=64, host_pages=8, cache="off"), loaded=tiny_llama)
    assert off.trace.header.rates == {}
    engine = Engine(config=EngineConfig(executor="model", pages=64, host_pages=8), loaded=tiny_llama)
    rates = engine.trace.header.rates
    assert rates["kv_bytes"] == tiny_llama.kv_bytes_per_token
    assert rates["prefill_rate"] > 0 and rates["host_bandwidth"] > 0
    assert engine.trace.header.host == "a second buffer in the cpu's memory"
    given = Engine(config=EngineConfig(executor="model", pages=64, host_pages=8, host_bandwidth=7.5), loaded=tiny_llama)
    assert given.trace.header.rates["host_bandwidth"] == 7.5


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_copies_keep_their_place_among_the_forwards() -> None:
    """Pages are overwritten as soon as they were copied out, many times over, without waiting in between."""
    from engine.executor.host_kv import HostKV
    from engine.executor.kv import KV

    kv = KV(8, 64, 16, 8, 128, torch.bfloat16, torch.device("cuda"))
    host = HostKV(kv, 64)
    assert host.pinned
    everything = list(range(64))
    for turn in range(50):
        for layer in kv.layers:
            layer.fill_(turn)
        host.demote(everything, everything[::-1])
        for layer in kv.layers:
            layer.fill_(-1)
        host.restore(everything[::-1], everything)
        assert all(bool((layer == turn).all()) for layer in kv.layers)


def test_a_recorded_run_with_measured_rates_is_replayed_with_the_same_loads(tiny_llama: LoadedModel) -> None:
    engine, _ = serve(
        tiny_llama, rounds(tiny_llama.vocab_size), page_size=4, pages=28, host_pages=100, host_policy="write-back", host_bandwidth=1e15
    )  # fmt: skip
    engine.finish()
    again = run_again(engine.trace, check=True)
    assert again.same
    assert again.run.report.totals.loaded_tokens == again.recorded.totals.loaded_tokens == engine.totals.loaded_tokens > 0
