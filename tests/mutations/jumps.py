"""Faults of jump-forward: what a draft may leave behind, or let through."""

from __future__ import annotations

from typing import Any

from tests.mutations.registry import mutation, swap, wrap


@mutation
def takes_a_draft_without_looking() -> None:
    from engine.executor import scripted

    right = scripted.settle

    def settle(walk: Any, draft: Any, ends: Any, pick: Any) -> Any:
        return right(walk, draft, ends, lambda i, allowed: draft[i] if i < len(draft) else pick(i, allowed))

    swap(scripted, "settle", settle)


@mutation
def counts_the_kv_of_a_refused_draft() -> None:
    from engine.constrained import Constrained

    def count(right: Any, self: Any, row: Any, looks: Any, new: Any) -> Any:
        row.request.kv += row.drafted - max(len(new) - 1, 0)
        return right(self, row, looks, new)

    wrap(Constrained, "count", count)


@mutation
def keeps_the_pages_of_a_refused_draft() -> None:
    from engine.scheduler.holdings import Holdings

    swap(Holdings, "shrink", lambda self, request, keep: [])


@mutation
def leaves_the_automaton_where_a_cut_run_ended() -> None:
    from engine.constrained import Constrained

    swap(Constrained, "keep", lambda self, request, looks, count: None)


@mutation
def forgets_the_walk_of_a_retracted_request() -> None:
    from engine.scheduler.scheduler import Scheduler

    def retract(right: Any, self: Any, request: Any, **by: Any) -> None:
        right(self, request, **by)
        if request.walk is not None:
            request.walk.back(min(1, len(request.output)))

    wrap(Scheduler, "_retract", retract)
