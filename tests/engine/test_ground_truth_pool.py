"""Ground truth for pages, case by case: what the tests of the trade's engines say of their pools.

Cases 31 to 33 of the project's list of facts (34 to 36: `test_ground_truth_blocks`). All apply, in this
project's units: there an id is the first slot of a page, here a page number, and slot = page x page size.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.engine import InvariantError
from engine.executor.base import Row
from engine.executor.kv import KV
from engine.executor.step import pack
from engine.pool import Pool, PoolError
from engine.request import Request, SamplingParams
from tests.engine.lab import Lab


def request(name: str = "R", tokens: int = 1) -> Request:
    return Request(name, list(range(tokens)), SamplingParams(), 0.0, 0)


def test_31_what_is_taken_is_evicted_first_where_nothing_is_free_and_never_overlaps() -> None:
    lab = Lab(pages=4, page_size=4)
    lab.serve("S", "A8")
    holdings, pool, cache = lab.engine.scheduler.holdings, lab.engine.pool, lab.engine.cache
    one, two, three = request("one"), request("two"), request("three")
    holdings.take([(one, 2)])
    assert (pool.free, cache.evictable) == (0, 2)
    for taker in (two, three):
        holdings.take([(taker, 1)])
        assert len(taker.pages) == 1
        assert pool.free + cache.held + sum(len(r.pages) for r in (one, two, three)) == 4
    assert cache.held == 0 and lab.engine.totals.evictions == 2
    assert sorted(one.pages + two.pages + three.pages) == [0, 1, 2, 3]
    holdings.drop(one)
    holdings.take([(two, 2)])
    assert len(two.pages) == 3


def test_31_a_page_is_as_many_slots_as_its_size_from_its_number_times_it() -> None:
    row = Row(request(tokens=8), list(range(8)), 0, [3, 1], True)
    step = pack([row], 4, torch.device("cpu"), torch.float32)
    assert step.slots.tolist() == [12, 13, 14, 15, 4, 5, 6, 7]


def test_32_more_kv_than_pages_is_a_breach() -> None:
    lab = Lab(pages=16, page_size=4, fold=False)
    lab.ask("R", "A6", 9)
    lab.step()
    lab.live("R").pages.pop()
    found = lab.engine._checker.check(lab.engine.scheduler.running, idle=False)
    assert "R has KV of 6 tokens in 1 page of 4" in [b.what for b in found]


def test_32_a_page_that_is_owned_and_free_is_a_breach() -> None:
    lab = Lab(pages=16, page_size=4, fold=False)
    lab.ask("R", "A6", 9)
    lab.step()
    lab.engine.pool._free.append(lab.live("R").pages[1])
    with pytest.raises(InvariantError, match="page 1 is free and owned"):
        lab.step()


def test_32_a_page_twice_in_the_free_list_is_a_breach() -> None:
    lab = Lab(pages=16, page_size=4, fold=False)
    lab.ask("R", "A6", 9)
    lab.step()
    lab.engine.pool._free.insert(0, lab.engine.pool._free[0])
    with pytest.raises(InvariantError, match="the free list names a page twice"):
        lab.step()


def test_32_a_page_cannot_be_given_back_in_two_calls_nor_twice_in_one() -> None:
    pool = Pool(4, 4)
    one, two = pool.allocate(2)
    with pytest.raises(PoolError, match="freed twice"):
        pool.give_back([one, one])
    pool.give_back([one, two])
    with pytest.raises(PoolError, match="freed twice"):
        pool.give_back([two])
    assert sorted(pool.free_pages()) == [0, 1, 2, 3]


def test_33_what_is_appended_piece_by_piece_is_gathered_as_one_dense_run() -> None:
    pool, kv = Pool(3, 4), KV(1, 3, 4, 2, 8, torch.float32, torch.device("cpu"), fill=3e4)
    one = request(tokens=10)
    keys, values = torch.randn(10, 2, 8), torch.randn(10, 2, 8)
    for start, stop in ((0, 3), (3, 5), (5, 10)):
        one.pages += pool.allocate(pool.pages_for(stop) - len(one.pages))
        step = pack([Row(one, one.prompt[start:stop], start, one.pages, False)], 4, torch.device("cpu"), torch.float32)
        kv.attend(0, torch.randn(stop - start, 4, 8), keys[start:stop], values[start:stop], 1.0, step)
    assert len(one.pages) == 3 and pool.free == 0
    k, v = kv.gather(0, torch.tensor(one.pages))
    assert torch.equal(k[:10], keys) and torch.equal(v[:10], values)
    assert (k[10:] == 3e4).all() and (v[10:] == 3e4).all()


def small(pages: int, **config: Any) -> Lab:
    return Lab(pages=pages, page_size=4, cache="off", **config)


def test_33_released_pages_serve_the_next_request() -> None:
    lab = small(2)
    for name, prompt in (("R1", "A6"), ("R2", "B5")):
        lab.ask(name, prompt, 2)
        lab.step()
        assert sorted(lab.live(name).pages) == [0, 1]
        lab.run()
        assert (lab.engine.pool.free, lab.engine.pool.pages) == (2, 2)


@pytest.mark.parametrize("cache", ["off", "radix"])
def test_33_a_write_that_fails_on_the_second_page_gives_everything_back(cache: str) -> None:
    lab = Lab(pages=6, page_size=4, cache=cache, chunk=4)
    lab.ask("R", "A11", 3, fail_at_step=2)
    lab.run()
    assert lab.reasons["R"] == "error" and lab.idle()
    assert lab.engine.cache.held == (1 if cache == "radix" else 0)  # the first page had been written whole
    assert lab.serve("next", "B11", 3) == small(6).serve("next", "B11", 3)


@pytest.mark.parametrize("trouble", [{}, {"fail_at_step": 3}])
def test_33_a_prompt_goes_to_the_model_chunk_by_chunk_and_leaves_no_page_behind(trouble: dict[str, int]) -> None:
    lab = Lab(pages=20, cache="off", chunk=3)
    calls: list[tuple[int, int]] = []
    execute = lab.engine.executor.execute

    def watched(rows: list[Row]) -> Any:
        calls.extend((row.start, len(row.tokens)) for row in rows)
        return execute(rows)

    lab.engine.executor.execute = watched  # type: ignore[method-assign]
    lab.ask("R", "A7", 1, **trouble)
    lab.run()
    assert calls == [(0, 3), (3, 3), (6, 1)][: 2 if trouble else 3]
    assert lab.engine.pool.free == 20
