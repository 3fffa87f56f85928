"""Breaks the engine in named ways and shows that the tests notice: `python -m tests.mutations [NAME ...]`.

Each mutation is a fault that a serving engine of the trade has had. It is switched on inside a pytest run
(this file is its plugin), which then has to fail.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import Phase, settings

ROOT = Path(__file__).parents[1]
SUITE = ["field_notes_a", "field_notes_b", "field_notes_c", "field_notes_d", "radix", "ground_truth_radix", "eviction", "pins", "scheduler", "admission", "engine", "properties"]
MUTATIONS: dict[str, Callable[[], None]] = {}


def mutation(function: Callable[[], None]) -> Callable[[], None]:
    MUTATIONS[function.__name__] = function
    return function


def wrap(owner: Any, name: str, around: Callable[..., Any]) -> None:
    """Replace `owner.name` by `around(original, self, ...)`."""
    original = getattr(owner, name)
    setattr(owner, name, lambda self, *args, **named: around(original, self, *args, **named))


@mutation
def frees_the_trees_page_instead_of_the_duplicate() -> None:
    from engine.cache.radix import RadixCache

    def duplicates(right: Any, self: Any, path: Any, inside: int, pages: Any, request: Any) -> list[int]:
        mine = right(self, path, inside, pages, request)
        held = [p for node in path for p in node.pages]
        return [held[list(pages).index(p)] for p in mine]

    wrap(RadixCache, "_duplicates", duplicates)


@mutation
def forgets_to_unlock_on_abort() -> None:
    from engine.engine import Engine

    def abort(right: Any, self: Any, request: str) -> bool:
        self.cache.release = lambda *_: None
        try:
            return bool(right(self, request))
        finally:
            del self.cache.release

    wrap(Engine, "abort", abort)


@mutation
def locks_the_node_without_its_ancestors() -> None:
    from engine.cache.radix import RadixCache

    def above(self: Any, node: Any, locks: int) -> None:
        at = node.parent if node is not None else self.root
        while at is not self.root:
            at.locks += locks
            self._locked += locks * len(at.pages) if at.locks == max(locks, 0) else 0
            at = at.parent

    def acquire(right: Any, self: Any, match: Any, request: Any) -> Any:
        held = right(self, match, request)
        above(self, held.node, -1)
        return held

    def release(right: Any, self: Any, node: Any, request: Any) -> None:
        above(self, node, 1)
        right(self, node, request)

    wrap(RadixCache, "acquire", acquire)
    wrap(RadixCache, "release", release)


@mutation
def lets_a_prompt_be_found_before_it_is_computed() -> None:
    from engine.scheduler.scheduler import Scheduler

    def start(right: Any, self: Any, request: Any, *rest: Any) -> None:
        right(self, request, *rest)
        kv, request.kv = request.kv, request.target
        self.holdings.share(request)
        request.kv = kv

    wrap(Scheduler, "_start", start)


@mutation
def looks_up_the_last_token_too() -> None:
    from engine.request import Request

    Request.packed_but_last = lambda self: self.packed(self.size)  # type: ignore[method-assign]


@mutation
def splits_with_the_tails_pages_on_the_front() -> None:
    from engine.cache.radix import RadixCache

    def split(right: Any, self: Any, node: Any, at: int) -> Any:
        pages, k = node.pages, at // self.page_size
        front = right(self, node, at)
        front.pages, node.pages = pages[-k:], pages[:-k]
        return front

    wrap(RadixCache, "_split", split)


@mutation
def evicts_a_parent_before_its_child() -> None:
    from engine.cache.eviction import EvictionQueue

    def pop(right: Any, self: Any) -> Any:
        node = right(self)
        if node is not None and node.parent.id and not (node.parent.locks or node.parent.removed):
            self.push(node)
            return node.parent
        return node

    wrap(EvictionQueue, "pop", pop)
    EvictionQueue.head = lambda self, count: []  # type: ignore[method-assign]


@mutation
def evicts_what_a_request_holds() -> None:
    from engine.cache.radix import Node

    Node.evictable = property(lambda self: not (self.children or self.removed))  # type: ignore[method-assign, assignment]


@mutation
def stores_the_last_sampled_token() -> None:
    from engine.scheduler.holdings import Holdings

    def finish(right: Any, self: Any, request: Any) -> None:
        if request.output and request.kv < request.size and request.pages:
            if request.kv >= len(request.pages) * self.pool.page_size and self.obtainable:
                self.take([(request, 1)])
            request.kv = min(request.kv + 1, len(request.pages) * self.pool.page_size)
        right(self, request)

    wrap(Holdings, "finish", finish)


@mutation
def drops_the_namespace_from_the_key() -> None:
    from engine.cache.radix import RadixCache

    wrap(RadixCache, "_key", lambda right, self, tokens, ns: right(self, tokens, None))


@mutation
def loses_the_token_that_a_resumed_prefill_sampled() -> None:
    from engine.engine import Engine

    def after(right: Any, self: Any, row: Any, *rest: Any) -> Any:
        progress = right(self, row, *rest)
        if row.request.retractions and row.start < row.request.target:
            progress.ids = []
        return progress

    wrap(Engine, "_after", after)


@mutation
def keeps_a_retracted_requests_pages() -> None:
    from engine.scheduler.holdings import Holdings

    def drop(_: Any, self: Any, request: Any) -> int:
        self.cache.release(request.node, request)
        request.node, request.pages, request.shared, request.kv = None, [], 0, 0
        return 0

    wrap(Holdings, "drop", drop)


@mutation
def counts_a_prompts_cached_pages_as_needed() -> None:
    from engine.cache.radix import RadixCache

    wrap(RadixCache, "to_lock", lambda right, self, match: match.length // self.page_size)


@mutation
def resumes_where_the_request_was_retracted() -> None:
    from engine.scheduler.scheduler import Scheduler

    def prefill(right: Any, self: Any, request: Any, count: int) -> Any:
        if request.retractions and request.kv < request.reached - 1:
            request.kv += 1
            count -= 1
        return right(self, request, count)

    wrap(Scheduler, "_prefill", prefill)


def _drop_first(kind: str) -> None:
    from engine import events as ev

    def emit(right: Any, self: Any, event: Any, **fields: Any) -> None:
        if event.__name__ == kind and not getattr(self, "dropped", False):
            self.dropped = True
            return
        right(self, event, **fields)

    def tell(right: Any, self: Any, event: Any) -> None:
        if type(event).__name__ == kind and not getattr(self, "dropped", False):
            self.dropped = True
            return
        right(self, event)

    wrap(ev.Trace, "emit", emit)
    wrap(ev.Trace, "tell", tell)


@mutation
def drops_one_split_event() -> None:
    _drop_first("NodeSplit")


@mutation
def drops_one_freed_event() -> None:
    _drop_first("PageFreed")


@mutation
def drops_one_touch_event() -> None:
    _drop_first("NodeTouched")


# --- as a pytest plugin, and by hand -----------------------------------------------------------


def pytest_configure() -> None:
    """Switch on the mutation that the environment names."""
    name = os.environ.get("MUTATION")
    if name:
        settings.register_profile("mutated", phases=[Phase.generate])  # the smallest example is not wanted
        settings.load_profile("mutated")
        MUTATIONS[name]()


def caught_by(name: str) -> str | None:
    """The first test that fails under a mutation, or None when all pass."""
    files = [f"tests/engine/test_{f}.py" for f in SUITE]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "--noconftest", "-p", "no:cacheprovider", "-p", "tests.mutations", *files],
        cwd=ROOT, env=os.environ | {"MUTATION": name}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode == 1 and failed:
        return failed[0].split(" - ")[0]
    if done.returncode == 0:
        return None
    raise RuntimeError(f"the run itself went wrong:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def main(names: list[str]) -> int:
    """Try the named mutations, or all; returns how many went unnoticed."""
    missed = 0
    for name in names or list(MUTATIONS):
        found = caught_by(name)
        missed += found is None
        print(f"{name}: {found or 'NOT NOTICED'}", flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
