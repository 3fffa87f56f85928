"""Linked views: what one selects lights up everywhere, and what is marked is what the engine will do."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from engine import events as ev
from engine.cache.eviction import POLICIES
from tests.browser.test_fold_in_browser import puppet
from workbench import export, runner, scenario
from workbench.replay import Replay, State
from workbench.ui import player

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser-2")]

PAGE = "<!doctype html><title>player</title><style>{css} body{{margin:0}}</style><div id=at></div>"


packed = cache(export.pack)


def mount(open_page: Callable[..., Any], trace: ev.Trace, size: str = "desktop", **options: Any) -> Any:
    """A page with the player on a trace, as `player`."""
    page = open_page(size, **options).page
    page.set_content(PAGE.format(css=player.styles()))
    page.add_script_tag(content=player.sources())
    page.evaluate(
        """async (packed) => {
          window.player = RadixPlayer.mount(document.getElementById('at'), { theme: 'light', keys: 'page' });
          await player.load({ packed });
          await new Promise((done) => setTimeout(done, 60));
        }""",
        packed(trace),
    )
    return page


def lit(page: Any, seq: int, selection: dict[str, Any] | None) -> dict[str, list[Any]]:
    """Nodes, pages and requests that light up, and the events marked on the timeline."""
    got: dict[str, list[Any]] = page.evaluate(
        """([seq, selection]) => {
          player.seek(seq); player.select(selection); player.draw();
          const { nodes, pages, requests } = player.lit;
          const list = player.chosenEvents;
          return { nodes: [...nodes], pages: [...pages].sort((a, b) => a - b),
            requests: [...requests].map((n) => player.trace.requests[n].name), events: [...list.a.subarray(0, list.n)] };
        }""",
        [seq, selection],
    )
    return got


@cache
def pressed() -> tuple[ev.Trace, Replay]:
    trace = puppet()
    return trace, Replay(trace.events)


def path(state: State, node: int) -> list[int]:
    out = []
    while node:
        out.append(node)
        node = state.nodes[node].parent
    return out


def running(state: State) -> list[tuple[str, Any]]:
    return [(id, r) for id, r in state.requests.items() if r.node]


@pytest.mark.parametrize("seq", [400, 900, 1700])
def test_a_request_lights_up_its_path_and_its_pages(seq: int, open_page: Callable[..., Any]) -> None:
    trace, replay = pressed()
    page = mount(open_page, trace)
    state = replay.at(seq)
    id, request = running(state)[0]
    nodes = path(state, request.node)
    got = lit(page, seq, {"request": id})
    assert sorted(got["nodes"]) == sorted(nodes)
    assert got["pages"] == sorted([*request.pages, *(p for n in nodes for p in state.nodes[n].pages)])
    assert got["requests"] == [id]
    own = [e.seq for e in trace if id in (getattr(e, "request", None), getattr(e, "behind", None), getattr(e, "writer", None))]
    assert set(own) <= set(got["events"])


def test_an_ended_request_lights_up_what_the_tree_still_holds_of_it(open_page: Callable[..., Any]) -> None:
    trace = runner.run(
        scenario.parse({"name": "two", "engine": {"executor": "puppet", "pages": 64}, "requests": [
            {"id": "R1", "tokens": "A8+B4", "max_new_tokens": 1, "at_step": 0}, {"id": "R2", "tokens": "A8+C4", "max_new_tokens": 1, "at_step": 9},
        ]})
    ).trace
    end = len(trace) - 1
    state = Replay(trace.events).at(end)
    got = lit(mount(open_page, trace), end, {"request": "R1"})
    runs = [state.nodes[n].depth for n in sorted(got["nodes"], key=lambda n: state.nodes[n].depth)]
    assert runs == [0, 8] and len(got["pages"]) == 12


def finders(trace: ev.Trace, replay: Replay, seq: int) -> dict[int, list[str]]:
    """Who found each node up to an event: the look-up before each hit, along the path as it stood then."""
    out: dict[int, list[str]] = {}
    seeker = ""
    for event in trace.events[: seq + 1]:
        if isinstance(event, ev.RequestMatched):
            seeker = event.request
        elif isinstance(event, ev.NodeSplit):
            out[event.front] = list(out.get(event.node, []))
        elif isinstance(event, ev.NodeTouched) and event.hit:
            for node in path(replay.at(event.seq), event.node):
                out.setdefault(node, []).append(seeker)
    return out


def test_a_node_was_found_as_often_as_its_hits_say_also_after_a_split(open_page: Callable[..., Any]) -> None:
    trace, replay = pressed()
    last = len(trace) - 1
    page = mount(open_page, trace)
    got = page.evaluate(
        """() => { player.seek(player.trace.length - 1); const s = player.now; const out = [];
          for (let slot = 0; slot < s.slots; slot++) if (s.alive(slot)) { const id = s.get(slot, RadixPlayer.N.ID);
            out.push([id, s.get(slot, RadixPlayer.N.HITS), player.replay.hits.of(id).requests.map((n) => player.trace.requests[n].name)]); }
          return out; }"""
    )
    want = finders(trace, replay, last)
    assert {id for id, _, _ in got} == set(replay.at(last).nodes) and any(isinstance(e, ev.NodeSplit) for e in trace)
    for id, hits, names in got:
        assert names == want.get(id, []) and len(names) == hits
    id, hits, names = max(got, key=lambda row: row[1])
    page.evaluate(f"player.select({{ node: {id} }}); player.draw()")
    facts = page.locator(".rp-selection .rp-facts").inner_text()
    assert f"{hits}: found by {names[0]}" in facts.replace("\n", " ")


@pytest.mark.parametrize("seq", [400, 1700])
def test_a_node_lights_up_its_pages_and_the_requests_through_it(seq: int, open_page: Callable[..., Any]) -> None:
    trace, replay = pressed()
    page = mount(open_page, trace)
    state = replay.at(seq)
    node = next(n for n, x in state.nodes.items() if x.locks)
    got = lit(page, seq, {"node": node})
    holders = {id for id, r in running(state) if node in path(state, r.node)}
    wrote = {r for r, _, _ in state.nodes[node].pieces}
    assert len(holders) == state.nodes[node].locks
    assert set(got["requests"]) == holders | wrote | set(finders(trace, replay, seq).get(node, []))
    assert got["pages"] == sorted(state.nodes[node].pages)
    named = [e.seq for e in trace if node in (getattr(e, "node", None), getattr(e, "front", None), *getattr(e, "path", []))]
    assert set(named) <= set(got["events"])
    assert lit(page, seq, None) == {"nodes": [], "pages": [], "requests": [], "events": []}


def test_clicks_select_and_empty_space_and_escape_clear(open_page: Callable[..., Any]) -> None:
    trace, replay = pressed()
    page = mount(open_page, trace)
    page.evaluate("player.seek(900); player.draw()")
    state = replay.at(900)

    def selection() -> Any:
        return page.evaluate("player.state().selection")

    for wanted in (2, 20):
        page.locator(".rp-pool canvas").click(position={"x": wanted * 16 + 6, "y": 6})
        owner = state.owners[wanted]
        assert selection() == ({"node": owner} if isinstance(owner, int) else {"request": owner} if owner else None)
    page.locator(".rp-lanes canvas").click(position={"x": 40, "y": 12})
    assert set(selection()) == {"request"}
    page.keyboard.press("Escape")
    assert selection() is None
    page.locator(".rp-tree canvas").first.click(position={"x": 20, "y": 12})
    node = selection()["node"]
    assert state.nodes[node].depth == 0
    page.locator(".rp-pool canvas").click(position={"x": 900, "y": 6})
    assert selection() is None


def test_the_next_event_of_the_selection(open_page: Callable[..., Any]) -> None:
    trace, _ = pressed()
    page = mount(open_page, trace)
    arrived = next(e.seq for e in trace if isinstance(e, ev.RequestArrived) and e.request == "R7")
    page.evaluate("player.select({ request: 'R7' })")
    page.keyboard.press("n")
    assert page.evaluate("player.state().seq") == arrived
    page.keyboard.press("n")
    later = page.evaluate("player.state().seq")
    assert later > arrived
    page.keyboard.press("Shift+N")
    assert page.evaluate("player.state().seq") == arrived


@pytest.mark.parametrize("policy", sorted(set(POLICIES) & {"lru", "lfu", "fifo", "mru", "filo", "slru", "priority", "size"}))
def test_what_is_marked_to_go_next_goes_next(policy: str, open_page: Callable[..., Any]) -> None:
    requests = [
        {"tokens": f"{'ABCD'[i % 4]}{4 + i % 5}+{chr(ord('E') + i % 20)}{2 + i % 4}", "max_new_tokens": 3, "at_step": i}
        | ({"priority": i % 3} if policy == "priority" else {})
        for i in range(50)
    ]
    engine = {"executor": "puppet", "pages": 40, "eviction": policy, "max_running": 3}
    trace = runner.run(scenario.parse({"name": "evicts", "engine": engine, "requests": requests})).trace
    page = mount(open_page, trace)
    evictions = [e for e in trace if isinstance(e, ev.Eviction) and e.ranking]
    assert len(evictions) > 10
    before = []
    for e in evictions:
        at = e.seq
        while isinstance(trace.events[at], ev.Eviction | ev.NodeTrimmed | ev.NodeEvicted | ev.PageFreed):
            at -= 1
        before.append(at)
    marked = page.evaluate(
        "(seqs) => seqs.map((seq) => { const s = player.replay.at(seq); const slot = RadixPlayer.nextToGo(s); return slot < 0 ? 0 : s.get(slot, RadixPlayer.N.ID); })",
        before,
    )
    assert marked == [e.ranking[0].node for e in evictions]


def test_an_unknown_policy_marks_nothing(open_page: Callable[..., Any]) -> None:
    trace, _ = pressed()
    config = {**trace.header.config, "eviction": "belady"}
    lines = [json.loads(ev.encode(e)) for e in trace.events[:900]]
    page = open_page().page
    page.set_content(PAGE.format(css=player.styles()))
    page.add_script_tag(content=player.sources())
    got = page.evaluate(
        """async ([header, events]) => {
          window.player = RadixPlayer.mount(document.getElementById('at'));
          await player.load({ header, events });
          player.seek(899); player.draw();
          return [RadixPlayer.nextToGo(player.now), player.tree.legend.marks.next.hidden];
        }""",
        [json.loads(ev.encode(trace.header)) | {"config": config}, lines],
    )
    assert got == [-1, True]
