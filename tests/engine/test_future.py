"""Farthest next use (`belady`): its keys against a scan of all requests, its runs against a table of pages."""

from __future__ import annotations

import random
from typing import Any

import pytest

from engine import events as ev
from engine.asking import SubmitError
from engine.cache.base import pack
from engine.cache.future import Future
from engine.config import ConfigError, config_from
from tests.engine.grove import Asker, Grove
from tests.engine.lab import Lab, ids


def wanting(grove: Grove, queries: list[list[int]]) -> None:
    """Tell a cache what is to come."""
    for i, query in enumerate(queries):
        grove.cache.expect(Asker(f"R{i}"), pack(query), None)


def over(grove: Grove, *numbers: int) -> None:
    for i in numbers:
        grove.cache.ended(Asker(f"R{i}"))


# --- which leaf goes ---------------------------------------------------------------------------


def test_the_leaf_whose_next_request_is_farthest_goes_first_and_one_that_nobody_wants_before_it() -> None:
    grove = Grove(eviction="belady")
    wanting(grove, [[1, 1], [2, 2], [3, 3]])
    for token in (1, 2, 3, 4):
        grove.insert([token, token])
    assert [e.node for e in grove.cache.evict(8)] == [4, 3, 2, 1]


def test_a_request_that_is_over_counts_no_more() -> None:
    grove = Grove(eviction="belady")
    wanting(grove, [[1, 1], [2, 2], [1, 1]])
    for token in (1, 2):
        grove.insert([token, token])
    over(grove, 0)
    assert [e.node for e in grove.cache.evict(4)] == [1, 2]


def test_the_end_that_nobody_wants_goes_before_the_beginning_that_somebody_does() -> None:
    grove = Grove(eviction="belady")
    wanting(grove, [[1, 2, 3, 9, 9], [5, 5]])
    grove.insert([1, 2, 3, 4, 4])
    grove.insert([5, 5, 5])
    assert [(e.node, e.pages) for e in grove.cache.evict(6)] == [(1, [3, 4]), (2, [7]), (2, [5, 6]), (1, [2])]


def test_a_leaf_that_is_taken_whole_is_wanted_by_whoever_wants_its_first_page() -> None:
    grove = Grove(2, eviction="belady", unit="leaf")
    wanting(grove, [[1, 2, 9, 9], [5, 5]])
    grove.insert([1, 2, 3, 4])
    grove.insert([5, 5, 5, 5])
    assert [e.node for e in grove.cache.evict(1)] == [2]


def test_what_only_another_namespace_wants_is_wanted_by_nobody_here() -> None:
    grove = Grove(eviction="belady")
    grove.cache.expect(Asker("R0"), pack([1, 1]), ("s", None, None))
    grove.cache.expect(Asker("R1"), pack([2, 2]), None)
    grove.insert([1, 1])
    grove.insert([2, 2])
    grove.insert([1, 1], ("s", None, None))
    assert [e.node for e in grove.cache.evict(6)] == [1, 2, 3]


@pytest.mark.parametrize("unit", ["page", "leaf"])
@pytest.mark.parametrize("page_size", [1, 2])
def test_keys_are_what_a_scan_of_all_requests_finds(unit: str, page_size: int) -> None:
    chance = random.Random(f"{unit} {page_size}")

    def sequence() -> list[int]:
        return [chance.randrange(1, 3) for _ in range(chance.randrange(1, 9))]

    for _ in range(60):
        grove = Grove(page_size, eviction="belady", unit=unit)
        queries = [sequence() for _ in range(chance.randrange(0, 12))]
        live = set(range(len(queries)))
        wanting(grove, queries)
        future = grove.cache._future
        assert future is not None
        for _ in range(25):
            match chance.randrange(4):
                case 0 | 1:
                    grove.insert(sequence())
                case 2:
                    grove.cache.evict(1)
                case _ if live:
                    gone = chance.choice(sorted(live))
                    live.discard(gone)
                    over(grove, gone)
            for node in grove.cache.walk():
                path = path_of(node)
                end = len(path)
                first = [first_of(path[:n], queries, live) for n in range(end + 1)]
                assert future.key(node) == (-first[node.depth + page_size if unit == "leaf" else end],)
                assert future.alike(node) == sum(first[e] == first[end] for e in range(end, node.depth, -page_size))


def first_of(path: list[int], queries: list[list[int]], live: set[int]) -> int:
    """The first request to come that runs through a path, by looking at every one."""
    return min((i for i in live if queries[i][: len(path)] == path), default=len(queries))


def path_of(node: Any) -> list[int]:
    return [] if node.parent is None else path_of(node.parent) + node.tokens()


def test_a_key_looks_at_a_few_requests_however_many_there_are() -> None:
    looks = 0

    class Counted(bytes):
        def __getitem__(self, part: Any) -> Any:
            nonlocal looks
            looks += 1
            return bytes(self)[part]

    chance = random.Random(1)
    future = Future(1, whole=False)
    grove = Grove()
    for i in range(20_000):
        future.expect(f"R{i}", Counted(pack([i % 50, *(chance.randrange(9) for _ in range(6))])), None)
    for i in range(200):
        grove.insert([i % 50, *(chance.randrange(9) for _ in range(6))])
    nodes = list(grove.cache.walk())
    future.key(nodes[0])
    looks = 0
    for node in nodes:
        future.key(node)
    assert looks <= 2 * 16 * len(nodes)
    looks = 0
    for i in range(1000):
        future.ended(f"R{i}")
    for node in nodes:
        future.key(node)
    assert looks == 0, "where a node's requests stand is remembered"


# --- whole runs --------------------------------------------------------------------------------


def next_use(page: tuple[int, ...], prompts: list[list[int]], now: int) -> int:
    """The next request after `now` that would find this page."""
    later = range(now + 1, len(prompts))
    return next(
        (i for i in later if len(prompts[i]) > len(page) and tuple(prompts[i][: len(page)]) == page), len(prompts)
    )


def pages_found(prompts: list[list[int]], pages: int, size: int) -> list[int]:
    """Tokens reused by each of a row of requests, one at a time: single pages, farthest next use by scanning."""
    held: set[tuple[int, ...]] = set()
    found: list[int] = []
    for now, prompt in enumerate(prompts):
        fronts = [tuple(prompt[:n]) for n in range(size, len(prompt) + 1, size)]
        usable = [f for f in fronts if len(f) < len(prompt)]
        match = [f for i, f in enumerate(usable) if all(g in held for g in usable[: i + 1])]
        found.append(len(match) * size)
        need = -(-len(prompt) // size) - len(match)
        while len(held) + need > pages:
            ends = [p for p in held if p not in match and not any(q[: len(p)] == p and q != p for q in held)]

            held.discard(max(ends, key=lambda page, now=now: next_use(page, prompts, now)))
        held.update(fronts)
    return found


@pytest.mark.parametrize("page_size", [1, 2, 4])
def test_a_run_reuses_what_a_table_of_single_pages_would(page_size: int) -> None:
    chance = random.Random(page_size)
    for _ in range(40):
        heads = [[chance.randrange(100, 103) for _ in range(chance.randrange(2, 14))] for _ in range(4)]
        prompts = [
            chance.choice(heads) + [chance.randrange(100, 103) for _ in range(chance.randrange(1, 6))]
            for _ in range(14)
        ]
        pages = -(-max(map(len, prompts)) // page_size) + chance.randrange(1, 8)
        lab = Lab(pages=pages, page_size=page_size, eviction="belady", max_running=1, fold=False)
        for i, prompt in enumerate(prompts):
            lab.ask(f"R{i}", prompt, 0)
        lab.run()
        assert [lab.hit(f"R{i}") for i in range(len(prompts))] == pages_found(prompts, pages, page_size)


@pytest.mark.parametrize(("unit", "reused"), [("page", [7, 5]), ("leaf", [7, 0])])
def test_a_cycle_that_lru_flushes_is_kept_in_part(unit: str, reused: list[int]) -> None:
    hits = {}
    for eviction in ("lru", "belady"):
        lab = Lab(pages=20, eviction=eviction, eviction_unit=unit, max_running=1)
        for i in range(13):
            lab.ask(f"R{i}", "ABC"[i % 3] + "8", 0)
        lab.run()
        hits[eviction] = [lab.hit(f"R{i}") for i in range(3, 13)]
    assert hits["belady"] == reused * 5
    assert hits["lru"] == [4 if unit == "page" else 0] * 10


def test_the_ranking_tells_each_leafs_next_request_by_its_place_in_the_file() -> None:
    lab = Lab(pages=14, eviction="belady", max_running=1)
    for name, prompt in (("R0", "A4"), ("R1", "B4"), ("R2", "C4"), ("R3", "D4"), ("R4", "B4"), ("R5", "A4")):
        lab.ask(name, prompt, 0)
    lab.run()
    told = lab.events(ev.Eviction)[1]
    assert told.policy == "belady" and told.request == "R4"
    assert [(r.node, r.key, r.taken) for r in told.ranking] == [(3, [-6], 1), (4, [-6], 0), (1, [-5], 0)]


def test_those_who_are_taken_back_before_they_arrive_or_while_they_wait_want_nothing() -> None:
    lab = Lab(pages=14, eviction="belady", max_running=1)
    for name, prompt, step in (("R0", "A4", 0), ("R1", "B4", 0), ("R2", "C7", 3), ("R3", "A4", 90), ("R4", "B4", 99)):
        lab.ask(name, prompt, 0, at_step=step)
    lab.engine.abort("R3")
    lab.run()
    assert lab.hit("R4") == 3, "A went, which only R3 had wanted"


# --- what it refuses ---------------------------------------------------------------------------


def test_a_request_after_the_first_step_is_refused_with_one_sentence() -> None:
    lab = Lab(pages=32, eviction="belady")
    lab.ask("R1", "A4", 2)
    lab.step()
    with pytest.raises(
        SubmitError, match=r"^eviction: belady \(farthest next use\) has to know all traffic before the first step"
    ):
        lab.ask("R2", "B4", 2)
    lab.run()
    assert lab.reasons == {"R1": "length"}


def test_a_follow_up_whose_prompt_is_known_is_known_traffic() -> None:
    lab = Lab(pages=32, eviction="belady")
    lab.ask("R1", "A4", 2)
    lab.ask("R2", ids("A4+B2"), 2, after="R1", think=3.0)
    lab.run()
    assert lab.hit("R2") == 4


@pytest.mark.parametrize("policy", ["lpm", "random", "priority"])
def test_any_other_order_of_service_is_refused(policy: str) -> None:
    with pytest.raises(ConfigError, match=r"^eviction: belady \(farthest next use\) .* needs policy: fcfs"):
        config_from({"eviction": "belady", "policy": policy})
