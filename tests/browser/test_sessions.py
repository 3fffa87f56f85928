"""Many tabs and sessions on one server: everybody sees all of a run, nobody sees what another types."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser.serving import SCRIPTED, Served, choose, opened
from workbench import scenario as scenarios
from workbench.replay import Replay, digest
from workbench.ui.runs import Gate, Run

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

HIDE = """(hidden) => {
  Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
}"""
TABS = 7


@pytest.fixture
def stepped(served: Served) -> Iterator[Run]:
    """A run of some 40 steps that waits for leave before each."""
    requests = [{"id": f"R{i}", "tokens": f"A9+{c}5", "at_step": 3 * i, "max_new_tokens": 6} for i, c in enumerate("BCDEFGHIJK", 1)]
    engine = {"executor": "puppet", "pages": 40}
    run = Run(scenarios.parse({"name": "watched", "engine": engine, "requests": requests}), gate=Gate(True))
    served.worker.offer(run)
    yield run
    run.halt()


def step(run: Run, steps: int) -> None:
    """Let a run take some steps, and wait until it has."""
    for _ in range(steps):
        before = len(run.lines)
        run.gate.step()
        until(lambda before=before: len(run.lines) > before or run.ended)


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, "it did not come to pass within a minute"
        time.sleep(0.01)


def wait_for_events(page: Any, run: Run) -> None:
    """Wait until a page shows this run and can go to all of its events."""
    page.wait_for_function(
        "([run, last]) => document.querySelector('.radix-player').dataset.run === run && document.querySelector('.rp-range').max === last",
        arg=[run.id, str(len(run.lines) - 1)], timeout=110_000,
    )  # fmt: skip


def test_seven_tabs_of_one_browser_see_all_of_a_run_and_still_can_be_used(
    served: Served, stepped: Run, open_page: Callable[..., Any]
) -> None:
    """A browser opens six connections to one server; neither open tabs nor streams may use them up."""
    watched = open_page()
    pages = [watched.page, *(watched.context.new_page() for _ in range(TABS - 1))]
    for page in pages:
        page.on("console", lambda m: watched.complaints.append(m.text))
        opened(type("Tab", (), {"page": page}), f"{served.url}#run={stepped.id}")
    for page in pages:
        step(stepped, 2)
        wait_for_events(page, stepped)
    page = pages[5]
    choose(page, SCRIPTED)
    page.click("#run")
    page.wait_for_function("document.querySelector('#message').dataset.kind === 'busy'")
    stepped.gate.open()
    page.wait_for_function("document.querySelector('#message').innerText.startsWith('Done')")
    assert stepped.status == "done"
    want = digest(Replay(stepped.trace().events).at(len(stepped.lines) - 1).canonical())
    for other in pages[:5] + pages[6:]:
        wait_for_events(other, stepped)
        other.wait_for_selector(".radix-player[data-ended=true]")
        assert other.evaluate("document.querySelector('.radix-player').dataset.following") == "true"
        other.wait_for_function("want => document.querySelector('.radix-player').dataset.digest === want", arg=want)
    assert stepped.feed.viewers == 0


def test_a_hidden_tab_lets_go_of_its_stream_and_resumes_without_a_lost_event(
    served: Served, stepped: Run, open_page: Callable[..., Any]
) -> None:
    page = opened(open_page(), f"{served.url}#run={stepped.id}")
    step(stepped, 4)
    wait_for_events(page, stepped)
    for _ in range(3):
        page.evaluate(HIDE, True)
        until(lambda: stepped.feed.viewers == 0)
        seen = page.get_attribute(".rp-range", "max")
        step(stepped, 5)
        assert page.get_attribute(".rp-range", "max") == seen
        page.evaluate(HIDE, False)
        wait_for_events(page, stepped)
        assert stepped.feed.viewers == 1
    page.evaluate(HIDE, True)
    stepped.gate.open()
    until(lambda: stepped.ended)
    page.evaluate(HIDE, False)
    wait_for_events(page, stepped)
    page.wait_for_selector(".radix-player[data-ended=true]")
    lines = page.evaluate("fetch(location.hash.replace(/.*run=([^&]*).*/, '/runs/$1.jsonl')).then((r) => r.text())").splitlines()
    assert [json.loads(line)["seq"] for line in lines[1:]] == list(range(len(stepped.lines)))
    assert "Run of just now" in page.inner_text("#shown")


def test_a_moment_of_a_run_that_is_still_going_can_be_sent(served: Served, stepped: Run, open_page: Callable[..., Any]) -> None:
    step(stepped, 10)
    page = opened(open_page(), f"{served.url}#run={stepped.id}&seq=20")
    page.wait_for_selector(".radix-player[data-seq='20'][data-following=false]")
    step(stepped, 3)
    wait_for_events(page, stepped)
    assert page.locator(".radix-player").get_attribute("data-seq") == "20"
    page.click("#shown button")
    page.wait_for_selector(f".radix-player[data-seq='{len(stepped.lines) - 1}'][data-following=true]")
    page.click("#shown button")
    step(stepped, 1)
    wait_for_events(page, stepped)
    assert page.locator(".radix-player").get_attribute("data-following") == "false"


def test_what_one_session_types_and_runs_is_not_seen_by_another(served: Served, open_page: Callable[..., Any]) -> None:
    one, other = opened(open_page(), served.url), opened(open_page(), served.url)
    secret = "the combination of the safe is 9071"
    one.click("#preset input")
    one.get_by_role("option", name="What about my own prefix and questions?", exact=True).click()
    one.wait_for_function("document.querySelector('#note').innerText.includes('Your own prefix')")
    one.click("#prefix textarea")
    one.keyboard.press("Control+A")
    one.keyboard.type(secret, delay=20)  # each key is an event of its own, and the last one counts
    one.click("#folded > button")
    one.wait_for_function("s => document.querySelector('#yaml textarea').value.includes(s)", arg=secret)
    other.reload()
    late = opened(open_page(), served.url)
    for page in (other, late):
        page.wait_for_selector(".radix-player[data-ready=true]")
        page.click("#folded > button")
        page.wait_for_selector("#yaml textarea")
        assert secret not in page.content() and secret not in page.input_value("#yaml textarea")
        assert page.locator(".radix-player").get_attribute("data-run") == "recorded-handbook"
    for address in ("runs", "runs/", "config"):
        answer = late.request.get(served.url + address)
        assert secret not in answer.text()


def test_a_run_that_the_server_has_forgotten_is_said_to_be(served: Served, open_page: Callable[..., Any]) -> None:
    watched = open_page()
    page = watched.page
    page.goto(f"{served.url}#run=never-was")
    page.wait_for_function("document.querySelector('#shown')?.innerText.includes('no such run')")
    watched.complaints.clear()  # the browser itself notes the 404
    page.goto("about:blank")
