"""The Experiments page in a browser: an experiment runs, its rows stand beside the published figures, it can be stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.serving import Served
from workbench import experiments

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


def open_experiments(watched: Any, served: Served) -> Any:
    page = watched.page
    page.goto(f"{served.url}experiments")
    page.wait_for_selector("#go:not([disabled])", timeout=20_000)
    return page


def choose(page: Any, name: str) -> None:
    question = experiments.find(name).question
    page.click("#experiment input")
    page.get_by_role("option", name=question, exact=True).click()
    page.wait_for_function("q => document.querySelector('#note').innerText.includes(q)", arg=question)


def cells(page: Any) -> list[list[str]]:
    return page.eval_on_selector_all("#rows tbody tr", "rows => rows.map(r => [...r.children].map(c => c.innerText))")


def test_exact_rows_stand_beside_the_published_figures(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = open_experiments(open_page(), scripted)
    choose(page, "walkthrough")
    page.click("#go")
    page.wait_for_selector("#rows tbody tr", timeout=30_000)
    assert [row[1:] for row in cells(page)] == [[f"{n} tokens", f"{n} tokens", "yes (equal)", "exact"] for n in (0, 6, 7, 0, 4, 4)]
    assert not page.locator("#figure").is_visible()


def test_a_replay_shows_its_figure_and_nothing_scrolls_sideways(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = open_experiments(open_page("phone"), scripted)
    choose(page, "capacity")
    page.click("#go")
    page.wait_for_selector("#figure .js-plotly-plot .scatterlayer", timeout=30_000)
    assert "best possible, 47.06 %" in page.inner_text("#figure")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_long_one_can_be_stopped_and_another_run(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = open_experiments(open_page(), scripted)
    page.get_by_label("Full").check()
    page.click("#go")
    page.wait_for_selector("#stop:not([disabled])")
    page.click("#stop")
    page.wait_for_selector("text=Stopped; nothing is shown.", timeout=60_000)
    page.get_by_label("Quick").check()
    choose(page, "branch-lru")
    page.click("#go")
    page.wait_for_selector("#rows tbody tr", timeout=30_000)
    assert cells(page)[0][1] == "608 tokens"


def test_without_a_model_an_experiment_that_needs_one_says_so(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = open_experiments(open_page(), scripted)
    choose(page, "overhead")
    page.click("#go")
    page.wait_for_selector("#said [data-kind=error]", timeout=30_000)
    assert "needs the model" in page.inner_text("#said")
