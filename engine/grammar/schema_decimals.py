"""Decimal numbers as languages: all texts of numbers that are at least, or at most, a given one.

A number is written as JSON has it, without an exponent: no leading zeros, no zero with a sign, digits after a
point; zeros at the end of those change nothing and are allowed. The comparisons here speak of all digit texts
and are cut to what is a number by `plain`.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from engine.grammar.syntax import EMPTY, NEVER, Both, Chars, Node, Repeat, Seq, either, optional, text


def digits(first: int, last: int) -> Node:
    """One digit of a range."""
    return Chars(((ord("0") + first, ord("0") + last),)) if first <= last else NEVER


DIGIT = digits(0, 9)
NONZERO = digits(1, 9)
ANY_DIGITS = Repeat(DIGIT)
_POINT = text(".")
_MINUS = text("-")
ANY_FRACTION = optional(Seq((_POINT, ANY_DIGITS)))
ZEROS = Repeat(text("0"))
ZERO_FRACTION = optional(Seq((_POINT, ZEROS)))
_ANY_SIZE = Seq((ANY_DIGITS, ANY_FRACTION))
_NOT_ZERO = Seq((Repeat(either((DIGIT, _POINT))), NONZERO, Repeat(either((DIGIT, _POINT)))))


def plain(before: int | None, after: int | None, signed: bool = True) -> Node:
    """All numbers of at most so many digits before the point and after it; after 0: no point. None: no bound.

    Not `signed`: none below 0.
    """
    more = None if before is None else before - 1
    whole = either((text("0"), Seq((NONZERO, Repeat(DIGIT, 0, more)))))
    size = whole if after == 0 else Seq((whole, optional(Seq((_POINT, Repeat(DIGIT, 1, after))))))
    return either((size, Seq((_MINUS, Both(size, _NOT_ZERO))))) if signed else size


def whole_values() -> Node:
    """All numbers without a fraction, also when written with one: 4, 4.0."""
    return Seq((optional(_MINUS), ANY_DIGITS, ZERO_FRACTION))


def at_least(bound: Decimal, strict: bool) -> Node:
    """All numbers that are at least `bound`; with `strict`, above it."""
    if bound < 0:
        return either((_ANY_SIZE, Seq((_MINUS, _size_at_most(-bound, strict)))))
    return _size_at_least(bound, strict)


def at_most(bound: Decimal, strict: bool) -> Node:
    """All numbers that are at most `bound`; with `strict`, below it."""
    below = Seq((_MINUS, _ANY_SIZE))
    if bound < 0:
        return Seq((_MINUS, _size_at_least(-bound, strict)))
    return either((below, _size_at_most(bound, strict)))


def _size_at_least(bound: Decimal, strict: bool) -> Node:
    whole, fraction = _split(bound)
    beyond = Seq((_POINT, _fraction_at_least(fraction, strict)))
    tail = beyond if fraction or strict else ANY_FRACTION
    return either((Seq((naturals(int(whole) + 1, None), ANY_FRACTION)), Seq((text(whole), tail))))


def _size_at_most(bound: Decimal, strict: bool) -> Node:
    whole, fraction = _split(bound)
    tail = _fraction_at_most(fraction, strict)
    if fraction or not strict:
        tail = optional(Seq((_POINT, tail)))
    smaller = [Seq((naturals(0, int(whole) - 1), ANY_FRACTION))] if int(whole) else []
    return either((*smaller, Seq((text(whole), tail))))


def _split(bound: Decimal) -> tuple[str, str]:
    """Digits before the point, and after it without zeros at the end."""
    whole, _, fraction = f"{bound.copy_abs():f}".partition(".")
    return whole, fraction.rstrip("0")


def _fraction_at_least(least: str, strict: bool) -> Node:
    """Digits after the point that say `least` or more; with `strict`, more."""
    if not least:
        return Seq((ZEROS, NONZERO, ANY_DIGITS)) if strict else ANY_DIGITS
    more = Seq((digits(int(least[0]) + 1, 9), ANY_DIGITS))
    return either((more, Seq((text(least[0]), _fraction_at_least(least[1:], strict)))))


def _fraction_at_most(most: str, strict: bool) -> Node:
    """Digits after the point, or none, that say `most` or less; with `strict`, less."""
    if not most:
        return NEVER if strict else ZEROS
    fewer = Seq((digits(0, int(most[0]) - 1), ANY_DIGITS))
    return either((EMPTY, fewer, Seq((text(most[0]), _fraction_at_most(most[1:], strict)))))


def naturals(least: int, most: int | None) -> Node:
    """Whole numbers from `least`, which is not below 0, to `most`; None: without end."""
    low = str(least)
    if most is None:
        longer = Seq((NONZERO, Repeat(DIGIT, len(low), None)))
        return either((longer, _same_length(low, "9" * len(low))))
    options = []
    for length in range(len(low), len(str(most)) + 1):
        first = low if length == len(low) else "1" + "0" * (length - 1)
        last = str(most) if length == len(str(most)) else "9" * length
        options.append(_same_length(first, last))
    return either(options)


def _same_length(low: str, high: str) -> Node:
    """Digit texts of one length from `low` to `high`."""
    if low == high:
        return text(low)
    rest = len(low) - 1
    if low == "0" * len(low) and high == "9" * len(high):
        return Repeat(DIGIT, len(low), len(low))
    if low[0] == high[0]:
        return Seq((text(low[0]), _same_length(low[1:], high[1:])))
    if not rest:
        return digits(int(low), int(high))
    between = Seq((digits(int(low[0]) + 1, int(high[0]) - 1), Repeat(DIGIT, rest, rest)))
    first = Seq((text(low[0]), _same_length(low[1:], "9" * rest)))
    last = Seq((text(high[0]), _same_length("0" * rest, high[1:])))
    return either((first, between, last))


def multiples(step: Decimal) -> Node | None:
    """All numbers that are a multiple of `step`; None where no short list of endings tells them."""
    inverse = 1 / Fraction(step)
    if inverse.denominator == 1 and inverse.numerator <= 1000:
        endings = [_split(step * k)[1] for k in range(inverse.numerator)]
        fractions = [Seq((_POINT, text(ending), ZEROS)) for ending in endings]
        return Seq((optional(_MINUS), ANY_DIGITS, optional(either(fractions))))
    for length in range(1, 4):
        if step == int(step) and 10**length % int(step) == 0:
            values = range(0, 10**length, int(step))
            longer: list[Node] = [Seq((Repeat(DIGIT, 1, None), text(f"{value:0{length}}"))) for value in values]
            sizes = either([*longer, *(text(str(value)) for value in values)])
            return Seq((optional(_MINUS), sizes, ZERO_FRACTION))
    return None
