"""The puppet's spelling, for grammars: its first 256 ids are single bytes, the next ones pieces that JSON often has."""

from __future__ import annotations

_JOINED = (
    '{"', '"}', '":', '": ', '": "', '",', '", "', '","', '["', '"]', '"], "', "[{", "}]", "}, {", "{}", "[]", ": ", ", ", "}}", '"}}',
    "true", "false", "null", "name", "title", "year", "city", "id", "na", "me", "ti", "tle", "ci", "ty", "st", "er", "in", "an", "on", "re", " the",
    "20", "19", "00", "12", "  ", "    ",
)  # fmt: skip

PIECES: list[bytes] = [bytes([b]) for b in range(256)] + [text.encode() for text in _JOINED]
"""Token id -> its bytes. Ids beyond have none."""
