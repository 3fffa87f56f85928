"""The tokens of a model as a grammar sees them: bytes that may stand in a document, and ids that end it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

import numpy as np

from engine.grammar.trie import Trie
from engine.tokenizer import TextTokenizer

LONG_SHARE = 0.002
"""So large a share of the tokens counts as long."""


class Vocabulary:
    """What each id of the logits may say.

    An id that ends a sequence ends it and says nothing, whatever its text: the engine stops there, so its
    text never counts as content. Special tokens, tokens without bytes and the ids that pad the logits are never
    allowed. Tokens of the same bytes are alike.

    Every byte of a document should be a token by itself or never occur in tokens, as in byte-level vocabularies and
    those with a byte fallback. In others a grammar may come to a place where no token fits.
    """

    def __init__(
        self, pieces: Sequence[bytes], ends: Collection[int], special: Collection[int] = (), width: int | None = None
    ) -> None:
        """`pieces[i]` are the bytes of id i, `width` the width of the logits (as many as pieces, unless given).

        Raises ValueError for an end outside the logits, and for more pieces than logits.
        """
        self.width = len(pieces) if width is None else width
        if self.width < len(pieces):
            raise ValueError(f"there are {len(pieces)} tokens, but only {self.width} logits")
        outside = sorted(end for end in ends if not 0 <= end < self.width)
        if outside:
            raise ValueError(f"end of sequence {outside[0]} is outside the {self.width} logits")
        self.ends = frozenset(ends)
        silent = self.ends | frozenset(special)
        self.pieces = [b"" if i in silent else bytes(piece) for i, piece in enumerate(pieces)]
        """The bytes that each id adds to a document, b"" for those that never stand in one."""
        said = [i for i, piece in enumerate(self.pieces) if piece]
        lengths = sorted(len(self.pieces[i]) for i in said)
        self.depth = lengths[int((len(lengths) - 1) * (1 - LONG_SHARE))] if lengths else 0
        """Bytes of the longest token that counts as short. The few that are longer have a tree of their own."""
        self.short = TokenTree([i for i in said if len(self.pieces[i]) <= self.depth], self.pieces)
        self.long = TokenTree([i for i in said if len(self.pieces[i]) > self.depth], self.pieces)
        self.bytes = frozenset(b"".join(self.pieces))
        """The bytes that occur in tokens."""


class TokenTree:
    """Tokens by their bytes."""

    def __init__(self, ids: Sequence[int], pieces: Sequence[bytes]) -> None:
        self.ids = np.array(ids, np.int64)
        """int64 [tokens]."""
        self.trie = Trie([pieces[i] for i in ids])
        self.nodes = self.trie.nodes
        """The node at which each token ends, int64 [tokens]."""
        self.is_token = np.zeros(len(self.trie), bool)
        """Whether a token ends at a node, bool [nodes]."""
        self.is_token[self.nodes] = True


@lru_cache(maxsize=4)
def vocabulary_of(tokenizer: TextTokenizer, ends: frozenset[int], width: int) -> Vocabulary:
    """A model's vocabulary, made once. `ends` are all ids that end a sequence, `width` is the width of the logits.

    Tokens beyond the logits are left out.
    """
    return Vocabulary(tokenizer.pieces[:width], {end for end in ends if end < width}, width=width)
