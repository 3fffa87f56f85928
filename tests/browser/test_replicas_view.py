"""A run of several replicas in the player: a card each at one moment, and every panel of the one that is shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engine import events as ev
from tests.browser.serving import Served, choose, opened, run, sideways
from tests.browser.test_axe import THEMES, faults
from tests.browser.test_player import show, until
from tests.browser.test_player_linked import mount
from workbench import export, runner, scenario
from workbench.explain import RunExplainer
from workbench.explain.saved import Opening
from workbench.replay import Replay, State, digest
from workbench.replicas import Parts, trace_of
from workbench.ui.runs import Run

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser-2")]

TITLE = "Which of three replicas should a request go to?"
PLACE = "(({ replica, seq, moment }) => [replica, seq, moment])(player.state())"
SHOWN = "(({ run, replica, seq }) => [run, replica, seq])(document.querySelector('.radix-player').dataset)"


@cache
def ran() -> runner.Run:
    return runner.run(scenario.load("replicas"))


@cache
def replays() -> list[Replay]:
    return [Replay(trace_of(ran().trace, i).events) for i in range(3)]


@cache
def parts() -> Parts:
    out = Parts(3)
    for event in ran().trace:
        out.take(event)
    return out


def then(moment: int) -> list[State]:
    """Each replica's state at an event of the whole run."""
    return [replay.at(parts().at(moment, i)) for i, replay in enumerate(replays())]


def said(replica: int, state: State) -> list[str]:
    """What a card has to say of a state."""
    running = sum(r.status in ("prefill", "decode") for r in state.requests.values())
    used = sum(owner is not None for owner in state.owners)
    more = f" and {len(state.queue) - 4} more" if len(state.queue) > 4 else ""
    cached, asked = state.totals["cached_tokens"], state.totals["prompt_tokens"]
    came = [e for e in replays()[replica].events[: state.seq + 1] if isinstance(e, ev.RequestRouted)][-1]
    return [
        f"{running} running · {len(state.queue)} waiting · {used} of {state.pages} pages",
        f"queue: {', '.join(state.queue[:4]) or 'empty'}{more}",
        f"reused {cached:,} of {asked:,} prompt tokens ({100 * cached / asked:.0f} %)",
        f"{came.request} came here: {came.reason}",
    ]


def cards(page: Any) -> list[list[str]]:
    out: list[list[str]] = page.evaluate(
        "[...document.querySelectorAll('.rp-card')].map((card) => [...card.querySelectorAll('.rp-card-line')].map((e) => e.textContent))"
    )
    return out


def test_cards_tell_all_replicas_at_one_moment_and_show_the_pressed_one_there(open_page: Callable[..., Any]) -> None:
    page = mount(open_page, ran().trace)
    page.evaluate("player.seekMoment(1200)")
    page.wait_for_timeout(50)
    states = then(1200)
    assert cards(page) == [said(i, state) for i, state in enumerate(states)]
    for i in (2, 1, 0):
        page.click(f".rp-card >> nth={i}")
        page.wait_for_selector(f".radix-player[data-replica='{i}'][data-digest-seq='{states[i].seq}']")
        assert page.get_attribute(".radix-player", "data-digest") == digest(states[i].canonical())
        assert page.evaluate(PLACE) == [i, states[i].seq, 1200] and cards(page)[i] == said(i, states[i])
        assert page.locator(".rp-card[aria-pressed=true]").all_inner_texts()[0].startswith(f"Replica {i}\nshown")
        assert set(page.locator(".rp-whose:not([hidden])").all_inner_texts()) == {f"replica {i}"}
        assert f"replica {i} · event {states[i].seq}" in page.locator(".rp-place").inner_text()
    page.locator(".rp-card >> nth=0").focus()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(PLACE) == [2, states[2].seq, 1200]
    assert page.evaluate("document.activeElement.textContent").startswith("Replica 2")
    page.get_by_role("button", name="replicas as a table").click()
    rows = page.locator(".rp-replicas tbody tr")
    rows.first.wait_for()
    assert rows.count() == 3 and rows.nth(1).inner_text().split("\t")[2] == str(len(states[1].queue))
    rows.nth(1).locator("button").click()
    assert page.evaluate(PLACE)[0] == 1


def test_a_request_is_found_and_shown_on_the_replica_it_went_to(open_page: Callable[..., Any]) -> None:
    page = mount(open_page, ran().trace)
    home = {e.request: e.chosen for e in ran().trace if isinstance(e, ev.RequestRouted)}
    request = next(r for r in reversed(home) if home[r] == 2)
    page.evaluate("player.seekMoment(player.fleet.length - 1)")
    page.keyboard.press("/")
    page.keyboard.type(request)
    page.keyboard.press("Enter")
    assert page.evaluate("[player.replica, player.selection.request, player.lit.requests.size]") == [2, request, 1]


def test_events_that_come_in_pieces_are_counted_over_all_replicas(open_page: Callable[..., Any]) -> None:
    trace = ran().trace
    page = mount(open_page, trace)
    told = [json.loads(ev.encode(e)) for e in trace]
    got = page.evaluate(
        """async ([header, events]) => { await player.load({ header, events: [] }); player.follow(true); player.show(1);
          const out = [player.append(events.slice(0, 700)), player.append(events.slice(900)), player.append(events.slice(300, 1500))];
          return [...out, player.append(events.slice(1500)), player.state().events, player.moment, player.replicas.map((r) => RadixPlayer.digest(r.replay.head))]; }""",
        [json.loads(ev.encode(trace.header)), told],
    )
    last = len(trace) - 1
    assert got == [700, 700, 1500, len(trace), len(trace), last, [digest(s.canonical()) for s in then(last)]]


def test_an_exported_page_answers_why_offline_of_the_moment_it_was_saved_at(open_page: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    seq = next(e.seq for e in replays()[1].events if isinstance(e, ev.RequestRouted) and e.seq > 200)
    path.write_text(export.to_html(ran().trace, opening=Opening(seq, replica=1)), encoding="utf-8")
    page = show(open_page(offline=True), path)
    answer = RunExplainer(ran().trace.header, ran().trace).ask(seq, {}, 1)
    until(page, "document.querySelector('.rp-why-more table') !== null")
    assert page.locator(".rp-why-line").inner_text() == answer.headline and answer.table is not None
    assert page.evaluate(SHOWN)[1:] == ["1", str(seq)]
    other = parts().at(parts().numbers[1][seq], 2)
    page.locator(".rp-why-more tbody button").nth(2).click()  # a row of the table is a replica
    until(page, f"document.querySelector('.radix-player').dataset.seq === '{other}'")
    told = RunExplainer(ran().trace.header, ran().trace).ask(other, {}, 2).headline
    until(page, f"document.querySelector('.rp-why-line').textContent === {json.dumps(told)}")


def test_a_run_agrees_with_its_report_and_a_reload_keeps_run_replica_and_moment(served: Served, open_page: Callable[..., Any]) -> None:
    page = opened(open_page(), served.url)
    choose(page, TITLE)
    run(page)
    page.wait_for_selector(".rp-card")
    report = served.worker.runs.get(page.get_attribute(".radix-player", "data-run")).report
    told = [(r.cached_tokens, r.prompt_tokens) for r in report.replicas]
    assert [line[2].split(" (")[0] for line in cards(page)] == [f"reused {c:,} of {p:,} prompt tokens" for c, p in told]
    page.evaluate("location.hash = `#run=${document.querySelector('.radix-player').dataset.run}&replica=1&moment=900`")
    page.wait_for_selector(".radix-player[data-replica='1']")
    page.click(".rp-card >> nth=2")
    want = [said(i, state) for i, state in enumerate(then(900))]
    page.wait_for_function("location.hash.includes('replica=2')")
    before = page.evaluate(SHOWN)
    assert cards(page) == want and before[1:] == ["2", str(then(900)[2].seq)]
    page.reload()
    page.wait_for_selector(".radix-player[data-ready=true][data-replica='2']")
    page.wait_for_function("seq => document.querySelector('.radix-player')?.dataset.seq === seq", arg=before[2])
    assert page.evaluate(SHOWN) == before and cards(page) == want
    page.wait_for_function("document.querySelector('.rp-why-line')?.textContent.length > 0 && !document.querySelector('.rp-why [aria-busy]')")


@THEMES
def test_cards_fit_a_phone_and_have_no_grave_fault(served: Served, open_page: Callable[..., Any], dark: bool) -> None:
    shared = Run.of_trace(ran().trace, "uploaded", f"replicas-{dark}")
    served.worker.runs.add(shared)
    page = opened(open_page("phone", dark), f"{served.url}#run={shared.id}&seq=1200")
    page.wait_for_selector(".rp-card[aria-pressed=true]")
    assert sideways(page, [(390, 844)]) == []
    assert faults(page, ".radix-player") == []
    small = page.evaluate("[...document.querySelectorAll('.rp-replicas *')].filter((e) => parseFloat(getComputedStyle(e).fontSize) < 11).length")
    assert small == 0
    page.get_by_role("button", name="replicas as a table").click()
    page.wait_for_selector(".rp-replicas table")
    assert faults(page, ".rp-replicas") == [] and sideways(page, [(390, 844), (1440, 900)]) == []
