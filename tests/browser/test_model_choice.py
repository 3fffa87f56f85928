"""Another model from the page: what it costs is said first, every open page follows, and a failure changes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import engine
from engine import ModelError, hub
from tests.browser.serving import Served, opened, unfold
from tests.engine.tiny_files import tiny_files
from workbench.ui.serving import Offer

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser-1")]

QWEN = hub.Listing({"config.json": 700, "model.safetensors": 988_097_824}, {"BF16": 494_032_768})
READY = "name => document.querySelector('#model-chip[data-status=ready]')?.innerText.startsWith(name)"
LONG = 60_000
"""Milliseconds: a loading measures this machine, which may be busy."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The app on a tiny random model, with another one to choose."""
    base = tmp_path_factory.mktemp("models")
    tiny_files(base / "tiny-b", 2)
    app = Served(str(tiny_files(base / "tiny-a", 1)))
    app.worker.offers.append(Offer(str(base / "tiny-b"), "tiny-b"))
    yield app
    app.close()
    assert [line for line in app.log if "no such luck" not in line] == []


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub answers what we let it; nothing is asked of the real one."""
    monkeypatch.setattr(hub, "listing", lambda name: QWEN)


@pytest.fixture
def on_tiny_a(served: Served) -> Served:
    """However the test before ended, tiny-a is in use."""
    until(lambda: served.worker.on_its_way is None)
    if served.worker.model.shown != "tiny-a":
        served.worker.choose(next(o for o in served.worker.offers if o.label == "tiny-a"), "auto", "auto")
        until(lambda: served.worker.model.shown == "tiny-a")
    return served


def until(true: Callable[[], Any]) -> None:
    for _ in range(LONG // 50):
        if true():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def panel(watched: Any, app: Served) -> Any:
    """The page with the model's panel open."""
    page = opened(watched, app.url)
    page.wait_for_function(READY, arg="tiny", timeout=LONG)
    page.click("#model-panel > button")
    says(page, "In use now.")
    return page


ONE_LIST = "first => { const lists = document.querySelectorAll('ul.option-list'); return lists.length === 1 && lists[0].innerText.includes(first); }"
"""The list that was open before has faded away."""


def says(page: Any, words: str) -> None:
    page.wait_for_function("words => document.querySelector('#model-size')?.innerText.includes(words)", arg=words, timeout=LONG)


def pick(page: Any, box: str, label: str) -> None:
    page.click(f"{box} input")
    page.get_by_role("option", name=label, exact=True).click()


def test_what_a_choice_costs_is_said_before_anything_is_fetched(on_tiny_a: Served, open_page: Callable[..., Any]) -> None:
    watched = open_page()
    page = panel(watched, on_tiny_a)
    assert page.is_disabled("#load-model")
    assert "shared by everyone on this server" in page.inner_text("#model-panel")
    pick(page, "#model", "Qwen2.5-0.5B-Instruct")
    says(page, "Downloads 988 MB from huggingface.co.")
    says(page, "1.98 GB of memory in float32 on cpu")
    pick(page, "#dtype", "bfloat16")
    says(page, "988 MB of memory in bfloat16 on cpu")
    page.wait_for_selector("#load-model:not([disabled])")
    pick(page, "#model", "tiny-b")
    says(page, "Already on this disk, no download.")
    page.wait_for_selector("ul.option-list", state="detached", timeout=10_000)
    page.click("#device input")
    page.wait_for_function(ONE_LIST, arg="auto", timeout=10_000)
    assert page.locator("ul[role=listbox] [role=option]").all_inner_texts()[0].strip().endswith("auto")
    assert {t.strip(" ✓\n") for t in page.locator("ul[role=listbox] [role=option]").all_inner_texts()} == {"auto", *engine.devices()}
    assert on_tiny_a.worker.model.shown == "tiny-a" and on_tiny_a.worker.coming is None
    assert not [u for u in watched.requests if not u.startswith((on_tiny_a.url, "data:", "blob:"))]


def test_without_the_hub_the_size_is_unknown(on_tiny_a: Served, open_page: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def listing(name: str) -> None:
        raise hub.UnreachableError("no network")

    monkeypatch.setattr(hub, "listing", listing)
    page = panel(open_page(), on_tiny_a)
    pick(page, "#model", "Qwen2.5-1.5B-Instruct")
    says(page, "Size unknown: huggingface.co cannot be reached.")


def test_another_model_is_loaded_and_every_open_page_follows(on_tiny_a: Served, open_page: Callable[..., Any]) -> None:
    page, other, third = panel(open_page(), on_tiny_a), panel(open_page("phone"), on_tiny_a), open_page().page
    third.goto(on_tiny_a.url + "compare")
    third.wait_for_function(READY, arg="tiny-a", timeout=LONG)
    rates = on_tiny_a.worker.model.rates
    pick(page, "#model", "tiny-b")
    says(page, "Already on this disk")
    page.click("#load-model")
    for each in (page, other, third):
        each.wait_for_function(READY, arg="tiny-b", timeout=LONG)
    for each in (page, other):
        each.wait_for_function("document.querySelector('#model input')?.value === 'tiny-b'")
        says(each, "In use now.")
        each.wait_for_function("document.querySelector('#estimate')?.innerText.includes('estimated')")
    assert on_tiny_a.worker.model.rates != rates
    assert page.inner_text("#model-said").strip() == ""


def test_a_failure_is_said_and_the_old_model_stays(on_tiny_a: Served, open_page: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str, progress: Any = None) -> None:
        raise ModelError(f"{name}: no such luck")

    monkeypatch.setattr(engine, "fetch_model", fail, raising=False)
    page = panel(open_page(), on_tiny_a)
    pick(page, "#model", "Qwen2.5-0.5B-Instruct")
    says(page, "Downloads 988 MB")
    page.click("#load-model")
    page.wait_for_selector("#model-message[data-kind=error]")
    assert page.inner_text("#model-message") == "Qwen2.5-0.5B-Instruct was not loaded: Qwen/Qwen2.5-0.5B-Instruct: no such luck. tiny-a stays in use."
    assert page.inner_text("#model-chip").startswith("tiny-a")
    assert page.input_value("#model input") == "Qwen2.5-0.5B-Instruct"


def test_a_download_shows_how_far_it_is_and_can_be_stopped(
    on_tiny_a: Served, open_page: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(name: str, progress: Callable[[str, float | None], None]) -> None:
        for _ in range(LONG // 50):
            progress("downloading Qwen2.5-0.5B-Instruct (988 MB)", 0.25)
            time.sleep(0.05)

    monkeypatch.setattr(engine, "fetch_model", fetch, raising=False)
    page, other = panel(open_page(), on_tiny_a), opened(open_page(), on_tiny_a.url)
    pick(page, "#model", "Qwen2.5-0.5B-Instruct")
    says(page, "Downloads 988 MB")
    page.click("#load-model")
    for each in (page, other):
        each.wait_for_selector("#next-chip")
        each.wait_for_function("document.querySelector('#next-chip')?.innerText === 'next: downloading Qwen2.5-0.5B-Instruct (988 MB) 25%'")
        assert each.inner_text("#model-chip").startswith("tiny-a")
    page.click("#stop-loading")
    page.wait_for_function("document.querySelector('#model-message')?.innerText.includes('the download of Qwen2.5-0.5B-Instruct was stopped')")
    other.wait_for_selector("#next-chip", state="detached")
    assert on_tiny_a.worker.model.shown == "tiny-a"


def test_a_scenario_that_names_another_model_is_told_what_to_do(on_tiny_a: Served, open_page: Callable[..., Any]) -> None:
    page = opened(open_page(), on_tiny_a.url)
    text = unfold(page, "handbook")
    for model, words in (("tiny-b", "load it under Model"), ("/etc/passwd", "is not offered here")):
        page.fill("#yaml textarea", text.replace("executor: model", f"executor: model\n  model: {model}"))
        page.wait_for_function("words => document.querySelector('#wrong')?.innerText.includes(words)", arg=words)
        page.click("#run")
        page.wait_for_function("words => document.querySelector('#message[data-kind=error]')?.innerText.includes(words)", arg=words)


@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_the_open_panel_does_not_scroll_sideways(on_tiny_a: Served, open_page: Callable[..., Any], size: str) -> None:
    page = panel(open_page(size), on_tiny_a)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    box, button = page.locator("#model-panel").bounding_box(), page.locator("#load-model").bounding_box()
    assert box["x"] >= 0 and button["x"] + button["width"] <= box["x"] + box["width"]
