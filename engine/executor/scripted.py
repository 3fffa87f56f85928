"""What executors without a model answer: by script, else an id that a hash of the sequence points at.

Under a grammar the first allowed id of the script's ranking, else the lowest allowed; without a script the
allowed id that the hash points at. Ids are spelt by `words.PIECES`, and none ends a text.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from engine.executor.base import Row, Sampled
from engine.executor.words import PIECES
from engine.grammar.settle import Pick, settle
from engine.grammar.syntax import GrammarError
from engine.grammar.vocabulary import Vocabulary
from engine.request import Request

VOCABULARY = 65_536
ANSWERS = 50_000
"""Unscripted answers are ids from here up to the vocabulary's end; prompts by name stay below."""


def spelling(ends: Collection[int] = ()) -> Vocabulary:
    """The bytes of the ids, for grammars; `ends` end a text."""
    return Vocabulary(PIECES, frozenset(ends), width=VOCABULARY)


def answer(row: Row, hashes: Sequence[int], ends: Collection[int] = ()) -> Sampled:
    """What a row goes on with.

    `hashes` are those of the sequence up to each token whose logits are wanted, drafted ones last; a scripted request needs none.
    """
    request = row.request
    said = len(request.output)
    if request.walk is not None:
        try:
            looks = settle(request.walk, row.draft, ends, _picker(request, hashes))
        except GrammarError as error:
            return Sampled(None, error=str(error))
        over = request.says is not None and said + len(looks) >= len(request.says)
        return Sampled(looks[-1].token if looks else None, last=over, looks=looks)
    agreed: list[int] = []
    for i, drafted in enumerate([*row.draft, None]):
        token, last = _next(request, said + i, hashes, i)
        if token is None or last or token != drafted:
            break
        agreed.append(token)
    return Sampled(token, last=last, agreed=agreed)


def _next(request: Request, said: int, hashes: Sequence[int], i: int) -> tuple[int | None, bool]:
    """The answer's token number `said`, None where the script is over, and whether it is the script's last."""
    if request.says is None:
        return ANSWERS + int(hashes[i]) % (VOCABULARY - ANSWERS), False
    if said >= len(request.says):
        return None, True
    item = request.says[said]
    return item if isinstance(item, int) else item[0], said + 1 == len(request.says)


def _picker(request: Request, hashes: Sequence[int]) -> Pick:
    """What is said at each position of a row under a mask."""
    said = len(request.output)

    def pick(i: int, allowed: np.ndarray) -> int | None:
        ids = np.flatnonzero(allowed)
        if request.says is None:
            return int(ids[int(hashes[i]) % len(ids)])
        if said + i >= len(request.says):
            return None
        item = request.says[said + i]
        ranking = [item] if isinstance(item, int) else item
        return next((token for token in ranking if allowed[token]), int(ids[0]))

    return pick
