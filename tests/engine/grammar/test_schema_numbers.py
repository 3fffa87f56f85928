"""Numbers of a schema: ranges to the last digit, multiples, and the one form in which numbers are written."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from typing import Any

import pytest

from engine.grammar.schema import node_of, read
from engine.grammar.syntax import GrammarError
from tests.engine.grammar.documents import Asked


@pytest.mark.parametrize("seed", range(12))
def test_whole_numbers_are_those_of_the_range(seed: int) -> None:
    rng = random.Random(seed)
    low, high = sorted(rng.randint(-(10 ** rng.randint(1, 4)), 10 ** rng.randint(1, 4)) for _ in range(2))
    schema = {"type": "integer", rng.choice(["minimum", "exclusiveMinimum"]): low, "maximum": high + 2}
    asked = Asked(schema)
    first = low + ("exclusiveMinimum" in schema)
    near = {n + d for n in (low, high, 0, -1, 10, 99, 100, 999, 1000) for d in range(-12, 13)}
    for n in near:
        assert asked.takes(n) == (first <= n <= high + 2), (schema, n)


DECIMALS = ["0", "0.0", "0.5", "0.50", "0.49", "0.51", "1", "1.0", "1.2", "1.25", "1.249", "1.251", "1.3", "2", "9.99", "10", "10.01", "12.5", "100"]  # fmt: skip
BOUNDS = [-12.5, -10, -1.25, -0.5, 0, 0.5, 1, 1.25, 1.3, 10, 12.5]


@pytest.mark.parametrize("low", [None, *BOUNDS])
def test_numbers_with_a_fraction_are_those_of_the_range(low: float | None) -> None:
    texts = DECIMALS + [f"-{text}" for text in DECIMALS if float(text)]
    for high in [None, *BOUNDS]:
        for strict in (False, True):
            schema: dict[str, Any] = {"type": "number"}
            words = ("exclusiveMinimum", "exclusiveMaximum") if strict else ("minimum", "maximum")
            schema |= {word: bound for word, bound in zip(words, (low, high), strict=True) if bound is not None}
            ends = Fraction(str(low or 0)), Fraction(str(high or 0))
            right = [
                text
                for text in texts
                if (low is None or Fraction(text) > ends[0] or (not strict and Fraction(text) == ends[0]))
                and (high is None or Fraction(text) < ends[1] or (not strict and Fraction(text) == ends[1]))
            ]
            if low is not None and high is not None and (low > high or (strict and low == high)):
                with pytest.raises(GrammarError, match="in this range"):
                    node_of(schema, "compact")
                continue
            asked = Asked(schema)
            assert [text for text in texts if asked.takes_text(text)] == right, schema


@pytest.mark.parametrize("kind", ["integer", "number"])
@pytest.mark.parametrize("text", ["", "-", "+1", "01", "-01", "00", "-0", "-0.0", ".5", "1.", "1e5", "1E5", "0x1", "1,5", "NaN", "Infinity"])  # fmt: skip
def test_what_is_no_plain_number_is_refused(kind: str, text: str) -> None:
    assert not Asked({"type": kind}).takes_text(text)


def test_whole_numbers_have_no_fraction_and_numbers_may() -> None:
    assert not Asked({"type": "integer"}).takes_text("4.0")
    number = Asked({"type": "number"})
    assert all(number.takes_text(text) for text in ("4", "4.0", "4.50", "-0.5", "123456789012345.12345678901234567"))


def test_unbounded_numbers_have_bounded_digits_and_that_is_told() -> None:
    for kind, longest in (("integer", "9" * 15), ("number", "9" * 15 + "." + "9" * 17)):
        asked = Asked({"type": kind})
        assert asked.takes_text(longest) and not asked.takes_text("9" + longest)
        assert any("15 digits" in note.message for note in read({"type": kind}, "compact").notes)
    assert not number_takes({"type": "number"}, "0." + "9" * 18)


def number_takes(schema: dict[str, Any], text: str) -> bool:
    return Asked(schema).takes_text(text)


def test_large_bounds_ask_for_more_digits() -> None:
    long = {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}
    assert number_takes(long, str(2**63 - 1)) and not number_takes(long, str(2**63))
    assert number_takes({"type": "integer", "minimum": 10**20}, str(10**20))
    assert number_takes({"type": "number", "maximum": 1.7976931348623157e308}, "999999999999999")
    with pytest.raises(GrammarError, match="40 digits") as caught:
        node_of({"type": "number", "minimum": 1e300}, "compact")
    assert caught.value.where == "#/minimum"


def test_tiny_bounds_are_exact_for_the_places_that_are_written() -> None:
    tiny = {"type": "number", "exclusiveMinimum": 1e-300, "maximum": 1}
    assert not number_takes(tiny, "0") and not number_takes(tiny, "0.0")
    assert number_takes(tiny, "0.00000000000000001") and number_takes(tiny, "1.0")


def test_no_number_below_an_exclusive_bound_is_read_as_the_bound() -> None:
    asked = Asked({"type": "number", "exclusiveMaximum": 100, "minimum": 99})
    rng = random.Random(5)
    texts = ["99." + "9" * places for places in range(1, 20)] + [asked.draw(rng) for _ in range(200)]
    assert all(float(text) < 100 for text in texts if asked.takes_text(text))
    assert asked.takes_text("99." + "9" * 12)


def test_bounds_that_round_to_zero_have_no_sign() -> None:
    assert [n for n in range(-2, 3) if Asked({"type": "integer", "exclusiveMinimum": -0.25}).takes(n)] == [0, 1, 2]
    assert [n for n in range(-2, 3) if Asked({"type": "integer", "maximum": -0.0}).takes(n)] == [-2, -1, 0]


def test_draft_4_says_exclusive_with_true() -> None:
    asked = Asked({"type": "integer", "minimum": 1, "exclusiveMinimum": True, "maximum": 3, "exclusiveMaximum": False})
    assert [n for n in range(-1, 6) if asked.takes(n)] == [2, 3]


@pytest.mark.parametrize("step", [1, 2, 4, 5, 8, 10, 20, 25, 50, 100, 125, 1000, 0.5])
def test_multiples_that_endings_tell_need_no_bounds(step: float) -> None:
    asked = Asked({"type": "integer", "multipleOf": step})
    for n in [*range(-130, 131), 999, 1000, 1125, 12000]:
        assert asked.takes(n) == (n % step == 0), n


def test_other_multiples_are_listed_between_bounds() -> None:
    asked = Asked({"type": "integer", "multipleOf": 7, "minimum": -50, "exclusiveMaximum": 49})
    assert [n for n in range(-60, 60) if asked.takes(n)] == list(range(-49, 49, 7))
    number = Asked({"type": "number", "multipleOf": 1.5, "minimum": 0, "maximum": 5})
    assert [t for t in ("0", "1.5", "1.50", "3", "3.0", "4.5", "5", "1", "1.51", "6") if number.takes_text(t)] == [
        "0", "1.5", "1.50", "3", "3.0", "4.5",
    ]  # fmt: skip
    with pytest.raises(GrammarError, match="`multipleOf` 7") as caught:
        node_of({"type": "integer", "multipleOf": 7}, "compact")
    assert caught.value.where == "#/multipleOf"


def test_multiples_of_a_part_of_one_end_in_few_places() -> None:
    asked = Asked({"type": "number", "multipleOf": 0.01, "minimum": 0})
    assert [t for t in ("0", "0.1", "0.01", "0.010", "0.001", "1.25", "1.255") if asked.takes_text(t)] == [
        "0", "0.1", "0.01", "0.010", "1.25",
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "bits"), [("int32", 31), ("int64", 63)])
def test_integer_formats_are_ranges(name: str, bits: int) -> None:
    asked = Asked({"type": "integer", "format": name})
    inside, outside = (-(2**bits), -1, 0, 2**bits - 1), (-(2**bits) - 1, 2**bits)
    assert all(map(asked.takes, inside)) and not any(map(asked.takes, outside))


def test_listed_numbers_are_written_as_the_schema_has_them() -> None:
    asked = Asked({"enum": [1, 2.5, 1e-7]})
    assert [t for t in ("1", "1.0", "2.5", "2.50", "1e-07", json.dumps(1e-7)) if asked.takes_text(t)] == [
        "1",
        "2.5",
        "1e-07",
        "1e-07",
    ]
