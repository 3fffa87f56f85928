"""What an edge of the automaton says, in few and readable characters."""

from __future__ import annotations

from functools import cache

from engine.grammar.charsets import Ranges, category, complement, union
from engine.grammar.syntax import LAST
from engine.grammar.utf8 import SURROGATES, without

SHOWN = 8
"""So many ranges of a class are written out; more are cut short."""

NAMES = {"\t": r"\t", "\n": r"\n", "\r": r"\r", "\f": r"\f", "\v": r"\v", "\\": r"\\"}


def literal(text: str) -> str:
    """Text as it is, with what does not print, and backslashes, as escapes."""
    return "".join(_shown(c) for c in text)


def char_class(ranges: Ranges) -> str:
    """A set of characters: itself where it is one, a name where it has one, else what is in it or what is not.

    A single character is never longer than its escape, and no class is a single character: a dot is a dot.
    """
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return literal(chr(ranges[0][0]))
    named = _names().get(ranges)
    if named:
        return named
    # Surrogates are no text, so whether a class has them says nothing.
    others = complement(union((*ranges, SURROGATES)))
    inside, outside = (sum(b - a + 1 for a, b in r) for r in (ranges, others))
    return f"[{_listed(ranges)}]" if inside <= outside else f"[^{_listed(others)}]"


@cache
def _names() -> dict[Ranges, str]:
    named = {without(category(c, ascii=False), SURROGATES): f"\\{c}" for c in "dDwWsS"}
    named[without(((0, LAST),), SURROGATES)] = "any character"
    return named


def _listed(ranges: Ranges) -> str:
    parts = []
    for first, last in ranges[:SHOWN]:
        dash = "-" if last > first + 1 else ""
        parts.append(_inside(first) + (dash + _inside(last) if last > first else ""))
    return "".join(parts) + ("…" if len(ranges) > SHOWN else "")


def _inside(code: int) -> str:
    """A character within brackets."""
    return "\\" + chr(code) if chr(code) in "]^-" else _shown(chr(code))


def _shown(char: str) -> str:
    if char in NAMES:
        return NAMES[char]
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
