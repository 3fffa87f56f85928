"""Breaks the engine in named ways and shows that the tests notice: `python -m tests.mutations [NAME ...]`.

Each mutation is a fault that a serving engine of the trade has had, or that a part of this one could have. It
is switched on inside a pytest run (this package is its plugin), which then has to fail.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from hypothesis import Phase, settings

from tests.mutations import cache, jumps, requests, scheduling, tiers, trace
from tests.mutations.registry import MUTATIONS

__all__ = ["MUTATIONS", "NAMED", "Catch", "cache", "caught_by", "jumps", "requests", "scheduling", "tiers", "trace"]

ROOT = Path(__file__).parents[2]
SUITE = [
    "field_notes_a", "field_notes_b", "field_notes_c", "field_notes_d", "field_notes_e", "field_notes_chat", "radix", "eviction", "pins",
    "ground_truth_radix", "ground_truth_pool", "ground_truth_scheduler", "ground_truth_blocks", "blocks", "blocks_reference",
    "future", "host", "host_engine", "longest", "scheduler", "admission", "policies", "engine", "properties",
]  # fmt: skip
"""What is run against each: the quick ones first, random traffic last."""

NAMED = {
    "free the tree's page instead of the duplicate": [cache.frees_the_trees_page_instead_of_the_duplicate],
    "skip unlock on abort": [requests.forgets_to_unlock_on_abort],
    "lock without ancestors": [cache.locks_the_node_without_its_ancestors],
    "findable before commit": [requests.lets_a_prompt_be_found_before_it_is_computed],
    "match n instead of n-1": [requests.looks_up_the_last_token_too],
    "split with the tail's pages on the front": [cache.splits_with_the_tails_pages_on_the_front],
    "parent evicted before child": [cache.evicts_a_parent_before_its_child],
    "last sampled slot stored": [requests.stores_the_last_sampled_token],
    "namespace dropped from the key": [cache.drops_the_namespace_from_the_key],
    "token sampled by a re-prefill dropped": [requests.loses_the_token_that_a_resumed_prefill_sampled],
    "one event dropped": [trace.drops_one_split_event, trace.drops_one_freed_event, trace.drops_one_touch_event],
}
"""The eleven that the suite has to catch in any case, and the mutations that stand for them."""


@dataclass(frozen=True)
class Catch:
    """The first test that failed under a mutation, and what it said."""

    test: str
    said: str


def pytest_configure() -> None:
    """Switch on the mutation that the environment names."""
    name = os.environ.get("MUTATION")
    if name:
        settings.register_profile("mutated", phases=[Phase.generate])  # the smallest example is not wanted
        settings.load_profile("mutated")
        MUTATIONS[name]()


def caught_by(name: str) -> Catch | None:
    """What notices a mutation (an empty name: nothing is broken); None when all tests pass."""
    files = [f"tests/engine/test_{f}.py" for f in SUITE]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "--noconftest", "-p", "no:cacheprovider", "-p", "tests.mutations", *files],
        cwd=ROOT, env=os.environ | {"MUTATION": name, "COLUMNS": "300"}, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    if done.returncode == 1 and failed:
        test, _, said = failed[0].removeprefix("FAILED ").partition(" - ")
        return Catch(test, said)
    if done.returncode == 0:
        return None
    raise RuntimeError(f"the run itself went wrong:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
