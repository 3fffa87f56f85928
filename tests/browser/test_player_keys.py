"""The keyboard: the find field, the keys' own page, and which keys are whose."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine import events as ev
from tests.browser.test_player_linked import mount, pressed
from workbench.replay import Replay

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser-2")]

RECORDED = Path(__file__).parents[2] / "assets" / "traces" / "handbook.jsonl"


@pytest.fixture
def handbook() -> ev.Trace:
    return ev.Trace.read(RECORDED)


def options(page: Any) -> list[str]:
    texts: list[str] = page.locator(".rp-find [role=option]").all_inner_texts()
    return texts


def selection(page: Any) -> Any:
    return page.evaluate("player.state().selection")


def test_find_by_text_with_arrows_and_enter(handbook: ev.Trace, open_page: Callable[..., Any]) -> None:
    page = mount(open_page, handbook)
    end = len(handbook) - 1
    page.evaluate(f"player.seek({end})")
    page.keyboard.press("/")
    field = page.get_by_role("combobox", name="find")
    assert field.evaluate("(f) => f === document.activeElement")
    page.keyboard.type("Annual LEAVE")
    state = Replay(handbook.events).at(end)
    texts = {n: "".join(handbook.header.texts[str(i)] for i in state.tokens(node)).lower() for n, node in state.nodes.items()}
    holding = [n for n, text in texts.items() if "annual leave" in " ".join(text.split())]
    found = options(page)
    assert found[0] == "request R1 How much annual leave?"
    assert [o.split()[1] for o in found if o.startswith("node")] == [f"#{n}" for n in holding] and holding
    assert page.locator(".rp-find mark").first.inner_text() == "annual leave"
    assert f"{len(found)} hits" in page.locator(".rp-find [role=status]").inner_text()
    node = next(i for i, o in enumerate(found) if o.startswith("node"))
    for _ in range(node):
        page.keyboard.press("ArrowDown")
    assert page.locator(".rp-find [aria-selected=true]").inner_text() == found[node]
    active = field.get_attribute("aria-activedescendant")
    assert active and page.locator(f"#{active}").inner_text() == found[node]
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert selection(page) == {"node": holding[0]} and not page.locator(".rp-find").is_visible()
    assert page.evaluate("player.seq") == end


def test_find_by_number_and_by_name_goes_to_what_is_not_there_yet(open_page: Callable[..., Any]) -> None:
    trace, replay = pressed()
    page = mount(open_page, trace)
    page.evaluate("player.seek(400)")
    page.keyboard.press("/")
    page.keyboard.type("r50")
    assert options(page)[0] == "request R50"
    page.keyboard.press("Enter")
    arrived = next(e.seq for e in trace if isinstance(e, ev.RequestArrived) and e.request == "R50")
    assert selection(page) == {"request": "R50"} and page.evaluate("player.seq") == arrived > 400
    gone = min(replay.at(arrived).gone)
    page.keyboard.press("/")
    page.keyboard.type(f"#{gone}")
    assert options(page) == [f"node #{gone} not in the tree at this event"]
    page.keyboard.press("Enter")
    assert selection(page) == {"node": gone} and page.evaluate("player.seq") == arrived


def test_typing_moves_nothing_and_escape_closes_only_the_field(open_page: Callable[..., Any]) -> None:
    page = mount(open_page, pressed()[0])
    page.evaluate("player.seek(900); player.select({ request: 'R20' })")
    page.keyboard.press("/")
    page.keyboard.type("emrsn ?/")
    for key in ("Home", "End", "ArrowLeft", "Shift+ArrowRight"):
        page.keyboard.press(key)
    assert "Nothing in this run" in page.locator(".rp-find [role=status]").inner_text()
    page.keyboard.press("Enter")
    assert page.locator(".rp-find").is_visible() and not page.locator(".rp-help").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator(".rp-find").is_visible()
    assert page.evaluate("[player.seq, player.state().selection.request]") == [900, "R20"]
    page.keyboard.press("Escape")
    assert selection(page) is None


def test_the_keys_are_told(open_page: Callable[..., Any]) -> None:
    page = mount(open_page, pressed()[0])
    page.keyboard.press("?")
    told = page.locator(".rp-help")
    assert told.is_visible()
    keys = set(told.locator("kbd").all_inner_texts())
    assert keys >= {"←", "→", "Home", "End", "Space", "e", "m", "r", "s", "n", "/", "Esc", "?"}
    page.keyboard.press("ArrowRight")
    assert page.evaluate("player.seq") == 0, "the dialog has the keys"
    page.keyboard.press("Escape")
    assert not told.is_visible()
    page.get_by_role("button", name="the keys").click()
    assert told.is_visible()


FIELDS = """() => {
  const box = (html) => { const div = document.createElement('div'); div.innerHTML = html; document.body.prepend(div); };
  box('<input id=text><input id=number type=number value=5><textarea id=area></textarea>');
  box('<input id=radio type=radio><input id=check type=checkbox><button id=button>b</button><div id=own contenteditable>x</div>');
}"""


def test_keys_work_everywhere_but_in_fields(open_page: Callable[..., Any]) -> None:
    trace, _ = pressed()
    page = mount(open_page, trace)
    page.evaluate(FIELDS)
    eviction = next(e.seq for e in trace if isinstance(e, ev.Eviction))
    last = len(trace) - 1

    def after(where: str, key: str) -> int:
        page.evaluate("player.seek(0)")
        page.locator(where).first.focus()
        page.keyboard.press(key)
        seq: int = page.evaluate("player.seq")
        return seq

    for field in ("#text", "#number", "#area", "#own", ".rp-speed"):
        assert [after(field, key) for key in ("e", "ArrowRight", "End", "/")] == [0] * 4, field
        assert not page.locator(".rp-find").is_visible()
    for button in ("#button", ".rp-go", ".rp-twin", ".rp-range"):
        assert [after(button, key) for key in ("e", "ArrowRight", "Shift+ArrowRight", "End")] == [eviction, 1, 100, last], button
    for choice in ("#radio", "#check"):
        assert [after(choice, key) for key in ("e", "ArrowRight")] == [eviction, 0], choice
    page.get_by_role("button", name="tree as a table").click()
    page.evaluate("player.seek(900); player.draw()")
    page.locator("[role=treegrid] tr[data-node]").first.focus()
    page.keyboard.press("End")
    assert page.evaluate("player.seq") == 900, "a table's own key"
    page.keyboard.press("m")
    assert page.evaluate("player.seq") > 900
