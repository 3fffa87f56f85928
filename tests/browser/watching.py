"""A run that goes on step by step at a test's word, and pages that watch it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.browser.serving import Served
from workbench import scenario as scenarios
from workbench.ui.runs import Gate, Run


class Stepped(Run):
    """Waits for leave before each step, and counts how often it has come to wait: in between, events may still come."""

    rests = 0

    def halted(self) -> bool:
        self.rests += 1
        return super().halted()

    def step(self, steps: int) -> None:
        """Take some steps, and come to rest again."""
        for _ in range(steps):
            before = self.rests
            self.gate.step()
            until(lambda before=before: self.rests > before or self.ended)


def stepped_run(served: Served) -> Iterator[Stepped]:
    """Some 50 steps with evictions; at rest after the first."""
    requests = [{"id": f"R{i}", "tokens": f"{'AB'[i % 2]}12+{c}9", "at_step": 4 * i, "max_new_tokens": 6} for i, c in enumerate("CDEFGHIJKLMN")]
    run = Stepped(scenarios.parse({"name": "watched", "engine": {"executor": "puppet", "pages": 80}, "requests": requests}), gate=Gate(True))
    served.worker.offer(run)
    until(lambda: run.rests > 0)
    yield run
    run.halt()


def until(true: Callable[[], bool]) -> None:
    """Wait for something that pages do not tell."""
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, "it did not come to pass within a minute"
        time.sleep(0.01)


def wait_for_events(page: Any, run: Run) -> None:
    """Wait until a page shows this run and can go to all of its events."""
    page.wait_for_function(
        "([run, last]) => document.querySelector('.radix-player')?.dataset.run === run && document.querySelector('.rp-range')?.max === last",
        arg=[run.id, str(len(run.lines) - 1)], timeout=110_000,
    )  # fmt: skip
