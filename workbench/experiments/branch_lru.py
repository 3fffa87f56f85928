"""What is left of a long prompt when memory is short: its beginning, or pages that nobody can find."""

from __future__ import annotations

from typing import Any

from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import SERVING, Row, told, within
from workbench.report import TreeNode
from workbench.runner import Run

PAGE, HANDBOOK, QUESTION, VISITOR, ROUNDS = 16, 1024, 16, 528, 5
PAGES = 104
"""Room for the handbook with a question, one visitor, and six pages."""
PINNED_FOR = 10_000
"""Steps; longer than the run."""

ARMS: dict[str, dict[str, Any]] = {
    "blocks, tail first": {"cache": "blocks", "block_order": "tail-first"},
    "blocks, head first": {"cache": "blocks", "block_order": "head-first"},
    "radix tree, page by page": {"cache": "radix", "eviction_unit": "page"},
    "radix tree, whole leaves": {"cache": "radix", "eviction_unit": "leaf"},
    "radix tree, handbook pinned": {"cache": "radix", "pin_budget": 0.7},
}


def traffic(pin: int) -> dict[str, Any]:
    """A question on the handbook, two visitors with long prompts of their own, and so on; one after the other."""
    requests: list[dict[str, Any]] = []
    for turn in range(ROUNDS):
        requests.append(
            {
                "label": f"handbook, question {turn + 1}",
                "tokens": f"A{HANDBOOK}+Q{chr(97 + turn)}{QUESTION}",
                "pin": 0 if turn else pin,
            }
        )
        requests += [
            {"label": f"visitor {2 * turn + i + 1}", "tokens": f"{chr(66 + 2 * turn + i)}{VISITOR}"} for i in range(2)
        ]
    for i, request in enumerate(requests):
        request |= {"id": f"R{i + 1}", "max_new_tokens": 0, **({"after": f"R{i}"} if i else {})}
    return {
        "name": "branch-lru",
        "engine": {"executor": "puppet", "page_size": PAGE, "pages": PAGES},
        "requests": requests,
    }


def unreachable(node: TreeNode) -> int:
    """Tokens that are kept and can no longer be found."""
    return (0 if node.reachable else node.tokens) + sum(unreachable(child) for child in node.children)


def find(bench: Bench) -> Findings:
    """The same traffic under every rule of who goes first."""
    runs = {
        arm: bench.run(traffic(PINNED_FOR if "pinned" in arm else 0), arm, **settings) for arm, settings in ARMS.items()
    }
    rows: list[Row] = []
    for arm, run in runs.items():
        low, high, rule = {
            "blocks, tail first": (1, None, "more than nothing: a usable beginning"),
            "blocks, head first": (0, 0, "nothing"),
            "radix tree, page by page": (1, None, "more than nothing: a usable beginning"),
            "radix tree, handbook pinned": (HANDBOOK, HANDBOOK, "the whole handbook"),
        }.get(arm, (None, None, None))
        label, ours = f"{arm}: handbook tokens that a later question finds, on average", found(run)
        rows.append(
            told(label, ours, "tokens", "replay")
            if rule is None
            else within(label, ours, low, high, "tokens", "replay", rule=rule, source=SERVING)
        )
    for arm in ("blocks, tail first", "blocks, head first"):
        low, high, rule = (1, None, "more than nothing") if "head" in arm else (0, 0, "nothing")
        label = f"{arm}: tokens kept at the end that nobody can find"
        rows.append(
            within(label, unreachable(runs[arm].report.tree), low, high, "tokens", "replay", rule=rule, source=SERVING)
        )
    setup = (
        f"{ROUNDS} questions of {QUESTION} tokens on one handbook of {HANDBOOK:,}; after each, two visitors with prompts of {VISITOR} of their own. Pages of "
        f"{PAGE}, {PAGES} of them: the second visitor always needs room that the handbook has. Tail first and page by page take from a prompt's end, so its beginning "
        "stays usable; head first takes its first blocks, without which the others are never found again, though they keep their pages."
    )
    why = "The write-up prints no figures; asserted is what it says: branch-wise eviction keeps a usable prefix, block-wise eviction leaves unreachable tails."
    return Findings(setup, rows, runs["blocks, head first"], why)


def found(run: Run) -> float:
    """Tokens of the handbook found in the cache, averaged over all questions but the first."""
    asked = [
        r
        for r, spec in zip(run.report.requests, run.scenario.requests, strict=True)
        if (spec.label or "").startswith("handbook")
    ]
    return sum(min(r.cached_tokens or 0, HANDBOOK) for r in asked[1:]) / (len(asked) - 1)


PLAN = Plan(
    "branch-lru", "Memory is short: does the cache keep the beginning of a long prompt, or pages that nobody can find?",
    "replay", "a second", "a second", find,
)  # fmt: skip
