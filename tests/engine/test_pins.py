"""Pins: a stored prompt that is held for a number of steps, within a budget, and gives way before work does."""

from __future__ import annotations

from typing import Any

import pytest

from engine import events as ev
from engine.asking import SubmitError
from engine.cache.pins import budget
from tests.engine.grove import Asker, Grove
from tests.engine.lab import Lab, ids

BOTH = pytest.mark.parametrize("kind", ["radix", "blocks"])


def told(grove: Grove) -> list[tuple[int, int, int]]:
    """What was said of pins: node, until, refused."""
    return [(e.node, e.until, e.refused) for e in grove.trace._open if isinstance(e, ev.NodePinned)]


def pin(grove: Grove, tokens: list[int], until: int) -> Any:
    from engine.cache.base import pack

    return grove.cache.pin(pack(tokens), None, until, Asker())


def pins(grove: Grove) -> dict[int, int]:
    return {n.id: n.pins for n in grove.cache.walk() if n.pins}


# --- the cache by itself -----------------------------------------------------------------------


@BOTH
def test_what_is_pinned_is_neither_evictable_nor_evicted(kind: str) -> None:
    grove = Grove(2, kind, pin_budget=10)
    grove.insert([1, 2, 3, 4])
    grove.insert([7, 8])
    pin(grove, [1, 2, 3, 4], 9)
    assert (grove.cache.evictable, grove.cache.pinned) == (1, 2)
    assert grove.evicted(3) == [2]
    assert grove.length([1, 2, 3, 4]) == 4


@BOTH
def test_the_whole_path_is_pinned_and_nothing_beside_it(kind: str) -> None:
    grove = Grove(2, kind, pin_budget=10)
    grove.insert([1, 2, 3, 4])
    grove.insert([1, 2, 5, 6])
    pin(grove, [1, 2, 3, 4], 9)
    assert grove.cache.evictable == 1 and grove.evicted(9) == [3]
    assert grove.length([1, 2, 3, 4]) == 4


def test_only_the_named_prompt_is_pinned_not_the_answer_behind_it() -> None:
    grove = Grove(pin_budget=10)
    grove.insert([1, 2, 3, 4, 5, 6])
    held = pin(grove, [1, 2, 3, 4], 9)
    assert (held.node.tokens(), held.refused) == ([1, 2, 3, 4], 0)
    assert sorted(grove.evicted(9)) == [4, 5]


@BOTH
def test_a_pin_over_the_budget_holds_the_front_and_says_what_was_refused(kind: str) -> None:
    grove = Grove(2, kind, pin_budget=2)
    grove.insert([1, 2, 3, 4, 5, 6, 7, 8])
    held = pin(grove, [1, 2, 3, 4, 5, 6, 7, 8], 9)
    assert held.refused == 2 and grove.cache.pinned == 2
    assert told(grove)[0] == (held.node.id, 9, 2)
    assert sorted(grove.evicted(9)) == [2, 3]
    again = pin(grove, [1, 2, 3, 4], 20)
    assert (again.refused, told(grove)[-1]) == (0, (held.node.id, 20, 0)), "what is pinned already costs nothing"


@BOTH
def test_a_pin_for_which_nothing_is_left_says_so_and_holds_nothing(kind: str) -> None:
    grove = Grove(1, kind, pin_budget=0)
    grove.insert([1, 2, 3])
    held = pin(grove, [1, 2, 3], 9)
    assert (held.node, held.refused, told(grove)) == (None, 3, [(ev.ROOT, 0, 3)])
    assert grove.cache.evictable == 3


@BOTH
def test_a_pin_on_what_is_not_stored_holds_and_says_nothing(kind: str) -> None:
    grove = Grove(1, kind, pin_budget=5)
    assert (pin(grove, [1, 2, 3], 9).node, told(grove)) == (None, [])


@BOTH
def test_a_pin_is_over_after_its_last_step(kind: str) -> None:
    grove = Grove(1, kind, pin_budget=9)
    grove.insert([1, 2, 3])
    pin(grove, [1, 2, 3], 7)
    grove.cache.unpin(7)
    assert grove.cache.evictable == 0
    grove.cache.unpin(8)
    assert (grove.cache.evictable, grove.cache.pinned, pins(grove)) == (3, 0, {})
    assert sorted(grove.evicted(9)) == [0, 1, 2]


def test_a_node_on_several_pinned_paths_is_held_until_the_last_is_over() -> None:
    grove = Grove(pin_budget=9)
    for tokens in ([1, 2, 3], [1, 2, 4], [1, 2]):
        grove.insert(tokens)
    pin(grove, [1, 2, 3], 10)
    pin(grove, [1, 2, 4], 20)
    pin(grove, [1, 2], 15)
    tail, front, other = grove.match([1, 2, 3]).node.id, grove.match([1, 2]).node.id, grove.match([1, 2, 4]).node.id
    assert pins(grove) == {tail: 10, front: 20, other: 20}
    grove.cache.unpin(11)
    assert pins(grove) == {front: 20, other: 20}
    grove.cache.unpin(21)
    assert pins(grove) == {} and grove.cache.pinned == 0
    grove.trace.commit()


def test_both_halves_of_a_pinned_node_that_is_split_stay_pinned() -> None:
    grove = Grove(pin_budget=9)
    grove.insert([1, 2, 3, 4])
    pin(grove, [1, 2, 3, 4], 10)
    grove.insert([1, 2, 9])
    assert [grove.match(t).node.pins for t in ([1, 2], [1, 2, 3, 4], [1, 2, 9])] == [10, 10, 0]
    assert (grove.cache.pinned, grove.cache.evictable) == (4, 1)
    grove.cache.unpin(11)
    assert (grove.cache.pinned, grove.cache.evictable) == (0, 5)


@BOTH
def test_a_lock_and_a_pin_on_the_same_path_end_apart(kind: str) -> None:
    grove = Grove(1, kind, pin_budget=9)
    grove.insert([1, 2, 3])
    node = grove.hold([1, 2, 3])
    pin(grove, [1, 2, 3], 5)
    assert grove.cache.to_lock(grove.match([1, 2, 3])) == 0
    grove.cache.release(node, Asker())
    assert grove.cache.evictable == 0
    again = grove.hold([1, 2, 3])
    grove.cache.unpin(6)
    assert grove.cache.evictable == 0
    grove.cache.release(again, Asker())
    assert grove.cache.evictable == 3 and len(grove.evicted(9)) == 3


@BOTH
def test_what_is_pinned_is_counted_as_kept_when_it_is_matched(kind: str) -> None:
    grove = Grove(1, kind, pin_budget=2)
    grove.insert([1, 2, 3, 4])
    pin(grove, [1, 2, 3, 4], 9)
    assert grove.cache.to_lock(grove.match([1, 2, 3])) == 1


@BOTH
def test_the_pin_that_ends_first_gives_way_first(kind: str) -> None:
    grove = Grove(1, kind, pin_budget=9)
    for tokens, until in (([1], 30), ([2], 10), ([3], 10)):
        grove.insert(tokens)
        pin(grove, tokens, until)
    left = []
    while grove.cache.give_way(Asker("R9")):
        left.append([grove.match([t]).node.pins for t in (1, 2, 3)])
    assert left == [[30, 0, 10], [30, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("share", "pages", "holds"), [(0.5, 7, 3), (0.0, 9, 0), (1.0, 9, 9), (0.29, 100, 29), (0.3, 10, 3)]
)
def test_the_budget_is_a_share_of_all_pages_rounded_down(share: float, pages: int, holds: int) -> None:
    assert budget(share, pages) == holds


# --- in the engine -----------------------------------------------------------------------------


def test_a_pin_counts_steps_from_the_end_of_its_request() -> None:
    lab = Lab(pages=16)
    lab.serve("R1", "A4", 3, pin=5)
    end = lab.events(ev.RequestFinished, "R1")[0].step
    assert [(e.until, e.refused, e.request) for e in lab.events(ev.NodePinned)] == [(end + 5, 0, "R1")]
    assert lab.engine.cache.pinned == 4
    lab.ask("R2", "B2", 1, at_step=end + 5)
    lab.run()
    assert lab.engine.cache.pinned == 4
    lab.ask("R3", "C2", 1, at_step=end + 6)
    lab.run()
    assert lab.engine.cache.pinned == 0
    over = lab.events(ev.NodePinned)[-1]
    assert (over.until, over.step) == (0, end + 6)


@pytest.mark.parametrize("page_size", [1, 4])
def test_the_stored_prompt_is_pinned_and_the_answer_is_not(page_size: int) -> None:
    lab = Lab(pages=64 // page_size, page_size=page_size)
    lab.serve("R1", "A10", 8, pin=99)
    assert lab.engine.cache.pinned == 10 // page_size
    assert lab.engine.cache.held == 17 // page_size


@pytest.mark.parametrize(("trouble", "held"), [
    ({"abort_at_step": 3}, 4), ({"fail_at_step": 3}, 4), ({"abort_at_step": 1, "at_step": 1}, 0), ({"fail_at_step": 1}, 0),
])  # fmt: skip
def test_however_a_request_ends_what_is_stored_of_its_prompt_is_pinned(trouble: dict[str, int], held: int) -> None:
    lab = Lab(pages=32)
    lab.ask("R1", "A4", 9, pin=20, **trouble)
    lab.run()
    assert lab.engine.cache.pinned == held


def test_a_request_that_never_ran_pins_nothing_of_what_others_stored() -> None:
    lab = Lab(pages=32, max_running=1)
    lab.ask("R1", "A4", 9)
    lab.ask("R2", "A4", 9, pin=20, abort_at_step=3)
    lab.run()
    assert lab.engine.cache.pinned == 0


def test_a_cache_that_is_off_has_nothing_to_pin() -> None:
    lab = Lab(pages=32, cache="off")
    lab.serve("R1", "A4", 2, pin=20)
    assert lab.events(ev.NodePinned) == [] and lab.engine.cache.pinned == 0


def test_pins_leave_room_for_admission_and_others_wait_for_pages() -> None:
    lab = Lab(pages=16, pin_budget=0.5, reserve_start=0.0, reserve_min=0.0)
    lab.serve("R1", "A8", 1, pin=99)
    lab.ask("R2", "B4", 2)
    lab.ask("R3", "C6", 2)
    lab.step()
    waits = lab.events(ev.RequestPassedOver, "R3")[0]
    assert (waits.limit, waits.available) == ("pages", 4)
    lab.run()
    assert lab.reasons == {"R1": "length", "R2": "length", "R3": "length"} and lab.found("A8") == 8


def test_a_pool_full_of_pins_still_serves_a_request_that_needs_their_pages() -> None:
    """The pin that ends first gives way, and no more than are needed; then the request runs in the next step."""
    lab = Lab(pages=17, pin_budget=1.0)
    for name, prompt, steps in (("R1", "A6", 90), ("R2", "B6", 50), ("R3", "C4", 70)):
        lab.serve(name, prompt, 1, pin=steps)
    assert (lab.engine.pool.free, lab.engine.cache.evictable) == (1, 0)
    lab.serve("R4", "D5", 1)
    assert lab.reasons["R4"] == "length"
    assert [lab.found(p) for p in ("A6", "B6", "C4", "D5")] == [6, 2, 4, 5]
    gave = lab.events(ev.NodePinned)[-1]
    assert (gave.until, gave.request) == (0, "R4")
    assert [e.step for e in lab.events(ev.RequestAdmitted, "R4")] == [gave.step + 1]


def test_a_request_that_decodes_alone_takes_the_pages_of_pins_before_it_ends_for_want_of_room() -> None:
    lab = Lab(pages=16, pin_budget=1.0)
    lab.serve("R1", "A6", 1, pin=900)
    lab.serve("R2", "B4", 100)
    assert lab.reasons["R2"] == "capacity" and len(lab.out("R2")) == 13
    assert lab.found("A6") == 0


def test_a_pin_holds_while_others_can_still_be_retracted() -> None:
    lab = Lab(pages=20, pin_budget=0.5, reserve_start=0.0, reserve_min=0.0)
    lab.serve("R1", "A8", 1, pin=200)
    for name, prompt in (("R2", "B3"), ("R3", "C3")):
        lab.ask(name, prompt, 8)
    lab.run()
    assert lab.events(ev.RequestRetracted) and lab.found("A8") == 8
    assert lab.reasons == {"R1": "length", "R2": "length", "R3": "length"}


@pytest.mark.parametrize(("asked", "says"), [
    ({"pin": -1}, "pin: must be a number of steps, 0 or more; got -1"), ({"pin": True}, "pin: must be a number of steps"),
    ({"pin": 1.5}, "pin: must be a number of steps"), ({"pin": 4, "store": False}, "pin: holds what the request stores"),
])  # fmt: skip
def test_a_pin_that_means_nothing_is_refused(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(SubmitError, match=f"^{says}"):
        Lab(pages=8).engine.submit(ids("A4"), **asked)
