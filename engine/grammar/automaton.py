"""A grammar as a deterministic automaton over bytes: minimal, without dead ends, numbered breadth first."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from engine.grammar.alphabet import Alphabet, merge_columns
from engine.grammar.compose import Composer
from engine.grammar.joined import Fragment, check_size
from engine.grammar.minimise import minimise
from engine.grammar.order import breadth_first, distances, renumber
from engine.grammar.syntax import GrammarError, Node

DEAD = -1
"""The state that no text comes back from."""


class Automaton:
    """State 0 is the start. From every state a whole text can still be reached."""

    def __init__(self, moves: np.ndarray, classes: np.ndarray, accepting: np.ndarray) -> None:
        padded = np.full((len(moves) + 1, moves.shape[1]), DEAD, np.int32)
        padded[:-1] = moves
        self.moves = padded[:-1]
        """int32 [states, classes]: where a byte of a class leads, -1 for nowhere."""
        self.flat = padded.ravel()
        """The moves in one row: from state s by class c at s * classes + c, also for s = -1, which stays -1."""
        self.classes = classes
        """uint8 [256]: the class of each byte. Bytes of a class lead to the same states everywhere."""
        self.accepting = accepting
        """bool [states]: whether the text so far is a whole one."""

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.moves)

    @property
    def table(self) -> np.ndarray:
        """int32 [states, 256]: where each byte leads; made anew at each call."""
        return self.moves[:, self.classes]

    def step(self, state: int, text: bytes) -> int:
        """The state after these bytes, DEAD where they cannot follow."""
        for byte in text:
            if state < 0:
                break
            state = int(self.moves[state, self.classes[byte]])
        return state

    def accepts(self, text: bytes) -> bool:
        """Whether this is a whole text of the grammar."""
        state = self.step(0, text)
        return state >= 0 and bool(self.accepting[state])

    def without(self, absent: Collection[int]) -> Automaton:
        """The same states where these bytes cannot occur, and no move to where an end then cannot be reached.

        Raises GrammarError where nothing is left.
        """
        gone = np.isin(np.arange(256), sorted(absent))
        used, lost = (np.unique(self.classes[part]) for part in (~gone, gone))
        lost = lost[~np.isin(lost, used)]
        moves = np.where(np.isin(np.arange(self.moves.shape[1]), lost), DEAD, self.moves)
        if any(np.any((self.moves[:, c] >= 0) & ~(moves == self.moves[:, c, None]).any(axis=1)) for c in lost):
            # Some state has lost a neighbour.
            keep = distances(Fragment(moves, self.accepting)) >= 0
            if not keep[0]:
                raise GrammarError("nothing that matches can be said with this vocabulary")
            moves = np.where(np.append(keep, False)[moves] & keep[:, None], moves, DEAD)
        moves = np.append(moves, np.full((len(moves), 1), DEAD, np.int32), axis=1)
        columns, firsts = merge_columns(moves)
        classes = columns[np.where(gone, moves.shape[1] - 1, self.classes)]
        return Automaton(moves[:, firsts], classes.astype(np.uint8), self.accepting)


def build(node: Node) -> Automaton:
    """The automaton of a tree.

    Raises GrammarError where nothing can match, or where the automaton would get too large.
    """
    alphabet = Alphabet(node)
    piece = Composer(alphabet).piece(node)
    if piece.empty:
        raise GrammarError("nothing can match")
    piece = minimise(piece)
    check_size(len(piece))
    piece = renumber(piece, breadth_first(piece))
    columns, firsts = merge_columns(piece.moves)
    return Automaton(piece.moves[:, firsts], columns[alphabet.classes].astype(np.uint8), piece.accepting)
