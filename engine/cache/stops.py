"""Why a look-up in the radix tree ended where it did; worked out only where somebody asks."""

from __future__ import annotations

from engine.cache.base import WIDTH, Stop, plain
from engine.cache.node import Node, common
from engine.events import Namespace


def stop(
    root: Node, page_size: int, tokens: bytes, path: list[Node], at: int, inside: int, ns: Namespace | None
) -> Stop:
    """Why the walk along `path` ended at byte `at`, `inside` tokens into its last node.

    Looks at single tokens, also inside a page.
    """
    last = path[-1] if path else root
    if at == len(tokens):
        return Stop("last token", at // WIDTH, last.id or None, inside)
    whole = inside == last.count
    if not whole:
        node, offset = last, inside
    else:
        near = _nearest(last, page_size, tokens, at, ns)
        if near is None:
            return Stop("end" if path else "no child", at // WIDTH, last.id or None, inside)
        node, offset = near, 0
    rest = node.run[offset * WIDTH :]
    extra = common(rest, tokens, at, len(tokens))
    raw = (at + extra) // WIDTH
    offset += extra // WIDTH
    if at + extra == len(tokens):
        return Stop("last token", raw, node.id, offset)
    wanted = plain(tokens[at + extra : at + extra + WIDTH])[0]
    stored = plain(rest[extra : extra + WIDTH])[0] if extra < len(rest) else None
    if extra:
        return Stop("page", raw, node.id, offset, stored, wanted)
    if whole:
        return Stop("no child", raw, last.id or None, inside, stored, wanted)
    return Stop("parted", raw, node.id, offset, stored, wanted)


def _nearest(node: Node, page_size: int, tokens: bytes, at: int, ns: Namespace | None) -> Node | None:
    """The child that shares most tokens with the query; with one-token pages none shares any."""
    children = (c for c in node.children.values() if node.parent is not None or c.ns == ns)
    any_child = next(children, None)
    if page_size == 1 or any_child is None:
        return any_child
    # Few children begin with the query's token; only those are looked at closely.
    first = tokens[at : at + WIDTH]
    close = [c for c in (any_child, *children) if c.run.startswith(first)] or [any_child]
    return max(close, key=lambda c: common(c.run[: page_size * WIDTH], tokens, at, len(tokens)))
