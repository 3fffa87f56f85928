"""The model executor: float32 equals transformers token for token, whatever the pages and the batch."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Qwen3Config, Qwen3ForCausalLM

from engine.executor.llama_forward import LlamaForward
from engine.executor.model import ModelExecutor
from engine.executor.transformers_forward import TransformersForward
from engine.failures import ModelError
from engine.loaded import LoadedModel
from engine.sampling import LogitsError
from tests.engine.driving import Driver, explain, prompts, reference, reference_logits
from tests.engine.tiny import TINY, accepted

LENGTHS = (37, 5, 61, 1, 16, 33, 48, 90)
NEW = 14


@pytest.fixture(params=["tiny_llama", "tiny_qwen2"])
def tiny(request: pytest.FixtureRequest) -> LoadedModel:
    """Both tiny models in turn."""
    loaded: LoadedModel = request.getfixturevalue(request.param)
    return loaded


def check(loaded: LoadedModel, page_size: int, batch: int, cuts: tuple[int, ...], new: int = NEW) -> None:
    """Outputs of the executor equal the reference's."""
    asked = prompts(loaded, LENGTHS[:batch])
    driver = Driver(ModelExecutor(loaded, 1024 // page_size, page_size))
    got = driver.finish([driver.start(p, f"R{i}") for i, p in enumerate(asked)], new, cuts)
    for prompt, answer in zip(asked, got, strict=True):
        wanted = reference(loaded, prompt, new)
        assert answer == wanted, explain(loaded, prompt, wanted, answer)


@pytest.mark.parametrize("forward", [LlamaForward, TransformersForward])
@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_tiny_models_say_what_transformers_says(
    tiny: LoadedModel, page_size: int, batch: int, forward: type[LlamaForward] | type[TransformersForward]
) -> None:
    served = replace(tiny, forward=forward(tiny.model))
    check(served, page_size, batch, ())
    check(served, page_size, batch, (7, 19, 20, 47))


@pytest.mark.parametrize(("page_size", "batch"), [(1, 8), (4, 1), (16, 8)])
def test_the_embedded_model_says_what_transformers_says(embedded: LoadedModel, page_size: int, batch: int) -> None:
    assert embedded.forward.name == "own"
    check(embedded, page_size, batch, (3, 29), new=24)


@pytest.mark.parametrize("cut", [1, 31, 127, 130, 400])
def test_a_suffix_on_cached_pages_has_the_whole_prompts_logits(tiny: LoadedModel, cut: int) -> None:
    prompt = prompts(tiny, [431])[0]
    driver = Driver(ModelExecutor(tiny, 128, 4))
    request = driver.start(prompt)
    driver.run([driver.row(request, cut)])
    logits, _ = driver.executor.logits([driver.row(request, 431)])
    wanted = reference_logits(tiny, prompt)[-1]
    assert (logits[0] - wanted).abs().max() < 1e-3


def test_another_requests_pages_serve_a_shared_prefix(tiny: LoadedModel) -> None:
    first, tail, other = prompts(tiny, [24, 9, 13])
    driver = Driver(ModelExecutor(tiny, 64, 4))
    one = driver.start(first + tail, "one")
    driver.finish([one], NEW)
    two = driver.start(first + other, "two", shared=one.pages[:6])
    two.kv = 24
    assert driver.finish([two], NEW) == [reference(tiny, first + other, NEW)]


def test_prefill_and_decode_in_one_step_leave_each_other_alone(tiny: LoadedModel) -> None:
    old, new = prompts(tiny, [21, 34])
    driver = Driver(ModelExecutor(tiny, 256, 1))
    a, b = driver.start(old, "a"), driver.start(new, "b")
    driver.finish([a], 5)
    driver.run([driver.row(a, a.size), driver.row(b, 11)])
    driver.run([driver.row(b, b.size), driver.row(a, a.size)])
    assert driver.finish([a, b], NEW) == [reference(tiny, old, NEW), reference(tiny, new, NEW)]


def test_swapped_pages_change_the_answer(tiny: LoadedModel) -> None:
    """The negative control: were this to pass unseen, no exactness test here would mean anything.

    The pages are swapped between two requests: within one, full pages may stand in any order, because
    keys carry their position and attention is a sum.
    """
    asked = prompts(tiny, [40, 40])
    driver = Driver(ModelExecutor(tiny, 64, 4))
    a, b = (driver.start(p, name) for p, name in zip(asked, "ab", strict=True))
    driver.run([driver.row(a, 33), driver.row(b, 33)])
    a.pages[2], b.pages[2] = b.pages[2], a.pages[2]
    got = driver.finish([a, b], NEW)
    assert all(answer != reference(tiny, p, NEW) for answer, p in zip(got, asked, strict=True))


@pytest.mark.parametrize("forward", [LlamaForward, TransformersForward])
def test_what_unused_slots_hold_is_never_seen(
    tiny: LoadedModel, forward: type[LlamaForward] | type[TransformersForward]
) -> None:
    served = replace(tiny, forward=forward(tiny.model))
    seen = []
    for fill in (0.0, 3e4, -7e5):
        driver = Driver(ModelExecutor(served, 128, 4, fill=fill))
        requests = [driver.start(p, f"R{i}") for i, p in enumerate(prompts(tiny, [23, 6, 50]))]
        driver.run([driver.row(r, r.size) for r in requests])
        logits = [driver.executor.logits([driver.row(r, r.size) for r in requests])[0]]
        late = driver.start(prompts(tiny, [30], seed=9)[0], "late")
        driver.run([driver.row(late, 13)])
        logits.append(driver.executor.logits([driver.row(late, 30)])[0])
        seen.append(torch.cat(logits))
    assert torch.equal(seen[0], seen[1])
    assert torch.equal(seen[0], seen[2])


def test_plain_attention_says_the_same(tiny: LoadedModel) -> None:
    check(replace(tiny, plain=True), 4, 8, (7, 20))


@pytest.mark.parametrize("kind", ["gpt2", "qwen3"])
def test_other_architectures_run_as_transformers_wrote_them(kind: str) -> None:
    torch.manual_seed(3)
    if kind == "gpt2":
        config = GPT2Config(
            vocab_size=199, n_positions=512, n_embd=64, n_layer=3, n_head=4, initializer_range=0.4,
            bos_token_id=None, eos_token_id=None,
        )  # fmt: skip
        loaded = accepted(GPT2LMHeadModel(config), kind)
    else:
        loaded = accepted(Qwen3ForCausalLM(Qwen3Config(**TINY)), kind)
    assert loaded.forward.name == "transformers"
    check(loaded, 4, 8, (7, 20))


def test_own_forward_and_transformers_forward_agree(embedded: LoadedModel) -> None:
    prompt = prompts(embedded, [70])[0]
    found = []
    for forward in (embedded.forward, TransformersForward(embedded.model)):
        driver = Driver(ModelExecutor(replace(embedded, forward=forward), 80, 1))
        found.append(driver.executor.logits([driver.row(driver.start(prompt), 70)])[0])
    assert (found[0] - found[1]).abs().max() < 1e-3


def test_padding_of_the_vocabulary_is_never_sampled(tiny_qwen2: LoadedModel) -> None:
    """E19: 100 ids, 199 logits, and the model prefers an id beyond the vocabulary."""
    narrow = replace(tiny_qwen2, vocab_size=100)
    driver = Driver(ModelExecutor(narrow, 512, 1))
    asked = prompts(narrow, [12] * 6)
    greedy = driver.finish([driver.start(p, f"G{i}") for i, p in enumerate(asked[:3])], 20)
    hot = [driver.start(p, f"H{i}", temperature=5.0, seed=i) for i, p in enumerate(asked[3:])]
    assert max(map(max, greedy + driver.finish(hot, 20))) < 100
    assert any(max(reference(tiny_qwen2, p, 20)) >= 100 for p in asked[:3])


def test_seeded_draws_do_not_depend_on_the_batch(tiny: LoadedModel) -> None:
    asked = prompts(tiny, LENGTHS)
    settings = {"temperature": 0.8, "top_p": 0.9, "max_new_tokens": NEW}
    together = Driver(ModelExecutor(tiny, 512, 1))
    batch = together.finish([together.start(p, f"R{i}", seed=i, **settings) for i, p in enumerate(asked)], NEW)
    for i, prompt in enumerate(asked):
        alone = Driver(ModelExecutor(tiny, 128, 4))
        assert alone.finish([alone.start(prompt, "R", seed=i, **settings)], NEW, (9,)) == [batch[i]]


def test_logprobs_are_those_of_the_reference(tiny: LoadedModel) -> None:
    prompt = prompts(tiny, [20])[0]
    driver = Driver(ModelExecutor(tiny, 64, 1))
    sampled = driver.executor.execute([driver.row(driver.start(prompt, logprobs=3), 20)]).rows[0]
    wanted = reference_logits(tiny, prompt)[-1].log_softmax(0)
    assert sampled is not None and sampled.top is not None and len(sampled.top) == 3
    assert sampled.token == sampled.top[0][0] == int(wanted.argmax())
    assert sampled.logprob == pytest.approx(float(wanted.max()), abs=1e-3)


def test_logits_that_are_no_numbers_fail_the_step(tiny: LoadedModel) -> None:
    driver = Driver(ModelExecutor(tiny, 64, 1, fill=float("nan")))
    request = driver.start(prompts(tiny, [20])[0])
    driver.row(request, 20)
    request.kv = 10  # claims ten tokens that were never computed
    with pytest.raises(LogitsError, match="not finite"):
        driver.run([driver.row(request, 20)])


def test_a_pool_that_does_not_fit_is_refused_with_what_would(tiny: LoadedModel) -> None:
    assert tiny.kv_bytes_per_token == 3 * 2 * 2 * 16 * 4
    with pytest.raises(ModelError, match=r"at most [\d,]+ tokens"):
        ModelExecutor(tiny, 10**12, 1)
