"""Which tokens may come next: worked out where a request first comes to a state, and remembered.

The tokens' tree is walked together with the automaton (`reading`), without what is below a node that the automaton
forbids.

Most states of a counted repetition allow the same tokens: a token reads only so many bytes, and with more than
these still to come it cannot tell one count from the next. States that agree on all texts of up to `depth`
bytes are found once for all (as minimal automata are found, but stopped after `depth` rounds); they share one walk over
the short tokens, and each walks only the few longer ones itself.
"""

from __future__ import annotations

import numpy as np

from engine.grammar.automaton import DEAD, Automaton
from engine.grammar.minimise import blocks
from engine.grammar.reading import Reading, ScalarReading
from engine.grammar.vocabulary import Vocabulary

ROOM = 64 * 2**20
"""Bytes that the masks of one grammar may take; when they take more, all are forgotten and begin anew."""


class Masks:
    """The token masks of an automaton, by state."""

    def __init__(self, automaton: Automaton, vocabulary: Vocabulary, room: int = ROOM) -> None:
        """Raises GrammarError where the vocabulary cannot say any text of the grammar."""
        self.vocabulary = vocabulary
        self.automaton = automaton.without(frozenset(range(256)) - vocabulary.bytes)
        """The automaton without the bytes that no token has; its states are numbered as before."""
        self.walks = 0
        """How many walks over the short tokens there were."""
        self._room = room
        self._classes = self.automaton.moves.shape[1]
        self._moves = self.automaton.flat.data
        self._class_of = self.automaton.classes.tobytes()
        self.short = Reading(self.automaton, vocabulary.short)
        self._long = ScalarReading(self.automaton, vocabulary.long)
        self._alike = blocks(self.automaton.moves, np.zeros(self.automaton.states, np.int64), vocabulary.depth)
        self._ends = np.array(sorted(vocabulary.ends), np.int64)
        self._forget()

    def _forget(self) -> None:
        self._shared: dict[int, bytes] = {}
        self._of_state: dict[int, bytes] = {}
        self._same: dict[bytes, bytes] = {}

    def mask(self, state: int) -> np.ndarray:
        """Which ids may come next: bool [width], read-only. Ends are among them where the text is a whole one."""
        packed = self._of_state.get(state)
        if packed is None:
            packed = self._work_out(state)
        mask = np.unpackbits(np.frombuffer(packed, np.uint8), count=self.vocabulary.width).view(bool)
        mask.flags.writeable = False
        return mask

    def next(self, state: int, token: int) -> int:
        """Where a token's bytes lead, DEAD where it may not come next. Ends have no bytes and lead nowhere."""
        pieces = self.vocabulary.pieces
        piece = pieces[token] if 0 <= token < len(pieces) else b""
        moves, classes = self._moves, self._classes
        for column in piece.translate(self._class_of):
            state = moves[state * classes + column]
        return state if piece else DEAD

    def _work_out(self, state: int) -> bytes:
        """A state's mask, as packed bits."""
        if len(self._same) * self.vocabulary.width > 8 * self._room:
            self._forget()
        alike = int(self._alike[state])
        if alike not in self._shared:
            self._shared[alike] = self._pack(self.short.tokens(state))
            self.walks += 1
        packed = np.frombuffer(self._shared[alike], np.uint8)
        ids = self._long.tokens(state)
        if self.automaton.accepting[state]:
            ids = np.append(ids, self._ends)
        if len(ids):
            packed = packed | np.frombuffer(self._pack(ids), np.uint8)
        known = packed.tobytes()
        self._of_state[state] = known = self._same.setdefault(known, known)
        return known

    def _pack(self, ids: np.ndarray) -> bytes:
        mask = np.zeros(self.vocabulary.width, bool)
        mask[ids] = True
        return np.packbits(mask).tobytes()
