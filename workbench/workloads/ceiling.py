"""The best that any order and any eviction could reach for a set of prompts: how much of them need not be computed.

Every distinct page of the tree of all prompts is computed once, by whoever comes first; and every prompt
computes its last token itself, in whole pages what a cache hands out.
"""

from __future__ import annotations

from collections.abc import Sequence


def best_possible(
    prompts: Sequence[Sequence[int]], page_size: int = 1, answers: Sequence[Sequence[int]] | None = None
) -> int:
    """Most prompt tokens that can be reused, with room for everything.

    `answers` are stored as well, all but each one's last token. A bound where arrivals are bound to an
    order; reached by serving shorter prompts first where they are not.
    """
    nodes: dict[tuple[int, tuple[int, ...]], int] = {}
    findable: dict[int, int] = {}
    """Node -> in how many prompts it may be found; those that hold it otherwise compute it anyway."""
    given: set[int] = set()
    for i, prompt in enumerate(prompts):
        stored = [*prompt, *answers[i][:-1]] if answers is not None else prompt
        limit = (len(prompt) - 1) // page_size
        node = 0
        for page in range(len(stored) // page_size):
            key = (node, tuple(stored[page * page_size : (page + 1) * page_size]))
            node = nodes.setdefault(key, len(nodes) + 1)
            if page < limit:
                findable[node] = findable.get(node, 0) + 1
            else:
                given.add(node)
    return page_size * sum(count - (node not in given) for node, count in findable.items())
