"""Numbers of a schema: bounds on both sides, inclusive or not, whole or with a fraction, and multiples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import reduce
from typing import Any

from engine.grammar import schema_decimals as decimals
from engine.grammar.schema_alternatives import Alternative, ImpossibleError, Plain
from engine.grammar.schema_bounds import DIGITS, PLACES, Notes
from engine.grammar.schema_formats import FORMATS
from engine.grammar.syntax import Both, GrammarError, Node, Seq, either, text

MAX_DIGITS = 40
"""Before or after the point; bounds beyond are refused, or rounded to where it changes nothing."""

MAX_LISTED = 1000
"""So many multiples are written out one by one where their endings do not tell them."""

EXACT = 15
"""Two decimals of so many digits are two doubles. Beyond, what is just below a bound may be read as the bound."""


@dataclass(frozen=True, slots=True)
class Limit:
    """One end of a range of numbers."""

    value: Decimal
    strict: bool
    """Whether the value itself is outside."""
    path: str


def number(alternative: Alternative, whole: bool, notes: Notes) -> Node:
    """The numbers that all the plain schemas of an alternative allow.

    Raises ImpossibleError where a range is empty. Whether any multiple lies in it is for the caller to find out.
    """
    low, high = limits(alternative.plains)
    whole = whole or _is_whole(alternative)
    places = 0 if whole else PLACES
    for limit in (low, high):
        if limit is not None and limit.strict and limit.value:
            places = min(places, max(EXACT - limit.value.adjusted() - 1, 0))
    ends = [_digits(limit.value) for limit in (low, high) if limit]
    before = max([end for end in ends if end <= MAX_DIGITS] + [DIGITS] * (len(ends) < 2 or max(ends) > MAX_DIGITS))
    if whole and not (low and high):
        notes.add(f"whole numbers have at most {before} digits", alternative.path)
    if not whole:
        notes.add(f"numbers have at most {before} digits before the point and {places} after it", alternative.path)
        notes.add("numbers have no exponent", alternative.path)
    low = low and _reached(low, places, ROUND_CEILING)
    high = high and _reached(high, places, ROUND_FLOOR)
    if low and high and low.value > high.value:
        raise ImpossibleError(f"no {'whole ' if whole else ''}number is in this range", low.path)
    shape = [decimals.plain(before, places, signed=low is None or low.value < 0), *_sides(low, high, before)]
    return reduce(Both, [*shape, *(_multiples(s, p, low, high) for s, p in alternative.stated("multipleOf"))])


def wide_number(alternative: Alternative, whole: bool) -> Node:
    """At least all numbers, in every spelling without an exponent, that the alternative allows."""
    low, high = limits(alternative.plains)
    low = low and _rounded(low, MAX_DIGITS, ROUND_FLOOR)
    high = high and _rounded(high, MAX_DIGITS, ROUND_CEILING)
    shape = [decimals.plain(None, None), *_sides(low, high, MAX_DIGITS)]
    if whole or _is_whole(alternative):
        shape.append(decimals.whole_values())
    return reduce(Both, [*shape, *(_multiples(s, p, low, high) for s, p in alternative.stated("multipleOf"))])


def exactly(value: float) -> Node:
    """Every spelling of one number without an exponent."""
    this = decimal(value)
    return Both(decimals.plain(None, None), Both(decimals.at_least(this, False), decimals.at_most(this, False)))


def decimal(value: float) -> Decimal:
    """The number that a schema's text says, not the double nearest to it."""
    return Decimal(value) if isinstance(value, int) else Decimal(repr(value))


def limits(plains: tuple[Plain, ...]) -> tuple[Limit | None, Limit | None]:
    """The narrowest of all lower and of all upper bounds."""
    low: list[Limit] = []
    high: list[Limit] = []
    for plain in plains:
        low += _stated(plain, "minimum", "exclusiveMinimum")
        high += _stated(plain, "maximum", "exclusiveMaximum")
        if "format" in plain and (ends := FORMATS[plain["format"]].limits):
            low.append(Limit(Decimal(ends[0]), False, plain.at("format")))
            high.append(Limit(Decimal(ends[1]), False, plain.at("format")))
    return (
        max(low, key=lambda limit: (limit.value, limit.strict), default=None),
        min(high, key=lambda limit: (limit.value, not limit.strict), default=None),
    )


def _is_whole(alternative: Alternative) -> bool:
    """Whether a format allows only whole numbers."""
    return any(FORMATS[name].limits for name, _ in alternative.stated("format"))


def _stated(plain: Plain, word: str, exclusive: str) -> list[Limit]:
    """The bounds of one schema on one side. In draft 4 `exclusive...: true` makes the other word's bound strict."""
    strict: Any = plain.get(exclusive, False)
    found = []
    if word in plain:
        found.append(Limit(decimal(plain[word]), strict is True, plain.at(word)))
    if not isinstance(strict, bool):
        found.append(Limit(decimal(strict), True, plain.at(exclusive)))
    return found


def _sides(low: Limit | None, high: Limit | None, before: int) -> list[Node]:
    """The languages of the bounds that matter for numbers of so many digits before the point."""
    top = Decimal(10) ** before
    found = []
    for limit in (low, high):
        if limit is None or (limit.value >= top if limit is high else limit.value <= -top):
            continue
        if _digits(limit.value) > MAX_DIGITS:
            raise GrammarError(f"numbers of more than {MAX_DIGITS} digits are not supported", limit.path)
        side = decimals.at_least if limit is low else decimals.at_most
        found.append(side(limit.value, limit.strict))
    return found


def _rounded(limit: Limit, places: int, rounding: str) -> Limit:
    """The nearest number of so many places in one direction: a limit that lies between two of them is the next."""
    if _digits(limit.value) > MAX_DIGITS:
        return limit
    with localcontext() as context:
        context.prec = 800
        value = limit.value.quantize(Decimal(1).scaleb(-places), rounding=rounding)
    return Limit(value, limit.strict and value == limit.value, limit.path)


def _reached(limit: Limit, places: int, rounding: str) -> Limit:
    """The outermost number of so many places that a limit allows."""
    found = _rounded(limit, places, rounding)
    if not found.strict or found is limit:
        return found
    with localcontext() as context:
        context.prec = 800
        one = Decimal(1).scaleb(-places)
        return Limit(found.value + (one if rounding == ROUND_CEILING else -one), False, found.path)


def _digits(value: Decimal) -> int:
    """Digits before the point."""
    return max(value.adjusted() + 1, 1)


def _multiples(step: Any, path: str, low: Limit | None, high: Limit | None) -> Node:
    """All multiples of a step, at least within the limits."""
    size = decimal(step)
    found = decimals.multiples(size)
    if found is None and low and high:
        first = math.ceil(Fraction(low.value) / Fraction(size))
        last = math.floor(Fraction(high.value) / Fraction(size))
        if last - first < MAX_LISTED:
            found = either([_spellings(size * k) for k in range(first, last + 1)])
    if found is None:
        raise GrammarError(
            f"`multipleOf` {step} is supported only between a minimum and a maximum with at most {MAX_LISTED} multiples",
            path,
        )
    return found


def _spellings(value: Decimal) -> Node:
    """A number with any zeros at the end of its fraction."""
    whole, _, fraction = f"{value:f}".partition(".")
    fraction = fraction.rstrip("0")
    zeros = decimals.ZEROS
    if fraction:
        return Seq((text(f"{whole}.{fraction}"), zeros))
    return Seq((text(whole), decimals.ZERO_FRACTION))
