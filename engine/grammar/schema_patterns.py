"""Patterns of a schema: they are found anywhere in a string unless they are anchored.

Patterns are read as regular expressions of the project, with `\\d`, `\\w` and `\\s` of ASCII, as the standard's
dialect (ECMA-262) has the first two. Anchors count at the ends of the whole pattern and of its outermost
alternatives; elsewhere they are refused.
"""

from __future__ import annotations

from functools import lru_cache

from engine.grammar.automaton import Automaton, build
from engine.grammar.regex import parse
from engine.grammar.schema_formats import FORMATS
from engine.grammar.schema_measure import states_of
from engine.grammar.syntax import ANY, Both, GrammarError, Node, Repeat, Seq, either

ANYTHING = Repeat(ANY)


@lru_cache(maxsize=1024)
def whole(pattern: str) -> Node:
    """The texts that a pattern matches from end to end. Raises GrammarError with the offset of what it cannot read."""
    return parse(pattern, ascii=True)


def searched(pattern: str, path: str) -> Node:
    """The texts in which a pattern is found. Raises GrammarError with the path of a pattern that cannot be read."""
    try:
        return _searched(pattern)
    except GrammarError as error:
        raise GrammarError(f"`pattern` {pattern!r}: {error}", path) from error


def found_in(pattern: str, value: str) -> bool:
    """Whether a pattern is found in a string."""
    automaton = _automaton(pattern)
    return automaton is not None and _accepts(automaton, value)


def is_format(name: str, value: str) -> bool:
    """Whether a string has a format."""
    form = FORMATS[name]
    return form.type != "string" or _accepts(build(in_pieces(form.pieces)), value)


@lru_cache
def in_pieces(pieces: tuple[tuple[str, int | None], ...]) -> Node:
    """Patterns one after the other, each for at most so many characters."""
    found = [whole(p) if most is None else Both(whole(p), Repeat(ANY, 0, most)) for p, most in pieces]
    return found[0] if len(found) == 1 else Seq(tuple(found))


def has_utf8(value: str) -> bool:
    """Whether a string is without lone halves of surrogate pairs, which no document can hold."""
    return not any("\ud800" <= c <= "\udfff" for c in value)


def _accepts(automaton: Automaton, value: str) -> bool:
    return has_utf8(value) and automaton.accepts(value.encode())


@lru_cache(maxsize=256)
def _automaton(pattern: str) -> Automaton | None:
    """None where the pattern is found in no string at all."""
    tree = _searched(pattern)
    return build(tree) if states_of(tree) else None


@lru_cache(maxsize=1024)
def _searched(pattern: str) -> Node:
    options = []
    for branch, begins, ends in _outermost(pattern):
        before, after = () if begins else (ANYTHING,), () if ends else (ANYTHING,)
        options.append(Seq((*before, whole(branch), *after)))
    return either(options)


def _outermost(pattern: str) -> list[tuple[str, bool, bool]]:
    """The alternatives that stand in no group: each without its anchors, and whether it had them at either end.

    Raises GrammarError for an anchor in another place, where it would say something about a part of the text.
    """
    found: list[tuple[str, bool, bool]] = []
    begin, depth, in_class, begins, ends, at = 0, 0, False, False, False, 0
    while at <= len(pattern):
        sign = pattern[at : at + 1]
        if sign == "\\":
            if pattern[at + 1 : at + 2] in ("A", "Z"):
                raise GrammarError(f"`{pattern[at : at + 2]}` is no anchor here (position {at})", at)
            at += 1
        elif in_class:
            in_class = sign != "]"
        elif sign == "[":
            in_class = True
            # A bracket that closes right after the opening stands for itself.
            at += pattern.startswith("^", at + 1)
            at += pattern.startswith("]", at + 1)
        elif sign == "^" and at == begin and not depth:
            begins, begin = True, at + 1
        elif sign == "$" and pattern[at + 1 : at + 2] in ("", "|") and not depth:
            ends = True
        elif sign in ("^", "$") and sign:
            raise GrammarError(f"`{sign}` is supported only at the ends of the pattern (position {at})", at)
        elif (sign == "|" or not sign) and depth <= 0:
            found.append((pattern[begin : at - ends], begins, ends))
            begin, begins, ends = at + 1, False, False
        elif sign in ("(", ")"):
            depth += 1 if sign == "(" else -1
        at += 1
    # What is not closed is for the parser to tell.
    return [(pattern, False, False)] if depth or in_class else found
