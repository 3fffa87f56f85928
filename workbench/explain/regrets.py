"""Regretted evictions: what a run evicted and a later look-up would have found."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from engine import events as ev
from workbench.explain.index import Index
from workbench.replay import State


class Regrets(msgspec.Struct, kw_only=True, frozen=True):
    """What a run's evictions cost it, in tokens that had been stored, were evicted, and were asked for again.

    A token counts once for every look-up that missed it: whoever comes first computes and stores it anew.
    """

    tokens: int
    """Tokens that look-ups missed so."""
    requests: int
    """Requests that missed some."""
    evictions: int
    """Evictions of which something was missed later."""
    worst: list[tuple[int, int]]
    """The evictions (their seq) that cost most, and how many tokens each; at most eight."""


def regrets(events: Iterable[ev.Event]) -> Regrets:
    """Go through a trace once and count."""
    index, state = Index(), State()
    for event in events:
        index.see(event, state)
        state.apply(event)
    wanted = [w for of_node in index.wanted.values() for w in of_node]
    cost: dict[int, int] = {}
    for w in wanted:
        eviction = index.eviction_of.get(w.removed, w.removed)
        cost[eviction] = cost.get(eviction, 0) + w.tokens
    return Regrets(
        tokens=sum(cost.values()),
        requests=len({w.request for w in wanted}),
        evictions=len(cost),
        worst=sorted(cost.items(), key=lambda item: (-item[1], item[0]))[:8],
    )
