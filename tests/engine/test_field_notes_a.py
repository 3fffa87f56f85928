"""Field notes A: what a prefix cache gets wrong in the trade, as trials on the puppet."""

from __future__ import annotations

from itertools import pairwise

import pytest

from engine import events as ev
from tests.engine.lab import Lab, ids, outputs_of

HITS = {4: 4, 1: 7}

each_cache = pytest.mark.parametrize("cache", ["radix", "blocks"])


@each_cache
@pytest.mark.parametrize("page_size", HITS)
def test_a1_a_fully_cached_prompt_still_runs_its_last_token(page_size: int, cache: str) -> None:
    lab = Lab(cache=cache, pages=32 // page_size, page_size=page_size)
    first = lab.serve("R1", "A8")
    assert lab.serve("R2", "A8") == first
    assert (lab.hit("R2"), lab.new("R2")) == (HITS[page_size], 8 - HITS[page_size])
    assert Lab(pages=32, cache="off").serve("R2", "A8") == first


@each_cache
@pytest.mark.parametrize("page_size", HITS)
def test_a2_running_the_last_token_again_leaves_the_chain_whole(page_size: int, cache: str) -> None:
    lab = Lab(cache=cache, pages=32 // page_size, page_size=page_size)
    lab.serve("R1", "A8")
    lab.serve("R2", "A8")
    lab.serve("R3", "A8+C4")
    assert lab.hit("R3") == 8
    assert sum(n.count for n in lab.engine.cache.walk()) == 12
    assert lab.found("A8+C4") == 12


@each_cache
def test_a3_a_match_that_ends_on_a_page_edge_holds_under_contention(cache: str) -> None:
    later = [(f"R{i}", f"A4+X{c}3", 6) for i, c in enumerate("abcdef", 2)]
    lab = Lab(cache=cache, pages=24, page_size=4)
    lab.serve("R1", "A4")
    for asked in later:
        lab.ask(*asked)
    lab.run()
    assert [lab.hit(r) for r, *_ in later] == [4] * 6
    alone = outputs_of([("R1", "A4", 1), *later], pages=24, page_size=4, cache="off")
    assert lab.outputs == alone and all(len(lab.out(r)) == 6 for r, *_ in later)


@each_cache
@pytest.mark.parametrize("page_size", [1, 4])
def test_a4_requests_admitted_together_all_start_after_the_adopted_prefix(page_size: int, cache: str) -> None:
    asked = [("R1", "A8+B1", 1), ("R2", "A8+C2", 3), ("R3", "A8+D2", 3)]
    lab = Lab(cache=cache, pages=64 // page_size, page_size=page_size)
    lab.serve(*asked[0])
    lab.ask(*asked[1])
    lab.ask(*asked[2])
    lab.run()
    plan = next(e for e in lab.events(ev.StepPlanned) if set(e.members) == {"R2", "R3"})
    assert plan.tokens == [2, 2]
    assert [lab.events(ev.RequestAdmitted, r)[0].length for r in ("R2", "R3")] == [8, 8]
    assert [lab.new(r) for r in ("R2", "R3")] == [2, 2]
    assert lab.outputs == outputs_of(asked, pages=64, cache="off") == outputs_of(asked, pages=64, max_running=1)


def test_a5_every_row_of_a_batch_reads_its_own_slots() -> None:
    asked = [("R1", "A5", 4), ("R2", "B7", 4), ("R3", "C9", 4)]
    batch = Lab(pages=16, page_size=4)
    for one in asked:
        batch.ask(*one)
    batch.run()
    assert batch.events(ev.StepPlanned)[0].tokens == [5, 7, 9]
    alone = {r: Lab(pages=16, page_size=4).serve(r, prompt, new) for r, prompt, new in asked}
    assert batch.outputs == alone


@each_cache
@pytest.mark.parametrize("page_size", [1, 4])
def test_a6_a_requests_slots_need_not_be_consecutive(page_size: int, cache: str) -> None:
    lab = Lab(cache=cache, pages=12, page_size=page_size)
    for name, prompt in (("A", "A{n}"), ("B", "B{n}"), ("C", "C{n}"), ("A again", "A{n}")):
        lab.serve(name, prompt.format(n=4 * page_size))
    lab.ask("R", f"D{7 * page_size}", 3)
    lab.step()
    pages = lab.live("R").pages
    assert any(b != a + 1 for a, b in pairwise(pages)), pages
    lab.run()
    assert lab.out("R") == Lab(cache=cache, pages=12, page_size=page_size).serve("R", f"D{7 * page_size}", 3)


@each_cache
def test_a7_a_resumed_request_plans_its_length_less_what_is_found_now(cache: str) -> None:
    asked = [("R1", "A8", 12), ("R2", "B8", 12)]
    lab = Lab(cache=cache, pages=6, page_size=4, reserve_start=0.0, reserve_min=0.0)
    for one in asked:
        lab.ask(*one)
    lab.run()
    assert lab.events(ev.RequestRetracted)
    resumed = [e for e in lab.events(ev.RequestAdmitted) if not e.first]
    assert resumed
    for admitted in resumed:
        plan = next(e for e in lab.events(ev.StepPlanned) if e.seq > admitted.seq)
        outputs = [e.outputs for e in lab.events(ev.RequestRetracted, admitted.request) if e.seq < admitted.seq][-1]
        assert plan.tokens[plan.members.index(admitted.request)] == 8 + outputs - admitted.length
    assert lab.outputs == outputs_of(asked, pages=60, page_size=4)


@each_cache
@pytest.mark.parametrize("page_size", [1, 4])
@pytest.mark.parametrize("off_page_edge", [-1, 0, 1])
@pytest.mark.parametrize("store", [True, False])
def test_a8_no_token_is_lost_or_repeated_over_a_retraction(page_size: int, off_page_edge: int, store: bool, cache: str) -> None:
    lab = Lab(cache=cache, pages=64, page_size=page_size)
    lab.ask("R", "A6", 12, store=store)
    while not lab.engine.scheduler.running or lab.live("R").kv != 12 + off_page_edge:
        lab.step()
    produced = len(lab.out("R"))
    lab.engine.scheduler._retract(lab.live("R"))
    assert lab.live("R").pages == [] and len(lab.live("R").output) == produced
    lab.run()
    assert lab.out("R") == lab.request("R").output == Lab(cache=cache, pages=64).serve("R", "A6", 12)
    told = [i for e in lab.events(ev.StepFinished) for i in e.ids]
    assert told == lab.out("R")


def test_a9_the_last_prompt_token_keeps_its_slot_or_is_remapped_before_the_next_forward() -> None:
    lab = Lab(pages=32)
    lab.serve("R1", "A8")
    lab.ask("R2", "A8", 4)
    slots = []
    while lab.step():
        if "R2" not in lab.reasons:
            slots.append(lab.live("R2").pages[7])
    first = lab.events(ev.PageAllocated)[-4].pages[0]
    remapped = lab.events(ev.RequestRemapped, "R2")
    assert [(e.start, e.old, e.new) for e in remapped] == [(7, [first], [slots[0]])]
    assert remapped[0].seq < [e.seq for e in lab.events(ev.StepPlanned)][-3]
    assert slots == [7, 7, 7]


@pytest.mark.parametrize(("page_size", "hit"), [(16, 0), (1, 10)])
def test_a10_tokens_that_match_but_fill_no_page_are_told(page_size: int, hit: int) -> None:
    lab = Lab(pages=128 // page_size, page_size=page_size)
    lab.serve("R1", "A20")
    lab.serve("R2", "A10+B4")
    assert lab.hit("R2") == hit
    told = lab.events(ev.RequestMatched, "R2")[0]
    assert (told.raw_length, told.length) == (10, hit)
    assert (told.stop, told.stored, told.wanted) == ("page" if page_size > 1 else "parted", ids("A11")[10], ids("B1")[0])


@each_cache
def test_a11_a_long_shared_head_is_reused_whatever_the_tail(cache: str) -> None:
    lab = Lab(cache=cache, pages=32, page_size=4)
    lab.serve("R1", "A40+B3")
    lab.serve("R2", "A40+C3")
    assert lab.hit("R2") == 40


@each_cache
def test_a17_the_same_tokens_in_other_namespaces_share_nothing(cache: str) -> None:
    lab = Lab(cache=cache, pages=64)
    spaces = [None, (None, "x", None), (None, "x, reloaded", None), ("salt", None, None)]
    for i, ns in enumerate(spaces):
        lab.serve(f"R{i}", "A8", namespace=ns)
    assert [lab.hit(f"R{i}") for i in range(4)] == [0, 0, 0, 0]
    roots = [n for n in lab.engine.cache.walk() if n.parent.id == ev.ROOT]
    assert [n.ns for n in sorted(roots, key=lambda n: n.id)] == spaces
    assert len({tuple(lab.out(f"R{i}")) for i in range(4)}) == 4


@each_cache
def test_a18_pictures_that_share_their_placeholders_share_only_what_lies_before_them(cache: str) -> None:
    lab = Lab(pages=64, cache=cache)
    for name, content in (("R1", "k1"), ("R2", "k2"), ("R3", "k1")):
        lab.serve(name, "A4+I3+B2", 2, namespace=(None, None, content), content_at=4)
    assert [lab.hit(r) for r in ("R1", "R2", "R3")] == [0, 4, 8]
    assert lab.out("R1") == lab.out("R3") != lab.out("R2")
    parted = lab.events(ev.RequestMatched, "R2")[0]
    assert parted.raw_length == 4 and parted.wanted == ids("I3")[0]


@pytest.mark.parametrize("page_size", [1, 2, 4])
def test_a18_with_pages_too_and_beside_a_prompt_without_a_picture(page_size: int) -> None:
    lab = Lab(pages=64 // page_size, page_size=page_size)
    asked = {"plain": {}, "k1": {"namespace": (None, None, "k1"), "content_at": 4}, "salted": {"namespace": ("s", None, "k1"), "content_at": 4}}
    for name, more in asked.items():
        lab.serve(name, "A4+I3+B9", 2, **more)
        lab.serve(f"{name} again", "A4+I3+B9", 2, **more)
    assert [lab.hit(name) for name in asked] == [0, 4, 0]
    assert [lab.hit(f"{name} again") for name in asked] == [15 // page_size * page_size] * 3
    assert len({tuple(lab.out(name)) for name in asked}) == 3


@each_cache
def test_a18_pictures_with_ids_of_their_own_share_the_head_before_them(cache: str) -> None:
    """Where each picture's placeholders are ids made from its key, the tree itself tells them apart: 0, 4, 8."""
    lab = Lab(cache=cache, pages=64)
    for name, picture in (("R1", "Pa3"), ("R2", "Pb3"), ("R3", "Pa3")):
        lab.serve(name, f"A4+{picture}+B2")
    assert [lab.hit(r) for r in ("R1", "R2", "R3")] == [0, 4, 8]


@each_cache
def test_a19_with_room_for_two_prompts_the_first_is_still_there_after_the_second(cache: str) -> None:
    lab = Lab(cache=cache, pages=64)
    for name, prompt in (("R1", "A12"), ("R2", "B12"), ("R3", "A12")):
        lab.serve(name, prompt)
    assert [lab.hit(r) for r in ("R1", "R2", "R3")] == [0, 0, 11]


def test_a19_a_cache_that_is_off_says_so() -> None:
    lab = Lab(pages=64, cache="off")
    lab.serve("R1", "A12")
    lab.serve("R2", "A12")
    assert [e.stop for e in lab.events(ev.RequestMatched)] == ["off", "off"]
    assert lab.hit("R2") == 0 and lab.trace.header.config["cache"] == "off"


@each_cache
@pytest.mark.parametrize("page_size", [1, 4])
def test_a20_a_growing_chat_pays_only_for_what_is_new(page_size: int, cache: str) -> None:
    lab = Lab(cache=cache, pages=512 // page_size, page_size=page_size)
    ours, theirs = ids("A3"), ids("A3")
    for turn in range(8):
        ours += ids(f"M{chr(97 + turn)}5")
        theirs += ids(f"T{chr(97 + turn)}7")
        known = lab.found(ours[:-1])
        ours += lab.serve(f"ours {turn}", ours, 4)
        theirs += lab.serve(f"theirs {turn}", theirs, 4)
        if turn:
            assert lab.hit(f"ours {turn}") == known == (8 + 9 * (turn - 1) + 3) // page_size * page_size
            assert lab.new(f"ours {turn}") < 5 + 1 + page_size


@each_cache
def test_a21_streaming_finds_what_not_streaming_finds(cache: str) -> None:
    lab = Lab(cache=cache, pages=64)
    lab.serve("R1", "A8+B2", 2)
    for name in ("S1", "S2"):
        assert list(lab.engine.stream(ids("A8+C2"), id=name, max_new_tokens=2)) == []
    lab.serve("R2", "A8+C2", 2)
    assert [lab.hit(r) for r in ("S1", "S2", "R2")] == [8, 9, 9]


@each_cache
def test_a22_a_page_that_serves_others_is_no_longer_found_under_its_old_tokens(cache: str) -> None:
    lab = Lab(cache=cache, pages=6, page_size=4)
    lab.serve("R1", "A12")
    lab.serve("R2", "B23")
    assert lab.found("A12") == 0 and lab.found("B20") == 20
    assert lab.serve("R3", "A12") == lab.out("R1") and lab.hit("R3") == 0
