"""An automaton's view as SVG: columns of states from left to right, broken into lines where the room ends.

No text is under 11 px, whatever the room: a narrow drawing has more lines. Colours come from the page; without a
style sheet it is drawn in the text's colour.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from xml.etree import ElementTree as ET

from engine.events import GrammarEdge
from workbench.figures.automaton import Map, View
from workbench.figures.layers import Layers, arrange

CHAR = 7.0
"""Width of a character of a label, in px (11.5 px monospace)."""
LANE = 58.0
TOP, SIDE = 38.0, 26.0
HIGH = 24.0
"""Height of a state."""
LONGEST = 26
"""Characters of a label that are drawn; all of them stand in its title."""
LEAST = 38.0
"""Room between two columns, beside the label."""
STUB = "v13"
NEAR = 3
"""An edge back over more columns than this is a stub that names its target."""


@dataclass
class Spot:
    """A column's place: its line, its middle, and half its width."""

    line: int
    x: float
    half: float


def short(edge: GrammarEdge) -> str:
    """A label in so many characters as are drawn, the blanks of a forced run made visible."""
    label = edge.label.replace(" ", "␣") if edge.forced else edge.label
    return label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"


class Drawing:
    """Lays a view out in `width` px and draws it."""

    def __init__(self, known: Map, shown: View, start: int, width: float) -> None:
        self.view, self.edges, self.start, self.alike = shown, known.edges, start, known.alike
        self.ends = {place.node for end in known.ends if (place := known.places.get(end)) is not None}
        self.layers: Layers = arrange(shown.graph, start, shown.walked)
        self.width = width
        self.spots = self._columns()
        self.tops = self._lines()
        self._labels: dict[tuple[int, int], int] = {}
        self.svg = ET.Element("svg", {"class": "ra", "xmlns": "http://www.w3.org/2000/svg"})

    # --- places --------------------------------------------------------------------------------

    def _name(self, state: int) -> str:
        """What stands in a state: its number, and how many it stands for."""
        return f"{state} ×{self.alike[state]}" if state in self.alike else str(state)

    def _wide(self, state: int) -> float:
        return max(HIGH, CHAR * len(self._name(state)) + 12)

    def _index(self, source: int, target: int) -> int:
        return int(self.view.graph.edges[source, target]["index"])

    def _label(self, source: int, target: int) -> str:
        return short(self.edges[self._index(source, target)])

    def _columns(self) -> list[Spot]:
        """Give each column its line and place: as much room before it as the longest label there needs."""
        spots: list[Spot] = []
        layers = self.layers
        for i, nodes in enumerate(layers.columns):
            half = max(self._wide(n) for n in nodes) / 2
            if not spots:
                spots.append(Spot(0, SIDE + half, half))
                continue
            before = layers.columns[i - 1]
            labels = [
                self._label(s, t)
                for s in before
                for t in self.view.graph.successors(s)
                if s != t and (s, t) not in layers.back
            ]
            loops = [self._label(s, s) for s in (*before, *nodes) if self.view.graph.has_edge(s, s)]
            gap = max([LEAST + CHAR * len(x) for x in labels] + [CHAR * len(x) - half for x in loops] + [LEAST])
            last = spots[-1]
            x = last.x + last.half + gap + half
            if x + half + SIDE > self.width:
                spots.append(Spot(last.line + 1, SIDE + half + min(gap, self.width / 3), half))
            else:
                spots.append(Spot(last.line, x, half))
        return spots

    def _lines(self) -> list[float]:
        """The top of each line; one more for the end."""
        lanes = [0] * (self.spots[-1].line + 1)
        for node, column in self.layers.column.items():
            lanes[self.spots[column].line] = max(lanes[self.spots[column].line], self.layers.lane[node])
        for (source, _), passed in self.layers.lanes.items():
            for k, lane in enumerate(passed, self.layers.column[source] + 1):
                lanes[self.spots[k].line] = max(lanes[self.spots[k].line], lane)
        tops = [0.0]
        for most in lanes:
            tops.append(tops[-1] + TOP + LANE * (most + 1))
        return tops

    def _at(self, column: int, lane: int) -> tuple[float, float]:
        spot = self.spots[column]
        return spot.x, self.tops[spot.line] + TOP + LANE * lane + HIGH / 2

    def _node(self, state: int) -> tuple[float, float]:
        return self._at(self.layers.column[state], self.layers.lane[state])

    # --- drawing -------------------------------------------------------------------------------

    def draw(self) -> str:
        """The SVG's text."""
        height = self.tops[-1] + 6
        self.svg.attrib |= {
            "width": _n(self.width),
            "height": _n(height),
            "viewBox": f"0 0 {_n(self.width)} {_n(height)}",
        }
        self._arrowhead()
        for source, target in sorted(self.view.graph.edges):
            self._edge(source, target)
        for state in sorted(self.view.graph):
            self._state(state)
        return ET.tostring(self.svg, encoding="unicode")

    def _arrowhead(self) -> None:
        marker = ET.SubElement(
            ET.SubElement(self.svg, "defs"), "marker",
            {"id": "ra-head", "viewBox": "0 0 8 8", "refX": "7", "refY": "4", "markerWidth": "8", "markerHeight": "8", "markerUnits": "userSpaceOnUse", "orient": "auto"},
        )  # fmt: skip
        ET.SubElement(marker, "path", {"d": "M0 0.5 7.5 4 0 7.5z", "fill": "context-stroke"})

    def _edge(self, source: int, target: int) -> None:
        index = self._index(source, target)
        edge = self.edges[index]
        if source == target:
            path, x, y, anchor = self._loop(source)
        elif (source, target) in self.layers.back:
            path, x, y, anchor = self._backwards(source, target)
        else:
            path, x, y, anchor = self._onwards(source, target)
        names = [
            "ra-edge",
            *(["ra-forced"] if edge.forced else []),
            *(["ra-walked"] if index in self.view.walked_edges else []),
        ]
        group = ET.SubElement(self.svg, "g", {"class": " ".join(names), "data-edge": str(index)})
        ET.SubElement(group, "title").text = f"{source} to {target}: {edge.label}{' (forced)' if edge.forced else ''}"
        ET.SubElement(
            group, "path", {"d": path, "fill": "none", "stroke": "currentColor", "stroke-width": "3" if edge.forced else "1.2", "marker-end": "url(#ra-head)"}
        )  # fmt: skip
        text = ET.SubElement(
            group,
            "text",
            {
                "x": _n(x),
                "y": _n(y),
                "text-anchor": anchor,
                "font-size": "11.5",
                "font-family": "monospace",
                "xml:space": "preserve",
            },
        )
        far = path.endswith(STUB)
        text.text = f"{short(edge)} to {target}" if far else short(edge)

    def _onwards(self, source: int, target: int) -> tuple[str, float, float, str]:
        """The path to a later column. It bends down at once and up at last, so that labels stand on lanes of their own."""
        first, last = self.layers.column[source], self.layers.column[target]
        lanes = [self.layers.lane[source], *self.layers.lanes[source, target], self.layers.lane[target]]
        x, y = self._node(source)
        x += self._wide(source) / 2
        parts = [f"M{_n(x)} {_n(y)}"]
        label = (x, y)
        for column, (lane, next_lane) in zip(range(first + 1, last + 1), pairwise(lanes), strict=True):
            to_x, to_y = self._at(column, next_lane)
            to_x -= self._wide(target) / 2 if column == last else 0
            begins = column == first + 1
            if self.spots[column].line != self.spots[column - 1].line:
                parts.append(f"L{_n(self.width - 4)} {_n(y)}M4 {_n(to_y)}L{_n(to_x)} {_n(to_y)}")
                label = self._slot(column, next_lane, 10, to_y) if begins else label
            elif next_lane == lane:
                parts.append(f"L{_n(to_x)} {_n(to_y)}")
                label = self._slot(column, lane, x + 10, y) if begins else label
            elif next_lane > lane:
                parts.append(
                    f"C{_n(x + 11)} {_n(y)} {_n(x + 5)} {_n(to_y)} {_n(x + 18)} {_n(to_y)}L{_n(to_x)} {_n(to_y)}"
                )
                label = self._slot(column, next_lane, x + 20, to_y) if begins else label
            else:
                parts.append(
                    f"L{_n(to_x - 24)} {_n(y)}C{_n(to_x - 10)} {_n(y)} {_n(to_x - 18)} {_n(to_y)} {_n(to_x)} {_n(to_y)}"
                )
                label = self._slot(column, lane, x + 10, y) if begins else label
            x, y = to_x, to_y
        return "".join(parts), *label, "start"

    def _slot(self, column: int, lane: int, x: float, y: float) -> tuple[float, float]:
        """Where a label stands above its line; a second one there stands above the first."""
        above = self._labels.get((column, lane), 0)
        self._labels[column, lane] = above + 1
        return x, y - 7 - 12 * above

    def _loop(self, state: int) -> tuple[str, float, float, str]:
        x, y = self._node(state)
        top = y - HIGH / 2
        return (
            f"M{_n(x - 7)} {_n(top)}C{_n(x - 12)} {_n(top - 17)} {_n(x + 12)} {_n(top - 17)} {_n(x + 7)} {_n(top)}",
            x,
            top - 15,
            "middle",
        )

    def _backwards(self, source: int, target: int) -> tuple[str, float, float, str]:
        """Below the states, back to a near column; or a stub."""
        (x, y), (to_x, to_y) = self._node(source), self._node(target)
        columns = self.layers.column[source] - self.layers.column[target]
        same = self.spots[self.layers.column[source]].line == self.spots[self.layers.column[target]].line
        bottom = max(y, to_y) + HIGH / 2
        if same and columns <= NEAR:
            low = bottom + 15
            path = (
                f"M{_n(x)} {_n(y + HIGH / 2)}C{_n(x)} {_n(low)} {_n(to_x)} {_n(low)} {_n(to_x)} {_n(to_y + HIGH / 2)}"
            )
            return path, (x + to_x) / 2, low + 8, "middle"
        return f"M{_n(x)} {_n(y + HIGH / 2)}{STUB}", x, y + HIGH / 2 + 25, "middle"

    def _state(self, state: int) -> None:
        x, y = self._node(state)
        w = self._wide(state)
        names = [
            "ra-state",
            *(["ra-walked"] if state in self.view.walked else []),
            *(["ra-end"] if state in self.ends else []),
        ]
        group = ET.SubElement(self.svg, "g", {"class": " ".join(names), "data-state": str(state)})
        more, alike = self.view.more.get(state), self.alike.get(state)
        told = [
            f"state {state}",
            *(["the start"] if state == self.start else []),
            *(["the answer may end here"] if state in self.ends else []),
        ]
        told += [f"{alike} states that only count, drawn as one"] if alike else []
        ET.SubElement(group, "title").text = ", ".join([*told, *([f"{more} more ways, not drawn"] if more else [])])
        for inset in (0.0, 3.0) if state in self.ends else (0.0,):
            ET.SubElement(
                group, "rect",
                {"x": _n(x - w / 2 + inset), "y": _n(y - HIGH / 2 + inset), "width": _n(w - 2 * inset), "height": _n(HIGH - 2 * inset), "rx": _n(HIGH / 2 - inset),
                 "fill": "none" if inset else "var(--ra-fill, #fff)", "stroke": "currentColor", "stroke-width": "1.2"},
            )  # fmt: skip
        text = ET.SubElement(group, "text", {"x": _n(x), "y": _n(y + 4), "text-anchor": "middle", "font-size": "11.5"})
        text.text = self._name(state)
        if state == self.start:
            ET.SubElement(
                group,
                "path",
                {
                    "d": f"M{_n(x - w / 2 - 20)} {_n(y)}h18",
                    "fill": "none",
                    "stroke": "currentColor",
                    "stroke-width": "1.6",
                    "marker-end": "url(#ra-head)",
                },
            )
        if more:
            dots = ET.SubElement(
                group,
                "text",
                {
                    "x": _n(x),
                    "y": _n(y + HIGH / 2 + 11),
                    "text-anchor": "middle",
                    "font-size": "13",
                    "class": "ra-more",
                },
            )
            dots.text = "⋯"


def _n(value: float) -> str:
    """A number as SVG writes it."""
    return f"{value:.1f}".rstrip("0").rstrip(".")
