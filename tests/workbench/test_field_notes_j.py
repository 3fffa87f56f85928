"""Field notes J, the server's part: what tabs that come and go, and ticks without an end, leave behind."""

from __future__ import annotations

import asyncio
import gc
import secrets
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.browser.serving import SCRIPTED, Served
from workbench import app as application
from workbench import scenario as scenarios
from workbench.ui.runs import Gate, Run

FEW = 4
"""Sessions that Gradio remembers in this test, so that the bound is reached."""
SLACK = 600_000
"""Bytes: what may come and go. A session weighs some 130 KB, so ten that stayed would weigh twice as much."""


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(application, "SESSIONS", FEW)
    app = Served(str(tmp_path / "no-such-model"))
    yield app
    app.close()


class Tabs:
    """Clients that do what a page does: load, send events, follow a run, and go."""

    def __init__(self, served: Served, run: Run) -> None:
        self.served, self.run = served, run
        self.http = httpx.Client(base_url=served.url, timeout=60)
        config = self.http.get("config").json()
        names = {c["id"]: c["props"].get("elem_id") for c in config["components"]}
        fired = {(names.get(target), event): d for d in config["dependencies"] for target, event in d["targets"]}
        self.chosen, self.ticked = fired["preset", "input"], fired["head", "tick"]

    def send(self, session: str, event: dict[str, Any], *data: Any) -> None:
        filled = [*data, *[""] * (len(event["inputs"]) - len(data))]
        answer = self.http.post("gradio_api/run/predict", json={"fn_index": event["id"], "data": filled, "session_hash": session})
        assert answer.status_code == 200, answer.text

    def open_and_close(self) -> None:
        """One tab: the page, a preset, the first events of the run that is going on, and away in the middle of it."""
        session = secrets.token_hex(6)
        assert self.http.get("").status_code == 200
        self.send(session, self.chosen, SCRIPTED, "a prefix", "a question")
        with self.http.stream("GET", f"runs/{self.run.id}/events") as stream:
            assert any(line.startswith("id: ") for line in stream.iter_lines())

    def tick(self, session: str, times: int) -> None:
        """The question that each page asks once a second; the server's whole answer is a few bytes, a tenth of them Gradio's."""
        for i in range(times):
            assert self.http.get("model").status_code == 200
            if i % 10 == 0:
                self.send(session, self.ticked)


def traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def tasks(run: Run) -> int:
    """What is under way in the server's event loop, which the run's viewers live in."""

    async def count() -> int:
        return len(asyncio.all_tasks())

    loop = run.feed._loop
    assert loop is not None
    return asyncio.run_coroutine_threadsafe(count(), loop).result(10)


@pytest.mark.parametrize(("count", "ticks"), [(10, 100), pytest.param(50, 20_000, marks=pytest.mark.slow)])
def test_j3_ticks_and_tabs_that_come_and_go_leave_the_server_as_it_was(served: Served, count: int, ticks: int) -> None:
    """J3: 20,000 timer ticks, 50 tabs opened and closed. Server memory flat; the event log's bound is held in test_feed."""
    run = Run(scenarios.parse({"name": "watched", "engine": {"executor": "puppet", "pages": 40}, "requests": [{"tokens": "A8", "max_new_tokens": 8}]}), gate=Gate(True))
    served.worker.offer(run)
    tabs = Tabs(served, run)
    tracemalloc.start()
    try:
        for _ in range(FEW + 3):
            tabs.open_and_close()  # until as many sessions are remembered as ever will be
        tabs.tick("one", 20)
        until_nobody_watches(run)
        before, start = tasks(run), traced()
        for _ in range(count):
            tabs.open_and_close()
        until_nobody_watches(run)
        after_tabs = traced()
        tabs.tick("one", ticks)
        after_ticks = traced()
    finally:
        tracemalloc.stop()
        run.halt()
    assert tasks(run) <= before + 1
    assert after_tabs - start < SLACK
    assert after_ticks - after_tabs < SLACK / 4


def until_nobody_watches(run: Run) -> None:
    deadline = time.monotonic() + 20
    while run.feed.viewers:
        assert time.monotonic() < deadline, f"{run.feed.viewers} streams were left open"
        time.sleep(0.01)
