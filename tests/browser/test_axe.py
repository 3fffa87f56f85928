"""No serious or critical fault by axe: the Lab, the Compare page and an exported file, light and dark."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from engine import events as ev
from tests.browser.serving import Served, opened
from workbench import export, runner, scenario

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser-1")]

SCRIPT = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
GRAVE = ("serious", "critical")
THEMES = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
"""What is dark differs in its colours alone, so that those are looked at again."""


def faults(page: Any, within: str = "html", colours: bool = False) -> list[str]:
    """What axe finds grave within an element as it stands: rule, what it says, where. `colours`: by the rules on those alone."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(SCRIPT)
    rules = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}} if colours else {}
    found = page.evaluate("([within, rules]) => axe.run(within, { resultTypes: ['violations'], ...rules }).then((r) => r.violations)", [within, rules])
    return [
        f"{v['id']} ({v['impact']}): {v['help']}: {node['target']} {node['html'][:120]}"
        for v in found if v["impact"] in GRAVE for node in v["nodes"]
    ]  # fmt: skip


@cache
def evicting() -> ev.Trace:
    return runner.run(scenario.load("capacity-cyclic-1024")).trace


@THEMES
def test_the_lab(served: Served, open_page: Callable[..., Any], dark: bool) -> None:
    page = opened(open_page(dark=dark), served.url)
    page.keyboard.press("Shift+M")
    page.wait_for_function("location.hash.includes('seq=')")
    page.keyboard.press("/")
    page.keyboard.type("#1")
    page.keyboard.press("Enter")
    page.wait_for_selector(".rp-selection .rp-facts")
    page.wait_for_function("document.querySelector('.rp-why-line')?.textContent.startsWith('Node #1')")
    assert faults(page, colours=dark) == []
    for view in ("node and link", "a table"):
        page.get_by_role("button", name=f"tree as {view}").click()
        page.wait_for_timeout(50)
        assert faults(page, ".rp-tree", dark) == [], view
    for what in ("pages", "requests", "events"):
        page.get_by_role("button", name=f"{what} as a table").click()
    page.wait_for_selector(".rp-timeline table")
    assert faults(page, ".rp-main", dark) == [], "tables"
    page.keyboard.press("/")
    page.keyboard.type("leave")
    page.wait_for_selector(".rp-find [role=option]")
    assert faults(page, ".rp-find", dark) == [], "find"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert faults(page, ".rp-help", dark) == [], "keys"
    page.keyboard.press("Escape")
    page.click("#folded > button")
    page.wait_for_selector("#yaml textarea:visible")
    assert faults(page, "#folds", dark) == [], "the scenario unfolded"


@THEMES
def test_the_compare_page(served: Served, open_page: Callable[..., Any], dark: bool) -> None:
    page = open_page(dark=dark).page
    page.goto(served.url + "compare")
    page.click("#go")
    page.wait_for_selector("#dots .js-plotly-plot", timeout=60_000)
    page.wait_for_selector("#go:not([disabled])")
    page.click("#pairs tr[data-request=R6] button")
    page.wait_for_selector("#pairs .rw-told a >> nth=1")
    assert faults(page, colours=dark) == []


@THEMES
def test_an_exported_file(open_page: Callable[..., Any], tmp_path: Path, dark: bool) -> None:
    trace = evicting()
    path = tmp_path / "run.html"
    path.write_text(export.to_html(trace, note="Room for two."), encoding="utf-8")
    gone = next(e for e in trace if isinstance(e, ev.NodeEvicted))
    # axe is brought in by the test; the file's own policy would stop it.
    page = open_page(dark=dark, bypass_csp=True).page
    page.goto(f"{path.as_uri()}#seq={gone.seq}&node={gone.node}")
    page.wait_for_selector(".radix-player[data-ready=true]")
    page.wait_for_selector(".rp-eviction table")
    assert faults(page, colours=dark) == []
