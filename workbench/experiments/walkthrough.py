"""Three prompts that begin alike: what a radix tree and blocks of four find again."""

from __future__ import annotations

from workbench import scenario as scenarios
from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import HANDBOOK, exact

PUBLISHED = {"radix": (0, 6, 7), "blocks": (0, 4, 4)}
"""Tokens of eight that each prompt reuses."""


def find(bench: Bench) -> Findings:
    """Run the preset once with the tree and once with blocks of four tokens."""
    data = scenarios.as_data(scenarios.load("walkthrough"))
    tree = bench.run(data, "radix tree")
    blocks = bench.run(data, "blocks of four", cache="blocks", page_size=4)
    rows = []
    for words, run, published in (
        ("radix tree", tree, PUBLISHED["radix"]),
        ("blocks of four", blocks, PUBLISHED["blocks"]),
    ):
        for request, expected in zip(run.report.requests, published, strict=True):
            label = f"{words}, prompt {request.id.removeprefix('R')}: reused of {request.prompt_tokens}"
            rows.append(exact(label, request.cached_tokens or 0, expected, "tokens", HANDBOOK))
    setup = (
        "Prompts 10 11 12 13 14 15 then 20 21; 30 31; 20 40, one after the other, in a cache with room for all. "
        "The tree keeps single tokens; the blocks hold four each and are found whole or not at all."
    )
    return Findings(setup, rows, tree)


PLAN = Plan(
    "walkthrough", "How much of three prompts that begin alike does a tree find again, and how much do blocks of four?",
    "exact", "under a second", "under a second", find,
)  # fmt: skip
