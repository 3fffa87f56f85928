"""Blocks that no look-up can find are a group of their own in every picture of the tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine import events as ev
from tests.browser.test_player_linked import lit, mount
from tests.workbench.test_unreachable import run
from workbench.replay import Replay

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser-2")]


def beheaded() -> tuple[int, int]:
    """An event at which the first chain stands without its first block beside a whole one, and the pages left of it."""
    trace = run("head-first")
    at = next(e.seq for e in trace if isinstance(e, ev.RequestMatched) and e.request == "R2")
    return at, len(Replay(trace.events).at(at).unreachable())


def test_the_icicle_puts_them_at_the_end_under_a_heading(open_page: Callable[..., Any]) -> None:
    page = mount(open_page, run("head-first"))
    at, pages = beheaded()
    x, rows, lost, words = page.evaluate(
        """(seq) => { player.seek(seq); player.draw(); const { layout } = player.tree.icicle; const state = player.now;
          const slots = [...layout.slots.subarray(0, layout.n)];
          return [slots.map((s) => layout.x[s]), slots.map((s) => layout.row[s]), slots.map((s) => !state.reachable(s)),
            RadixPlayer.lostWords(state, layout)]; }""",
        at,
    )
    assert words == f"unreachable: {pages} pages that no look-up can find"
    first = lost.index(True)
    assert sum(lost) == pages and lost[first:] == [True] * pages and 0 < first < len(lost)
    assert min(rows[first:]) == 1 and rows[0] == 0
    assert min(x[first:]) >= max(x[:first])
    assert words in page.locator(".rp-tree .rp-note").inner_text()


def test_node_and_link_hangs_them_on_their_heading_and_not_on_the_root(open_page: Callable[..., Any]) -> None:
    page = mount(open_page, run("head-first"))
    at, _ = beheaded()
    heading, root, boxes = page.evaluate(
        """(seq) => { player.setView('tree'); player.seek(seq); player.draw(); const { plan } = player.tree.graph;
          return [plan.lost, plan.root, [...plan.places.values()].map(({ x, y, w, h }) => [x, y - h / 2, x + w, y + h / 2])]; }""",
        at,
    )
    own = [heading["x"], heading["y"] - heading["h"] / 2, heading["x"] + heading["w"], heading["y"] + heading["h"] / 2]
    for i, (a, b, c, d) in enumerate([*boxes, own]):
        for e, f, g, h in boxes[:i]:
            assert c <= e or g <= a or d <= f or h <= b, "two of them overlap"
    assert root < own[1]


def test_the_table_has_a_row_over_them_and_the_arrows_pass_it(open_page: Callable[..., Any]) -> None:
    page = mount(open_page, run("head-first"))
    at, pages = beheaded()
    page.evaluate("(seq) => { player.setView('table'); player.seek(seq); player.draw(); }", at)
    grid = page.locator("[role=treegrid]")
    grid.locator("tbody tr").first.wait_for()
    assert grid.get_by_text(f"unreachable: {pages} pages that no look-up can find").count() == 1
    nodes = grid.locator("tbody tr[data-node]")
    nodes.first.focus()
    seen = [page.evaluate("document.activeElement.dataset.node")]
    for _ in range(nodes.count() - 1):
        page.keyboard.press("ArrowDown")
        seen.append(page.evaluate("document.activeElement.dataset.node"))
    assert seen == [row.get_attribute("data-node") for row in nodes.all()] and len(set(seen)) == len(seen)


def test_a_request_does_not_light_up_what_it_could_not_find(open_page: Callable[..., Any]) -> None:
    page = mount(open_page, run("head-first"))
    at, _ = beheaded()
    assert lit(page, at, {"request": "R0"})["nodes"] == []
    assert lit(page, at, {"node": 2})["nodes"] == [2]
    facts = page.locator(".rp-selection").inner_text()
    assert "#1, which is gone" in facts and "no look-up can find it" in facts


def test_without_unreachable_blocks_there_is_no_group(open_page: Callable[..., Any]) -> None:
    trace = run("tail-first")
    page = mount(open_page, trace)
    page.evaluate(f"player.seek({len(trace) - 1}); player.draw()")
    assert page.evaluate("[player.tree.icicle.layout.lost, player.tree.icicle.layout.lostTokens]") == [-1, 0]
    assert "unreachable" not in page.locator(".rp-tree").inner_text()
