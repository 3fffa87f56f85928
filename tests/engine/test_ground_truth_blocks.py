"""Ground truth for hashed blocks, case by case: the orders in which vLLM's own tests find blocks reused.

Cases 34 to 36 of the project's list of facts. vLLM numbers its blocks from 1, this pool its pages from 0.
"""

from __future__ import annotations

from engine import events as ev
from tests.engine.lab import Lab


def reuse_order(lab: Lab) -> list[int]:
    """The pages in the order in which they would be used next, numbered from 1: free ones, then blocks."""
    pages = lab.engine.pool.free_pages()
    pages += [page for block in lab.engine.cache._free.values() for page in block.pages]
    return [page + 1 for page in pages]


def blocks(pages: int) -> Lab:
    return Lab(pages=pages, page_size=16, cache="blocks", reserve_start=0.0, reserve_min=0.0)


def test_34_whole_blocks_are_found_and_the_unhashed_are_used_first() -> None:
    lab = blocks(10)
    lab.ask("R1", range(55), 5)
    lab.step()
    assert [page + 1 for page in lab.live("R1").pages] == [1, 2, 3, 4]
    assert [n.pages[0] + 1 for n in lab.engine.cache.walk()] == [1, 2, 3]
    lab.ask("R2", [*range(48), *range(100, 107)], 5)
    lab.step()
    assert [page + 1 for page in lab.live("R2").pages] == [1, 2, 3, 5]
    assert (lab.hit("R2"), lab.engine.pool.free) == (48, 5)
    assert [n.locks for n in lab.engine.cache.walk()] == [2, 2, 2]
    lab.engine.abort("R1")
    lab.engine.abort("R2")
    assert reuse_order(lab) == [5, 4, 6, 7, 8, 9, 10, 3, 2, 1]


def test_35_a_block_that_is_found_again_leaves_the_free_queue() -> None:
    lab = blocks(10)
    lab.ask("R1", range(87), 9)
    lab.ask("R2", range(200, 248), 9)
    lab.step()
    assert lab.engine.pool.free == 1
    lab.engine.abort("R1")
    assert reuse_order(lab) == [6, 10, 5, 4, 3, 2, 1]
    lab.engine.abort("R2")
    assert reuse_order(lab) == [6, 10, 5, 4, 3, 2, 1, 9, 8, 7]
    lab.ask("R3", range(35), 9)
    lab.step()
    assert (lab.hit("R3"), [page + 1 for page in lab.live("R3").pages]) == (32, [1, 2, 6])
    assert lab.engine.pool.free + lab.engine.cache.evictable == 7


def test_36_of_k_full_blocks_at_most_k_less_one_are_found() -> None:
    lab = blocks(10)
    lab.serve("R1", range(64))
    lab.serve("R2", range(64))
    assert (lab.hit("R2"), lab.new("R2")) == (48, 16)


def test_36_a_block_is_added_when_the_sequence_has_outgrown_the_last_one() -> None:
    lab = blocks(10)
    lab.serve("R", range(32), 19)
    written = []
    for event in lab.events(ev.PageAllocated):
        before = [e for e in lab.events(ev.StepFinished) if e.seq < event.seq]
        written.append(32 + len(before) - 1 if before else 0)
    assert written == [0, 32, 48]  # two pages for the prompt; then one for token 33 and one for token 49


def test_36_a_block_is_found_until_its_page_is_given_to_somebody_else() -> None:
    lab = blocks(4)
    lab.serve("R1", range(40))
    lab.serve("R2", range(100, 120))
    assert lab.found(range(40)) == 32  # its pages wait in the queue
    lab.serve("R3", range(200, 220))
    assert lab.events(ev.Eviction)[0].freed == 1 and lab.found(range(40)) == 16
