"""Sixty-four questions on one handbook: every shared token is computed once."""

from __future__ import annotations

from typing import Any

from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import HANDBOOK, exact

COMMON, SECTION, QUESTION, SECTIONS, EACH = 1024, 256, 64, 4, 16
ALL = SECTIONS * EACH * (COMMON + SECTION + QUESTION)
ONCE = COMMON + SECTIONS * SECTION + SECTIONS * EACH * QUESTION

TRAFFIC: dict[str, Any] = {
    "name": "handbook-64", "engine": {"executor": "puppet", "pages": 8192},
    "workload": {
        "kind": "shared_prefix", "groups": SECTIONS, "per_group": EACH, "common": COMMON, "prefix": SECTION,
        "question": QUESTION, "output": 0, "order": "round-robin", "sequential": True,
    },
}  # fmt: skip


def find(bench: Bench) -> Findings:
    """The same traffic without a cache, with the tree and with 16-token blocks."""
    off = bench.run(TRAFFIC, "cache off", cache="off")
    tree = bench.run(TRAFFIC, "radix tree")
    blocks = bench.run(TRAFFIC, "16-token blocks", cache="blocks", page_size=16, pages=512)
    rows = [
        exact("without reuse: prompt tokens computed", off.report.totals.computed_tokens, 86_016, "tokens", HANDBOOK),
        exact("radix tree: prompt tokens computed", tree.report.totals.computed_tokens, 6_144, "tokens", HANDBOOK),
        exact(
            "16-token blocks: prompt tokens computed", blocks.report.totals.computed_tokens, 6_144, "tokens", HANDBOOK
        ),
    ]
    setup = (
        f"{SECTIONS * EACH} requests of {COMMON + SECTION + QUESTION:,} tokens, one after the other: {COMMON:,} instruction tokens for all, one of "
        f"{SECTIONS} sections of {SECTION}, a question of {QUESTION} of their own. Room for everything ({COMMON:,} + {SECTIONS} x {SECTION} + "
        f"{SECTIONS * EACH} x {QUESTION} = {ONCE:,} tokens); {ALL:,} prompt tokens in all. Whole blocks meet every border here, so both caches find the same."
    )
    return Findings(setup, rows, tree)


PLAN = Plan(
    "handbook", "How many prompt tokens do 64 questions on one handbook cost with a prefix cache, and without?",
    "exact", "seconds", "seconds", find,
)  # fmt: skip
