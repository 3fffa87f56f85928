"""A tree of characters, part by part, as deterministic pieces."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from engine.grammar import utf8
from engine.grammar.alphabet import Alphabet
from engine.grammar.determinise import determinise
from engine.grammar.joined import Fragment, Joined, check_size
from engine.grammar.minimise import minimise
from engine.grammar.product import product
from engine.grammar.syntax import Both, Chars, Either, GrammarError, Minus, Node, Repeat, Seq

MAX_DEPTH = 100
"""So deep may repetitions and combinations stand within one another."""

Steps = Generator[tuple[Node, int], int | None, int | None]
"""Asks for parts and what follows them, is sent where they begin, returns where the whole begins."""


class Composer:
    """Pieces of one tree over one alphabet. Parts that are repeated or combined are worked out on their own, once."""

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet
        self._known: dict[int, Fragment] = {}

    def piece(self, node: Node, depth: int = 0) -> Fragment:
        """The piece of a node. Raises GrammarError where it gets too large or too deep."""
        if depth > MAX_DEPTH:
            raise GrammarError(f"repetitions are nested more than {MAX_DEPTH} deep")
        if id(node) not in self._known:
            match node:
                case Both(left, right) | Minus(left, right):
                    sides = self.piece(left, depth + 1), self.piece(right, depth + 1)
                    self._known[id(node)] = product(*sides, minus=isinstance(node, Minus))
                case _:
                    self._known[id(node)] = _Layout(self, depth).piece(node)
        return self._known[id(node)]


class _Layout:
    """One piece in the making: states laid out from its end to its start, so that each part knows what follows.

    A part that stands twice before the same continuation is laid out once: objects whose properties may
    be left out would otherwise double with each of them.
    """

    def __init__(self, composer: Composer, depth: int) -> None:
        self.composer, self.depth = composer, depth
        self.joined = Joined(composer.alphabet.size)
        self.done: dict[tuple[int, int], int | None] = {}

    def piece(self, node: Node) -> Fragment:
        """The deterministic piece of a node."""
        return determinise(self.joined, self.before(node, self.joined.add_end()))

    def before(self, node: Node, then: int) -> int | None:
        """The state from which `node` and then what follows at state `then` can be read; None where nothing can.

        A stack of its own instead of recursion: a tree may be thousands of parts deep.
        """
        stack = [((id(node), then), self._steps(node, then))]
        answer: int | None = None
        while stack:
            key, steps = stack[-1]
            try:
                part, after = steps.send(answer)
            except StopIteration as stop:
                answer = self.done[key] = stop.value
                stack.pop()
                continue
            key = (id(part), after)
            answer = self.done.get(key)
            if key not in self.done:
                stack.append((key, self._steps(part, after)))
        return answer

    def _steps(self, node: Node, then: int) -> Steps:
        match node:
            case Chars(ranges):
                return self._character(ranges, then)
            case Seq(parts):
                for part in reversed(parts):
                    state = yield part, then
                    if state is None:
                        return None
                    then = state
                return then
            case Either(options):
                starts = []
                for option in options:
                    starts.append((yield option, then))
                return self.joined.add_choice(starts)
            case Repeat(part, least, most):
                if most is not None and most <= 1 and least <= most:
                    start = (yield part, then) if most else then
                    return start if least else self.joined.add_choice([start, then])
                return self._repeated(self.composer.piece(part, self.depth + 1), least, most, then)
            case Both() | Minus():
                return self._repeated(self.composer.piece(node, self.depth + 1), 1, 1, then)
        raise TypeError(f"{type(node).__name__} is no part of a grammar")

    def _character(self, ranges: utf8.Ranges, then: int) -> int | None:
        rows = utf8.states(ranges)
        return self.joined.add_rows([self.composer.alphabet.row(arcs) for arcs in rows], then) if rows[0] else None

    def _repeated(self, piece: Fragment, least: int, most: int | None, then: int) -> int | None:
        """`least` to `most` copies of a piece."""
        if most is not None and most < least:
            return None
        if piece.accepting[0]:
            # What may be empty may be left out: {2,5} of it is {0,5} of what is left without the empty text.
            piece, least = _not_empty(piece), 0
        if piece.empty:
            return None if least else then
        copies = max(least, 1) if most is None else most
        check_size(copies * len(piece))
        first = self.joined.add_copies(minimise(piece), copies, least, most is None, then)
        return first if least else self.joined.add_choice([first, then])


def _not_empty(piece: Fragment) -> Fragment:
    """The piece without the empty text: a start of its own that does not accept."""
    moves = np.vstack([piece.moves[:1], piece.moves])
    moves[moves >= 0] += 1
    return Fragment(moves, np.append(False, piece.accepting))
