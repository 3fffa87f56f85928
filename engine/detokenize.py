"""Text from token ids as they come: never half a character, nothing from a stop string on.

What is held back is only what has to be: an unfinished character, and an ending that could still become
a stop string.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence

Pieces = Sequence[bytes]
"""Token id -> the bytes it stands for (empty for special tokens)."""


class IncrementalDetokenizer:
    """One request's text. The deltas of `push` and the tail of `finish` join to the whole text.

    Where a stop string is met, the text ends before it, whatever the tokens' borders are: a stop
    string counts from the moment its last character is there. `stopped` says which one it was.
    """

    def __init__(self, pieces: Pieces, stop: Sequence[str] = ()) -> None:
        self.stopped: str | None = None
        self._pieces = pieces
        self._stop = [s for s in stop if s]
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""

    def push(self, ids: Sequence[int]) -> str:
        """The text that these ids make certain; empty once a stop string was met."""
        return self.push_bytes(b"".join(self._pieces[i] for i in ids))

    def push_bytes(self, data: bytes) -> str:
        """The text that these bytes make certain; empty once a stop string was met."""
        if self.stopped is not None:
            return ""
        return self._advance(self._decoder.decode(data))

    def finish(self) -> str:
        """What was still held back; a character cut in half becomes U+FFFD. A second call gives nothing."""
        if self.stopped is not None:
            return ""
        text = self._advance(self._decoder.decode(b"", final=True))
        text, self._held = text + self._held, ""
        return text

    def _advance(self, new: str) -> str:
        text = self._held + new
        met = self._first_stop(text)
        if met is not None:
            self.stopped, self._held = met, ""
            end = min(e for s in self._stop if (e := _end(text, s)) >= 0)
            return text[: end - len(met)]
        keep = self._beginning(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def _first_stop(self, text: str) -> str | None:
        """The stop string that is complete first in `text`; the longest of several that end together."""
        found = [(_end(text, s), -len(s), s) for s in self._stop if s in text]
        return min(found)[2] if found else None

    def _beginning(self, text: str) -> int:
        """How many characters at the end of `text` could be the beginning of a stop string."""
        longest = 0
        for stop in self._stop:
            for size in range(min(len(stop) - 1, len(text)), longest, -1):
                if text.endswith(stop[:size]):
                    longest = size
                    break
        return longest


def _end(text: str, stop: str) -> int:
    """Where the first occurrence of `stop` ends; -1 where there is none."""
    at = text.find(stop)
    return at + len(stop) if at >= 0 else -1
