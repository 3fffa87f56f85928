"""A headless Chromium for the player's tests: $CHROMIUM, else /usr/bin/chromium, else playwright's own."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.serving import Served

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

SIZES = {"desktop": (1440, 900), "tablet": (1024, 768), "phone": (390, 844)}


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser. None on this machine: one skip line, and a failure under CI."""
    path = os.environ.get("CHROMIUM") or ("/usr/bin/chromium" if Path("/usr/bin/chromium").exists() else None)
    with sync_api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        except sync_api.Error as error:
            reason = f"no Chromium could be started ({str(error).splitlines()[0]})"
            if os.environ.get("CI"):
                pytest.fail(reason)
            pytest.skip(reason)
        yield browser
        browser.close()


GIVEN_UP = re.compile(r"^AbortError: signal is aborted without reason|Connection errored out")
"""What Gradio says of an answer that it was still waiting for when its page was left."""


class Watched:
    """A window that remembers what its pages asked for over the network and what they complained about.

    Test after test may load its pages here, each a new document in an emptied profile: the browser has the scripts
    compiled, which is two thirds of what it takes to open the app in a new window.
    """

    def __init__(self, browser: Any, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.session = self.context.new_cdp_session(self.page)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.context.on("request", lambda r: self.requests.append(r.url))
        self.left = 0
        """Documents that were left for another one since the test began."""
        self.page.on("framenavigated", lambda frame: self._navigated(frame))
        self.context.on("console", lambda m: self.complaints.append(m.text))
        self.context.on("weberror", lambda e: self.complaints.append(str(e.error)))

    def show(self, size: str, dark: bool, reduced_motion: str = "no-preference", offline: bool = False) -> None:
        """Take the size and the user's wishes that a test asks for, with nothing on record."""
        width, height = SIZES[size]
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion=reduced_motion)
        self.context.set_offline(offline)
        self.requests.clear()
        self.complaints.clear()
        self.left = -1  # the blank page does not count

    def _navigated(self, frame: Any) -> None:
        self.left += frame.parent_frame is None


    def heard(self) -> list[str]:
        """The complaints of all that the pages did until now."""
        for page in self.context.pages:
            page.evaluate("0")  # what was said before the answer has come before it
        return [c for c in self.complaints if not (self.left > 0 and GIVEN_UP.search(c))]

    def leave(self) -> None:
        """Close what was opened beside the page, and keep nothing of it but the browser's cache."""
        for other in self.context.pages:
            if other is not self.page:
                other.close()
        origins = {"/".join(url.split("/")[:3]) for url in self.requests if url.startswith("http")}
        self.page.goto("about:blank")
        for origin in origins:
            kept = "local_storage,cookies,indexeddb,service_workers"
            self.session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": kept})


@pytest.fixture(scope="session")
def windows() -> list[Watched]:
    """The windows that tests use one after the other."""
    return []


@pytest.fixture
def open_page(chromium: Any, windows: list[Watched]) -> Iterator[Callable[..., Watched]]:
    """`open_page(size, dark)` gives an empty page in a window (a browser profile) that no other page of the test has.

    `fresh=True` makes a window for this test alone: a browser that has never been here. All of a test's pages must
    end without a complaint.
    """
    opened: list[Watched] = []
    taken: list[Watched] = []

    def make(size: str = "desktop", dark: bool = False, fresh: bool = False, bypass_csp: bool = False, **wishes: Any) -> Watched:
        if fresh or bypass_csp:
            watched = Watched(chromium, bypass_csp=bypass_csp)
        else:
            if len(taken) == len(windows):
                windows.append(Watched(chromium))
            watched = windows[len(taken)]
            taken.append(watched)
        opened.append(watched)
        watched.show(size, dark, **wishes)
        return watched

    yield make
    heard = []
    for watched in opened:
        try:
            heard += watched.heard()
            if watched in taken:
                watched.leave()
            else:
                watched.context.close()
        except sync_api.Error:  # a page that does not let go is not handed on
            if watched in taken:
                windows.remove(watched)
            watched.context.close()
            raise
    assert heard == []


def _serve(model: str) -> Iterator[Served]:
    app = Served(model)
    yield app
    app.close()
    assert [line for line in app.log if "could not be loaded" not in line] == []


@pytest.fixture(scope="session")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The app without a model: recorded and scripted runs; nothing computes beside the browser."""
    yield from _serve(str(tmp_path_factory.mktemp("no-such-model")))


@pytest.fixture(scope="session")
def modelled() -> Iterator[Served]:
    """The app on the embedded model."""
    yield from _serve("embedded")


@pytest.fixture
def served(request: pytest.FixtureRequest) -> Served:
    """The app, one a worker; with the embedded model for tests that are marked so."""
    app: Served = request.getfixturevalue("modelled" if request.node.get_closest_marker("model") else "scripted")
    return app
