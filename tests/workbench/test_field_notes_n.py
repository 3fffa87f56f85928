"""Field notes N1 and N4: does a cached prefix, or company in the batch, change a greedy answer?

In float32 it does not. In bfloat16 it may, at near ties; then the comparison says where, and how near a tie
it was. How many flips a machine shows is its own business.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from engine.executor.model import ModelExecutor
from engine.loaded import LoadedModel
from tests.engine.tiny import TINY, accepted
from workbench.compare import Comparison, compare
from workbench.runner import run
from workbench.scenario import Scenario, parse

PROMPTS = 40
NEW = 12
COLD_COLD_WARM = [("cold", {"engine.cache": "off"}), ("cold again", {"engine.cache": "off"}), ("warm", {})]


@pytest.fixture(scope="module")
def tiny_bfloat16() -> LoadedModel:
    """A random Llama whose logits lie close together: near ties are common, as they are in no trained model."""
    torch.manual_seed(1)
    config = LlamaConfig(**TINY | {"initializer_range": 0.02, "vocab_size": 4000})
    return accepted(LlamaForCausalLM(config).to(torch.bfloat16), "tiny-llama-bfloat16")


def texts(count: int) -> list[list[int]]:
    """Prompts on a few shared heads, cut at no page's edge."""
    draw = random.Random(5)
    heads = [[draw.randrange(199) for _ in range(37)] for _ in range(5)]
    return [heads[i % 5] + [draw.randrange(199) for _ in range(3 + i % 9)] for i in range(count)]


def put(
    prompts: list[list[int]], loaded: LoadedModel, arms: list[tuple[str, dict[str, Any]]], **engine: Any
) -> Comparison:
    return compare(asked(prompts, loaded, **engine), arms, loaded=loaded, check=True)[0]


def asked(prompts: list[list[int]], loaded: LoadedModel, **engine: Any) -> Scenario:
    """Every prompt is put twice: with a cache, the second finds what the first has stored."""
    first = [{"id": f"first {i}", "tokens": p, "max_new_tokens": 0} for i, p in enumerate(prompts)]
    second = [
        {"id": f"R{i}", "tokens": p, "max_new_tokens": NEW, "ignore_eos": True, "after": f"first {i}"}
        for i, p in enumerate(prompts)
    ]
    dtype = str(loaded.dtype).removeprefix("torch.")
    data = {
        "engine": {"executor": "model", "device": "cpu", "dtype": dtype, "pages": 1000, "page_size": 4, **engine},
        "requests": first + second,
    }
    return parse(data)


def flips(result: Comparison) -> set[str]:
    """The requests whose answers are not the same in every arm."""
    outputs = [{r.id: r.output_ids for r in arm.report.requests} for arm in result.arms]
    return {name for name in outputs[0] if any(o[name] != outputs[0][name] for o in outputs)}


def says_where(result: Comparison) -> None:
    """A comparison tells of a difference exactly when there is one: at which token, and how near a tie it was."""
    apart, first = flips(result), result.first_difference
    assert result.outputs_equal is (not apart) is (first is None)
    if first is None:
        return
    assert first.request in apart and len(first.ids) == len(result.arms) and len(set(first.ids)) > 1
    outputs = [next(r.output_ids for r in arm.report.requests if r.id == first.request) for arm in result.arms]
    assert all(o[: first.position] == outputs[0][: first.position] for o in outputs)
    assert [o[first.position] for o in outputs] == first.ids
    assert first.gap is not None and first.gap >= 0


def test_n1_in_float32_no_answer_flips_between_cold_cold_and_warm(tiny_llama: LoadedModel) -> None:
    result = put(texts(PROMPTS), tiny_llama, COLD_COLD_WARM)
    assert flips(result) == set() and result.outputs_equal and result.first_difference is None
    cached = [arm.report.totals.cached_tokens for arm in result.arms]
    assert cached[:2] == [0, 0] and cached[2] > PROMPTS * 36


def test_n1_in_bfloat16_a_flip_is_told_with_the_gap_of_the_two_best_at_the_first(tiny_bfloat16: LoadedModel) -> None:
    result = put(texts(PROMPTS), tiny_bfloat16, COLD_COLD_WARM)
    says_where(result)
    assert result.arms[0].report.header.dtype == "bfloat16"


COMPANY = [("alone", {"engine.max_running": 1}), ("with 7 others", {"engine.max_running": 8})]


@pytest.mark.parametrize("cache", ["radix", "off"])
def test_n4_in_float32_company_changes_no_answer(tiny_llama: LoadedModel, cache: str) -> None:
    result = put(texts(8), tiny_llama, COMPANY, cache=cache)
    assert result.outputs_equal
    alone, together = (arm.report.totals.steps for arm in result.arms)
    assert alone > 5 * together


def test_n4_in_bfloat16_a_difference_that_company_makes_is_reported(tiny_bfloat16: LoadedModel) -> None:
    says_where(put(texts(8), tiny_bfloat16, COMPANY, cache="off"))


def test_n4_noise_that_comes_with_company_is_reported(tiny_llama: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a device whose sums depend on the batch."""
    logits = ModelExecutor.logits

    def noisy(self: ModelExecutor, rows: list[Any]) -> Any:
        found, order = logits(self, rows)
        draw = torch.Generator().manual_seed(len(rows))
        return found + torch.randn(found.shape[-1], generator=draw), order

    monkeypatch.setattr(ModelExecutor, "logits", noisy)
    result = put(texts(8), tiny_llama, COMPANY, cache="off")
    assert not result.outputs_equal
    says_where(result)


def test_n4_one_at_a_time_gives_equality_in_any_dtype(tiny_bfloat16: LoadedModel) -> None:
    """Alone in its steps, a request meets the same products however many wait beside it."""
    prompts = texts(8)
    together = answers(prompts, tiny_bfloat16)
    for i in (0, 3, 7):
        assert answers([prompts[i]], tiny_bfloat16)["R0"] == together[f"R{i}"]


def answers(prompts: list[list[int]], loaded: LoadedModel) -> dict[str, list[int]]:
    """What is said to each prompt, one at a time."""
    engine = {"max_running": 1, "cache": "off"}
    return {r.id: r.output_ids for r in run(asked(prompts, loaded, **engine), loaded=loaded).report.requests}
