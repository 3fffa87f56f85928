"""A step in flight: handed to the executor, not yet looked at.

With `overlap` the next step is planned while this one is in flight. A device runs one step at a time, in the order
in which they were handed over, so a page that is freed meanwhile can be given away at once: whoever gets it writes
it in a later step.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from engine.executor.base import Executor, StepResult
from engine.scheduler.scheduler import Plan


@dataclass(slots=True)
class Flight:
    """One step: its plan, what planning took and when it was handed over (seconds), and what is coming back.

    `ahead`: it was planned while the step before was in flight.
    """

    step: int
    plan: Plan
    plan_seconds: float
    launched: float
    ahead: bool
    coming: Future[StepResult]

    @property
    def ends(self) -> float:
        """When its loads and its forward end, on a virtual clock (seconds). A forward that raised took no time."""
        return self.launched + self.plan.load_seconds + (0.0 if self.coming.exception() else self.coming.result().forward_seconds)


class Runway:
    """Hands plans to an executor: at once, or to a thread of their own where planning goes on beside them."""

    def __init__(self, executor: Executor, beside: bool) -> None:
        self._executor = executor
        self._thread = ThreadPoolExecutor(1, "forward") if beside else None

    def launch(self, plan: Plan, step: int) -> Future[StepResult]:
        """Run a plan; whatever is raised comes back in the future."""

        def forward() -> StepResult:
            for row in plan.rows:
                fail = row.request.fail_at_step
                if fail is not None and fail <= step:
                    raise RuntimeError(f"{row.request.id} was told to fail at step {fail}")
            return self._executor.execute(plan.rows)

        return self._thread.submit(forward) if self._thread is not None else _at_once(forward)


def _at_once(work: Callable[[], StepResult]) -> Future[StepResult]:
    done: Future[StepResult] = Future()
    try:
        done.set_result(work())
    except Exception as error:  # noqa: BLE001 - whatever the executor raises, its rows fail and the engine goes on
        done.set_exception(error)
    return done
