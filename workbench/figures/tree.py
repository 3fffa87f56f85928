"""A small radix tree as a plotly figure: every node a box with its tokens, depth in tokens downwards; what changed stands out.

A pure function of one or two states. Leaves stand side by side in the order of their numbers, a parent over the middle of its children.
"""

from __future__ import annotations

import plotly.graph_objects as go

from workbench.replay import NodeState, State

OLD, NEW, MOVED = "#5d6670", "#0b5d66", "#b45309"
WORDS = {OLD: "as before", NEW: "new", MOVED: "moved: its parent or its run changed"}


def tree(state: State, before: State | None = None, title: str = "", most: int = 60) -> go.Figure:
    """The tree of a state; with `before`, new nodes and moved ones in a colour and a line of their own.

    Raises ValueError above `most` nodes: then it is a picture for the player.
    """
    nodes = state.nodes
    if len(nodes) > most:
        raise ValueError(f"{len(nodes)} nodes are too many for this figure; it draws up to {most}")
    across = _across(nodes)
    figure = go.Figure()
    drawn: set[str] = set()
    for id, node in nodes.items():
        colour = _colour(node, before)
        x, y = across[id], node.depth + node.count
        up = (across[node.parent], node.depth) if node.parent in nodes else (across[0], 0)
        figure.add_scatter(
            x=[up[0], x], y=[up[1], y], mode="lines", line={"color": colour, "width": 2 if colour == OLD else 3, "dash": "dot" if colour == MOVED else "solid"},
            name=WORDS[colour], legendgroup=colour, showlegend=before is not None and colour not in drawn, hoverinfo="skip",
        )  # fmt: skip
        drawn.add(colour)
        tokens = " ".join(map(str, state.tokens(node)))
        figure.add_annotation(
            x=x, y=y, text=f"<b>#{id}</b> {tokens if len(tokens) <= 40 else tokens[:38] + ' …'}", showarrow=False, bgcolor="#ffffff",
            bordercolor=colour, borderwidth=1.5, borderpad=4, font={"size": 13, "color": "#1d2329"},
        )  # fmt: skip
    figure.add_annotation(x=across[0], y=0, text="root", showarrow=False, bgcolor="#ffffff", bordercolor=OLD, borderpad=4)
    deepest = max((n.depth + n.count for n in nodes.values()), default=1)
    figure.update_layout(title=title or None, height=160 + 46 * min(deepest, 8), legend={"orientation": "h", "y": -0.05, "yanchor": "top"})
    figure.update_xaxes(visible=False, range=[-0.7, max(across.values(), default=0) + 0.7])
    figure.update_yaxes(title="tokens from the root", range=[deepest + 0.8, -0.8], dtick=1 if deepest < 20 else None)
    return figure


def _colour(node: NodeState, before: State | None) -> str:
    if before is None:
        return OLD
    was = before.nodes.get(node.id)
    if was is None:
        return NEW
    return MOVED if (was.parent, was.depth, was.count) != (node.parent, node.depth, node.count) else OLD


def _across(nodes: dict[int, NodeState]) -> dict[int, float]:
    """Node -> place from left to right; 0 is the root."""
    below: dict[int, list[int]] = {0: []}
    for id in sorted(nodes):
        below.setdefault(nodes[id].parent, []).append(id)
    place: dict[int, float] = {}
    free = 0.0

    def put(at: int) -> float:
        nonlocal free
        children = [put(child) for child in below.get(at, ())]
        if children:
            place[at] = (children[0] + children[-1]) / 2
        else:
            place[at], free = free, free + 1
        return place[at]

    put(0)
    return place
