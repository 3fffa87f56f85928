"""dfs-weight: walk the cached tree, the branch that most requests wait for first.

Order as SGLang's policy of this name (facts: reference engines.md 2.1): a node weighs what waits in its
subtree; the heavier child first; those that match deeper before those that match at the node itself; those
that match nothing last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.cache.base import PrefixCache
from engine.request import Request


def depth_first(waiting: Sequence[Request], cache: PrefixCache) -> Sequence[int]:
    """Each request's place in the walk (several at one node share it)."""
    paths = [cache.match(r.packed_but_last(), r.namespace).whole_path for r in waiting]
    ends = [path[-1] if path else None for path in paths]
    weight: dict[int, int] = {}
    children: dict[int | None, dict[int, Any]] = {}
    for node in ends:
        at = node
        while at is not None and at.parent is not None:
            weight[at.id] = weight.get(at.id, 0) + 1
            above = at.parent if at.parent.parent is not None else None
            children.setdefault(above.id if above else None, {})[at.id] = at
            at = above
    place: dict[int, int] = {}
    stack: list[tuple[int | None, bool]] = [(None, False)]
    while stack:
        id, done = stack.pop()
        if done:
            if id is not None:
                place[id] = len(place)
            continue
        stack.append((id, True))
        # Pushed lightest first, so that the heaviest comes up next; the older of two equals before the younger.
        stack += [(c, False) for c in sorted(children.get(id, ()), key=lambda c: (weight[c], -c))]
    return [place[node.id] if node is not None else len(place) for node in ends]
