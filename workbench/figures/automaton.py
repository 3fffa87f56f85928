"""A grammar's compressed automaton, and where an answer walked in it: a drawing in lines, as wide as there is room.

A pure function of the edges that `grammar.compiled` tells. Of a large automaton only the neighbourhood of the walk is
drawn, and how many states are hidden is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec
import networkx as nx

from engine.events import GrammarEdge
from workbench.decoding import Decoding

WHOLE = 40
"""An automaton of at most so many states is drawn whole."""
ALIKE = 4
"""Edges that are followed to tell two states apart."""
OR = " or "
"""Between the labels of edges that are drawn as one."""
MOST = 120
"""More states than this are never drawn."""


class Place(msgspec.Struct, frozen=True):
    """Where in the drawing a state is: at a node, or so far along an edge."""

    node: int | None = None
    edge: int | None = None
    share: float = 0.0


@dataclass
class Map:
    """The graph that may be drawn, and where each state is in it.

    States that agree on what may follow, as far as `ALIKE` edges, only count: of a large automaton they are one node.
    """

    told: Sequence[GrammarEdge]
    ends: Sequence[int] = ()
    edges: list[GrammarEdge] = field(default_factory=list)
    """The edges of the graph, between nodes."""
    graph: nx.DiGraph = field(default_factory=nx.DiGraph)
    """Nodes are states, one for all that are drawn as one; each edge has its number as `index`."""
    places: dict[int, Place] = field(default_factory=dict)
    alike: dict[int, int] = field(default_factory=dict)
    """For a node: how many states it stands for, where these are several."""

    def __post_init__(self) -> None:
        node = self._nodes()
        for edge in self.told:
            source, target = node[edge.source], node[edge.target]
            if not self.graph.has_edge(source, target):
                self.graph.add_edge(source, target, index=len(self.edges))
                self.edges.append(msgspec.structs.replace(edge, source=source, target=target, through=[]))
            index = self.graph.edges[source, target]["index"]
            known = self.edges[index]
            if edge.label not in known.label.split(OR):
                self.edges[index] = msgspec.structs.replace(known, label=f"{known.label}{OR}{edge.label}")
            for k, state in enumerate(edge.through, 1):
                self.places.setdefault(state, Place(edge=index, share=round(k / (len(edge.through) + 1), 4)))
        self.places.update({state: Place(node=n) for state, n in node.items()})
        self.alike = {n: count for n, count in Counter(node.values()).items() if count > 1}

    def _nodes(self) -> dict[int, int]:
        """The node of each state: the first of those that are alike."""
        ways: dict[int, list[GrammarEdge]] = {}
        for edge in self.told:
            ways.setdefault(edge.source, []).append(edge)
            ways.setdefault(edge.target, [])
        if len(ways) <= WHOLE:
            return {state: state for state in ways}
        kind: dict[int, int] = {state: int(state in set(self.ends)) for state in ways}
        for _ in range(ALIKE):
            seen: dict[Any, int] = {}
            kind = {
                state: seen.setdefault((kind[state], tuple(sorted((e.label, kind[e.target]) for e in out))), len(seen))
                for state, out in ways.items()
            }
        first: dict[int, int] = {}
        return {state: first.setdefault(kind[state], state) for state in sorted(ways)}


@dataclass
class View:
    """The part of an automaton that is drawn."""

    graph: nx.DiGraph
    walked: set[int]
    """Nodes that the answer passed."""
    walked_edges: set[int]
    hidden: int
    """States between characters that are not drawn."""
    more: dict[int, int]
    """For a node: how many of its edges lead to what is hidden."""


def states_of(arms: Iterable[Decoding]) -> list[int]:
    """The states in which the answers stood, in order."""
    found: list[int] = []
    for arm in arms:
        for token in arm.tokens:
            found += [s for s in (token.state, token.target) if s is not None and (not found or found[-1] != s)]
    return found


def view(known: Map, start: int, states: Sequence[int]) -> View:
    """What to draw: all of a small automaton, else what the walk passed and its neighbours."""
    nodes, edges = _walked(known, [start, *states])
    whole, start = known.graph, known.places[start].node or start
    if sum(p.node is not None for p in known.places.values()) <= WHOLE:
        shown = set(whole)
    else:
        shown = {start}
        for node in nodes:
            for near in (node, *whole.successors(node)):
                if len(shown) < MOST:
                    shown.add(near)
        shown = {start, *nx.descendants(whole.subgraph(shown), start)}
    graph = whole.subgraph(shown).copy()
    more = {n: out for n in shown if (out := sum(t not in shown for t in whole.successors(n)))}
    standing = sum(known.alike.get(n, 1) for n in shown)
    return View(
        graph, set(nodes) & shown, edges, sum(p.node is not None for p in known.places.values()) - standing, more
    )


def _walked(known: Map, states: Sequence[int]) -> tuple[list[int], set[int]]:
    """The nodes and edges passed, in order; between two states in which the answer stood, the shortest way."""
    stops = [place for state in states if (place := known.places.get(state)) is not None]
    nodes: dict[int, None] = {}
    edges: set[int] = set()

    def passed(way: Sequence[int]) -> None:
        nodes.update(dict.fromkeys(way))
        edges.update(known.graph.edges[pair]["index"] for pair in pairwise(way))

    here: int | None = None
    for place in stops:
        entered = place.node if place.edge is None else known.edges[place.edge].source
        assert entered is not None
        if here is None:
            passed([entered])
        elif here != entered and nx.has_path(known.graph, here, entered):
            passed(nx.shortest_path(known.graph, here, entered))
        elif here == entered and place.edge is None and known.graph.has_edge(here, here):
            passed([here, here])
        if place.edge is not None:
            edges.add(place.edge)
        here = entered
    return list(nodes), edges
