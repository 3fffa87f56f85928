"""Token runs by name: `A8` is a fixed run of 8 ids, `A5` its first five, `Xa2` of another run; `A8+B2` joins.

Run k of a capital letter has ids 256 + 1024 k + 0 ... 1023; of a capital and a small letter
26880 + 32 (26 capital + small) + 0 ... 31. No two names share an id.
"""

from __future__ import annotations

import re

_TERM = re.compile(r"([A-Z])([a-z]?)([0-9]{1,6})")


class TokenNameError(ValueError):
    """A token name that cannot be read; the message says why."""


def parse(text: str) -> list[int]:
    """The ids that a name like `A8+B2` stands for. Raises TokenNameError."""
    ids: list[int] = []
    for term in text.replace(" ", "").split("+"):
        found = _TERM.fullmatch(term)
        if not found:
            raise TokenNameError(f"{term!r} is not a token name; write a capital (and a small letter) and a length, as A8 or Xa2")
        capital, small, length = ord(found[1]) - 65, found[2], int(found[3])
        start, room = (26880 + 32 * (26 * capital + ord(small) - 97), 32) if small else (256 + 1024 * capital, 1024)
        if not 1 <= length <= room:
            raise TokenNameError(f"{term!r}: the run {found[1]}{small} has 1 to {room} tokens")
        ids += range(start, start + length)
    return ids
