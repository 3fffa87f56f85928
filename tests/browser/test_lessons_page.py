"""The Lessons page in a browser: the course, a lesson's runs at their moments, the quiz, the teacher's plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.serving import Served, sideways
from tests.browser.test_axe import faults
from workbench.course import progress
from workbench.course.cards import card, cards

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser-2")]


@pytest.fixture(autouse=True)
def _own_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADIX_PROGRESS", str(tmp_path / "progress.json"))


def open_lessons(watched: Any, served: Served, part: str = "all") -> Any:
    page = watched.page
    page.goto(f"{served.url}lessons#{part}")
    page.wait_for_selector(".rw-parts[data-ready]", timeout=20_000)
    return page


def test_the_course_is_listed_and_a_run_opens_in_the_lab_at_its_moment(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = open_lessons(open_page(), scripted)
    assert page.locator(".rw-course li").count() == len(cards())
    assert faults(page) == [] and sideways(page, [(1440, 900), (1024, 768)]) == []
    page.click("a[data-lesson=L2]")
    assert page.inner_text("section:not([hidden]) h2") == f"L2: {card('L2').title}" and page.url.endswith("#lesson=L2")
    page.go_back()
    assert page.locator(".rw-course").is_visible()
    page.go_forward()
    page.click("button[data-run=grow]:text('what the third prompt finds')")
    page.wait_for_selector(".radix-player[data-ready=true]", timeout=20_000)
    page.wait_for_function("document.querySelector('.rp-place')?.innerText.startsWith('event 28 of')")
    assert "request=R3" in page.url and "L2: three prompts" in page.inner_text("#shown")


def test_the_quiz_answers_at_once_with_the_reason_and_remembers(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = open_lessons(open_page("phone", dark=True), scripted, "lesson=L2")
    assert sideways(page, [(390, 844)]) == []
    first, second = card("L2").quiz[:2]
    wrong = next(option for option in first.options if option != first.right)
    page.get_by_label(wrong, exact=True).first.check()
    assert page.inner_text("fieldset[data-grade=wrong] .rw-because").startswith(f"✗ Not so: “{first.right}”. {first.because[:30]}")
    page.locator("section:not([hidden]) fieldset[data-question='1']").get_by_label(second.right, exact=True).check()
    assert page.inner_text("fieldset[data-grade=right] .rw-because").startswith(f"✓ Right. {second.because[:30]}")
    assert page.inner_text("section:not([hidden]) [data-score]") == "1 of 2 answered rightly; 4 questions to go."
    assert faults(page) == []
    page.reload()
    page.wait_for_selector(".rw-parts[data-ready]")
    assert page.locator("section:not([hidden]) fieldset[data-grade]").count() == 2


def test_what_the_notebook_has_done_shows_and_the_notebook_can_be_fetched(scripted: Served, open_page: Callable[..., Any]) -> None:
    progress.record("L2", "predictions", "third", {"said": 6, "came": 7, "right": False})
    progress.record("L2", "exercises", "match", True)
    page = open_lessons(open_page(), scripted, "lesson=L2")
    page.wait_for_function("document.querySelector('[data-stand=L2]')?.innerText.includes('1 of 5 predictions revealed (0 as you said), 1 of 1 exercise passed')")
    with page.expect_download() as fetched:
        page.click("section:not([hidden]) .rw-button")
    assert fetched.value.suggested_filename == f"{card('L2').stem}.ipynb"
    assert '"lesson": "L2"' in Path(fetched.value.path()).read_text(encoding="utf-8")


def test_the_teachers_plan_opens_what_it_shows_and_a_run_that_cannot_be_had_says_why(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = open_lessons(open_page(), scripted, "teacher")
    assert page.locator(".rw-stages li .rw-clock").first.inner_text() == "0 to 5 min" and faults(page) == []
    page.click(".rw-parts a[data-part=terms]")
    assert page.locator("dt:text-is('radix tree')").is_visible()
    page.route("**/lessons/L2/runs/**", lambda route: route.fulfill(json={"error": "six runs are waiting"}))
    page.click(".rw-parts a[data-part=teacher]")
    page.click(".rw-stages button[data-run=grow]")
    page.wait_for_selector("#lesson-said.rw-error:text('six runs are waiting')")
    assert page.url.endswith("#teacher")
