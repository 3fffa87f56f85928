"""The puppet is an alarm: it raises when a page holds anything but what its request put there."""

from __future__ import annotations

from typing import Any

import pytest

from engine import events as ev
from engine.cache.base import CacheError, pack
from engine.cache.radix import RadixCache
from engine.engine import InvariantError
from engine.executor.base import Row
from engine.executor.puppet import PuppetExecutor, WrongSlot
from engine.request import Request, SamplingParams
from tests.engine.lab import Lab, ids


def request(id: str, prompt: str, **more: Any) -> Request:
    return Request(id=id, prompt=ids(prompt), params=SamplingParams(), arrived=0.0, index=0, **more)


def row(r: Request, start: int, stop: int, pages: list[int], sample: bool = True) -> Row:
    return Row(r, r.tokens[start:stop], start, pages, sample)


def filled() -> tuple[PuppetExecutor, Request]:
    puppet, one = PuppetExecutor(8, 2), request("R1", "A6")
    puppet.execute([row(one, 0, 4, [0, 1])])
    return puppet, one


def test_the_right_pages_are_read_without_complaint() -> None:
    puppet, one = filled()
    puppet.execute([row(one, 4, 6, [0, 1, 2])])
    puppet.execute([row(request("R2", "A4+B2"), 4, 6, [0, 1, 5])])


@pytest.mark.parametrize("sample", [True, False])
@pytest.mark.parametrize(("pages", "position"), [([1, 0, 2], 0), ([0, 0, 2], 2), ([0, 7, 2], 2), ([5, 1, 2], 0)])
def test_a_swapped_or_foreign_page_raises_and_names_the_first_wrong_position(
    pages: list[int], position: int, sample: bool
) -> None:
    puppet, one = filled()
    with pytest.raises(WrongSlot, match=f"R1: position {position} should hold id {256 + position}"):
        puppet.execute([row(one, 4, 6, pages, sample)])


def test_the_same_ids_behind_another_beginning_are_not_the_same() -> None:
    puppet, _ = filled()
    puppet.execute([row(request("R2", "B2+C2"), 0, 4, [4, 5])])
    with pytest.raises(WrongSlot, match="R3: position 2"):
        puppet.execute([row(request("R3", "A2+C2+D1"), 4, 5, [0, 5, 6])])


def test_another_namespace_is_another_sequence() -> None:
    puppet, _ = filled()
    with pytest.raises(WrongSlot, match="R2: position 0"):
        puppet.execute([row(request("R2", "A6", namespace=("salt", None, None)), 4, 6, [0, 1, 2])])


def test_two_rows_of_a_step_that_write_the_same_page_are_caught() -> None:
    puppet = PuppetExecutor(8, 2)
    with pytest.raises(WrongSlot, match="R1: position 0"):
        puppet.execute([row(request("R1", "A2"), 0, 2, [0]), row(request("R2", "B2"), 0, 2, [0])])


# --- through the engine ------------------------------------------------------------------------


def caught(lab: Lab) -> str:
    with pytest.raises(InvariantError) as error:
        lab.run()
    return str(error.value)


def test_a_page_that_is_swapped_under_a_running_request_ends_a_checked_run() -> None:
    lab = Lab(pages=32, fold=False)
    lab.ask("R", "A6", 9)
    lab.step()
    pages = lab.live("R").pages
    pages[1], pages[2] = pages[2], pages[1]
    assert caught(lab).startswith("WrongSlot: R: position 1 should hold id 257")


def test_a_lost_lock_shows_as_a_wrong_slot_as_soon_as_the_page_serves_another() -> None:
    lab = Lab(pages=24, fold=False)
    lab.ask("R", "A8", 12)
    lab.step()
    lab.engine._checker = None  # the counts would show it first
    lab.engine.cache.release(lab.live("R").node, lab.live("R"))
    lab.ask("other", "B13", 1)
    with pytest.raises(CacheError, match="node 1 is unlocked by R but holds no lock"):
        lab.run()
    failed = next(e for e in lab.trace._open if isinstance(e, ev.ExecutorFailed))
    assert failed.error.startswith("WrongSlot: R: position 7 should hold id 263")


def test_a_prefix_that_is_found_before_it_was_written_ends_a_checked_run() -> None:
    honest = Lab(pages=64)
    honest.ask("R1", "A8+B2")
    honest.ask("R2", "A8+C2")
    honest.run()
    assert honest.hit("R2") == 0

    lab = Lab(pages=64, fold=False)
    lab.ask("R1", "A8+B2", 2)
    lab.step()
    cache: RadixCache = lab.engine.cache
    early = lab.engine.pool.allocate(4)
    cache.insert(pack(ids("A8+D4")), [*lab.live("R1").pages[:8], *early], None, lab.live("R1"))
    lab.ask("R2", "A8+D4+E1")
    assert "WrongSlot: R2: position 8 should hold id" in caught(lab)
