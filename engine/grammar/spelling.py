"""How a forced run is spelt in tokens: as the tokenizer would, together with the tokens before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

TAIL = 4
"""Earlier tokens that are looked at again: a tokenizer merges over a border, hardly ever further."""


class Spelling:
    """Turns forced bytes into token ids.

    `pieces[i]` are the bytes of token i (empty: it has no text); `encode` is the tokenizer's, without markers, or
    None for a vocabulary that has no tokenizer: there, and where the tokenizer's ids do not spell the bytes, the
    longest piece goes first.
    """

    def __init__(self, pieces: Sequence[bytes], encode: Callable[[str], list[int]] | None = None) -> None:
        self._pieces = pieces
        self._encode = encode
        self._by_bytes: dict[bytes, int] | None = None
        self._longest = 0

    def text(self, ids: Sequence[int]) -> bytes:
        """The bytes that tokens stand for."""
        return b"".join(self._pieces[i] for i in ids)

    def after(self, before: Sequence[int], run: bytes) -> list[int]:
        """Tokens for `run` behind the tokens `before`, which stay; whole characters only, so maybe for less of it."""
        run = whole(run)
        if not run:
            return []
        tail = list(before[-TAIL:])
        while tail and not _decodes(self.text(tail) + run):
            tail.pop(0)
        ids = self._spell(self.text(tail) + run)
        if ids[: len(tail)] == tail:
            return ids[len(tail) :]
        return self._spell(run)

    def again(self, before: Sequence[int], run: bytes) -> tuple[int, list[int]] | None:
        """The tokenizer's own spelling of `before` and `run` together: how many of `before` stay, what follows them.

        None where it cannot be spelt: `before` begins or ends inside a character.
        """
        data = self.text(before) + run
        run = whole(data)[len(data) - len(run) :]
        data = self.text(before) + run
        if not run or not _decodes(data):
            return None
        ids = self._spell(data)
        keep = 0
        while keep < min(len(before), len(ids)) and before[keep] == ids[keep]:
            keep += 1
        return keep, ids[keep:]

    def _spell(self, data: bytes) -> list[int]:
        if self._encode is not None:
            ids = self._encode(data.decode())
            if self.text(ids) == data:
                return ids
        return self._greedy(data)

    def _greedy(self, data: bytes) -> list[int]:
        """Longest piece first; as far as the vocabulary can spell it."""
        if self._by_bytes is None:
            self._by_bytes = {}
            for i, piece in enumerate(self._pieces):
                if piece:
                    self._by_bytes.setdefault(piece, i)
            self._longest = max(map(len, self._by_bytes), default=0)
        ids: list[int] = []
        at = 0
        while at < len(data):
            for size in range(min(self._longest, len(data) - at), 0, -1):
                token = self._by_bytes.get(data[at : at + size])
                if token is not None:
                    ids.append(token)
                    at += size
                    break
            else:
                break
        return ids


def whole(data: bytes) -> bytes:
    """`data` without a character that is cut off at its end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            return data
        if byte >= 0xC0:
            size = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data if size <= back else data[:-back]
    return data


def _decodes(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
