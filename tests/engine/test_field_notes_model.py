"""The field notes' SAME trials on a real model: a random Llama in float32 against transformers' own answers.

Heads are cut at places that are no page's edge; every answer has twelve tokens or more, so that a wrong
page shows.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from engine import events as ev
from engine.loaded import LoadedModel
from tests.engine.driving import reference
from tests.engine.lab import Lab
from tests.engine.traffic import Case, cases

NEW = 12


def run_of(name: str) -> list[int]:
    """`A10+B3` as ids below the tiny vocabulary: each letter begins a fixed random row."""
    ids: list[int] = []
    for term in name.split("+"):
        row = random.Random(term[0])
        ids += [row.randrange(199) for _ in range(int(term[1:]))]
    return ids


class Llama(Lab):
    """A lab around the tiny model; prompts by name, answers held against transformers."""

    def __init__(self, loaded: LoadedModel, **config: Any) -> None:
        self.loaded, self.asked = loaded, dict[str, tuple[list[int], int]]()
        super().__init__(loaded=loaded, **({"pages": 64} | config))

    def put(self, id: str, name: str, new: int = NEW, **more: Any) -> None:
        """Submit a prompt by name."""
        self.asked[id] = (run_of(name), new)
        self.ask(id, run_of(name), new, **more)

    def answers_are_right(self) -> None:
        """Run to the end; every answer is what transformers says."""
        self.run()
        assert self.outputs == {id: reference(self.loaded, prompt, new) for id, (prompt, new) in self.asked.items()}
        assert self.idle()


@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_a1_a2_a_fully_cached_prompt_and_a_longer_one_say_the_same(tiny_llama: LoadedModel, page_size: int) -> None:
    lab = Llama(tiny_llama, page_size=page_size)
    for id, name in (("R1", "A16"), ("R2", "A16"), ("R3", "A16+C4")):
        lab.put(id, name)
        lab.run()
    lab.answers_are_right()
    assert lab.hit("R2") == {1: 15, 4: 12, 16: 0}[page_size] and lab.hit("R3") == 16


@pytest.mark.parametrize(("page_size", "head"), [(4, 4), (4, 10), (1, 10), (16, 21)])
def test_a3_a_shared_head_holds_under_contention(tiny_llama: LoadedModel, page_size: int, head: int) -> None:
    lab = Llama(tiny_llama, page_size=page_size, pages=400 // page_size)
    lab.put("R1", f"A{head}")
    lab.run()
    for i, letter in enumerate("BCDEFG", 2):
        lab.put(f"R{i}", f"A{head}+{letter}3")
    lab.answers_are_right()
    assert {lab.hit(f"R{i}") for i in range(2, 8)} == {head // page_size * page_size}


@pytest.mark.parametrize("page_size", [1, 4])
def test_a4_a_batch_that_starts_after_an_adopted_prefix_says_the_same(tiny_llama: LoadedModel, page_size: int) -> None:
    lab = Llama(tiny_llama, page_size=page_size, pages=256 // page_size)
    lab.put("R1", "A9+B1")
    lab.run()
    lab.put("R2", "A9+C2")
    lab.put("R3", "A9+D2")
    lab.answers_are_right()
    assert [lab.hit(r) for r in ("R2", "R3")] == [9 // page_size * page_size] * 2


def test_a5_rows_of_uneven_lengths_say_the_same(tiny_llama: LoadedModel) -> None:
    lab = Llama(tiny_llama, page_size=4)
    for id, name in (("R1", "A5"), ("R2", "B7"), ("R3", "C9")):
        lab.put(id, name)
    lab.answers_are_right()
    assert lab.events(ev.StepPlanned)[0].tokens == [5, 7, 9]


@pytest.mark.parametrize("page_size", [1, 4])
def test_a6_scattered_pages_say_the_same(tiny_llama: LoadedModel, page_size: int) -> None:
    lab = Llama(tiny_llama, page_size=page_size, pages=40)
    for id, name in (("R1", f"A{9 * page_size}"), ("R2", f"B{9 * page_size}"), ("R3", f"C{9 * page_size}"), ("R4", f"A{9 * page_size}")):
        lab.put(id, name, 1)
        lab.run()
    lab.put("R5", f"D{17 * page_size}+E2")
    lab.step()
    assert any(b != a + 1 for a, b in pairwise(lab.live("R5").pages))
    lab.answers_are_right()


@pytest.mark.parametrize("chunk", [None, 3])
@pytest.mark.parametrize("page_size", [1, 4])
def test_a7_requests_that_were_retracted_and_resumed_say_the_same(
    tiny_llama: LoadedModel, page_size: int, chunk: int | None
) -> None:
    lab = Llama(
        tiny_llama, page_size=page_size, pages=64 // page_size, chunk=chunk, mixed=chunk is not None, reserve_start=0.0, reserve_min=0.0
    )
    for id, name in (("R1", "A9"), ("R2", "B7"), ("R3", "A9+C2"), ("R4", "A5+D3")):
        lab.put(id, name, 20)
    lab.answers_are_right()
    assert lab.engine.totals.retractions > 0


@pytest.mark.parametrize("off_page_edge", [-1, 0, 1])
@pytest.mark.parametrize("page_size", [1, 4])
def test_a8_a_retraction_at_any_length_changes_no_token(tiny_llama: LoadedModel, page_size: int, off_page_edge: int) -> None:
    lab = Llama(tiny_llama, page_size=page_size)
    lab.put("R", "A6", 14)
    while not lab.engine.scheduler.running or lab.live("R").kv != 12 + off_page_edge:
        lab.step()
    lab.engine.scheduler._retract(lab.live("R"))
    lab.answers_are_right()


@pytest.mark.parametrize("cache", ["radix", "off"])
@pytest.mark.parametrize("chunk", [1, 2, 3, 4, 5])
def test_c6_a_chunk_changes_no_output(tiny_llama: LoadedModel, chunk: int, cache: str) -> None:
    lab = Llama(tiny_llama, page_size=4, chunk=chunk, cache=cache, mixed=chunk % 2 == 1)
    for id, name in (("R1", "A9+B2"), ("R2", "A9+C3"), ("R3", "A6")):
        lab.put(id, name)
    lab.answers_are_right()


def test_pages_swapped_between_two_running_requests_change_both_answers(tiny_llama: LoadedModel) -> None:
    lab = Lab(loaded=tiny_llama, pages=64, page_size=4, fold=False)
    for id in "AB":
        lab.ask(id, run_of(f"{id}16"), 16)
    lab.step()
    a, b = lab.live("A").pages, lab.live("B").pages
    a[1], b[1] = b[1], a[1]
    for _ in range(14):
        lab.engine._checker = None  # which would name the pages at once
        lab.step()
    for id in "AB":
        assert lab.out(id) != reference(tiny_llama, run_of(f"{id}16"), 16)[: len(lab.out(id))]


@pytest.mark.parametrize("page_size", [1, 2, 4, 16])
def test_random_traffic_says_what_transformers_says(tiny_llama: LoadedModel, page_size: int) -> None:
    @settings(max_examples=6, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(cases(page_size, grammars=False))
    def check(case: Case) -> None:
        lab = Lab(loaded=tiny_llama, **{k: v for k, v in case.config.items() if k != "executor"})
        prompts: dict[str, Sequence[int]] = {}
        for request in case.requests:
            asked = {k: v for k, v in request.items() if k != "says"}
            prompts[asked["id"]] = asked["prompt"]
            lab.engine.submit(**asked | {"max_new_tokens": min(asked["max_new_tokens"], 20)})
        lab.run()
        for id, out in lab.outputs.items():
            if out:
                assert out == reference(tiny_llama, prompts[id], 20)[: len(out)], id

    check()
