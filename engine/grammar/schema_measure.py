"""What a tree can be told to be without building its automaton: its size, and its shortest and longest text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.grammar import utf8
from engine.grammar.alphabet import Alphabet, children
from engine.grammar.compose import Composer
from engine.grammar.syntax import Both, Chars, Either, Minus, Node, Repeat, Seq


def states_of(node: Node) -> int:
    """How many states a tree's automaton has; 0 where nothing matches. Builds it: for small trees."""
    piece = Composer(Alphabet(node)).piece(node)
    return 0 if piece.empty else len(piece)


class Sizes:
    """Estimates of how many states trees take: at most so many, unless the automaton gets larger before it shrinks."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Node, int]] = {}

    def set(self, node: Node, states: int) -> None:
        """Take a size that is known better."""
        self._known[id(node)] = (node, states)

    def of(self, node: Node) -> int:
        """About how many states; of two sides at once at most the product."""
        for part in unknown(node, self._known):
            self._known[id(part)] = (part, self._of(part))
        return self._known[id(node)][1]

    def _of(self, node: Node) -> int:
        match node:
            case Chars(ranges):
                return len(utf8.states(ranges)) - 1
            case Seq(parts) | Either(parts):
                return sum(self._known[id(part)][1] for part in parts)
            case Repeat(part, least, most):
                return self._known[id(part)][1] * (max(least, 1) if most is None else most)
            case Both(left, right) | Minus(left, right):
                return self._known[id(left)][1] * self._known[id(right)][1]


class Lengths:
    """Bounds on the lengths of a tree's texts, in characters or in bytes of UTF-8."""

    def __init__(self, in_bytes: bool = False) -> None:
        self._in_bytes = in_bytes
        self._known: dict[int, tuple[Node, int, int | None]] = {}

    def shortest(self, node: Node) -> int:
        """No text is shorter."""
        return self._of(node)[1]

    def longest(self, node: Node) -> int | None:
        """No text is longer; None where there is no end."""
        return self._of(node)[2]

    def _of(self, node: Node) -> tuple[Node, int, int | None]:
        for part in unknown(node, self._known):
            self._known[id(part)] = (part, self._least(part), self._most(part))
        return self._known[id(node)]

    def _least(self, node: Node) -> int:
        match node:
            case Chars():
                return 1
            case Seq(parts):
                return sum(map(self.shortest, parts))
            case Either(options):
                return min(map(self.shortest, options), default=0)
            case Repeat(part, least, _):
                return self.shortest(part) * least
            case Both(left, right):
                return max(self.shortest(left), self.shortest(right))
            case Minus(left, _):
                return self.shortest(left)

    def _most(self, node: Node) -> int | None:
        match node:
            case Chars(ranges):
                return len(chr(ranges[-1][1]).encode()) if self._in_bytes and ranges else 1
            case Seq(parts) | Either(parts):
                ends = [end for end in map(self.longest, parts) if end is not None]
                total = sum(ends) if isinstance(node, Seq) else max(ends, default=0)
                return total if len(ends) == len(parts) else None
            case Repeat(part, _, most):
                end = self.longest(part)
                if most == 0 or end == 0:
                    return 0
                return None if end is None or most is None else end * most
            case Both(left, right):
                return min([end for end in (self.longest(left), self.longest(right)) if end is not None], default=None)
            case Minus(left, _):
                return self.longest(left)


def unknown(node: Node, known: Mapping[int, object]) -> Iterator[Node]:
    """The parts of a tree that are not known yet, each after its own parts. Whoever asks makes them known.

    Without recursion: a tree may be thousands of parts deep.
    """
    stack = [node]
    while stack:
        missing = [part for part in children(stack[-1]) if id(part) not in known]
        if missing:
            stack += missing
            continue
        part = stack.pop()
        if id(part) not in known:
            yield part
