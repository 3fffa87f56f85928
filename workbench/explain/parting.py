"""Two rows of tokens, one below the other, around the place where they part."""

from __future__ import annotations

from itertools import accumulate

from engine import events as ev
from workbench.explain.answer import Parting, TokenRow
from workbench.explain.words import Texts
from workbench.replay import State

AROUND = 6
"""Tokens shown on each side of the first difference."""


def side_by_side(state: State, asked: str, stored: str, at: int, texts: Texts) -> Parting:
    """The tokens of two requests (prompt and output) around position `at`, where they first differ."""
    start = max(0, at - AROUND)
    rows = [_row(state, name, start, at + AROUND, texts) for name in (asked, stored)]
    return Parting(start, at - start, *rows, same_text=_same_text(rows[0].texts[at - start :], rows[1].texts[at - start :]))


def _row(state: State, request: str, start: int, stop: int, texts: Texts) -> TokenRow:
    r = state.requests[request]
    ids = state.sequence(request, start, min(stop, len(r.prompt) + len(r.output)))
    return TokenRow(request, ids, [texts.get(str(i)) for i in ids])


def _same_text(a: list[str | None], b: list[str | None]) -> bool:
    """Whether the two runs, cut otherwise, read the same up to some common token end."""
    return bool(_readings(a) & _readings(b))


def _readings(texts: list[str | None]) -> set[str]:
    known = texts[: texts.index(None)] if None in texts else texts
    return {text for text in accumulate(t for t in known if t is not None) if text}


def stored_by(state: State, m: ev.RequestMatched) -> str | None:
    """Whose token stood where a match parted. `state` is the one the look-up saw."""
    if m.stored is None:
        return None
    node = state.nodes.get(m.at_node) if m.at_node is not None else None
    if node is not None and m.offset is not None and m.offset < node.count:
        return _piece(state, node.id, m.raw_length)
    space = state.requests[m.request].namespace
    parent = node.id if node is not None else ev.ROOT
    for child in sorted(state.nodes.values(), key=lambda n: n.id):
        if child.parent == parent and child.namespace == space:
            request, start, _ = child.pieces[0]
            if state.sequence(request, start, start + 1) == [m.stored]:
                return request
    return None


def _piece(state: State, node: int, position: int) -> str | None:
    """Whose tokens a node holds at a position of its path."""
    return next((r for r, start, stop in state.nodes[node].pieces if start <= position < stop), None)
