"""A headless Chromium for the player's tests: $CHROMIUM, else /usr/bin/chromium, else playwright's own."""

from __future__ import annotations

import os
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


class Watched:
    """A page that remembers what it asked for over the network and what it complained about."""

    def __init__(self, browser: Any, size: str, dark: bool, **options: Any) -> None:
        width, height = SIZES[size]
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", **options
        )
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on("console", lambda m: self.complaints.append(m.text))
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Callable[..., Watched]]:
    """`open_page(size, dark)` gives a fresh page; all of a test's pages must end without a complaint."""
    opened: list[Watched] = []

    def make(size: str = "desktop", dark: bool = False, **options: Any) -> Watched:
        opened.append(Watched(chromium, size, dark, **options))
        return opened[-1]

    yield make
    for watched in opened:
        watched.context.close()
        assert watched.complaints == []


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
