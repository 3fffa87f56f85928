"""The radix tree with a look-up that the caller brought: what it says is checked for shape, not for truth.

Storing keeps the tree's own walk, so a wrong look-up cannot spoil the tree. One that claims too much hands a request pages of
other tokens, which the puppet's slots notice; one that claims too little only costs computing.
"""

from __future__ import annotations

from collections.abc import Callable

from engine import events as ev
from engine.cache.base import WIDTH, Match, Stop, plain
from engine.cache.eviction import KeyOf
from engine.cache.node import Node
from engine.cache.radix import RadixCache
from engine.cache.stops import stop
from engine.events import Namespace
from engine.plugs import PlugError, TreeNode

BROUGHT = "brought"
"""What a match says of its end where the tree's own walk would have ended elsewhere."""
SHOWN = 24
"""Tokens of a prompt that an error repeats."""
Lookup = Callable[[TreeNode, list[int]], tuple[TreeNode, int]]


class BroughtMatch(RadixCache):
    """`RadixCache`, with `lookup(root, tokens)` in place of its own `match`; requests with a namespace keep that one."""

    def __init__(
        self, lookup: Lookup, page_size: int, eviction: str | KeyOf, unit: str, trace: ev.Trace, pin_budget: int
    ) -> None:
        super().__init__(page_size, eviction, unit, trace, pin_budget)
        self._lookup = lookup

    def match(self, tokens: bytes, ns: Namespace | None = None) -> Match:
        """What the brought function finds. Raises PlugError where that is no place in the tree."""
        if ns is not None:
            return super().match(tokens, ns)
        ids = plain(tokens)
        asked = f"{' '.join(map(str, ids[:SHOWN]))}{' ...' if len(ids) > SHOWN else ''}"
        node, known = _checked(self._lookup(TreeNode(self.root), list(ids)), len(ids), asked)
        path: list[Node] = []
        at: Node = node
        while at is not self.root:
            path.insert(0, at)
            assert at.parent is not None
            at = at.parent
        inside = known - node.depth
        if path and not 0 < inside <= node.count:
            raise PlugError(
                f"match: looking up {asked}, it says that {known} tokens are known and that the last of them lies in node {node.id}; "
                f"but that node begins after {node.depth} tokens and holds {node.count}"
            )
        if not path and known:
            raise PlugError(f"match: looking up {asked}, it says that {known} tokens are known and end at the root; return the node in which they end")
        return Match(known, path, inside if path else 0, lambda: self._told(tokens, path, known, inside, ns))

    def _told(self, tokens: bytes, path: list[Node], known: int, inside: int, ns: Namespace | None) -> Stop:
        """Why it ended: as in the tree's own walk where that ends there too, else because the brought one says so."""
        end = path[-1].id if path else None
        if self._descend(tokens, ns)[1] != known * WIDTH:
            return Stop(BROUGHT, known, end, inside if path else 0)
        return stop(self.root, self.page_size, tokens, path, known * WIDTH, inside, ns)


def _checked(given: object, length: int, asked: str) -> tuple[Node, int]:
    """The engine's own node and the count, if that is what was returned."""
    if not (isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], TreeNode) and isinstance(given[1], int)):
        raise PlugError(f"match: looking up {asked}, it returned {given!r}; return the deepest node reached and how many tokens are known")
    node, known = given
    if not 0 <= known <= length:
        raise PlugError(f"match: looking up {asked}, it says that {known} tokens are known, of the {length} that it was given")
    return node.node, known
