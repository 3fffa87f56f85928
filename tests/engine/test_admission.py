"""Admission, to the page: what a request needs, what there is, and which limit stops the queue."""

from __future__ import annotations

import math
from typing import Any

import pytest

from engine import events as ev
from engine.executor.puppet import PuppetExecutor
from tests.engine.lab import Lab


def admitted(lab: Lab, request: str) -> tuple[int, int]:
    """Pages needed and available, as told."""
    told = lab.events(ev.RequestAdmitted, request)[-1]
    return told.needed, told.available


def held(lab: Lab, request: str) -> list[tuple[str, int, int]]:
    """Which limits held it: name, needed, available."""
    return [(e.limit, e.needed, e.available) for e in lab.events(ev.RequestPassedOver, request)]


# --- pages: estimate and full ------------------------------------------------------------------


def test_alone_a_request_needs_its_prompt_and_one_more_token() -> None:
    lab = Lab(pages=3, page_size=4)
    lab.serve("R0", "A11", 100)
    assert admitted(lab, "R0") == (3, 3)


def test_beside_others_it_needs_its_share_of_what_it_may_say_and_leaves_them_theirs() -> None:
    lab = Lab(pages=100, page_size=4)
    lab.ask("R0", "A10", 20)
    lab.ask("R1", "B6", 30)
    lab.ask("R2", "C1", 10)
    lab.step()
    assert admitted(lab, "R0") == (3, 100)
    # R1: 6 + 0.7 x 30 = 27 tokens. R0 holds 3 pages and is kept 0.7 x 20 = 14 tokens, 4 pages.
    assert admitted(lab, "R1") == (7, 100 - 3 - 4)
    # R2: 1 + 7 tokens. R1 holds 2 pages and is kept 21 tokens, 6 pages.
    assert admitted(lab, "R2") == (2, 93 - 2 - 6)


def test_what_is_found_is_neither_needed_nor_available_once_it_is_locked() -> None:
    lab = Lab(pages=100, page_size=4)
    lab.serve("S", "A12")
    lab.ask("R0", "B4", 10)
    lab.ask("R1", "A12+C4", 10)
    lab.step()
    # 3 pages of A12 found, none in use: 4 + 7 tokens needed; R0 holds 1 page and is kept 2.
    assert admitted(lab, "R1") == (3, 100 - 3 - 1 - 2)
    lab.ask("R2", "A12+D4", 10)
    lab.step()
    # now the 3 pages are locked by R1 anyway, which holds one more and is kept 2 of its own
    assert admitted(lab, "R2") == (3, 100 - 3 - (1 + 2) - (1 + 2))


def test_beyond_4096_tokens_nothing_is_kept() -> None:
    lab = Lab(pages=5000)
    lab.ask("R0", "A8", 1_000_000)
    lab.ask("R1", "B8", 1_000_000)
    lab.step()
    kept = 0.7 * 4096
    assert held(lab, "R1") == [("pages", math.ceil(8 + kept), 5000 - 8 - math.ceil(kept))]


def test_full_admission_keeps_everything_that_may_be_said() -> None:
    lab = Lab(pages=60, admission="full")
    lab.ask("R0", "A8", 20)
    lab.ask("R1", "B8", 25)
    lab.step()
    assert held(lab, "R1") == [("pages", 33, 60 - 8 - 20)]
    lab.run()
    assert lab.engine.totals.retractions == 0
    assert admitted(lab, "R1") == (33, 33)  # the last token needs no slot


@pytest.mark.parametrize(("spare", "goes"), [(0, True), (-1, False)])
def test_a_request_goes_when_it_fits_to_the_page(spare: int, goes: bool) -> None:
    lab = Lab(pages=8 + 20 + 28 + spare, admission="full")
    lab.ask("R0", "A8", 20)
    lab.ask("R1", "B8", 20)
    lab.step()
    assert (lab.live("R1").status == "prefill" or lab.live("R1").status == "decode") is goes


def test_evictable_pages_are_available() -> None:
    lab = Lab(pages=40)
    lab.serve("S", "A30")
    assert lab.engine.pool.free == 10
    lab.serve("R", "B30", 2)
    assert admitted(lab, "R") == (31, 40)


# --- refused at arrival ------------------------------------------------------------------------


@pytest.mark.parametrize(("tokens", "refused"), [(15, None), (16, ("pages", 5, 4)), (40, ("pages", 11, 4))])
def test_a_prompt_that_leaves_no_room_for_one_token_is_refused(tokens: int, refused: tuple[str, int, int] | None) -> None:
    lab = Lab(pages=4, page_size=4)
    lab.ask("R", f"A{tokens}", 1)
    told = [(e.reason, e.needed, e.available) for e in lab.events(ev.RequestRefused)]
    assert told == ([refused] if refused else [])
    lab.run()
    assert lab.request("R").status == ("refused" if refused else "finished")


@pytest.mark.parametrize(("tokens", "refused"), [(15, []), (16, [("positions", 17, 16)])])
def test_a_prompt_beyond_the_models_positions_is_refused_in_tokens(tokens: int, refused: list[Any]) -> None:
    executor = PuppetExecutor(64, 4)
    executor.max_positions = 16
    lab = Lab(pages=64, page_size=4, executor=executor)
    lab.ask("R", f"A{tokens}", 9)
    assert [(e.reason, e.needed, e.available) for e in lab.events(ev.RequestRefused)] == refused
    lab.run()
    if not refused:
        assert lab.reasons == {"R": "capacity"} and len(lab.out("R")) == 1


# --- the other limits --------------------------------------------------------------------------


def test_the_budget_never_cuts_the_first_prompt_and_stops_the_next() -> None:
    lab = Lab(pages=100, prefill_budget=8)
    lab.ask("R0", "A20")
    lab.ask("R1", "B4")
    lab.run()
    assert [e.tokens for e in lab.events(ev.StepPlanned)] == [[20], [4]]
    assert held(lab, "R1") == [("budget", 4, 0)]


def test_the_budget_counts_what_is_computed_not_what_is_found() -> None:
    lab = Lab(pages=100, prefill_budget=8)
    lab.serve("S", "A30")
    for name, prompt in (("R0", "B5"), ("R1", "A30+C2"), ("R2", "D1"), ("R3", "E1")):
        lab.ask(name, prompt)
    lab.run()
    assert [e.tokens for e in lab.events(ev.StepPlanned)][1:] == [[5, 2, 1], [1]]
    assert held(lab, "R3") == [("budget", 1, 0)]


def test_the_running_cap_counts_requests() -> None:
    lab = Lab(pages=100, max_running=2)
    for name in "ABC":
        lab.ask(name, f"{name}4", 3)
    lab.run()
    assert held(lab, "C") == [("running cap", 3, 2)]
    assert max(len(e.members) for e in lab.events(ev.StepPlanned)) == 2


@pytest.mark.parametrize(("limit", "config", "big", "small"), [
    ("pages", {"pages": 64, "admission": "full"}, ("B8", 50), ("C2", 1)),
    ("budget", {"pages": 200, "prefill_budget": 16}, ("B12", 1), ("C2", 1)),
    ("chunk", {"pages": 200, "page_size": 4, "chunk": 10}, ("B12", 1), ("C2", 1)),
])  # fmt: skip
def test_nobody_passes_the_head_of_the_queue(
    limit: str, config: dict[str, Any], big: tuple[str, int], small: tuple[str, int]
) -> None:
    lab = Lab(**config)
    lab.ask("R0", "A8", 20)
    lab.ask("big", *big)
    lab.ask("small", *small)
    lab.step()
    assert [e[0] for e in held(lab, "big")] == [limit] and held(lab, "small") == []
    lab.run()
    assert [e.request for e in lab.events(ev.RequestAdmitted)] == ["R0", "big", "small"]


# --- chunks ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("page_size", "chunk", "prompt", "steps"), [
    (1, 8, 20, [8, 8, 4]), (4, 8, 22, [8, 8, 6]), (4, 6, 20, [4, 4, 4, 4, 4]), (4, 3, 9, [4, 4, 1]), (4, 100, 9, [9]), (16, 1, 40, [16, 16, 8]),
])  # fmt: skip
def test_chunks_are_whole_pages_at_least_one_unless_the_prompt_ends(
    page_size: int, chunk: int, prompt: int, steps: list[int]
) -> None:
    lab = Lab(pages=128 // page_size, page_size=page_size, chunk=chunk)
    lab.serve("R", f"A{prompt}")
    assert [sum(e.tokens) for e in lab.events(ev.StepPlanned)] == steps


def test_several_prompts_may_be_half_done_and_each_chunk_is_found_at_once() -> None:
    lab = Lab(pages=100, chunk=6, max_running=8)
    lab.ask("R0", "A8")
    lab.ask("R1", "B8")
    lab.step()
    lab.step()
    assert [lab.live(r).kv for r in ("R1",)] == [4] and lab.found("B8") == 4 and lab.found("A8") == 8
    lab.run()
    assert [(e.members, e.tokens) for e in lab.events(ev.StepPlanned)] == [(["R0"], [6]), (["R0", "R1"], [2, 4]), (["R1"], [4])]


@pytest.mark.parametrize(("decodes", "carried"), [(8, [56]), (5, [56, 3])])
def test_in_a_mixed_step_each_decode_counts_one_against_the_chunk(decodes: int, carried: list[int]) -> None:
    lab = Lab(pages=1000, chunk=64, mixed=True, max_running=16)
    for i in range(decodes):
        lab.ask(f"D{i}", f"{'ABCDEFGH'[i]}4", 50)
    lab.step()
    lab.ask("R1", "K56", 1)
    lab.ask("R2", "L3", 1)
    lab.step()
    plan = lab.events(ev.StepPlanned)[-1]
    assert (plan.mode, plan.tokens, plan.prefills) == ("mixed", carried + [1] * decodes, len(carried))
    assert held(lab, "R2") == ([("chunk", 1, 0)] if decodes == 8 else [])


def test_a_step_with_prefill_runs_prefill_only_unless_mixed() -> None:
    lab = Lab(pages=100)
    lab.ask("R0", "A4", 5)
    lab.ask("R1", "B4", 1, at_step=3)
    lab.run()
    assert [(e.mode, e.members) for e in lab.events(ev.StepPlanned)][:4] == [
        ("prefill", ["R0"]), ("decode", ["R0"]), ("prefill", ["R1"]), ("decode", ["R0"]),
    ]  # fmt: skip
