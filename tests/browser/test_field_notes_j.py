"""Field notes J, the page's part: what a live page does over a long time, when nothing happens, and while one looks at it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from benchmarks.make_trace import make
from engine import events as ev
from tests.browser.serving import SCRIPTED, Served, choose, opened, run
from tests.browser.test_fold_in_browser import puppet
from tests.browser.test_player_linked import PAGE
from tests.browser.watching import Stepped, stepped_run, until, wait_for_events
from workbench.ui import player

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser-2")]


@pytest.fixture
def stepped(served: Served) -> Iterator[Stepped]:
    yield from stepped_run(served)


def bare(open_page: Callable[..., Any]) -> Any:
    """A page with the player's script alone."""
    page = open_page().page
    page.set_content(PAGE.format(css=player.styles()))
    page.add_script_tag(content=player.sources())
    return page


def lines(trace: ev.Trace) -> tuple[Any, list[Any]]:
    return json.loads(ev.encode(trace.header)), [json.loads(ev.encode(e)) for e in trace]


STANDS = "(({ digest, digestSeq, ...rest }) => rest)({ ...document.querySelector('.radix-player').dataset })"
"""What a page's picture shows; its digest is worked out when there is time for it."""


def test_j1_two_tabs_have_engines_of_their_own(served: Served, open_page: Callable[..., Any]) -> None:
    """J1: two tabs; one changes the policy and starts from an empty tree. The other's run, tree and controls stay."""
    watched = open_page()
    one = opened(watched, served.url)
    choose(one, SCRIPTED)
    run(one)
    before = one.evaluate(STANDS)
    other = watched.context.new_page()
    other.goto(served.url)
    other.wait_for_selector(".radix-player[data-ready=true]")
    choose(other, SCRIPTED)
    other.click("#policy input")
    other.get_by_role("option", name="lpm", exact=True).click()
    other.fill("#pages input", "20")
    other.keyboard.press("Tab")
    run(other)
    ids = [p.locator(".radix-player").get_attribute("data-run") for p in (one, other)]
    first, second = (served.worker.runs.get(id) for id in ids)
    assert (first.scenario.engine.policy, second.scenario.engine.policy) == ("fcfs", "lpm")
    assert (first.scenario.engine.pages, second.scenario.engine.pages) == (32, 20)
    assert second.report.requests[0].cached_tokens == 0  # nothing was left in the tree by the other tab's run
    assert one.evaluate(STANDS) == before
    assert one.input_value("#pages input") == "32" and one.input_value("#policy input") == "fcfs"


UPDATES = """(given) => new Promise(async (done) => {
  const [header, events, updates] = JSON.parse(given);
  if (!window.player) {
    window.player = RadixPlayer.mount(document.getElementById('at'), { theme: 'light' });
    const draw = player.draw.bind(player);
    player.draw = (...given) => { window.draws++; return draw(...given); };
  }
  window.draws = 0;
  let frames = 0, sent = 0;
  await player.load({ header, events: [] });
  player.follow(true);
  const frame = () => {
    frames++;
    for (let i = 0; i < 20 && sent < updates; i++) {
      player.append(events.slice(Math.floor((sent * events.length) / updates), Math.floor(((sent + 1) * events.length) / updates)));
      sent++;
    }
    if (sent < updates) requestAnimationFrame(frame);
    else requestAnimationFrame(() => done([window.draws, frames, player.trace.length]));
  };
  requestAnimationFrame(frame);
})"""


@pytest.mark.parametrize("rounds", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_j2_thousands_of_updates_leave_the_page_as_large_as_it_was(open_page: Callable[..., Any], rounds: int) -> None:
    """J2: 10 updates a second for 10 minutes (by `make slow`; else 900 updates), here as fast as frames come. Memory flat; one drawing a frame."""
    watched = open_page(fresh=True)
    page = bare(lambda: watched)
    header, events = lines(puppet())
    session = watched.context.new_cdp_session(page)
    session.send("Performance.enable")
    seen = []
    for _ in range(rounds):
        draws, frames, length = page.evaluate(UPDATES, json.dumps([header, events, 300]))
        assert length == len(events) and draws <= frames + 2 < 300
        page.wait_for_function("!player.tree.icicle.tween.moving")
        session.send("HeapProfiler.collectGarbage")
        metrics = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
        seen.append([metrics[name] for name in ("Nodes", "JSEventListeners", "JSHeapUsedSize")])
    _, settled, *_, last = seen
    assert last[0] <= settled[0] * 1.05 + 20 and last[1] <= settled[1] + 5
    assert last[2] <= settled[2] * 1.1 + 1_000_000, seen


WATCH = """() => {
  const seen = (window.seen = { drawn: 0, inside: 0, outside: [] });
  for (const name of ['fillRect', 'clearRect', 'fill', 'stroke', 'fillText', 'drawImage']) {
    const plain = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...given) { seen.drawn++; return plain.apply(this, given); };
  }
  new MutationObserver((changes) => {
    for (const { target } of changes) {
      const at = target.nodeType === 1 ? target : target.parentElement;
      if (at?.closest('.radix-player')) seen.inside++;
      else seen.outside.push(at?.outerHTML.slice(0, 200));
    }
  }).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
}"""


SETTLED = """async () => {
  let before;
  do {
    before = JSON.stringify(window.seen);
    await new Promise((done) => setTimeout(done, 400));
  } while (JSON.stringify(window.seen) !== before);
}"""
"""Comes back when nothing has moved for 0.4 s."""


@pytest.mark.parametrize("seconds", [1.5, pytest.param(5, marks=pytest.mark.slow)])
def test_j4_nothing_is_drawn_while_nothing_happens(seconds: float, served: Served, stepped: Stepped, open_page: Callable[..., Any]) -> None:
    """J4: no new events for 5 s (by `make slow`; else 1.5 s) on a page that follows a run: no redraw. Then one step: only the picture changes."""
    page = opened(open_page(), f"{served.url}#run={stepped.id}")
    stepped.step(12)
    wait_for_events(page, stepped)
    page.evaluate(WATCH)
    page.evaluate(SETTLED)
    page.evaluate("Object.assign(seen, { drawn: 0, inside: 0, outside: [] })")
    page.wait_for_timeout(seconds * 1000)
    assert page.evaluate("seen") == {"drawn": 0, "inside": 0, "outside": []}
    assert stepped.feed.viewers == 1
    stepped.step(1)
    wait_for_events(page, stepped)
    seen = page.evaluate("seen")
    assert seen["drawn"] > 0 and seen["inside"] > 0 and seen["outside"] == []


LOOKED_AT = """() => ({
  zoomed: !document.querySelector('.rp-out').hidden,
  chosen: new URLSearchParams(location.hash.slice(1)).get('node'),
  tip: [...document.querySelectorAll('.rp-tip:not([hidden])')].map((tip) => tip.innerText.split(' ')[0]),
  same: window.canvas === document.querySelector('.rp-tree canvas'),
})"""


def test_j5_view_selection_and_tip_outlast_ten_updates_and_it_can_be_held_still(
    served: Served, stepped: Stepped, open_page: Callable[..., Any]
) -> None:
    """J5: zoom, hover, pick a node, let 10 updates pass: all are kept. And there is a way to hold the picture still."""
    page = opened(open_page(), f"{served.url}#run={stepped.id}")
    stepped.step(26)
    wait_for_events(page, stepped)
    page.wait_for_timeout(600)
    page.evaluate("window.canvas = document.querySelector('.rp-tree canvas')")
    canvas = page.locator(".rp-tree canvas >> nth=0")
    canvas.dblclick(position={"x": 60, "y": 20})
    page.wait_for_selector(".rp-out:not([hidden])")
    canvas.click(position={"x": 90, "y": 20})
    page.wait_for_function("location.hash.includes('node=')")
    canvas.hover(position={"x": 120, "y": 24})
    page.wait_for_selector(".rp-tip:not([hidden])")
    before = page.evaluate(LOOKED_AT)
    assert before["zoomed"] and before["chosen"] and before["tip"] == [f"#{before['chosen']}"] and before["same"]
    for _ in range(10):
        stepped.step(1)
        wait_for_events(page, stepped)
        assert page.evaluate(LOOKED_AT) == before
    page.get_by_role("button", name="hold still").click()
    held = page.get_attribute(".radix-player", "data-seq")
    stepped.step(3)
    wait_for_events(page, stepped)
    assert page.get_attribute(".radix-player", "data-seq") == held
    page.get_by_role("button", name="go on with the run").click()
    until(lambda: page.get_attribute(".radix-player", "data-seq") == str(len(stepped.lines) - 1))


CHANGES = """async (given) => {
  const [header, events, cut, changes] = JSON.parse(given);
  window.player = RadixPlayer.mount(document.getElementById('at'), { theme: 'light' });
  const tree = player.tree.icicle;
  await player.load({ header, events: events.slice(0, cut) });
  player.follow(true);
  let whole = 0;
  for (const view of player.views) { const draw = view.draw.bind(view); view.draw = (s) => { whole++; return draw(s); }; }
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  await frame(); await frame();
  const seen = [];
  for (let at = cut; at < events.length; at += changes) {
    whole = 0;
    player.append(events.slice(at, at + changes));
    for (let i = 0; i < 6; i++) await frame();
    const nodes = tree.cells.reduce((sum, cell) => sum + cell.nodes, 0);
    seen.push([whole / player.views.length, tree.layout.n, nodes, tree.cells.length]);
  }
  return seen;
}"""


def test_j6_a_tree_of_500_nodes_is_drawn_once_a_change_with_narrow_branches_folded(open_page: Callable[..., Any]) -> None:
    """J6: 500 nodes, 5 changes a second. What a frame costs is printed by benchmarks/tree_frames.py; here: how much is drawn."""
    header, events = lines(make(9000, 500, seed=5))
    page = bare(open_page)
    seen = page.evaluate(CHANGES, json.dumps([header, events, len(events) - 80, 8]))
    assert len(seen) == 10
    for drawn, live, shown, cells in seen:
        assert drawn == 1  # the other views rest while the tree moves to its new place
        assert live > 350 and shown == live  # every node is there, by itself or in a bundle
        assert cells < live
