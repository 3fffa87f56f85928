"""Strings of a schema: length, pattern and format, as JSON writes them.

Every string has one spelling, the one that Python's `json.dumps(..., ensure_ascii=False)` gives it: characters
as they are, `\\"` and `\\\\`, the short escapes, and `\\u00..` for the remaining control characters. So a language of
strings is worked out over their characters and spelled afterwards, character by character: as no two strings
share a spelling, what both of two languages hold, or one without the other, stays what it was.
"""

from __future__ import annotations

import json
from functools import lru_cache, reduce

from engine.grammar.schema_alternatives import Alternative, ImpossibleError
from engine.grammar.schema_bounds import Bounds, Notes
from engine.grammar.schema_formats import FORMATS
from engine.grammar.schema_measure import Lengths
from engine.grammar.schema_patterns import has_utf8, in_pieces, searched, whole
from engine.grammar.syntax import ANY, LAST, Both, Chars, Either, Minus, Node, Repeat, Seq, either, text

SHORT = {8: "b", 9: "t", 10: "n", 12: "f", 13: "r", 34: '"', 92: "\\"}
"""Characters with an escape of two characters."""

SAYABLE = Chars(((8, 10), (12, 13), (32, LAST)))
"""What a string without a pattern is made of: everything but control characters without a short escape."""

QUOTE = text('"')
_BACKSLASH = text("\\")


def string(alternative: Alternative, bounds: Bounds, notes: Notes) -> Node:
    """The strings that all the plain schemas of an alternative allow, spelled as JSON.

    Raises ImpossibleError where the lengths contradict each other; whether a pattern has any string of such a length
    is for the caller to find out.
    """
    return spelled(characters(alternative, bounds, notes))


def characters(alternative: Alternative, bounds: Bounds, notes: Notes) -> Node:
    """The same, not spelled."""
    least, most = _lengths(alternative)
    languages = _languages(alternative, wide=False)
    lengths = Lengths()
    language = reduce(Both, languages) if languages else None
    if most is None and language is not None and lengths.longest(language) is not None and not least:
        return language
    where = alternative.path
    if most is None:
        shortest = 0 if language is None else lengths.shortest(language)
        most = max(bounds.characters, least, shortest)
        notes.add(f"strings without `maxLength` have at most {most} characters", where)
    elif most > max(4 * bounds.characters, least):
        most = max(4 * bounds.characters, least)
        notes.add(f"strings have at most {most} characters, although `maxLength` allows more", where)
    counted = Repeat(SAYABLE, least, most)
    return counted if language is None else Both(language, counted)


def wide_string(alternative: Alternative) -> Node:
    """At least all strings that the alternative allows, of any length, spelled as JSON."""
    least, most = _lengths(alternative)
    counted: Node = Repeat(ANY, least, most)
    return spelled(reduce(Both, _languages(alternative, wide=True), counted))


def _lengths(alternative: Alternative) -> tuple[int, int | None]:
    """The narrowest of all stated lengths."""
    least = max(alternative.stated("minLength"), default=(0, ""))
    most = min(alternative.stated("maxLength"), default=None)
    if most is not None and least[0] > most[0]:
        raise ImpossibleError(f"`minLength` {int(least[0])} is above `maxLength` {int(most[0])}", least[1])
    return int(least[0]), None if most is None else int(most[0])


def _languages(alternative: Alternative, wide: bool) -> list[Node]:
    """What patterns and formats say of the characters."""
    found = [searched(pattern, path) for pattern, path in alternative.stated("pattern")]
    for name, _ in alternative.stated("format"):
        form = FORMATS[name]
        if form.type == "string":
            found.append(whole(form.wide) if wide else in_pieces(form.pieces))
    return found


def quoted(value: str) -> Node:
    """One string, spelled as JSON. Raises ImpossibleError for one that has no UTF-8."""
    if not has_utf8(value):
        raise ImpossibleError(f"{value!r} holds half of a surrogate pair, which has no UTF-8", None)
    return text(json.dumps(value, ensure_ascii=False))


def spelled(language: Node) -> Node:
    """A language of characters as one of JSON strings."""
    return Seq((QUOTE, _spell(language, {}), QUOTE))


def _spell(node: Node, known: dict[int, Node]) -> Node:
    if id(node) not in known:
        known[id(node)] = _spell_new(node, known)
    return known[id(node)]


def _spell_new(node: Node, known: dict[int, Node]) -> Node:
    match node:
        case Chars(ranges):
            return _spell_characters(ranges)
        case Seq(parts):
            return Seq(tuple(_spell(part, known) for part in parts))
        case Either(options):
            return Either(tuple(_spell(option, known) for option in options))
        case Repeat(part, least, most):
            return Repeat(_spell(part, known), least, most)
        case Both(left, right):
            return Both(_spell(left, known), _spell(right, known))
        case Minus(left, right):
            return Minus(_spell(left, known), _spell(right, known))


@lru_cache(maxsize=4096)
def _spell_characters(ranges: tuple[tuple[int, int], ...]) -> Node:
    """One character out of the ranges, as itself or escaped."""
    special = [c for c in (*range(32), 34, 92) if any(a <= c <= b for a, b in ranges)]
    if not special:
        return Chars(ranges)
    options: list[Node] = []
    if itself := _without(ranges, special):
        options.append(Chars(itself))
    letters = sorted(ord(SHORT[c]) for c in special if c in SHORT)
    if letters:
        options.append(Seq((_BACKSLASH, Chars(tuple((c, c) for c in letters)))))
    options += [text(f"\\u{c:04x}") for c in special if c not in SHORT]
    return either(options)


def _without(ranges: tuple[tuple[int, int], ...], special: list[int]) -> tuple[tuple[int, int], ...]:
    """The ranges without some characters."""
    found: list[tuple[int, int]] = []
    for first, last in ranges:
        for c in special:
            if first <= c <= last:
                if first < c:
                    found.append((first, c - 1))
                first = c + 1
        if first <= last:
            found.append((first, last))
    return tuple(found)
