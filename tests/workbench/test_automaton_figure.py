"""The automaton's drawing: what is shown of it, where each state is, and that nothing typed becomes markup."""

from __future__ import annotations

import re
from itertools import combinations
from xml.etree import ElementTree as ET

import networkx as nx
import pytest

from engine import events as ev
from tests.workbench.decoded import known, run
from workbench.decoding import Decoding, decode
from workbench.figures.automaton import WHOLE, Map, states_of, view
from workbench.figures.automaton_svg import Drawing
from workbench.figures.layers import arrange, back_edges

SVG = "{http://www.w3.org/2000/svg}"


def drawn(d: Decoding, width: float = 800) -> tuple[Map, ET.Element]:
    assert d.grammar is not None
    found = Map(d.grammar.edges, d.grammar.ends)
    shown = view(found, d.grammar.start, states_of([d]))
    return found, ET.fromstring(Drawing(found, shown, d.grammar.start, width).draw())


def edge(
    source: int, target: int, label: str = "x", forced: bool = False, through: list[int] | None = None
) -> ev.GrammarEdge:
    return ev.GrammarEdge(source=source, target=target, label=label, forced=forced, through=through or [])


# --- layers ------------------------------------------------------------------------------------


def test_edges_that_close_a_cycle_are_found_and_all_others_lead_to_the_right() -> None:
    graph = nx.DiGraph([(0, 1), (1, 2), (2, 0), (1, 1), (0, 3), (3, 2)])
    assert back_edges(graph, 0) == {(2, 0), (1, 1)}
    layers = arrange(graph, 0)
    assert all(layers.column[a] < layers.column[b] for a, b in graph.edges if (a, b) not in layers.back)


@pytest.mark.parametrize("mode", ["off", "verified"])
def test_no_two_states_stand_in_one_place_and_no_edge_passes_through_a_state(mode: str) -> None:
    d = decode(known(mode))
    assert d.grammar is not None
    graph = nx.DiGraph([(e.source, e.target) for e in d.grammar.edges])
    layers = arrange(graph, d.grammar.start)
    places = {(layers.column[n], layers.lane[n]) for n in graph}
    assert len(places) == len(graph)
    for (source, _), lanes in layers.lanes.items():
        for k, lane in enumerate(lanes, layers.column[source] + 1):
            assert (k, lane) not in places


def test_the_walk_is_one_straight_line_at_the_top() -> None:
    graph = nx.DiGraph([(0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 5)])
    layers = arrange(graph, 0, [0, 2, 4, 5])
    assert [layers.lane[n] for n in (0, 2, 4, 5)] == [0, 0, 0, 0]


def test_edges_to_the_same_state_share_a_lane() -> None:
    graph = nx.DiGraph([(n, n + 1) for n in range(8)] + [(n, 8) for n in range(6)])
    layers = arrange(graph, 0, range(9))
    assert max(lane for lanes in layers.lanes.values() for lane in lanes) == 1


# --- the map -----------------------------------------------------------------------------------


def test_a_state_within_a_forced_run_is_on_its_edge_as_far_as_it_has_come() -> None:
    found = Map([edge(0, 4, "abcd", True, [1, 2, 3])])
    assert [(p.node, p.edge, p.share) for s in range(5) for p in [found.places[s]]] == [
        (0, None, 0.0), (None, 0, 0.25), (None, 0, 0.5), (None, 0, 0.75), (4, None, 0.0),
    ]  # fmt: skip


@pytest.mark.parametrize("mode", ["off", "verified", "unverified"])
def test_every_state_of_a_tape_of_plain_letters_has_its_place(mode: str) -> None:
    d = decode(known(mode))
    found, _ = drawn(d)
    assert set(states_of([d])) <= set(found.places)


def test_states_that_only_count_are_one_node_in_a_large_automaton() -> None:
    d = decode(run("off", "[a-z]{1,80}", tokens=20))
    found, svg = drawn(d)
    assert len(found.graph) < 10
    assert any(count > 70 for count in found.alike.values())
    told = "".join(svg.itertext())
    assert "states that only count" in told


def test_states_that_are_told_apart_soon_are_not_one_node() -> None:
    d = decode(run("off", "(a[0-9]{30}x|b[0-9]{30}y)", tokens=40))
    assert d.grammar is not None
    found = Map(d.grammar.edges, d.grammar.ends)
    ends = [s for s in found.graph if any(e.label in "xy" and e.source == s for e in found.edges)]
    assert len(ends) == 2


def test_a_small_automaton_is_drawn_whole_and_of_a_large_one_the_rest_is_counted() -> None:
    d = decode(known("off"))
    assert d.grammar is not None
    small = Map(d.grammar.edges, d.grammar.ends)
    assert view(small, d.grammar.start, states_of([d])).hidden == 0
    words = "|".join("".join(pair) for pair in combinations("abcdefghijklmnopqrs", 4))
    d = decode(run("off", f"({words})"))
    assert d.grammar is not None
    large = Map(d.grammar.edges, d.grammar.ends)
    shown = view(large, d.grammar.start, states_of([d]))
    states = sum(p.node is not None for p in large.places.values())
    standing = sum(large.alike.get(n, 1) for n in shown.graph)
    assert states > WHOLE and shown.hidden == states - standing > 0
    assert all(nx.has_path(shown.graph, large.places[d.grammar.start].node, n) for n in shown.graph)


def test_what_the_walk_passed_is_drawn_and_marked() -> None:
    d = decode(known("verified"))
    found, svg = drawn(d)
    marked = {
        int(g.get("data-state", "-1"))
        for g in svg.iter(f"{SVG}g")
        if "ra-walked" in g.get("class", "") and g.get("data-state")
    }
    stood = {p.node for s in states_of([d]) if (p := found.places[s]).node is not None}
    assert stood <= marked


# --- the picture -------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [260, 500, 900])
def test_nothing_is_drawn_outside_the_room_there_is(width: float) -> None:
    _, svg = drawn(decode(known("verified")), width)
    for rect in svg.iter(f"{SVG}rect"):
        x, w = float(rect.get("x", 0)), float(rect.get("width", 0))
        assert x >= 0 and x + w <= width
        assert float(rect.get("y", 0)) + float(rect.get("height", 0)) <= float(svg.get("height", 0))
    for text in svg.iter(f"{SVG}text"):
        assert float(text.get("font-size", 0)) >= 11
    for path in svg.iter(f"{SVG}path"):
        for number in re.findall(r"[ML]([\d.]+) ", path.get("d", "")):
            assert 0 <= float(number) <= width


def test_a_narrow_drawing_has_more_lines() -> None:
    d = decode(known("verified"))
    heights = [float(drawn(d, width)[1].get("height", 0)) for width in (1200, 600, 300)]
    assert heights == sorted(heights) and heights[0] < heights[-1]


def test_every_edge_tells_its_whole_label_and_whether_it_is_forced() -> None:
    d = decode(run("off", "a{40}[bc]", tokens=50))
    _, svg = drawn(d)
    titles = [t.text or "" for t in svg.iter(f"{SVG}title")]
    assert any(f"{'a' * 40} (forced)" in t for t in titles)


def test_labels_are_text_and_never_markup() -> None:
    d = decode(run("off", '<script>"&[a-z]{2}', tokens=30))
    _, svg = drawn(d)
    assert not list(svg.iter("script")) and not list(svg.iter(f"{SVG}script"))
    assert any('<script>"&' in (t.text or "") for t in svg.iter(f"{SVG}text"))
