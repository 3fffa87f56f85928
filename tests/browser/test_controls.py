"""What somebody has set when Run is pressed is what runs: pasted, typed fast, or turned before a preset had come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.serving import SCRIPTED, Served, choose, opened, run, unfold

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser-2")]

OWN = "What about my own prefix and questions?"


def ran(page: Any, served: Served) -> Any:
    """The scenario of the run that the page shows."""
    return served.worker.runs.get(page.locator(".radix-player").get_attribute("data-run")).scenario


def pick(page: Any, knob: str, value: str) -> None:
    """Choose from one of the knobs that are lists."""
    page.click(f"#{knob} input")
    page.click(f"ul[role=listbox] [role=option]:has-text('{value}')")


def start(page: Any, stop: bool = False) -> None:
    """Press Run at once, and wait until another run is shown and has ended; with `stop` it is ended as soon as it is shown."""
    before = page.locator(".radix-player").get_attribute("data-run")
    page.click("#run")
    page.wait_for_function(f"document.querySelector('.radix-player')?.dataset.run !== '{before}'")
    if stop:
        page.click("#stop")
    page.wait_for_selector(f"#message:has-text('{'Stopped' if stop else 'Done'}')")


def test_a_knob_turned_right_after_a_preset_was_chosen_runs_that_preset_with_that_knob(served: Served, open_page: Callable[..., Any]) -> None:
    page = opened(open_page(), served.url)
    page.click("#preset input")
    page.click(f"ul[role=listbox] [role=option]:has-text({SCRIPTED!r})")
    pick(page, "policy", "lof")
    pick(page, "eviction", "lfu")
    start(page)
    scenario = ran(page, served)
    assert (scenario.name, scenario.engine.policy, scenario.engine.eviction) == ("walkthrough", "lof", "lfu")
    assert page.input_value("#policy input") == "lof" and page.input_value("#eviction input") == "lfu"


def test_a_knob_that_cannot_be_keeps_run_from_running_anything(served: Served, open_page: Callable[..., Any]) -> None:
    page = opened(open_page(), served.url)
    choose(page, SCRIPTED)
    for box, value, good in (("pages", "-5", "48"), ("page-size", "0", "1"), ("pages", "", "48")):
        shown = page.locator(".radix-player").get_attribute("data-run")
        page.fill(f"#{box} input", value)
        page.click("#run")
        page.wait_for_selector(f"#message[data-kind=error] >> text=engine.{box.replace('-', '_')}: ")
        assert page.locator(".radix-player").get_attribute("data-run") == shown, (box, value)
        page.fill(f"#{box} input", good)
        run(page)


@pytest.mark.model
def test_questions_that_were_pasted_or_typed_just_before_run_are_asked_whole(served: Served, open_page: Callable[..., Any]) -> None:
    page = opened(open_page(), served.url)
    page.wait_for_selector("#model-chip[data-status=ready]", timeout=180_000)
    page.click("#preset input")
    page.click(f"ul[role=listbox] [role=option]:has-text({OWN!r})")
    page.wait_for_selector("#questions textarea")
    # As a paste arrives: the whole text in one event, no key.
    page.focus("#prefix textarea")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text("You look after a harbour.")
    page.focus("#questions textarea")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("May I bring my dog?\nWhere do ferries land?")
    start(page, stop=True)  # what was asked is all that is looked at
    messages = [r.messages for r in ran(page, served).requests]
    assert [m[-1]["content"] for m in messages] == ["May I bring my dog?", "Where do ferries land?"]
    assert messages[0][0]["content"] == "You look after a harbour."


def test_an_edited_text_is_somebodys_own_and_the_menu_says_so(served: Served, open_page: Callable[..., Any]) -> None:
    page = opened(open_page(), served.url)
    choose(page, SCRIPTED)
    text = unfold(page, "walkthrough")
    page.fill("#yaml textarea", text.replace("pages: 32", "pages: 41"))
    page.wait_for_function("document.querySelector('#preset input')?.value.includes('my own scenario')")
    start(page)
    assert ran(page, served).engine.pages == 41


def test_refused_requests_are_said_to_be_refused(served: Served, open_page: Callable[..., Any]) -> None:
    page = opened(open_page(), served.url)
    choose(page, SCRIPTED)
    page.fill("#pages input", "4")
    start(page)
    assert "3 of 3 requests were refused: R1 needs 9 pages, there are 4." in page.inner_text("#message")
