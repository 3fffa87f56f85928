"""The app in a thread, and what a user does on its page."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Iterable
from typing import Any

import uvicorn

from workbench import app as application
from workbench import presets
from workbench import scenario as scenarios
from workbench.ui.runs import Runs
from workbench.ui.worker import Worker

SCRIPTED = "How does a tree share and split prefixes?"


class Served:
    """One app on a free port, in a thread; its log is kept."""

    def __init__(self, model: str) -> None:
        self.log: list[str] = []
        handler = logging.Handler(logging.WARNING)
        handler.emit = lambda record: self.log.append(record.getMessage())  # type: ignore[method-assign]
        self.handler = handler
        logging.getLogger().addHandler(handler)
        self.worker = Worker(Runs(), model)
        # Bound before the server starts, on a port that the system picks: two workers may serve at once.
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        config = uvicorn.Config(application.build(self.worker), log_level="warning")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listener]}, daemon=True)
        self.thread.start()
        self.worker.start()
        while not self.server.started:
            assert self.thread.is_alive(), "the server ended before it had started"
            time.sleep(0.05)
        self.url = f"http://127.0.0.1:{self.port}/"

    def close(self) -> None:
        self.worker.close()
        self.server.should_exit = True
        self.thread.join(5)
        logging.getLogger().removeHandler(self.handler)


def opened(watched: Any, url: str) -> Any:
    page = watched.page
    page.goto(url)
    page.wait_for_selector(".radix-player[data-ready=true]", timeout=20_000)
    return page


def choose(page: Any, title: str) -> None:
    page.click("#preset input")
    page.get_by_role("option", name=title, exact=True).click()
    note = scenarios.load(presets.titles()[title]).note or ""
    page.wait_for_function(f"document.querySelector('#note')?.innerText.includes({json.dumps(note[:40])})")


def unfold(page: Any, name: str) -> str:
    """Open the scenario's text, and wait until it is that of the scenario of this name."""
    page.click("#folded > button")
    page.wait_for_function("name => document.querySelector('#yaml textarea')?.value.startsWith(`name: ${name}\\n`)", arg=name)
    text: str = page.input_value("#yaml textarea")
    return text


def run(page: Any, timeout: int = 20_000) -> None:
    """Press Run and wait until it has ended."""
    before = page.locator(".radix-player").get_attribute("data-run")
    page.click("#run")
    page.wait_for_function(
        "b => { const p = document.querySelector('.radix-player'); return p.dataset.run !== b && p.dataset.ended === 'true'; }",
        arg=before, timeout=timeout,
    )  # fmt: skip
    page.wait_for_selector("#run:not([disabled])")


SIDEWAYS = """() => {
  const scrolls = (e) => e && e !== document.body && (['auto', 'scroll'].includes(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
  return [document.documentElement.scrollWidth > innerWidth ? 'the page' : '', ...[...document.querySelectorAll('main *')]
    .filter((e) => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 0.5 && !scrolls(e.parentElement))
    .map((e) => `${e.tagName} ${e.getAttribute('class')}`)].filter(Boolean);
}"""


def sideways(page: Any, sizes: Iterable[tuple[int, int]]) -> list[str]:
    """What sticks out of the window at its right, outside boxes that scroll by themselves, in windows of several sizes.

    Charts take a while to follow the window: what still sticks out some seconds later counts.
    """
    out = []
    for width, height in sizes:
        page.set_viewport_size({"width": width, "height": height})
        for _ in range(100):
            page.wait_for_timeout(60)
            wide = page.evaluate(SIDEWAYS)
            if not wide:
                break
        out += [f"{width}: {what}" for what in wide]
    return out
