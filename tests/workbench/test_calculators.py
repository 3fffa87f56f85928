"""The calculators: what arithmetic says is what a run of the engine does; bad input is refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine import Engine, EngineConfig
from engine.hardware import PROFILES
from workbench import calculation, calculators, cli
from workbench import scenario as scenarios
from workbench.calculation import CALCULATORS
from workbench.calculators import MODELS, Model, kv_bytes, load_or_compute, tokens_held
from workbench.experiments import amdahl, offload
from workbench.figures.experiment import draw
from workbench.runner import run


def figures(name: str, **given: Any) -> dict[str, Any]:
    return {f.label: f.value for f in calculation.find(name).answer({k.replace("_", "-"): v for k, v in given.items()}).figures}


def one_run(data: dict[str, Any], **engine: Any) -> Any:
    return run(scenarios.parse(data, {f"engine.{k}": v for k, v in engine.items()})).report


@pytest.mark.model
def test_memory_is_what_the_embedded_models_buffer_takes(embedded: Any) -> None:
    engine = Engine(config=EngineConfig(executor="model", pages=96), loaded=embedded)
    layers = engine.executor.kv.layers
    held = sum(t.numel() * t.element_size() for t in layers)
    slots = layers[0].shape[0]
    assert held == slots * figures("memory", model="smollm2-135m", bytes=4, tokens=96)["a token"]


@pytest.mark.parametrize(("model", "profile"), [("llama-3.1-8b", "l4-llama-3.1-8b"), ("qwen2.5-1.5b", "m4-qwen2.5-1.5b")])
def test_a_published_shape_weighs_what_the_simulated_machine_reckons_with(model: str, profile: str) -> None:
    m = MODELS[model]
    assert kv_bytes(m.layers, m.kv_heads, m.head_width, 2) == PROFILES[profile].shape.kv_bytes


def test_memory_of_copies_against_one_shared() -> None:
    said = figures("memory")
    assert said["the prefix, once"] == 1 and said["32 private copies"] == 32 and said["a token"] == 131_072
    assert figures("memory", bytes=1)["the prefix, once"] == 0.5


@pytest.mark.parametrize("compute", [10, 42, 44, 200])
def test_the_engine_loads_exactly_where_the_calculator_says_that_loading_takes_less(compute: float) -> None:
    choice = load_or_compute(offload.SAVED, offload.LINK, offload.TOKENS, 1000 * offload.TOKENS / compute)
    assert choice.loads == (one_run(offload.traffic(compute)).totals.loaded_tokens > 0)
    even = load_or_compute(offload.SAVED, choice.even_link, offload.TOKENS, 1000 * offload.TOKENS / compute)
    assert even.load == pytest.approx(even.compute)


def test_the_speedup_of_a_hit_rate_is_that_of_runs() -> None:
    data = {
        "engine": {"executor": "puppet", "pages": 4096, "clock": {"step": 0.008, "token": 0.0002}},
        "requests": [
            {"id": "before", "tokens": "A300", "max_new_tokens": 0},
            {"id": "asked", "tokens": "A300+B100", "max_new_tokens": 12, "ignore_eos": True, "after": "before"},
        ],
    }  # fmt: skip
    off, on = (one_run(data, cache=cache).requests[1] for cache in ("off", "radix"))
    said = figures("speedup", prompt=400, hit_rate=75, answer=12)
    assert said["to the first token"] == pytest.approx(off.ttft / on.ttft, abs=1e-4)
    assert said["the whole request"] == pytest.approx((off.finished - off.arrived) / (on.finished - on.arrived), abs=1e-4)


def test_amdahl_is_what_a_shorter_prefill_does_to_a_run() -> None:
    cold, warm = (one_run(amdahl.traffic(), cache=cache).requests[1] for cache in ("off", "radix"))
    whole = [r.finished - r.arrived for r in (cold, warm)]
    said = figures("amdahl", share=100 * cold.ttft / whole[0], faster=cold.ttft / warm.ttft)
    assert said["the whole request"] == pytest.approx(whole[0] / whole[1], abs=1e-4)


@pytest.mark.parametrize(("layout", "replicas"), [("tensor", 1), ("data", 4)])
def test_gpus_hold_as_many_different_tokens_as_runs_with_that_room_keep(layout: str, replicas: int) -> None:
    model = Model("two heads", layers=4, kv_heads=2, head_width=8, source="made up")
    held = tokens_held(64 * kv_bytes(4, 2, 8, 2), 4, model, 2, layout)
    assert held == (calculators.Cached(128, 128, 2) if layout == "tensor" else calculators.Cached(64, 256, 1))
    requests = [{"id": f"R{i}", "tokens": [1000 * i + j for j in range(16)], "max_new_tokens": 0, "at": i} for i in range(1, 41)]
    engine = {"pages": held.each, "replicas": replicas, "router": "round-robin", "max_running": 1}
    assert one_run({"engine": engine, "requests": requests}).pool.cached == held.whole


def test_a_model_with_one_latent_head_is_where_data_parallel_attention_pays() -> None:
    mla, gqa = (figures("attention", model=name) for name in ("deepseek-v3", "llama-3.1-8b"))
    assert mla["tensor parallelism: copies of each KV head"] == 8
    assert mla["data-parallel attention: tokens in all"] == 8 * mla["tensor parallelism: tokens in all"]
    assert gqa["data-parallel attention: tokens in all"] == pytest.approx(gqa["tensor parallelism: tokens in all"], abs=8)


@pytest.mark.parametrize("name", CALCULATORS)
def test_every_answer_can_be_drawn_and_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = CALCULATORS[name].answer({})
    assert [list(t.y) for t in draw(answer.chart).data] == [[p.y for p in c.points] for c in answer.chart.curves]
    assert cli.main(["calculate", name]) == 0 and answer.words in capsys.readouterr().out
    assert cli.main(["calculate", name, "--json"]) == 0 and json.loads(capsys.readouterr().out)["words"] == answer.words


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["memory", "--layers", "0"], "layers: must be a whole number from 1 to 1,000; got 0"),
        (["memory", "--bytes", "1.5"], "bytes: must be a whole number from 1 to 8; got 1.5"),
        (["memory", "--model", "gpt"], "model: must be one of llama-3.1-8b, "),
        (["offload", "--link", "fast"], "link: must be a number from 0.001 to 100,000; got fast"),
        (["attention", "--gpus", "3"], "gpus: 8 KV heads cannot be shared out evenly"),
    ],
)
def test_bad_input_is_refused_by_name(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["calculate", *argv]) == 2
    out = capsys.readouterr()
    assert out.out == "" and out.err.startswith(f"error: {said}") and out.err.count("\n") == 1
