"""The whole engine says what transformers says, token for token, in float32: with the cache on and off, at
page sizes 1, 4 and 16, alone and in batches, in chunks, through retraction, and at cuts that are no multiple
of 16."""

from __future__ import annotations

import random
from typing import Any

import pytest

from engine import Engine, EngineConfig
from engine.loaded import LoadedModel
from tests.engine.driving import explain, reference

NEW = 12
HEAD = 37
"""Shared prompt tokens: no multiple of 4 or 16."""


def prompts(count: int, vocabulary: int, seed: int = 0, head: int = HEAD) -> list[list[int]]:
    """`count` prompts that share `head` tokens and go on for 3 to 20 of their own."""
    rng = random.Random(seed)
    shared = [rng.randrange(3, vocabulary) for _ in range(head)]
    return [shared + [rng.randrange(3, vocabulary) for _ in range(3 + 7 * i % 18)] for i in range(count)]


def serve(loaded: LoadedModel, asked: list[list[int]], rounds: int = 2, new: int = NEW, **knobs: Any) -> tuple[Engine, list[list[int]]]:
    """All prompts at once, `rounds` times over; the output ids of the last round."""
    engine = Engine(config=EngineConfig(executor="model", **knobs), loaded=loaded, check=True)
    out: dict[str, list[int]] = {}
    for _ in range(rounds):
        names = [engine.submit(p, max_new_tokens=new, ignore_eos=True) for p in asked]
        for progress in iter(engine.step, None):
            for p in progress:
                out.setdefault(p.request, []).extend(p.ids)
    return engine, [out[name] for name in names]


def same(loaded: LoadedModel, prompt: list[int], output: list[int]) -> None:
    """The output is the reference's, id for id; a difference is told with its top-two gap."""
    wanted = reference(loaded, prompt, len(output))
    assert output == wanted, explain(loaded, prompt, wanted, output)


@pytest.fixture(params=["tiny_llama", "tiny_qwen2"])
def tiny(request: pytest.FixtureRequest) -> LoadedModel:
    loaded: LoadedModel = request.getfixturevalue(request.param)
    return loaded


@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("page_size", [1, 4, 16])
@pytest.mark.parametrize("kind", ["radix", "blocks", "off"])
def test_a_tiny_model_is_served_exactly(tiny: LoadedModel, kind: str, page_size: int, batch: int) -> None:
    asked = prompts(8, tiny.vocab_size)
    engine, said = serve(tiny, asked, cache=kind, page_size=page_size, pages=1600 // page_size, max_running=batch)
    for prompt, output in zip(asked, said, strict=True):
        same(tiny, prompt, output)
    assert (engine.totals.cached_tokens > 0) == (kind != "off")


@pytest.mark.parametrize("chunk", [1, 5, 16, 23])
@pytest.mark.parametrize("mixed", [False, True])
def test_chunks_change_nothing(tiny: LoadedModel, chunk: int, mixed: bool) -> None:
    asked = prompts(5, tiny.vocab_size, seed=1)
    _, said = serve(tiny, asked, page_size=4, pages=400, chunk=chunk, mixed=mixed, max_running=4)
    for prompt, output in zip(asked, said, strict=True):
        same(tiny, prompt, output)


@pytest.mark.parametrize(("cache", "page_size"), [("radix", 1), ("radix", 4), ("blocks", 4)])
def test_retraction_changes_nothing(tiny: LoadedModel, cache: str, page_size: int) -> None:
    asked = prompts(6, tiny.vocab_size, seed=2, head=5)
    engine, said = serve(
        tiny, asked, new=30, cache=cache, page_size=page_size, pages=120 // page_size, max_running=6, reserve_start=0.0, reserve_min=0.0
    )  # fmt: skip
    assert engine.totals.retractions > 0
    for prompt, output in zip(asked, said, strict=True):
        same(tiny, prompt, output)


@pytest.mark.parametrize("order", ["tail-first", "head-first"])
def test_blocks_that_leave_and_come_again_change_nothing(tiny: LoadedModel, order: str) -> None:
    """Room for little more than one prompt: what is found is now a beginning, now nothing."""
    asked = prompts(6, tiny.vocab_size, seed=5)
    engine, said = serve(tiny, asked, cache="blocks", block_order=order, page_size=4, pages=24, max_running=2)
    assert engine.totals.evictions > 0
    for prompt, output in zip(asked, said, strict=True):
        same(tiny, prompt, output)


def test_a_wrong_page_would_be_seen(tiny: LoadedModel) -> None:
    """The control: a cached page changes places with another sequence's, and the answers are the reference's no more.

    Two pages of one sequence would not do: keys carry their positions, so attention to both is the same sum.
    """
    asked, other = prompts(4, tiny.vocab_size, seed=3), prompts(1, tiny.vocab_size, seed=4)[0]
    engine = Engine(config=EngineConfig(executor="model", page_size=4, pages=400), loaded=tiny)
    for prompt in (asked[0], other):
        engine.submit(prompt, max_new_tokens=0)
    while engine.step() is not None:
        pass
    first, second = engine.cache.walk()
    first.pages[2], second.pages[2] = second.pages[2], first.pages[2]
    out: dict[str, list[int]] = {}
    names = [engine.submit(p, max_new_tokens=NEW, ignore_eos=True) for p in asked]
    for progress in iter(engine.step, None):
        for p in progress:
            out.setdefault(p.request, []).extend(p.ids)
    assert all(out[n] != reference(tiny, p, NEW) for n, p in zip(names, asked, strict=True))


@pytest.mark.model
@pytest.mark.parametrize(("kind", "page_size", "batch"), [("radix", 1, 8), ("radix", 4, 1), ("radix", 16, 8), ("off", 4, 8)])
def test_the_embedded_model_is_served_exactly(embedded: LoadedModel, kind: str, page_size: int, batch: int) -> None:
    asked = text_prompts(embedded)
    engine, said = serve(embedded, asked, cache=kind, page_size=page_size, pages=1600 // page_size, max_running=batch)
    for prompt, output in zip(asked, said, strict=True):
        same(embedded, prompt, output)
    assert (engine.totals.cached_tokens > 0) == (kind == "radix")


def text_prompts(loaded: LoadedModel) -> list[list[int]]:
    """Eight short texts on one opening: 40 to 60 tokens, no multiple of 16 shared."""
    assert loaded.tokenizer is not None
    opening = "The lighthouse keeper wrote in his log every evening, about the weather, the ships and the birds. Tonight he wrote about "
    return [loaded.tokenizer.encode(opening + end) for end in _ENDINGS]


_ENDINGS = ("the storm", "a whale", "two lost sailors who", "nothing but", "the moon and", "his sister in", "a letter that came", "rain")
