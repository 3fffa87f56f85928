"""The views one by one: node-link tree, lanes with stalls, queue, timeline, playing, and the host's Why."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from benchmarks.make_trace import make
from engine import events as ev
from tests.browser.test_player_linked import mount, pressed
from workbench import export, presets, runner, scenario
from workbench.replay import Replay, digest

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser-2")]

EVIL = "<img src=x onerror='window.evil=1'>"


@cache
def stalled() -> ev.Trace:
    """R1 answers; R2's prompt comes in three chunks while R1 waits."""
    requests = [
        {"id": "R1", "tokens": "A4", "max_new_tokens": 8, "at_step": 0},
        {"id": "R2", "tokens": "B12", "max_new_tokens": 2, "at_step": 3},
    ]
    engine = {"executor": "puppet", "pages": 64, "chunk": 4}
    return runner.run(scenario.parse({"name": "stalled", "engine": engine, "requests": requests})).trace


def until(page: Any, expression: str) -> None:
    for _ in range(400):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(30)
    raise AssertionError(f"never true: {expression}")


def test_the_tree_has_three_views_and_the_address_keeps_the_choice(tmp_path: Any, open_page: Callable[..., Any]) -> None:
    trace, _ = pressed()
    path = tmp_path / "run.html"
    path.write_text(export.to_html(trace), encoding="utf-8")
    page = open_page().page
    page.goto(f"{path.as_uri()}#seq=900&view=tree&run=kept")
    page.wait_for_selector(".radix-player[data-ready=true]")
    choice = page.get_by_role("group", name="the tree as")
    until(page, "document.querySelector('.rp-choice button:nth-child(2)').getAttribute('aria-pressed') === 'true'")
    assert page.locator(".rp-tree canvas:visible").count() == 1
    choice.get_by_role("button", name="tree as a table").click()
    until(page, "location.hash.includes('view=table')")
    assert "run=kept" in page.evaluate("location.hash") and "seq=900" in page.evaluate("location.hash")
    assert page.locator("[role=treegrid]").is_visible() and page.locator(".rp-tree canvas:visible").count() == 0
    choice.get_by_role("button", name="an icicle").click()
    until(page, "!location.hash.includes('view=')")


def test_node_and_link_is_offered_up_to_sixty_nodes(open_page: Callable[..., Any]) -> None:
    page = mount(open_page, make(3000, 120, seed=2))
    sizes = page.evaluate(
        """() => { player.setView('tree'); const out = [];
          for (const seq of [60, 2900]) { player.seek(seq); player.draw();
            out.push([player.now.live, player.tree.shown, player.tree.buttons[1].disabled]); }
          return out; }"""
    )
    (few, *small), (many, *large) = sizes
    assert few <= 60 and small == ["tree", False]
    assert many > 60 and large == ["icicle", True]
    assert "up to 60 nodes" in page.locator(".rp-tree .rp-note").inner_text()
    assert page.evaluate("player.state().view") == "tree"


def test_a_tidy_tree_overlaps_nowhere(open_page: Callable[..., Any]) -> None:
    trace, _ = pressed()
    for size in ("desktop", "phone"):
        page = mount(open_page, trace, size)
        boxes = page.evaluate(
            """() => { player.setView('tree'); player.seek(1700); player.draw();
              return [...player.tree.graph.plan.places.values()].map(({ x, y, w, h }) => [x, y - h / 2, x + w, y + h / 2])
                .concat([[0, 0, player.tree.graph.width, player.tree.graph.plan.height]]); }"""
        )
        *nodes, (_, _, width, height) = boxes
        assert len(nodes) > 10
        for i, (a, b, c, d) in enumerate(nodes):
            assert a >= 0 and b >= 0 and c <= width and d <= height
            for e, f, g, h in nodes[:i]:
                assert c <= e or g <= a or d <= f or h <= b, "two nodes overlap"


def test_a_split_moves_the_front_in_between(open_page: Callable[..., Any]) -> None:
    trace, _ = pressed()
    split = next(e for e in trace if isinstance(e, ev.NodeSplit) and e.seq > 300)
    page = mount(open_page, trace)
    before, first, last = page.evaluate(
        """([seq, front, tail]) => { const g = player.tree.graph;
          const at = (id) => { const { x, y, a } = g.items.get(id); return { x, y, a }; };
          player.setView('tree'); player.seek(seq - 1); player.draw();
          const before = at(tail);
          player.seek(seq); player.draw(performance.now(), 0);
          const first = [at(front), at(tail)];
          for (let i = 0; i < 90; i++) player.draw(performance.now() + 16 * i, 16);
          return [before, first, [at(front), at(tail), g.moving]]; }""",
        [split.seq, split.front, split.node],
    )
    assert first[0]["x"] == before["x"] and first[0]["a"] == 0, "the front comes out of the tail's place"
    assert first[1]["x"] == before["x"], "the tail stands where it was"
    assert last[1]["x"] > last[0]["x"] and last[0]["a"] == 1 and last[2] is False, "and stands between it and their parent"


def test_no_movement_where_none_is_wanted(open_page: Callable[..., Any]) -> None:
    trace, _ = pressed()
    split = next(e for e in trace if isinstance(e, ev.NodeSplit) and e.seq > 300)
    page = mount(open_page, trace, reduced_motion="reduce")
    moving = page.evaluate(
        """([seq]) => { player.setView('tree'); player.seek(seq - 1); player.draw(); player.seek(seq);
          const tree = player.draw(); player.setView('icicle'); return [tree, player.draw()]; }""",
        [split.seq],
    )
    assert moving == [False, False]


def test_pins_are_marked_and_do_not_go(open_page: Callable[..., Any]) -> None:
    emit = ev.Trace(ev.Header(config={"eviction": "lru"}, pages=8))
    emit.emit(ev.RunStarted, pages=8, page_size=1)
    emit.emit(ev.RequestArrived, request="R1", prompt=[1, 2, 3, 4], max_new_tokens=1, arrived=0)
    emit.emit(ev.PageAllocated, pages=[0, 1, 2, 3], owners=["R1"], counts=[4])
    for node, start in ((1, 0), (2, 2)):
        emit.emit(ev.NodeCreated, node=node, parent=0, request="R1", start=start, stop=start + 2, pages=[start, start + 1])
        emit.emit(ev.NodeTouched, node=node, tick=node)
    emit.emit(ev.NodePinned, node=1, until=9)
    emit.commit()
    page = mount(open_page, emit)
    page.evaluate(f"player.seek({len(emit) - 1}); player.draw()")
    assert page.evaluate("player.now.get(RadixPlayer.nextToGo(player.now), RadixPlayer.N.ID)") == 2
    assert page.evaluate("player.tree.tip(0).lines[0]").endswith("pinned until step 9")
    assert page.locator(".rp-tree .rp-legend").get_by_text("pinned").is_visible()


def test_a_stall_is_a_gap_and_names_the_culprit(open_page: Callable[..., Any]) -> None:
    trace = stalled()
    page = mount(open_page, trace)
    plans = [e for e in trace if isinstance(e, ev.StepPlanned) and e.members[: e.prefills] == ["R2"]]
    assert len(plans) == 3
    stalls = page.evaluate("player.replay.segments.lanes[0].stalls.map((s) => [s.from, s.to, [...s.by]])")
    assert len(stalls) == 1 and stalls[0][0] == plans[0].seq and stalls[0][2] == ["R2"]
    assert stalls[0][1] > plans[-1].seq
    gap = page.evaluate("() => { player.seek(player.trace.length - 1); player.draw(); const [g] = player.lanes.bars.gaps; return [g.x + g.w / 2, g.top + 8]; }")
    page.locator(".rp-lanes canvas").hover(position={"x": gap[0], "y": gap[1]})
    tip = page.locator(".rp-lanes .rp-tip")
    assert "stalled for 3 s: the prefill of R2 ran instead" in tip.inner_text()
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    page.locator(".rp-lanes canvas").hover(position={"x": gap[0] + 1, "y": gap[1]})
    assert tip.is_visible()
    page.locator(".rp-lanes h2").hover()
    assert not tip.is_visible()


def test_tokens_found_in_the_cache_are_a_mark_with_their_count_and_take_no_time(open_page: Callable[..., Any]) -> None:
    """R2 finds 16 of its 32 tokens: its prefill has the colour of computing from end to end."""
    requests = [{"id": id, "tokens": f"A16+{b}16", "max_new_tokens": 4, **after} for id, b, after in (("R1", "B", {}), ("R2", "C", {"after": "R1"}))]
    trace = runner.run(scenario.parse({"name": "half", "engine": {"executor": "puppet", "pages": 128}, "requests": requests})).trace
    page = mount(open_page, trace)
    colours, founds, wanted = page.evaluate(
        """() => { player.seek(player.trace.length - 1); player.draw();
          const { lanes, replay, theme } = player; const { surface, rowHeight, bars } = lanes;
          const part = replay.segments.lanes[1].parts.find((p) => p.sort === 'prefill');
          const [from, to] = [lanes.at(part.from) + 1, lanes.at(part.to) - 2];
          const [x, y] = [from * surface.ratio, (rowHeight + 12) * surface.ratio];
          const { data } = surface.ctx.getImageData(Math.ceil(x), Math.round(y), Math.floor((to - from) * surface.ratio), 1);
          const seen = new Set(); for (let i = 0; i < data.length; i += 4) seen.add([...data.subarray(i, i + 3)].join());
          return [[...seen], bars.founds.map(({ number, tokens, told }) => [number, tokens, told]), theme.computed]; }"""
    )
    assert founds == [[1, 16, True]]
    assert colours == [",".join(str(int(wanted.strip("#")[i : i + 2], 16)) for i in (0, 2, 4))]
    mark = page.locator(".rp-lanes .rp-legend").get_by_text("tokens found in the cache: not computed")
    assert mark.is_visible()
    off = runner.run(scenario.parse({"name": "off", "engine": {"executor": "puppet", "pages": 128, "cache": "off"}, "requests": requests})).trace
    assert not mount(open_page, off).locator(".rp-lanes .rp-legend").get_by_text("found in the cache").is_visible()


def test_the_selected_request_says_how_long_it_stalled_and_how_its_first_token_came(open_page: Callable[..., Any]) -> None:
    page = mount(open_page, stalled())
    page.evaluate("player.select({ request: 'R1' }); player.seek(player.trace.length - 1); player.draw()")
    facts = page.locator(".rp-selection .rp-facts").inner_text()
    assert "3 s by the prefill of R2" in facts and "1 s: 0 s in the queue, 1 s in prefill" in facts


def test_a_long_prompt_says_how_much_of_it_is_shown_and_opens_whole(open_page: Callable[..., Any]) -> None:
    trace = ev.Trace.read(presets.recorded_path("handbook"))
    ids = next(e.prompt for e in trace if isinstance(e, ev.RequestArrived) and e.request == "R1")
    page = mount(open_page, trace)
    page.evaluate("player.select({ request: 'R1' }); player.seek(player.trace.length - 1); player.draw()")
    prompt, answer = page.locator(".rp-selection .rp-text").all()
    text = "".join(trace.header.texts[str(i)] for i in ids)

    def shown() -> str:
        return str(prompt.locator("p").text_content())

    assert f"the first 600 of {len(ids):,} tokens" in prompt.inner_text() and len(shown()) < len(text) / 2 and text.startswith(shown())
    assert not answer.get_by_role("button").is_visible()
    prompt.get_by_role("button", name="show all").click()
    until(page, f"document.querySelector('.rp-selection .rp-text p').textContent.length === {len(text)}")
    assert shown() == text and prompt.locator(".rp-note").inner_text() == ""
    page.evaluate("player.step(-1); player.draw()")
    assert shown() == text, "it stays open while the moment changes"
    prompt.get_by_role("button", name="show less").click()
    until(page, f"document.querySelector('.rp-selection .rp-text p').textContent.length < {len(text)}")
    page.evaluate("player.select({ node: 3 }); player.draw()")
    assert "the first 200 of 1,471 tokens" in page.locator(".rp-selection .rp-text").inner_text()


def test_pages_promised_to_running_answers_are_told(open_page: Callable[..., Any]) -> None:
    trace = stalled()
    page = mount(open_page, trace)
    plan = next(e for e in trace if isinstance(e, ev.StepPlanned) and e.mode == "decode")
    running = [r for r in Replay(trace.events).at(plan.seq).requests.values() if r.status in ("prefill", "decode")]
    kept = sum(math.ceil(plan.reserve * (r.max_new_tokens - len(r.output))) for r in running)
    page.evaluate(f"player.seek({plan.seq}); player.draw()")
    assert kept > 0 and f"· {kept} promised" in page.locator(".rp-pool .rp-note").inner_text()
    page.evaluate("player.seek(player.trace.length - 1); player.draw()")
    assert "promised" not in page.locator(".rp-pool .rp-note").inner_text()


def test_lanes_that_are_not_shown_are_counted_and_a_selected_one_is_always_in_sight(open_page: Callable[..., Any]) -> None:
    trace, _ = pressed()
    total = sum(isinstance(e, ev.RequestArrived) for e in trace)
    page = mount(open_page, trace)
    hint = page.get_by_role("button", name=f"{total - 7} more: scroll through all {total}")
    look = "() => { player.draw(); const { rows, low, left } = player.lanes; return { rows, low, left }; }"
    page.evaluate("player.seek(player.trace.length - 1); player.draw()")
    before = page.evaluate(look)
    assert hint.is_visible() and f"7 of {total} requests shown" in page.locator(".rp-lanes .rp-note").inner_text()
    for row in (0, 3):
        page.locator(".rp-lanes canvas").click(position={"x": 40, "y": 24 * row + 12})
        assert page.evaluate("player.state().selection.request") == f"R{before['rows'][row] + 1}"
        assert page.evaluate(look) == before, "selecting what is in sight moves nothing"
    page.evaluate("player.select({ request: 'R1' })")
    after = page.evaluate(look)
    assert after["rows"][0] == 0 and len(after["rows"]) == 7 and after["low"] < before["low"]
    assert page.evaluate("player.lanes.at(player.replay.segments.lanes[0].parts[0].from)") >= after["left"]
    hint.click()
    until(page, "document.querySelector('.rp-scrolls') !== null")
    assert not hint.is_visible() and "scroll for the rest" in page.locator(".rp-lanes .rp-note").inner_text()
    page.evaluate("() => { player.select({ request: 'R9' }); player.draw(); }")
    until(page, "player.lanes.rows.includes(8)")
    top = page.evaluate("player.lanes.frame.scrollTop")
    page.locator(".rp-lanes canvas").click(position={"x": 40, "y": 24 * 6 + 12})
    page.evaluate("player.draw()")
    assert page.evaluate("player.lanes.frame.scrollTop") == top


def test_lanes_of_all_requests_scroll_and_time_can_be_looked_at_closer(open_page: Callable[..., Any]) -> None:
    trace, _ = pressed()
    page = mount(open_page, trace)
    page.evaluate("player.seek(player.trace.length - 1)")
    page.get_by_role("button", name="all requests, in order of arrival").click()
    until(page, "document.querySelector('.rp-scrolls') !== null")
    assert page.evaluate("player.lanes.rows") == list(range(7))
    page.evaluate("player.lanes.frame.scrollTop = 20 * player.lanes.rowHeight")
    until(page, "player.lanes.rows[0] === 20")
    page.evaluate("player.select({ request: 'R50' })")
    until(page, "player.lanes.rows.includes(49)")
    span = page.evaluate("player.lanes.high - player.lanes.low")
    page.get_by_role("button", name="look closer").click()
    until(page, f"Math.abs(player.lanes.high - player.lanes.low - {span / 2}) < 1e-6")
    assert "2× closer" in page.locator(".rp-lanes .rp-note").inner_text()


def test_the_queue_is_told_in_order_with_keys_and_limits(open_page: Callable[..., Any]) -> None:
    trace, replay = pressed()
    page = mount(open_page, trace)
    over = [e for e in trace if isinstance(e, ev.RequestPassedOver) and e.limit == "pages" and e.available >= 0 and len(replay.at(e.seq).queue) > 2][3]
    order = next(e for e in reversed(trace.events[: over.seq]) if isinstance(e, ev.QueueOrdered))
    page.evaluate(f"player.seek({over.seq}); player.draw()")
    rows = [r.inner_text().split("\t") for r in page.locator(".rp-queue tbody tr").all()]
    waiting = replay.at(over.seq).queue
    assert sorted(r[1] for r in rows) == sorted(waiting)
    assert [r[1] for r in rows][: len(order.head)] == [r for r in order.head if r in waiting]
    keys = dict(zip(order.head, order.keys, strict=True))
    assert all(r[2] == (f"{0 - keys[r[1]]:,}" if r[1] in keys else "–") for r in rows), "tokens found"
    held = next(r for r in rows if r[1] == over.request)
    pages = "page" if over.needed == 1 else "pages"
    assert held[4].startswith(f"pages: needs {over.needed} {pages}, has {over.available}")
    page.evaluate("player.seek(0); player.draw()")
    assert "nothing waits" in page.locator(".rp-queue").inner_text() and not page.locator(".rp-queue table").is_visible()


def test_the_windowed_hit_rate_is_that_of_the_last_eight_admissions(open_page: Callable[..., Any]) -> None:
    trace, _ = pressed()
    page = mount(open_page, trace)
    admitted = [e for e in trace.events[:1500] if isinstance(e, ev.RequestAdmitted) and e.first][-8:]
    rate = sum(e.cached for e in admitted) / sum(e.cached + e.computed for e in admitted)
    assert page.evaluate("player.replay.marks.recent.a[1499]") == pytest.approx(rate, abs=1e-6)
    page.evaluate("player.seek(1499); player.setGhost({ label: 'cache off', points: [[0, 0], [1e9, 0]] }); player.draw()")
    note = page.locator(".rp-timeline").inner_text()
    assert f"lately {round(100 * rate)} %" in note and "last 8 admissions" in note and "cache off goes on to" in note


def test_it_plays_forwards_and_backwards_at_any_speed(open_page: Callable[..., Any]) -> None:
    page = mount(open_page, pressed()[0])
    speed = page.get_by_label("speed")
    assert speed.locator("option").all_inner_texts() == ["0.5×", "1×", "2×", "4×", "8×", "16×"]
    page.evaluate("player.seek(1000)")
    speed.select_option("16")
    page.get_by_role("button", name="play backwards").click()
    until(page, "player.seq < 950")
    page.get_by_role("button", name="play (space)").click()
    low = page.evaluate("player.seq")
    until(page, f"player.seq > {low + 20}")
    page.locator("h2").first.click()
    page.keyboard.press(" ")
    assert page.evaluate("player.state().playing") is False
    retract = next(e.seq for e in pressed()[0] if isinstance(e, ev.RequestRetracted))
    page.keyboard.press("Home")
    page.keyboard.press("r")
    assert page.evaluate("player.seq") == retract


WHY = """() => {
  window.asked = []; window.said = [];
  new MutationObserver(() => said.push(document.querySelector('[aria-live]').textContent))
    .observe(document.querySelector('[aria-live]'), { childList: true, characterData: true, subtree: true });
  player.setWhy(async (seq, selection) => {
    asked.push([seq, selection]);
    await new Promise((done) => setTimeout(done, 150));
    return { headline: `Answer ${seq} %s`, detail: ['One.'], reason: null,
      rows: [{ start: 3, differs: 1, asked: { name: 'asked', ids: [1, 3], texts: ['a', ' c'] }, stored: { name: 'tree', ids: [1, 2], texts: ['a', null] } }],
      table: { title: 'Rank', columns: ['leaf', 'tokens'], rows: [['#4', 1200], ['#5', 3]], taken: [true, false],
        links: [{ kind: 'node', id: 4, text: 'node #4' }, { kind: 'node', id: 5, text: 'node #5' }] },
      links: [{ kind: 'event', id: 12, text: 'event 12' }, { kind: 'request', id: 'R3', text: 'R3' }] };
  });
}"""


def test_the_host_answers_why(open_page: Callable[..., Any]) -> None:
    page = mount(open_page, pressed()[0])
    page.evaluate(WHY.replace("%s", EVIL))
    page.evaluate("() => { for (let seq = 100; seq < 110; seq++) player.seek(seq); }")
    line = page.locator(".rp-why-line")
    until(page, "document.querySelector('.rp-why-line').textContent.startsWith('Answer 109')")
    assert page.evaluate("asked.length") <= 3 and page.evaluate("asked.at(-1)") == [109, None]
    assert EVIL in line.inner_text() and page.evaluate("[window.evil === undefined, document.images.length]") == [True, 0]
    differs = page.locator(".rp-why .rp-differs")
    assert differs.all_inner_texts() == ["2", "␣c"]
    assert "1,200" in page.locator(".rp-why tr[aria-current=true]").inner_text()
    page.evaluate("player.seek(200)")
    assert line.inner_text().startswith("Answer 109"), "the last answer stays until the next is there"
    until(page, "document.querySelector('.rp-why-line').textContent.startsWith('Answer 200')")
    until(page, "said.length > 0")
    assert len(page.evaluate("said")) <= 2
    page.get_by_role("button", name="#5").click()
    assert page.evaluate("player.state().selection") == {"node": 5}
    page.locator(".rp-links").get_by_role("button", name="event 12").click()
    until(page, "document.querySelector('.rp-why-line').textContent.startsWith('Answer 12 ')")
    until(page, "said.some((words) => words.startsWith('Answer 12 '))")
    page.evaluate("said.length = 0; player.play(1, 16)")
    page.wait_for_timeout(900)
    assert page.evaluate("[said.length, player.state().playing]") == [0, True], "nothing is spoken while it plays"
    page.evaluate("player.play(0)")


def test_while_the_selection_is_not_there_yet_the_event_is_explained_and_that_is_said(open_page: Callable[..., Any]) -> None:
    trace, _ = pressed()
    born = next(e for e in trace if isinstance(e, ev.NodeCreated) and e.seq > 300)
    arrived = next(e for e in trace if isinstance(e, ev.RequestArrived) and e.seq > 300)
    page = mount(open_page, trace)
    page.evaluate(WHY.replace("%s", ""))
    page.evaluate(f"player.seek({born.seq + 1}); player.select({{ node: {born.node} }})")
    until(page, f"JSON.stringify(asked.at(-1)) === '[{born.seq + 1},{{\"node\":{born.node}}}]'")
    page.evaluate(f"player.seek({born.seq - 5})")
    until(page, f"JSON.stringify(asked.at(-1)) === '[{born.seq - 5},null]'")
    said = page.locator(".rp-not-yet")
    assert said.inner_text() == f"Node #{born.node} is selected, but is not in the tree yet: event {born.seq} brings it."
    assert f"not yet: event {born.seq} brings it" in page.locator(".rp-selection").inner_text()
    said.get_by_role("button").click()
    until(page, f"JSON.stringify(asked.at(-1)) === '[{born.seq},{{\"node\":{born.node}}}]'")
    assert not said.is_visible()
    page.evaluate(f"player.select({{ request: '{arrived.request}' }}); player.seek(3); player.draw()")
    assert said.inner_text() == f"{arrived.request} is selected, but has not arrived yet: event {arrived.seq} brings it."


SIZES = {"desktop": 1440, "tablet": 1024, "phone": 390}


@pytest.mark.parametrize("size", SIZES)
def test_nothing_is_wider_than_the_page(size: str, open_page: Callable[..., Any]) -> None:
    page = mount(open_page, pressed()[0], "desktop" if size == "tablet" else size)
    if size == "tablet":
        page.set_viewport_size({"width": 1024, "height": 768})
    page.evaluate("player.setWhy(null); player.seek(900); player.select({ request: 'R20' }); player.setView('tree')")
    page.wait_for_timeout(150)
    wide = page.evaluate(
        """() => [document.documentElement.scrollWidth - innerWidth, ...[...document.querySelectorAll('.rp-panel, .rp-scrubber, .rp-frame')]
          .filter((e) => e.offsetParent && e.getBoundingClientRect().right > innerWidth + 0.5).map((e) => e.className)]"""
    )
    assert wide == [0]


def test_replay_is_not_changed_by_looking(open_page: Callable[..., Any]) -> None:
    """Selecting and laying out read the state only: its hash stays Python's."""
    trace, _ = pressed()
    page = mount(open_page, trace)
    got = page.evaluate(
        "() => [400, 900].map((seq) => { player.seek(seq); player.select({ request: 'R20' }); player.draw(); player.select({ node: 4 }); player.draw(); return player.digest(); })"
    )
    assert got == [digest(Replay(trace.events).at(seq).canonical()) for seq in (400, 900)]
