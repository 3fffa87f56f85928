"""A directed graph in layers from left to right, each node and each passing edge in a lane of its own.

Networkx finds the layers: the longest way from the start, edges back left out. Lanes are given out layer by layer, first to
the nodes that matter most, so that these make one straight line. Edges to the same node share a lane.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import networkx as nx

Edge = tuple[int, int]


@dataclass
class Layers:
    """Where everything stands: columns from the left, lanes from the top."""

    columns: list[list[int]]
    """The nodes of each column."""
    back: set[Edge]
    """Edges that close a cycle: all others lead to the right."""
    column: dict[int, int] = field(default_factory=dict)
    lane: dict[int, int] = field(default_factory=dict)
    lanes: dict[Edge, list[int]] = field(default_factory=dict)
    """The lanes in which an edge passes the columns between its ends."""


def arrange(graph: nx.DiGraph, start: int, first: Collection[int] = ()) -> Layers:
    """Columns and lanes for all nodes; those in `first` get the upper lanes. Every node is reached from `start`."""
    back = back_edges(graph, start)
    forward = nx.DiGraph()
    forward.add_nodes_from(graph)
    forward.add_edges_from(edge for edge in graph.edges if edge not in back)
    found = Layers([sorted(nodes) for nodes in nx.topological_generations(forward)], back)
    found.column = {node: i for i, nodes in enumerate(found.columns) for node in nodes}
    found.lanes = {edge: [] for edge in forward.edges}
    _Lanes(found, forward, set(first)).give_out()
    return found


class _Lanes:
    """Gives out the lanes, column by column."""

    def __init__(self, found: Layers, forward: nx.DiGraph, first: set[int]) -> None:
        self.found, self.forward, self.first = found, forward, first
        self.coming: dict[int, int] = {}
        """The lane in which edges to a node come."""
        self.passing: dict[int, int] = {}
        """The same, of edges that have passed a column already."""
        self.hurried: set[int] = set()
        """Nodes that matter, to which an edge from another such node is on its way."""
        self.taken: set[int] = set()

    def give_out(self) -> None:
        for i, nodes in enumerate(self.found.columns):
            self.taken = set()
            wanted = [(node not in self.first, self._wanted(node), False, node) for node in nodes]
            wanted += [(target not in self.hurried, lane, True, target) for target, lane in self._beyond(i)]
            passing: dict[int, int] = {}
            for _, lane, passes, node in sorted(wanted):
                (passing if passes else self.found.lane)[node] = self._take(lane, node, i)
            self._pass(i, passing)
            for node in nodes:
                for target in self.forward.successors(node):
                    self.coming.setdefault(target, self.found.lane[node])
                    if {node, target} <= self.first:
                        self.hurried.add(target)

    def _beyond(self, column: int) -> list[Edge]:
        """The nodes that lie beyond a column and have an edge on its way, with its lane."""
        return [(target, lane) for target, lane in self.coming.items() if self.found.column[target] > column]

    def _pass(self, column: int, passing: dict[int, int]) -> None:
        """Note the lanes of the edges that go on beyond a column."""
        for source, target in self.forward.edges:
            if self.found.column[source] < column < self.found.column[target]:
                self.found.lanes[source, target].append(passing[target])
        self.coming, self.passing = dict(passing), passing

    def _wanted(self, node: int) -> int:
        """The lane of the node before it that matters; else that in which its edges come."""
        before = [self.found.lane[source] for source in self.forward.predecessors(node) if source in self.first]
        return min(before) if before else self.coming.get(node, 0)

    def _take(self, lane: int, node: int, column: int) -> int:
        """The free lane that is nearest, rather below than above.

        Edges that end in this column keep their lane up to it: only their own node may stand in it.
        """
        ending = {
            lane for target, lane in self.passing.items() if self.found.column[target] == column and target != node
        }
        full = self.taken | ending
        nearest = sorted(range(lane + len(full) + 1), key=lambda free: (abs(free - lane), -free))
        free = next(free for free in nearest if free not in full)
        self.taken.add(free)
        return free


def back_edges(graph: nx.DiGraph, start: int) -> set[Edge]:
    """The edges that close a cycle, as a walk in depth from the start meets them."""
    found: set[Edge] = set()
    done: set[int] = set()
    under_way: dict[int, Iterable[int]] = {start: iter(sorted(graph.successors(start)))}
    while under_way:
        node = next(reversed(under_way))
        target = next(iter(under_way[node]), None)
        if target is None:
            del under_way[node]
            done.add(node)
        elif target in under_way:
            found.add((node, target))
        elif target not in done:
            under_way[target] = iter(sorted(graph.successors(target)))
    return found
