"""The Experiments page in a browser: guess, run, see ours beside the published figures, open a run in the Lab, calculate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.serving import Served, sideways
from tests.browser.test_axe import faults
from workbench import experiments

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser-2")]


def open_experiments(watched: Any, served: Served, hash: str = "") -> Any:
    page = watched.page
    page.goto(f"{served.url}experiments{hash}")
    page.wait_for_selector("#go:not([disabled])", timeout=20_000)
    return page


def choose(page: Any, name: str) -> None:
    page.click(f"#experiments button[data-name='{name}']")
    question = experiments.find(name).question
    page.wait_for_function("q => document.querySelector('#question')?.innerText === q", arg=question)


def run(page: Any) -> None:
    page.click("#go")
    page.wait_for_selector("#said :text('Done in')", timeout=30_000)


def cells(page: Any) -> list[list[str]]:
    page.wait_for_selector("#rows tbody tr", timeout=30_000)
    return page.eval_on_selector_all("#rows tbody tr", "rows => rows.map(r => [...r.children].map(c => c.innerText))")


def test_a_guess_is_asked_before_the_result_is_shown_and_graded_by_it(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = open_experiments(open_page(), scripted)
    choose(page, "capacity")
    run(page)
    page.wait_for_selector("#said :text('or skip the guess')")
    assert not page.locator("#results").is_visible()
    page.click("#say")
    page.wait_for_selector("#said :text('Your guess: write a number, or skip it.')")
    page.fill("#guess-number input", "5")
    page.click("#say")
    assert cells(page)[0][:2] == ["cyclic (A B C D A B C D), room for two: handbooks computed", "8 handbooks"]
    assert page.inner_text("#graded").startswith("You said 5 handbooks; it came to 8 handbooks: you were 3 handbooks too low")
    assert page.locator("#rows tr[data-telling] th").inner_text().startswith("cyclic")
    page.wait_for_selector("#figure-1 .js-plotly-plot .scatterlayer")
    assert "best possible, 47.06 %" in page.inner_text("#figure-1") and not page.locator("#predict").is_visible()
    assert faults(page) == []
    page.click(".rw-head nav a[href='/']")
    page.wait_for_selector(".radix-player[data-ready=true]")
    page.goto(f"{scripted.url}experiments")  # another page of the app and back: it is still there
    assert cells(page)[0][1] == "8 handbooks" and "result=" in page.url
    page.click("#runs a >> nth=1")
    page.wait_for_selector(".radix-player[data-ready=true]", timeout=20_000)
    assert "capacity" in page.inner_text("#shown")


def test_skipped_on_a_dark_phone_exact_rows_stand_beside_the_published_figures(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = open_experiments(open_page("phone", dark=True), scripted, "#experiment=walkthrough")
    page.wait_for_selector("#question:text('three prompts')")
    page.click("#skip")
    page.wait_for_selector("#said :text('Skipped.')")
    run(page)
    assert [[*row[1:2], row[2][:8], *row[3:]] for row in cells(page)] == [[f"{n} tokens", f"{n} tokens", "yes (equal)", "exact"] for n in (0, 6, 7, 0, 4, 4)]
    assert not page.locator("#figure-1").is_visible() and faults(page) == []
    assert sideways(page, [(390, 844)]) == []


def test_a_long_one_can_be_stopped_one_without_its_model_says_so_and_one_that_is_left_waits(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = open_experiments(open_page(), scripted)
    page.get_by_label("Full").check()
    page.click("#go")
    page.wait_for_selector("#stop:not([disabled])")
    page.click("#stop")
    page.wait_for_selector("text=Stopped; nothing is shown.", timeout=60_000)
    choose(page, "overhead")
    page.click("#go")
    page.wait_for_selector("#said [data-kind=error]", timeout=30_000)
    assert "needs the model" in page.inner_text("#said")
    choose(page, "hits")
    page.get_by_label("Quick").check()
    page.click("#go")
    page.wait_for_selector("#said [data-kind=busy]")
    choose(page, "walkthrough")  # what runs goes on, and waits until somebody looks
    page.wait_for_selector("#said :text('is done: choose it in the list')", timeout=30_000)
    choose(page, "hits")
    page.wait_for_selector("#said :text('or skip the guess')")
    page.click("#skip")
    assert cells(page)[0][0].startswith("radix tree, 256 tokens")


def test_a_calculator_answers_as_numbers_change_and_refuses_what_it_cannot_take(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = open_experiments(open_page(), scripted)
    page.click("button[data-name='calculate memory']")
    page.wait_for_selector("#memory-figure .js-plotly-plot")
    assert "32 readers with a copy each take 32 GiB" in page.inner_text("#memory-answer")
    page.fill("#memory-tokens input", "0")
    page.wait_for_selector("#memory-answer :text('tokens: must be a whole number from 1')")
    page.fill("#memory-tokens input", "4096")
    page.wait_for_selector("#memory-answer :text('16 GiB; sharing saves')")
    assert faults(page) == [] and page.locator("#go").is_hidden()
