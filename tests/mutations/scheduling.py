"""Faults of the scheduler: who is looked at first, who waits, who goes."""

from __future__ import annotations

from typing import Any

from tests.mutations.registry import mutation, swap, wrap


@mutation
def keeps_the_queues_index_in_the_dark_about_evictions() -> None:
    from engine.scheduler.longest import LongestPrefix

    swap(LongestPrefix, "removed", lambda self, node: None)


@mutation
def waits_for_no_prefix_in_flight() -> None:
    from engine.scheduler.barrier import Barrier

    swap(Barrier, "in_flight", lambda self, request, match, running: None)


@mutation
def leaves_the_leaders_no_room_for_each_other() -> None:
    from engine.scheduler.barrier import Barrier

    swap(Barrier, "held", lambda self, request, match: False)


@mutation
def ignores_the_fairness_bound() -> None:
    from engine.scheduler.fairness import Fairness

    swap(Fairness, "before", lambda self, request, queue, to_compute: None)


@mutation
def displaces_an_equal() -> None:
    from engine.scheduler import admission

    right = admission.victims

    def victims(*asked: Any) -> Any:
        *facts, config = asked
        return right(*facts, config.model_copy(update={"preempt_threshold": config.preempt_threshold - 1}))

    swap(admission, "victims", victims)


@mutation
def counts_no_decode_against_the_chunk() -> None:
    from engine.scheduler.scheduler import Scheduler

    wrap(Scheduler, "_prefill_rows", lambda right, self, out, decodes, admit: right(self, out, 0, admit))


@mutation
def retracts_the_last_one_running() -> None:
    from engine.scheduler.scheduler import Scheduler

    def victim(right: Any, self: Any, out: Any) -> Any:
        return right(self, out) or next((r for r in self.running if r not in out), None)

    wrap(Scheduler, "_victim", victim)
