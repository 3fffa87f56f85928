"""The longest-prefix index holds the order that sorting by a fresh match would give, whatever happens."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cache.base import pack
from engine.events import Trace
from engine.request import Request, SamplingParams
from engine.scheduler.longest import LongestPrefix
from engine.scheduler.queue import Queue
from tests.engine.grove import KINDS


class Bench:
    """A cache, a queue and the index over both; pages are handed out in order."""

    def __init__(self, page_size: int, kind: str = "radix", **options: Any) -> None:
        self.page_size = page_size
        self.cache = KINDS[kind](page_size, trace=Trace(keep=False), **options)
        self.queue = Queue()
        self.index = LongestPrefix(self.cache, page_size, self.queue)
        self.queue.watcher = self.index
        self.made = 0
        self.pages = 0
        self.held: list[tuple[Any, Request]] = []

    def ask(self, prompt: list[int], front: bool = False, salt: str | None = None) -> Request:
        ns = (salt, None, None) if salt else None
        request = Request(f"R{self.made}", prompt, SamplingParams(), 0.0, self.made, namespace=ns)
        self.made += 1
        self.queue.join(request, front)
        return request

    def store(self, tokens: list[int], salt: str | None = None) -> None:
        count = len(tokens) // self.page_size
        pages = range(self.pages, self.pages + count)
        self.pages += count
        self.cache.insert(pack(tokens), list(pages), (salt, None, None) if salt else None, Request("S", tokens, SamplingParams(), 0.0, 0))

    def hold(self, request: Request) -> None:
        match = self.cache.match(request.packed_but_last(), request.namespace)
        self.held.append((self.cache.acquire(match, request).node, request))

    def sorted_anew(self) -> list[tuple[int, str]]:
        """What a plain sort by fresh matches says."""
        keyed = [(-self.cache.match(r.packed_but_last(), r.namespace).length, r) for r in self.queue]
        return [(k, r.id) for k, r in sorted(keyed, key=lambda pair: pair[0])]

    def agree(self) -> None:
        wanted = self.sorted_anew()
        head, keys = self.index.head(5)
        assert list(zip(keys, [r.id for r in head], strict=True)) == wanted[:5]
        requests = self.index.requests()
        assert next(requests, None) is (None if not wanted else next(r for r in self.queue if r.id == wanted[0][1]))
        requests.close()

    def drain(self) -> list[str]:
        out = []
        for request in self.index.requests():
            self.queue.remove(request)
            out.append(request.id)
        return out


tokens = st.lists(st.integers(1, 3), min_size=1, max_size=14)
salts = st.sampled_from([None, None, None, "s"])
acts = st.one_of(
    st.tuples(st.just("ask"), tokens, st.booleans(), salts),
    st.tuples(st.just("ask"), tokens, st.just(False), salts),
    st.tuples(st.just("store"), tokens, salts),
    st.tuples(st.just("store"), tokens, salts),
    st.tuples(st.just("leave"), st.integers(0, 30)),
    st.tuples(st.just("hold"), st.integers(0, 30)),
    st.tuples(st.just("release"), st.integers(0, 30)),
    st.tuples(st.just("evict"), st.integers(1, 6)),
)


def act(bench: Bench, what: tuple[Any, ...]) -> None:
    kind, *args = what
    waiting = list(bench.queue)
    if kind == "ask":
        bench.ask(*args)
    elif kind == "store":
        bench.store(*args)
    elif kind == "leave" and waiting:
        bench.queue.remove(waiting[args[0] % len(waiting)])
    elif kind == "hold" and waiting:
        bench.hold(waiting[args[0] % len(waiting)])
    elif kind == "release" and bench.held:
        bench.cache.release(*bench.held.pop(args[0] % len(bench.held)))
    elif kind == "evict":
        bench.cache.evict(args[0])


def explore(page_size: int, doing: list[tuple[Any, ...]], **cache: Any) -> None:
    bench = Bench(page_size, **cache)
    for what in doing:
        act(bench, what)
        bench.agree()
    wanted = [id for _, id in bench.sorted_anew()]
    assert bench.drain() == wanted


@given(page_size=st.sampled_from([1, 2, 4]), unit=st.sampled_from(["page", "leaf"]), doing=st.lists(acts, max_size=40))
@settings(max_examples=400, deadline=None)
def test_the_index_agrees_with_a_plain_sort_after_every_change(page_size: int, unit: str, doing: list[Any]) -> None:
    explore(page_size, doing, unit=unit)


@given(page_size=st.sampled_from([1, 2, 4]), order=st.sampled_from(["tail-first", "head-first"]), doing=st.lists(acts, max_size=40))
@settings(max_examples=200, deadline=None)
def test_it_agrees_over_blocks_too_also_when_beginnings_leave_before_their_ends(page_size: int, order: str, doing: list[Any]) -> None:
    explore(page_size, doing, kind="blocks", order=order)


@pytest.mark.slow
@given(page_size=st.sampled_from([1, 2, 4]), unit=st.sampled_from(["page", "leaf"]), doing=st.lists(acts, max_size=80))
@settings(max_examples=5000, deadline=None)
def test_the_index_agrees_with_a_plain_sort_in_many_long_runs(page_size: int, unit: str, doing: list[Any]) -> None:
    explore(page_size, doing, unit=unit)


def test_a_group_moves_as_one_when_its_prefix_is_stored_or_leaves() -> None:
    bench = Bench(1)
    for i in range(500):
        bench.ask([7] * 50 + [100 + i])
        bench.ask([8] * 50 + [100 + i])
    before = bench.index.updates
    bench.store([7] * 40)
    assert bench.index.updates - before == 1
    bench.cache.evict(20)
    assert bench.index.updates - before == 2
    bench.agree()


def test_whoever_is_passed_over_takes_those_with_the_same_next_page_along() -> None:
    bench = Bench(1)
    for i, head in enumerate([7, 7, 8, 7, 8]):
        bench.ask([head] * 10 + [100 + i, 1])
    looked = [r.id for r in bench.index.requests()]
    assert looked == ["R0", "R2"]
    assert sorted(r.id for r in bench.index.fellows(next(iter(bench.queue)))) == ["R1", "R3"]
    bench.agree()
