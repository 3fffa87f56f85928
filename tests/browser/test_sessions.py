"""Many tabs and sessions on one server: everybody sees all of a run, nobody sees what another types."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser.serving import SCRIPTED, Served, choose, opened
from tests.browser.watching import Stepped, stepped_run, until, wait_for_events
from workbench.replay import Replay, digest

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser-2")]

HIDE = """(hidden) => {
  Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
}"""


@pytest.fixture
def stepped(served: Served) -> Iterator[Stepped]:
    yield from stepped_run(served)


@pytest.mark.parametrize("tabs", [4, pytest.param(7, marks=pytest.mark.slow)])
def test_many_tabs_of_one_browser_see_all_of_a_run_and_still_can_be_used(
    tabs: int, served: Served, stepped: Stepped, open_page: Callable[..., Any]
) -> None:
    """A browser opens six connections to one server; neither open tabs nor streams may use them up. Of four, one waits for its turn."""
    watched = open_page("phone", reduced_motion="reduce")
    pages = [watched.page, *(watched.context.new_page() for _ in range(tabs - 1))]
    for page in pages:
        page.emulate_media(reduced_motion="reduce")  # seven pictures that move cost more than what is looked at here
        page.set_viewport_size(watched.page.viewport_size)
        opened(type("Tab", (), {"page": page}), f"{served.url}#run={stepped.id}")
    for page in pages[::3]:  # each has to wait for its turn
        page.bring_to_front()
        stepped.step(2)
        wait_for_events(page, stepped)
    page = pages[-2]
    page.bring_to_front()
    choose(page, SCRIPTED)
    page.click("#run")
    page.wait_for_function("document.querySelector('#message')?.dataset.kind === 'busy'")
    stepped.gate.open()
    page.wait_for_function("document.querySelector('#message')?.innerText.startsWith('Done')")
    assert stepped.status == "done"
    want = digest(Replay(stepped.trace().events).at(len(stepped.lines) - 1).canonical())
    for other in [one for one in pages if one is not page]:
        other.bring_to_front()
        wait_for_events(other, stepped)
        other.wait_for_selector(".radix-player[data-ended=true]")
        assert other.evaluate("document.querySelector('.radix-player').dataset.following") == "true"
        other.wait_for_function("want => document.querySelector('.radix-player')?.dataset.digest === want", arg=want)
    assert stepped.feed.viewers == 0


def test_a_hidden_tab_lets_go_of_its_stream_and_resumes_without_a_lost_event(
    served: Served, stepped: Stepped, open_page: Callable[..., Any]
) -> None:
    page = opened(open_page(), f"{served.url}#run={stepped.id}")
    stepped.step(4)
    wait_for_events(page, stepped)
    for _ in range(3):
        page.evaluate(HIDE, True)
        until(lambda: stepped.feed.viewers == 0)
        seen = page.get_attribute(".rp-range", "max")
        stepped.step(5)
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


def test_a_moment_of_a_run_that_is_still_going_can_be_sent(served: Served, stepped: Stepped, open_page: Callable[..., Any]) -> None:
    stepped.step(10)
    page = opened(open_page(), f"{served.url}#run={stepped.id}&seq=20")
    page.wait_for_selector(".radix-player[data-seq='20'][data-following=false]")
    stepped.step(3)
    wait_for_events(page, stepped)
    assert page.locator(".radix-player").get_attribute("data-seq") == "20"
    page.click("#shown button")
    page.wait_for_selector(f".radix-player[data-seq='{len(stepped.lines) - 1}'][data-following=true]")
    page.click("#shown button")
    stepped.step(1)
    wait_for_events(page, stepped)
    assert page.locator(".radix-player").get_attribute("data-following") == "false"


def test_what_one_session_types_and_runs_is_not_seen_by_another(served: Served, open_page: Callable[..., Any]) -> None:
    one, other = opened(open_page(), served.url), opened(open_page(), served.url)
    secret = "the combination of the safe is 9071"
    one.click("#preset input")
    one.get_by_role("option", name="What about my own prefix and questions?", exact=True).click()
    one.wait_for_function("document.querySelector('#note')?.innerText.includes('Your own prefix')")
    one.click("#prefix textarea")
    one.keyboard.press("Control+A")
    one.keyboard.type(secret, delay=20)  # each key is an event of its own, and the last one counts
    one.click("#folded > button")
    one.wait_for_function("s => document.querySelector('#yaml textarea')?.value.includes(s)", arg=secret)
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
    page.goto("about:blank")
    watched.complaints.clear()  # the browser itself notes the 404
