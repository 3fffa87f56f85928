"""The player as a person meets it: an exported file, opened offline, scrubbed, read, and told to on a phone."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks.make_trace import make
from engine import events as ev
from workbench import export, runner, scenario
from workbench.explain import Answer, Explainer
from workbench.explain.saved import Opening
from workbench.replay import Replay, digest
from workbench.ui import player

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser-2")]

EVIL = '<img src=x onerror="window.evil=1"></script><script>window.evil=1</script>'


@cache
def run() -> ev.Trace:
    trace = make(2500, 40, seed=3)
    for key in list(trace.header.texts)[::50]:
        trace.header.texts[key] = EVIL
    return trace


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "run.html"
    path.write_text(export.to_html(run(), title=f"Handbook {EVIL}", note=EVIL), encoding="utf-8")
    return path


def lines(trace: ev.Trace) -> str:
    """The trace as a file."""
    return b"\n".join([ev.encode(trace.header), *(ev.encode(e) for e in trace)]).decode()


def show(watched: Any, path: Path, where: str = "") -> Any:
    """Open the file and wait until the run is there."""
    page = watched.page
    page.goto(f"{path.as_uri()}{where}")
    page.wait_for_selector(".radix-player[data-ready=true]")
    return page


def seq(page: Any) -> int:
    return int(page.locator(".radix-player").get_attribute("data-seq"))


def until(page: Any, expression: str) -> None:
    """Wait for a condition; `wait_for_function` needs eval, which the exported page forbids."""
    for _ in range(400):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(30)
    raise AssertionError(f"never true: {expression}")


def test_exported_file_opens_offline_and_tells_the_state(exported: Path, open_page: Callable[..., Any]) -> None:
    watched = open_page(offline=True)
    page = show(watched, exported, "#seq=1234")
    page.wait_for_selector(".radix-player[data-digest-seq='1234']")
    root = page.locator(".radix-player")
    assert root.get_attribute("data-digest") == digest(Replay(run().events).at(1234).canonical())
    assert root.get_attribute("data-events") == str(len(run()))
    assert [url for url in watched.requests if not url.startswith(("file:", "data:"))] == []
    words = page.locator(".rp-title").inner_text()
    assert "simulated time" in words and "recorded run" in words and "float32" in words


@cache
def told() -> ev.Trace:
    return runner.run(scenario.load("retraction")).trace


def test_a_saved_page_opens_at_its_end_and_says_what_the_app_says(open_page: Callable[..., Any], tmp_path: Path) -> None:
    trace, explainer = told(), Explainer(told())
    path = tmp_path / "told.html"
    path.write_text(export.to_html(trace), encoding="utf-8")
    page = show(open_page(offline=True), path)
    last = len(trace) - 1
    assert seq(page) == last

    def says(answer: Answer, *more: str) -> None:
        until(page, f"document.querySelector('.rp-why-line').textContent === {json.dumps(answer.headline)}")
        for line in (*answer.detail, *more):
            until(page, f"document.querySelector('.rp-why-more').textContent.includes({json.dumps(line)})")

    says(explainer.event(last))
    matched = next(e for e in trace if isinstance(e, ev.RequestMatched) and e.length)
    page.evaluate(f"location.hash = 'seq={matched.seq}'")
    says(explainer.event(matched.seq))
    page.evaluate(f"location.hash = 'seq={matched.seq}&request={matched.request}'")
    says(explainer.request(matched.seq, matched.request))
    gone = next(e for e in trace if isinstance(e, ev.NodeEvicted))
    page.evaluate(f"location.hash = 'seq={last}&node={gone.node}'")
    says(explainer.node(last, gone.node))
    between = gone.seq + 1
    page.evaluate(f"location.hash = 'seq={between}&node={gone.node}'")
    says(explainer.node(gone.seq, gone.node), f"So it stood after event {gone.seq}")


def test_a_saved_page_opens_at_the_moment_it_was_saved_at(open_page: Callable[..., Any], tmp_path: Path) -> None:
    trace = told()
    matched = next(e for e in trace if isinstance(e, ev.RequestMatched) and e.length)
    path = tmp_path / "moment.html"
    path.write_text(export.to_html(trace, opening=Opening(matched.seq, request=matched.request)), encoding="utf-8")
    page = show(open_page(), path)
    assert seq(page) == matched.seq
    headline = Explainer(trace).request(matched.seq, matched.request).headline
    until(page, f"document.querySelector('.rp-why-line').textContent === {json.dumps(headline)}")
    assert show(open_page(), path, "#seq=3").locator(".radix-player").get_attribute("data-seq") == "3", "the address comes first"


def test_a_long_saved_page_says_that_the_app_tells_more(exported: Path, open_page: Callable[..., Any]) -> None:
    page = show(open_page(), exported, "#seq=900")
    until(page, "document.querySelector('.rp-why-more').textContent.includes('only the app tells more')")
    page.evaluate("location.hash = 'seq=0'")
    until(page, "document.querySelector('.rp-why-line').textContent.startsWith('The run starts')")
    page.keyboard.press("End")
    headline = Explainer(run()).event(len(run()) - 1).headline
    until(page, f"document.querySelector('.rp-why-line').textContent === {json.dumps(headline)}")
    until(page, "!document.querySelector('.rp-why-more').textContent.includes('only the app')")


def test_a_moment_set_in_the_address_is_not_lost_to_the_one_that_was_about_to_be_written(exported: Path, open_page: Callable[..., Any]) -> None:
    page = show(open_page(), exported, "#seq=5")
    until(page, "document.querySelector('.radix-player').dataset.seq === '5'")
    # The address is written a while after a move. That while passes as another moment is about to be set: so the
    # write comes after the setting, and before the page is told of it.
    page.evaluate(
        """() => { location.hash = 'seq=6'; return new Promise((done) => addEventListener('hashchange', () => {
          const { port1, port2 } = new MessageChannel();
          port1.onmessage = () => { location.hash = 'seq=20&request=R1'; done(); };
          port2.postMessage('');
          const end = performance.now() + 400; while (performance.now() < end);
        }, { once: true })); }"""
    )
    until(page, "document.querySelector('.radix-player').dataset.seq === '20'")
    until(page, "location.hash.includes('seq=20') && location.hash.includes('request=R1')")
    page.keyboard.press("ArrowRight")
    until(page, "location.hash.includes('seq=21') && location.hash.includes('request=R1')")


def test_no_text_of_a_trace_becomes_markup(exported: Path, open_page: Callable[..., Any]) -> None:
    page = show(open_page(), exported, "#seq=2000&request=R5")
    for button in page.locator("button.rp-twin:has-text('table')").all():
        button.click()
    page.wait_for_selector("[role=treegrid] tr[data-node]")
    assert EVIL in page.locator(".rp-title").inner_text()
    assert "onerror" in page.locator(".rp-selection").inner_text()
    assert page.evaluate("[window.evil === undefined, document.querySelectorAll('img').length]") == [True, 0]


def test_exported_file_is_small() -> None:
    trace = make(10_000, 400, seed=5)
    core = len(player.sources()) + len(player.styles())
    assert len(export.to_html(trace)) - core < 100_000 * len(trace) / 10_000 + 2_000
    assert core < 300_000


def test_keyboard_scrubs(exported: Path, open_page: Callable[..., Any]) -> None:
    page = show(open_page(), exported)
    last = len(run()) - 1
    events = run().events

    def press(key: str) -> int:
        page.keyboard.press(key)
        return seq(page)

    assert press("Home") == 0
    assert press("ArrowRight") == 1
    assert press("Shift+ArrowRight") == 101
    assert press("ArrowLeft") == 100
    assert press("End") == last
    assert press("ArrowRight") == last
    assert press("Home") == 0
    eviction = press("e")
    assert isinstance(events[eviction], ev.Eviction)
    assert eviction == next(e.seq for e in events if isinstance(e, ev.Eviction))
    later = press("e")
    assert later > eviction and press("Shift+E") == eviction
    assert isinstance(events[press("s")], ev.StepPlanned)
    missed = events[press("m")]
    assert isinstance(missed, ev.RequestMatched) and missed.stop != "last token"
    press("Home")
    page.keyboard.press(" ")
    until(page, "+document.querySelector('.radix-player').dataset.seq > 3")
    page.keyboard.press(" ")
    resting = seq(page)
    page.wait_for_timeout(150)
    assert seq(page) == resting


def test_range_input_scrubs_from_the_keyboard_and_is_told(exported: Path, open_page: Callable[..., Any]) -> None:
    page = show(open_page(), exported)
    page.locator(".rp-range").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert seq(page) == 2
    page.locator(".rp-range").fill("900")
    assert seq(page) == 900
    said = "".join(page.evaluate("jsonl => RadixPlayer.why(RadixPlayer.parseJsonl(jsonl), 900)", lines(run())))
    until(page, f"document.querySelector('[aria-live=polite]').textContent === {json.dumps(said)}")


def test_every_kind_has_a_sentence(open_page: Callable[..., Any]) -> None:
    page = open_page().page
    page.set_content("<!doctype html><title>why</title>")
    page.add_script_tag(content=player.sources())
    told = page.evaluate(
        """(trace) => { const t = RadixPlayer.parseJsonl(trace); const out = {};
          for (let i = 0; i < t.length; i++) out[t.kindOf(i)] = RadixPlayer.why(t, i).join(''); return out; }""",
        lines(run()),
    )
    for kind, line in told.items():
        assert line != kind and line.endswith((".", "?")), (kind, line)
        assert "undefined" not in line and "null" not in line and "NaN" not in line, line


def test_tree_table_keeps_arrows_to_itself(exported: Path, open_page: Callable[..., Any]) -> None:
    page = show(open_page(), exported, "#seq=1500")
    page.get_by_role("button", name="tree as a table").click()
    rows = page.locator("[role=treegrid] tr[data-node]")
    live = len(Replay(run().events).at(1500).nodes)
    until(page, f"document.querySelectorAll('[role=treegrid] tr[data-node]').length === {live}")
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert seq(page) == 1500
    page.wait_for_selector("[role=treegrid] tr[aria-selected=true]")
    assert page.locator(".rp-selection .rp-facts").is_visible()
    rows.first.focus()
    page.keyboard.press("ArrowLeft")
    until(page, f"document.querySelectorAll('[role=treegrid] tr[data-node]').length < {live}")


SPY = """
const drawn = (window.drawn = []);
const real = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
  if (text) drawn.push(parseFloat(/([\\d.]+)px/.exec(this.font)[1]));
  return real.call(this, text, ...rest);
};
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_layout_holds(size: str, dark: bool, exported: Path, open_page: Callable[..., Any]) -> None:
    watched = open_page(size, dark, fresh=True)
    watched.page.add_init_script(SPY)
    page = show(watched, exported, "#seq=1800&node=4")
    until(page, "window.drawn.length > 5")
    facts = page.evaluate(
        """() => {
          const box = (s) => document.querySelector(s).getBoundingClientRect();
          const small = [...document.querySelectorAll('.radix-player *')].filter((e) =>
            e.offsetParent && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) &&
            parseFloat(getComputedStyle(e).fontSize) < 11);
          return { wide: document.documentElement.scrollWidth - innerWidth, small: small.length,
            least: Math.min(...window.drawn), tree: box('.rp-tree').top, pool: box('.rp-pool').top,
            treeHeight: box('.rp-tree').height, background: getComputedStyle(document.querySelector('.rp-panel')).backgroundColor,
            scrubber: box('.rp-scrubber').bottom - innerHeight };
        }"""
    )
    assert facts["wide"] <= 0
    assert facts["small"] == 0 and facts["least"] >= 11
    assert facts["tree"] < facts["pool"] and facts["tree"] < (320 if size == "phone" else 200) and facts["treeHeight"] > 250
    assert facts["background"] == ("rgb(26, 31, 38)" if dark else "rgb(255, 255, 255)")
    assert facts["scrubber"] <= 1


def test_live_events_are_followed_and_a_gap_is_told(open_page: Callable[..., Any]) -> None:
    trace = run()
    lines = [json.loads(ev.encode(e)) for e in trace]
    page = open_page(reduced_motion="reduce").page
    page.set_content("<!doctype html><title>live</title><div id=at></div>")
    page.add_script_tag(content=player.sources())
    wanted = page.evaluate(
        """async ([header, first, second, far]) => {
          const p = (window.player = RadixPlayer.mount(document.getElementById('at'), { theme: 'dark' }));
          await p.load({ header, events: [], run: 'live' });
          p.follow(true);
          const out = [p.append(first), p.append(JSON.stringify(far)), p.append(second), p.append(first)];
          return [...out, p.state().seq, p.digest()];
        }""",
        [json.loads(ev.encode(trace.header)), lines[:600], lines[600:1000], lines[1200:1300]],
    )
    assert wanted[:5] == [600, 600, 1000, 1000, 999]
    assert wanted[5] == digest(Replay(trace.events).at(999).canonical())
    page.keyboard.press("Tab")
    page.evaluate("player.step(-1)")
    assert page.locator(".radix-player").get_attribute("data-following") == "false"
