"""Preemption (`policy: priority`): whom a more important request displaces.

As in SGLang (facts: reference engines.md 2.7): a victim's priority is lower by more than the threshold, the
least important and latest goes first, and nobody goes unless that makes room enough.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.cache.base import Match
from engine.config import EngineConfig
from engine.request import Request


def victims(
    request: Request, match: Match, running: Sequence[Request], short: int, over_cap: bool, config: EngineConfig
) -> list[Request]:
    """Those to retract so that `request` gets `short` more pages and, when `over_cap`, a place to run.

    Empty when not enough may go. Who has reached its retraction bound is spared.
    """
    may_go = sorted(
        (r for r in running if request.priority - r.priority > config.preempt_threshold and r.retractions < config.retract_max),
        key=lambda r: (r.priority, -r.index),
    )
    chosen: list[Request] = []
    wanted = {n.id for n in match.path}
    while (short > 0 or (over_cap and not chosen)) and may_go:
        victim = may_go.pop(0)
        chosen.append(victim)
        short -= _freed(victim, chosen, wanted)
    return chosen if short <= 0 else []


def _freed(victim: Request, chosen: Sequence[Request], wanted: set[int]) -> int:
    """Pages that could be had once it is gone: its own, and those of the tree that only the chosen hold."""
    pages = len(victim.pages) - victim.shared
    at = victim.node
    while at is not None and at.parent is not None:
        if at.id not in wanted and at.locks == sum(1 for r in chosen if _holds(r, at)):
            pages += len(at.pages)
        at = at.parent
    return pages


def _holds(request: Request, node: object) -> bool:
    at = request.node
    while at is not None:
        if at is node:
            return True
        at = at.parent
    return False
