"""The Decode page: tapes side by side, the walk in the automaton, the mask of each token, errors at their place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from engine import events as ev
from tests.browser.conftest import SIZES, Watched
from tests.browser.serving import Served
from tests.browser.test_axe import THEMES, faults
from tests.workbench.decoded import RECORD, known, run
from workbench.decoding import decode
from workbench.ui.runs import Run

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser-1")]

HOSTILE = '<img src=x onerror="window.evil=1">'
DATE = "What is left to choose in a date?"


def held(served: Served, mode: str, **more: Any) -> str:
    """A puppet's run among those that the server remembers."""
    trace = run(mode, **more) if more else known(mode)
    one = Run.of_trace(trace, "uploaded")
    served.worker.runs.add(one)
    return one.id


def opened(served: Served, watched: Any, mode: str = "verified", where: str = "", **more: Any) -> Any:
    """The page on two runs that the server remembers."""
    page = watched.page
    page.goto(f"{served.url}decode#run={held(served, mode, **more)}&plain={held(served, 'off', **more)}{where}")
    page.wait_for_selector(".rd-root[data-ready=true]", timeout=20_000)
    return page


FITS = "(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth + 1)(document.querySelector('.rd-automaton'))"
"""The automaton is drawn anew in its place, a while after the window has another size."""


def at(page: Any) -> tuple[int, int]:
    root = page.locator(".rd-root")
    return int(root.get_attribute("data-arm")), int(root.get_attribute("data-at"))


@pytest.fixture(scope="module")
def both(scripted: Served, chromium: Any) -> Iterator[Watched]:
    """The page on two runs, opened once for the tests that only look at it."""
    watched = Watched(chromium)
    watched.show("desktop", False)
    opened(scripted, watched)
    yield watched
    watched.context.close()


@pytest.fixture
def tapes(both: Watched) -> Iterator[Any]:
    """The page on two runs at the first token, with the focus nowhere."""
    both.page.set_viewport_size(dict(zip(("width", "height"), SIZES["desktop"], strict=True)))
    both.page.evaluate("document.activeElement.blur()")
    go(both.page, 0)
    yield both.page
    assert both.heard() == []


def go(page: Any, at: int) -> None:
    """Choose a token of the first tape by the address."""
    page.evaluate("at => { location.hash = location.hash.replace(/&(at|arm)=[^&]*/g, '') + `&at=${at}`; }", at)
    page.wait_for_selector(f".rd-root[data-arm='0'][data-at='{at}']")


def test_two_tapes_stand_aligned_with_each_token_by_its_source(scripted: Served, both: Watched, tapes: Any) -> None:
    page = tapes
    for arm, mode in enumerate(("verified", "off")):
        d = decode(known(mode))
        chips = page.eval_on_selector_all(
            f".rd-tok[data-arm='{arm}']", "all => all.map(c => [c.dataset.source, c.innerText])"
        )
        assert [source for source, _ in chips] == [t.source for t in d.tokens]
        assert [text for _, text in chips] == [str(t.text).replace(" ", "␣") for t in d.tokens]
    assert page.locator(".rd-ghost").count() == len(decode(known("verified")).back)
    edges = page.evaluate("""() => [...document.querySelectorAll('.rd-tok[data-arm="0"]')].map(a => {
        const b = document.querySelector(`.rd-tok[data-arm="1"][data-at="${a.dataset.at}"]`);
        return Math.abs(a.getBoundingClientRect().right - b.getBoundingClientRect().right); })""")
    assert max(edges) < 1
    assert not [u for u in both.requests if not u.startswith((scripted.url, "data:", "blob:"))]


def test_the_words_tell_passes_and_whether_the_answers_agree(tapes: Any) -> None:
    page = tapes
    words = page.inner_text(".rd-words")
    jump, plain = decode(known("verified")), decode(known("off"))
    assert f"{jump.passes} passes for 27 tokens, plain decoding {plain.passes} for 27" in words
    assert "identical, token for token" in words and "simulated" in words
    assert "simulated time" in page.inner_text("#shown")


def test_arrow_keys_step_along_a_tape_and_between_the_two(tapes: Any) -> None:
    page = tapes
    go(page, 5)
    assert at(page) == (0, 5)
    page.keyboard.press("ArrowRight")
    assert at(page) == (0, 6)
    page.keyboard.press("End")
    assert at(page) == (0, 26)
    page.keyboard.press("ArrowRight")
    assert at(page) == (0, 26)
    page.keyboard.press("Home")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("ArrowDown")
    assert at(page) == (1, 10)
    page.keyboard.press("ArrowUp")
    assert at(page) == (0, 10)
    assert page.evaluate("document.activeElement.dataset.at") == "10"


def test_typing_in_a_box_steps_nothing(tapes: Any) -> None:
    page = tapes
    go(page, 5)
    page.focus("#prompt textarea")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    assert at(page) == (0, 5)


def test_the_mask_of_the_chosen_token_is_told(tapes: Any) -> None:
    page = tapes
    d = decode(known("verified"))
    jumped = next(i for i, t in enumerate(d.tokens) if t.source == "jumped")
    page.click(f".rd-tok[data-arm='0'][data-at='{jumped}']")
    line = page.inner_text(".rp-mask .rp-why-line")
    assert f"Token {jumped + 1} of 27" in line and "the model agreed" in line
    assert f"allowed {d.tokens[jumped].allowed} of 65,536" in line
    assert page.get_attribute(".rp-mask .rp-why-line", "aria-live") == "polite"


def test_the_walk_goes_along_in_the_automaton(tapes: Any) -> None:
    page = tapes
    d = decode(known("verified"))
    for i, token in enumerate(d.tokens):
        where = page.inner_text(".rd-where")
        assert f"state {token.state}" in where and f"state {token.target}" in where
        marked = page.evaluate("document.querySelector('.ra-here').dataset.state ?? 'edge'")
        assert marked in (str(token.state), "edge")
        if marked == "edge":
            assert page.locator(".rd-dot-here").is_visible()
            assert "within the forced run" in where
        if i + 1 < len(d.tokens):
            page.keyboard.press("ArrowRight")


def test_tape_and_automaton_have_their_tables(tapes: Any) -> None:
    page = tapes
    d = decode(known("verified"))
    page.get_by_role("button", name="the tape as a table").click()
    rows = page.locator(".rp-tape [data-arm='0'] tbody tr")
    assert rows.count() == len(d.tokens) + d.rolled_back
    page.get_by_role("button", name="look at token 12", exact=True).first.click()
    assert at(page) == (0, 11)
    assert page.locator(".rp-tape tr[aria-current=true]").count() == 1
    page.get_by_role("button", name="the automaton as a table").click()
    assert d.grammar is not None
    assert page.locator(".rp-walk tbody tr").count() == len(d.grammar.edges)
    assert not page.locator(".rd-automaton").is_visible()
    page.get_by_role("button", name="the automaton as a table").click()
    assert page.locator(".ra").is_visible()
    page.get_by_role("button", name="the tape as a table").click()
    assert page.locator(".rd-tok").first.is_visible()


def test_an_address_brings_back_runs_arm_and_token(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = opened(scripted, open_page())
    page.click(".rd-tok[data-arm='1'][data-at='7']")
    other = open_page().page
    assert page.evaluate("location.pathname") == "/decode"
    other.goto(page.url)
    other.wait_for_selector(".rd-root[data-ready=true]")
    assert at(other) == (1, 7)
    assert "Run from the address" in other.inner_text("#shown")


def test_an_address_of_a_forgotten_run_says_so(scripted: Served, open_page: Callable[..., Any]) -> None:
    watched = open_page()
    page = watched.page
    page.goto(f"{scripted.url}decode#run=no-such-run&at=3")
    page.wait_for_selector(".rd-root[data-ready=gone]")
    assert "This run is gone" in page.inner_text("#shown")
    assert not page.locator(".rd-main").is_visible()
    # The browser itself notes an answer of 404.
    assert all("404" in c for c in watched.complaints)
    watched.complaints.clear()


def test_the_page_opens_on_a_recorded_run_and_says_so(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = on_page(scripted, open_page())
    assert page.get_attribute(".rd-root", "data-ready") == "true"
    assert "Recorded run of the real engine" in page.inner_text("#shown")
    assert page.locator(".rd-tok[data-arm='1']").count() > 20
    assert "identical, token for token" in page.inner_text(".rd-words")


def test_the_lab_leads_to_a_run_with_a_grammar(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = open_page().page
    page.goto(f"{scripted.url}#run={held(scripted, 'verified')}")
    link = page.get_by_role("link", name="see how it was decoded")
    link.wait_for()
    page = open_page().page
    page.goto(f"{scripted.url[:-1]}{link.get_attribute('href')}")
    page.wait_for_selector(".rd-root[data-ready=true]")
    assert page.locator(".rd-tok").count() == 27


def test_a_grammar_without_an_automaton_is_told_by_its_backend(scripted: Served, open_page: Callable[..., Any]) -> None:
    trace = ev.Trace(run("verified").header, keep=True)
    for event in run("verified").events:
        if isinstance(event, ev.GrammarCompiled):
            event = msgspec.structs.replace(event, edges=[], ends=[], backend="another", states=0)
        trace.events.append(event)
    one = Run.of_trace(trace, "uploaded")
    scripted.worker.runs.add(one)
    page = open_page().page
    page.goto(f"{scripted.url}decode#run={one.id}")
    page.wait_for_selector(".rd-root[data-ready=true]")
    assert "compiled by another, which shows no automaton" in page.inner_text(".rd-where")
    assert page.locator(".ra").count() == 0


def test_one_run_alone_has_one_tape(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = open_page().page
    page.goto(f"{scripted.url}decode#run={held(scripted, 'unverified')}")
    page.wait_for_selector(".rd-root[data-ready=true]")
    assert page.locator(".rd-tok[data-arm='1']").count() == 0
    assert "jump-forward saved" in page.inner_text(".rd-lead")


def test_answers_that_part_show_where(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = opened(scripted, open_page(), mode="unverified")
    assert page.locator(".rd-parts").count() == 1
    assert "They part at token 6" in page.inner_text(".rd-words")


def test_no_text_of_an_answer_or_a_grammar_becomes_markup(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = opened(scripted, open_page(), regex=re.escape(HOSTILE) + "[a-z]{3}", tokens=80)
    page.get_by_role("button", name="the automaton as a table").click()
    assert "<img" in page.inner_text(".rp-walk")
    assert page.evaluate("window.evil") is None and page.locator(".rd img").count() == 0


@pytest.mark.parametrize("size", SIZES)
def test_nothing_scrolls_sideways_and_no_text_is_too_small(tapes: Any, size: str) -> None:
    page = tapes
    page.set_viewport_size(dict(zip(("width", "height"), SIZES[size], strict=True)))
    page.wait_for_function(FITS)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    small = page.evaluate("""() => [...document.querySelectorAll('.rd *')].filter(n => n.childElementCount === 0 && n.textContent.trim()
        && n.getClientRects().length && parseFloat(getComputedStyle(n).fontSize) < 11).map(n => n.outerHTML.slice(0, 80))""")
    assert small == []


def test_a_narrower_window_draws_tape_and_automaton_anew(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = opened(scripted, open_page())
    wide = page.evaluate(
        "[document.querySelectorAll('.rd-line').length, document.querySelector('.ra').getBoundingClientRect().height]"
    )
    page.set_viewport_size({"width": 420, "height": 800})
    page.wait_for_function("w => document.querySelector('.ra').getBoundingClientRect().height > w", arg=wide[1])
    assert page.locator(".rd-line").count() > wide[0]


@THEMES
def test_no_serious_fault_by_axe(scripted: Served, open_page: Callable[..., Any], dark: bool) -> None:
    page = opened(scripted, open_page(dark=dark), where="&at=8")
    assert faults(page) == []
    page.get_by_role("button", name="the tape as a table").click()
    page.get_by_role("button", name="the automaton as a table").click()
    assert faults(page, ".rd-main") == [], "tables"


# --- typing a grammar --------------------------------------------------------------------------


def on_page(served: Served, watched: Any) -> Any:
    page = watched.page
    page.goto(served.url + "decode")
    page.wait_for_selector(".rd-root[data-ready=true]", timeout=20_000)
    return page


def test_a_wrong_pattern_is_told_at_its_place_and_nothing_typed_is_lost(
    scripted: Served, open_page: Callable[..., Any]
) -> None:
    page = on_page(scripted, open_page())
    page.get_by_label("Regex").check()
    page.fill("#grammar textarea", "[0-9]{4}-(0[1-9]")
    page.wait_for_selector("#wrong-grammar pre")
    line, caret = page.inner_text("#wrong-grammar pre").split("\n")
    assert line == "[0-9]{4}-(0[1-9]" and caret.index("^") == line.index("(")
    page.click("#go")
    page.wait_for_selector("#said [data-kind=error]")
    assert page.input_value("#grammar textarea") == "[0-9]{4}-(0[1-9]"
    assert page.input_value("#preset-decode input") == "My own"
    page.fill("#grammar textarea", "[0-9]{4}-(0[1-9])")
    page.wait_for_selector("#wrong-grammar pre", state="detached")


def test_what_is_no_json_is_told_with_its_line(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = on_page(scripted, open_page())
    page.get_by_label("JSON schema").check()
    page.fill("#grammar textarea", '{\n  "type": "object",\n  "properties": oops\n}')
    page.wait_for_selector("#wrong-grammar pre")
    line, caret = page.inner_text("#wrong-grammar pre").split("\n")
    assert line.startswith("line 3:") and caret.index("^") == line.index("oops")


def test_a_wrong_schema_is_told_at_its_keyword(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = on_page(scripted, open_page())
    page.fill("#grammar textarea", '{\n  "type": "object",\n  "properties": {"year": {"type": "integr"}}\n}')
    page.wait_for_selector("#wrong-grammar pre")
    assert "#/properties/year/type" in page.inner_text("#wrong")
    line, caret = page.inner_text("#wrong-grammar pre").split("\n")
    assert line.startswith("line 3:") and line[caret.index("^") :].startswith('"type": "integr"')


def test_each_preset_fills_the_boxes(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = on_page(scripted, open_page())
    page.click("#preset-decode input")
    assert page.locator("ul[role=listbox] [role=option]").count() == 6
    page.get_by_role("option", name=DATE, exact=True).click()
    page.wait_for_function("document.querySelector('#grammar textarea')?.value.startsWith('(19|20)')")
    assert page.get_by_label("Regex").is_checked()
    page.wait_for_selector("#spacing", state="hidden")


def test_without_a_model_run_says_what_is_missing(scripted: Served, open_page: Callable[..., Any]) -> None:
    page = on_page(scripted, open_page())
    page.click("#preset-decode input")
    page.get_by_role("option", name=DATE, exact=True).click()
    page.wait_for_function("document.querySelector('#grammar textarea')?.value.startsWith('(19|20)')")
    page.click("#go")
    page.wait_for_selector("#said [data-kind=error]")
    assert "needs the model" in page.inner_text("#said")
    assert page.locator("#go").is_enabled()


# --- with the model ----------------------------------------------------------------------------


@pytest.mark.model
def test_both_arms_run_on_the_real_model_and_stand_side_by_side(served: Served, open_page: Callable[..., Any]) -> None:
    watched = open_page()
    page = on_page(served, watched)
    page.wait_for_selector("#model-chip[data-status=ready]", timeout=180_000)
    page.get_by_label("Regex").check()
    page.fill("#grammar textarea", r'\{"year": (19|20)[0-9]{2}, "city": "[A-Z][a-z]{2,11}"\}')
    page.click("#go")
    page.wait_for_selector(".rd-root[data-ready=true]:not([data-run^=recorded])", timeout=120_000)
    words = page.inner_text(".rd-words")
    assert "identical, token for token" in words and "saved" in words and "As measured in this run" in words
    assert "unmeasured warm-up" in words
    ids = page.evaluate("Object.fromEntries(new URLSearchParams(location.hash.slice(1)))")
    jump, plain = (served.worker.runs.get(ids[key]) for key in ("run", "plain"))
    assert jump is not None and plain is not None
    assert jump.report.totals.jumped_tokens > 0 == plain.report.totals.jumped_tokens
    assert jump.report.requests[0].output_ids == plain.report.requests[0].output_ids
    assert page.locator(".rd-bars tbody tr").count() >= 5
    assert RECORD not in words
    assert not [u for u in watched.requests if not u.startswith((served.url, "data:", "blob:"))]
