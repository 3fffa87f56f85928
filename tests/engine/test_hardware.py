"""Machines and models as numbers, and the roofline worked by hand."""

from __future__ import annotations

import pytest

from engine.config import ConfigError, EngineConfig, config_from
from engine.hardware import (
    EFFICIENCY,
    H100,
    L4,
    LLAMA_8B,
    M4,
    OVERHEAD,
    PROFILES,
    QWEN_1_5B,
    Accelerator,
    Profile,
    Shape,
)
from engine.roofline import Work, prefill_rate, rates, seconds, work

SMALL = Shape(
    name="small", layers=2, hidden=4, heads=2, kv_heads=1, head_width=2, intermediate=8, vocabulary=10, positions=64,
    tied=True, dtype="float32", source="made up",
)  # fmt: skip
SLOW = Accelerator(
    name="slow", flops=1000.0, bandwidth=1000.0, memory=4096.0, link=10.0, source="made up", overhead=0.25, row=0.5, efficiency=0.5
)


@pytest.mark.parametrize(("shape", "published", "norms_and_biases"), [
    # What the hub counts in the files, less what the shape leaves out: norms, and Qwen's biases of query, key and value.
    (LLAMA_8B, 8_030_261_248, 65 * 4096), (QWEN_1_5B, 1_543_714_304, 57 * 1536 + 28 * (1536 + 256 + 256)),
])  # fmt: skip
def test_the_models_have_as_many_weights_as_their_files(shape: Shape, published: int, norms_and_biases: int) -> None:
    assert shape.weight_bytes == 2 * (published - norms_and_biases)


def test_a_token_of_llama_8b_takes_128_kib_of_kv() -> None:
    assert LLAMA_8B.kv_bytes == 2 * 32 * 8 * 128 * 2 == 131_072  # 8,192 tokens: 1 GiB, as published
    assert QWEN_1_5B.kv_bytes == 28_672


def test_every_profile_has_the_same_efficiency_and_names_its_sources() -> None:
    machines = [p.accelerator for p in PROFILES.values()]
    assert {m.efficiency for m in machines} == {EFFICIENCY} and {m.overhead for m in machines} == {OVERHEAD}
    assert [H100.flops, L4.flops, M4.flops] == pytest.approx([989.5e12, 121e12, 3.7632e12])
    assert all(m.source for m in machines) and "derived" in M4.source and {m.kv_moves for m in machines} == {1.0}


def test_work_is_worked_out_from_lengths() -> None:
    # A row of 2 tokens behind 3 whose last logits are wanted: its tokens attend to 4 and 5. One behind 5: to 6. So 15 pairs.
    asked = work(SMALL, [(3, 2, 1), (5, 1, 0)])
    layers = 2 * (4 * (4 + 2 * 2) + 4 * 4 + 3 * 4 * 8)
    assert layers == SMALL.layer_parameters == 288
    assert asked == Work(rows=2, flops=2 * 288 * 3 + 4 * 2 * 2 * 2 * 15 + 2 * 40, weight_bytes=4 * (288 + 40), kv_bytes=(5 + 6) * 32)
    assert work(SMALL, [(3, 2, 0)]).weight_bytes == 4 * 288  # no logits, no LM head


def test_a_pass_takes_the_longer_of_arithmetic_and_memory() -> None:
    assert seconds(SLOW, Work(2, 2288, 1312, 352)) == pytest.approx(0.25 + 2 * 0.5 + 2288 / 500)
    assert seconds(SLOW, Work(2, 800, 1312, 352)) == pytest.approx(0.25 + 2 * 0.5 + 1664 / 500)


def test_a_prompt_and_a_decode_step_on_the_cards_by_hand() -> None:
    # 1,024 tokens: 2 x 6,979,321,856 x 1,024 + 4 x 32 x 32 x 128 x 524,800 + 2 x 525,336,576 = 14,569,470,689,280.
    asked = work(LLAMA_8B, [(0, 1024, 1)])
    assert asked.flops == 14_293_651_161_088 + 275_146_342_400 + 1_050_673_152 + 0
    assert seconds(L4, asked) == pytest.approx(0.002 + asked.flops / 72.6e12)
    assert prefill_rate(PROFILES["l4-llama-3.1-8b"]) == pytest.approx(1024 / 0.2026821, rel=1e-4)
    # One row behind 999 tokens on the H100: 15.009 GB of weights and 131 MB of KV at 2.01 TB/s.
    step = work(LLAMA_8B, [(999, 1, 1)])
    assert (step.weight_bytes, step.kv_bytes) == (15_009_316_864, 131_072_000)
    assert seconds(H100, step) == pytest.approx(0.002 + 15_140_388_864 / 2.01e12)


def test_the_header_rates_hold_what_a_second_tier_of_memory_needs() -> None:
    said = rates(PROFILES["h100-llama-3.1-8b"])
    assert said["kv_bytes"] == 131_072 and said["host_bandwidth"] == 64e9
    assert said["prefill_rate"] == prefill_rate(PROFILES["h100-llama-3.1-8b"])
    assert {"flops", "bandwidth", "efficiency", "overhead", "row", "kv_moves", "layers", "weight_bytes"} <= set(said)


def test_pages_that_do_not_fit_beside_the_weights_are_refused_with_the_numbers() -> None:
    with pytest.raises(ConfigError) as caught:
        config_from({"executor": "cost", "hardware": "l4-llama-3.1-8b", "pages": 4000, "page_size": 16})
    assert str(caught.value) == (
        "pages: KV for 4,000 x 16 tokens takes 8.4 GB; of the 24.0 GB of L4 the weights of Llama-3.1-8B leave 7.9 GB, so at most 3,786 pages fit"
    )
    assert EngineConfig(executor="cost", hardware="l4-llama-3.1-8b", pages=3786, page_size=16).pages == 3786
    assert EngineConfig(executor="puppet", hardware="l4-llama-3.1-8b", pages=4000, page_size=16).pages == 4000
    with pytest.raises(ValueError, match=r"weights of small leave 0.0 GB, so at most 21 pages fit"):
        Profile(SLOW, SMALL).check_room(22, 4)


def test_an_unknown_machine_is_refused_and_the_known_ones_named() -> None:
    with pytest.raises(ConfigError) as caught:
        config_from({"executor": "cost", "hardware": "h100"})
    assert str(caught.value) == f"hardware: must be measured (this machine, calibrated) or one of {', '.join(PROFILES)}; got 'h100'"
