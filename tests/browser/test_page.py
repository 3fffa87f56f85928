"""The page as a new user meets it: a fresh browser profile, every button, a clean console and a clean log."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.browser.conftest import SIZES
from tests.browser.serving import SCRIPTED, Served, choose, opened, run, sideways, unfold
from workbench import presets
from workbench import scenario as scenarios

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser-1")]

MODEL_TIMEOUT = 180_000
"""Milliseconds: the first start may have to convert the weights."""


def test_the_page_opens_on_a_recorded_run_and_says_so(served: Served, open_page: Callable[..., Any]) -> None:
    watched = open_page(fresh=True)
    page = opened(watched, served.url)
    assert "Recorded run" in page.inner_text("#shown")
    assert page.locator(".radix-player").get_attribute("data-run") == "recorded-handbook"
    assert page.locator("h1:visible").count() == 1
    assert not [u for u in watched.requests if not u.startswith((served.url, "data:", "blob:"))]


def test_the_first_page_weighs_at_most_half_a_megabyte(served: Served, open_page: Callable[..., Any]) -> None:
    watched = open_page(fresh=True)
    session = watched.context.new_cdp_session(watched.page)
    session.send("Network.enable")
    received: list[int] = []
    session.on("Network.loadingFinished", lambda e: received.append(int(e["encodedDataLength"])))
    opened(watched, served.url)
    assert 100_000 < sum(received) <= 500_000


def test_a_scripted_preset_runs_and_the_cache_off_arm_stands_beside(served: Served, open_page: Callable[..., Any]) -> None:
    watched = open_page()
    page = opened(watched, served.url)
    choose(page, SCRIPTED)
    run(page)
    assert "13 of 24 prompt tokens were reused" in page.inner_text("#message")
    assert "simulated" in page.inner_text("#shown")
    page.click("#compare")
    page.wait_for_selector(".rw-compare[data-ready=true]")
    words = page.inner_text(".rw-compare")
    assert "identical" in words and "11 with the cache, 24 without" in words and "simulated" in words
    page.click(".rw-compare summary")
    assert page.locator(".rw-compare tbody tr").count() == 3
    assert sideways(page, SIZES.values()) == []


def test_scrubbing_back_and_forth_shows_other_moments(served: Served, open_page: Callable[..., Any]) -> None:
    page = opened(open_page(), served.url)
    assert page.inner_text(".rp-place").startswith("event 236 of 236 · after step 48 of 48 · ")
    last = int(page.locator(".radix-player").get_attribute("data-seq"))
    page.keyboard.press("Home")
    page.wait_for_selector(".radix-player[data-seq='0']")
    page.keyboard.press("End")
    page.wait_for_selector(f".radix-player[data-seq='{last}']")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector(f".radix-player[data-seq='{last - 1}']")


def shortened(page: Any, sections: int, tokens: int) -> None:
    """Leave the first sections of the handbook on the page, and ask for answers of so many tokens whatever they say."""
    data = yaml.safe_load(unfold(page, "handbook"))
    for request in data["requests"]:
        system = request["messages"][0]
        system["content"], cut = system["content"].split(f"\n\n{sections + 1}. ")
        assert cut
        request |= {"max_new_tokens": tokens, "ignore_eos": True}
    page.fill("#yaml textarea", yaml.safe_dump(data, sort_keys=False))
    page.wait_for_function("document.querySelector('#preset input')?.value.includes('my own scenario')")


@pytest.mark.model
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["two sections", "whole"])
def test_the_real_model_serves_the_handbook_in_both_arms(whole: bool, served: Served, open_page: Callable[..., Any]) -> None:
    watched = open_page(fresh=True)
    page = opened(watched, served.url)
    page.wait_for_selector("#model-chip[data-status=ready]", timeout=MODEL_TIMEOUT)
    page.wait_for_function("document.querySelector('#estimate')?.innerText.includes('estimated')")
    if not whole:
        shortened(page, sections=2, tokens=4)
    run(page, timeout=60_000)
    assert "measured time" in page.inner_text("#shown")
    report = served.worker.runs.get(page.locator(".radix-player").get_attribute("data-run")).report
    assert [r.cached_tokens / r.prompt_tokens > 0.8 for r in report.requests] == [False, True, True]
    assert report.requests[2].cached_tokens > (1000 if whole else 200)
    page.click("#compare")
    page.wait_for_selector(".rw-compare[data-ready=true]", timeout=90_000)
    assert page.get_attribute(".rw-compare [data-equal]", "data-equal") == "true"
    assert "sooner" in page.inner_text(".rw-compare")
    keys = page.evaluate("Object.keys(localStorage)")
    assert [k for k in keys if not k.startswith("radix")] == []
    assert not [u for u in watched.requests if not u.startswith((served.url, "data:", "blob:"))]


@pytest.mark.model
def test_stop_ends_a_run_and_the_next_one_is_served(served: Served, open_page: Callable[..., Any]) -> None:
    page = opened(open_page(), served.url)
    page.wait_for_selector("#model-chip[data-status=ready]", timeout=MODEL_TIMEOUT)
    shortened(page, sections=1, tokens=400)
    page.click("#run")
    page.wait_for_selector("#stop:not([disabled])")
    page.click("#stop")
    page.wait_for_function("document.querySelector('#message')?.innerText.startsWith('Stopped')", timeout=30_000)
    choose(page, SCRIPTED)
    run(page)
    assert "Done" in page.inner_text("#message")


def test_nothing_scrolls_sideways(served: Served, open_page: Callable[..., Any]) -> None:
    page = opened(open_page("phone"), served.url)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert sideways(page, SIZES.values()) == []


def test_an_impossible_pool_is_refused_by_name_and_nothing_is_lost(served: Served, open_page: Callable[..., Any]) -> None:
    page = opened(open_page(), served.url)
    choose(page, SCRIPTED)
    page.fill("#pages input", "0")
    page.keyboard.press("Tab")
    page.wait_for_selector("#wrong[data-kind=error]")
    assert "engine.pages" in page.inner_text("#wrong") and "1" in page.inner_text("#wrong")
    page.fill("#pages input", "32")
    page.keyboard.press("Tab")
    page.wait_for_selector("#wrong", state="detached")
    run(page)


def test_the_scenario_can_be_edited_and_what_is_wrong_with_it_is_said(served: Served, open_page: Callable[..., Any]) -> None:
    page = opened(open_page(), served.url)
    choose(page, SCRIPTED)
    text = unfold(page, "walkthrough")
    page.fill("#yaml textarea", text.replace("pages: 32", "pagez: 32"))
    page.keyboard.press("End")
    page.keyboard.type("  ")  # as somebody types: one change after another
    page.wait_for_selector("#wrong")
    assert "engine.pagez: unknown key" in page.inner_text("#wrong")
    page.click("#run")
    page.wait_for_selector("#message[data-kind=error]")
    page.fill("#yaml textarea", text.replace("pages: 32", "pages: 40"))
    page.wait_for_function("document.querySelector('#pages input')?.value === '40'")
    run(page)


def test_single_steps_then_the_rest(served: Served, open_page: Callable[..., Any]) -> None:
    page = opened(open_page(), served.url)
    choose(page, SCRIPTED)
    page.click("#step")
    page.wait_for_function("document.querySelector('#message')?.innerText.includes('Step by step')")
    page.wait_for_selector(".radix-player[data-ended=false]")
    page.wait_for_function("/event (\\d+) so far/.exec(document.querySelector('#message')?.innerText)[1] === document.querySelector('.rp-range')?.max")
    assert re.match(r"event (\d+) of \1 · step 1 of 1 · ", page.inner_text(".rp-place"))
    first = int(page.locator(".radix-player").get_attribute("data-events"))
    page.wait_for_selector("#step:not([disabled])")
    page.click("#step")
    page.wait_for_function(f"+document.querySelector('.radix-player')?.dataset.events > {first}")
    page.wait_for_selector("#run:not([disabled])")
    page.click("#run")
    page.wait_for_function("document.querySelector('#message')?.innerText.startsWith('Done')")


HOSTILE = '<img src=x onerror="window.evil=1">'


BAD = [
    ("a.jsonl", b"not json\n", "neither a scenario, a trace nor a workload"),
    ("b.jsonl", b'{"schema_version":99}\n', "schema_version is 99"),
    ("c.jsonl", b"", "empty"),
    ("d.jsonl", b'{"schema_version":1}\n{"kind":"run.started","seq":0,"t":0.0,"step":1,"pages":4,"page_', "line 2"),
    ("e.yaml", b"engine: [", "YAML"),
    ("f.yaml", b"requests: []", "requests"),
    ("g.yaml", HOSTILE.encode() + b": 1", "unknown key"),
]


def test_bad_uploads_get_a_clear_message_and_do_no_harm(served: Served, open_page: Callable[..., Any], tmp_path: Any) -> None:
    page = opened(open_page(), served.url)
    page.click("#folded > button")
    for name, content, says in BAD:
        path = tmp_path / name
        path.write_bytes(content)
        page.set_input_files("#folded input[type=file]", str(path))
        page.wait_for_selector(f"#message[data-kind=error] >> text={says}")
        assert page.evaluate("window.evil") is None
    choose(page, SCRIPTED)
    run(page)


def test_an_uploaded_trace_is_shown(served: Served, open_page: Callable[..., Any], tmp_path: Any) -> None:
    page = opened(open_page(), served.url)
    path = tmp_path / "mine.jsonl"
    path.write_bytes(Path("tests/golden/walkthrough.jsonl").read_bytes().replace("10 … 15 20 21".encode(), HOSTILE.replace('"', "'").encode()))
    page.click("#folded > button")
    page.set_input_files("#folded input[type=file]", str(path))
    page.wait_for_selector(".radix-player[data-events='70']")
    assert "Opened trace" in page.inner_text("#shown")
    assert page.evaluate("window.evil") is None


def test_without_a_model_the_page_still_opens_on_the_recorded_run(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = opened(open_page(), scripted.url)
    page.wait_for_selector("#model-chip[data-status=failed]", timeout=60_000)
    page.wait_for_function("document.querySelector('#model-failure')?.innerText.includes('could not be loaded')")
    choose(page, SCRIPTED)
    run(page)


def test_every_preset_is_offered_by_its_question(served: Served, open_page: Callable[..., Any]) -> None:
    page = opened(open_page(), served.url)
    page.click("#preset input")
    assert page.locator("ul[role=listbox] [role=option]").count() == len(presets.preset_names()) + 2


def test_why_is_answered_from_the_trace_and_a_moment_can_be_sent(served: Served, open_page: Callable[..., Any]) -> None:
    page = opened(open_page(), served.url)
    choose(page, SCRIPTED)
    run(page)
    page.click(".rp-main canvas >> nth=0", position={"x": 40, "y": 20})
    page.wait_for_function("document.querySelector('.rp-why')?.innerText.includes('tokens')")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    seq = page.locator(".radix-player").get_attribute("data-seq")
    page.wait_for_function(f"location.hash.includes('seq={seq}') && location.hash.includes('run=')")
    where = page.evaluate("location.hash")
    with page.expect_download() as saved:
        page.click("#shown a:text('save as one page')")
    assert saved.value.suggested_filename == f"walkthrough-{page.locator('.radix-player').get_attribute('data-run')}.html"
    assert f'"seq": {seq}, "node": ' in Path(saved.value.path()).read_text(encoding="utf-8")
    other = opened(open_page(), served.url + where)
    other.wait_for_selector(f".radix-player[data-seq='{seq}']")
    assert other.locator(".radix-player").get_attribute("data-run") == page.locator(".radix-player").get_attribute("data-run")


def test_the_compare_page_lays_arms_side_by_side(served: Served, open_page: Callable[..., Any]) -> None:
    watched = open_page()
    page = watched.page
    page.goto(served.url + "compare")
    page.wait_for_selector("#go")
    page.fill("#arms textarea", "fcfs:engine.policy=fcfs\nlpm:engine.policy=lpm")
    page.click("#go")
    page.wait_for_selector("#dots .js-plotly-plot", timeout=60_000)
    words = page.inner_text("#words")
    assert "fcfs: 1,052 of 6,784" in words and "lpm: 4,800 of 6,784" in words and "identical" in words
    assert page.locator("#pairs tbody tr").count() == 16
    assert "First tokens in lpm against fcfs: sooner for" in words
    page.click("#pairs tr[data-request=R6] button")
    page.wait_for_selector("#pairs .rw-told a >> nth=1")
    told = page.inner_text("#pairs .rw-told")
    assert told.startswith("fcfs R6 (C question 4) reused 400 of its 424 prompt tokens") and "lpm R6 (C question 4) reused" in told
    page.wait_for_function("[...document.querySelectorAll('#dots .rw-chosen')].map((e) => e.textContent).join() === 'R6'")
    assert sideways(page, SIZES.values()) == []
    page.reload()
    page.wait_for_selector("#pairs tr[data-request=R6] + .rw-told a >> nth=1")
    assert page.inner_text("#words") == words and page.inner_text("#pairs .rw-told") == told
    assert page.input_value("#arms textarea") == "fcfs:engine.policy=fcfs\nlpm:engine.policy=lpm"
    where = page.get_attribute("#pairs .rw-told a >> nth=1", "href")
    lab = opened(open_page(), served.url.rstrip("/") + where)
    lab.wait_for_function("document.querySelector('.rp-why-line')?.innerText.startsWith('R6 (C question 4) reused')")
    assert lab.locator(".radix-player").get_attribute("data-run") in where
    page.fill("#arms textarea", "only:engine.policy=lpm")
    page.click("#go")
    page.wait_for_selector("#message[data-kind=error]")
    assert "2 to 4" in page.inner_text("#message")
    page.goto("about:blank")
    page.goto(served.url + "compare#cmp=never-was")
    page.wait_for_selector("#message[data-kind=error]")
    assert "gone" in page.inner_text("#message") and not page.is_visible("#results")
    assert not [u for u in watched.requests if not u.startswith((served.url, "data:", "blob:"))]


def test_a_run_from_the_address_has_its_own_note_until_a_preset_is_looked_at(served: Served, open_page: Callable[..., Any]) -> None:
    page = opened(open_page(), served.url)
    choose(page, SCRIPTED)
    run(page)
    note = (scenarios.load(presets.titles()[SCRIPTED]).note or "").strip()
    other = opened(open_page(), page.url)
    other.wait_for_selector(f"#shown >> text={note[:40]}")
    assert not other.is_visible("#note")
    other.click("#preset input")
    other.wait_for_selector("#note", state="visible")
