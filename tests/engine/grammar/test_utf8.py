"""Sets of characters as bytes: exactly the UTF-8 of each, surrogates never."""

from __future__ import annotations

import random

import pytest

from engine.grammar.charsets import category, complement, union
from engine.grammar.syntax import ANY, LAST
from engine.grammar.utf8 import SURROGATES, Ranges, states, without


def reads(ranges: Ranges, text: bytes) -> bool:
    rows, at = states(ranges), 0
    for byte in text:
        after = [target for first, last, target in rows[at] if first <= byte <= last]
        assert len(after) <= 1
        if not after:
            return False
        (at,) = after
    return at == 1


def some_ranges(draw: random.Random) -> Ranges:
    top = draw.choice([0x100, 0x900, 0x3000, 0x11000, LAST + 1])
    return union(
        (a, min(a + draw.choice([0, 1, 63, 64, 5000]), LAST)) for a in draw.sample(range(top), draw.randrange(1, 12))
    )


def numbers(ranges: Ranges) -> Ranges:
    """The characters that the byte states read, worked out from the states."""
    rows = states(ranges)

    def rests(state: int, size: int) -> list[tuple[int, int]]:
        if state == 1:
            return [(0, 0)]
        found = []
        for first, last, target in rows[state]:
            for top in range(first - 0x80, last - 0x80 + 1):
                found += [(top * size // 64 + a, top * size // 64 + b) for a, b in rests(target, size // 64)]
        return found

    found: list[tuple[int, int]] = []
    for first, last, target in rows[0]:
        for lead in range(first, last + 1):
            base, size = (
                (lead, 1)
                if lead < 0x80
                else (lead - 0xC0, 64)
                if lead < 0xE0
                else (lead - 0xE0, 64**2)
                if lead < 0xF0
                else (lead - 0xF0, 64**3)
            )
            found += [(base * size + a, base * size + b) for a, b in (rests(target, size) if size > 1 else [(0, 0)])]
    return union(found)


@pytest.mark.parametrize("seed", range(60))
def test_the_byte_states_read_back_as_the_characters_they_were_made_of(seed: int) -> None:
    ranges = some_ranges(random.Random(seed))
    assert numbers(ranges) == without(ranges, SURROGATES)


@pytest.mark.parametrize("letter", "dws")
def test_the_named_classes_lose_no_character_on_the_way_to_bytes(letter: str) -> None:
    assert numbers(category(letter, ascii=False)) == without(category(letter, ascii=False), SURROGATES)


@pytest.mark.parametrize("seed", range(20))
def test_a_character_is_read_exactly_where_it_is_in_the_set(seed: int) -> None:
    draw = random.Random(seed)
    ranges = some_ranges(draw)
    edges = [edge + by for pair in ranges for edge in pair for by in (-1, 0, 1)]
    for code in [c for c in edges if 0 <= c <= LAST and not 0xD800 <= c <= 0xDFFF]:
        assert reads(ranges, chr(code).encode()) == any(a <= code <= b for a, b in ranges)


def test_no_surrogate_and_no_overlong_form_is_ever_read() -> None:
    for wrong in (
        b"\xed\xa0\x80",
        b"\xed\xbf\xbf",
        b"\xc0\x80",
        b"\xc1\xbf",
        b"\xe0\x80\x80",
        b"\xf4\x90\x80\x80",
        b"\x80",
        b"\xff",
    ):
        assert not reads(ANY.ranges, wrong)
    assert states((SURROGATES,))[0] == ()


def test_all_characters_need_only_the_states_that_utf8_itself_has() -> None:
    assert len(states(ANY.ranges)) == 9


def test_the_complement_of_a_complement_is_the_set() -> None:
    for seed in range(20):
        ranges = some_ranges(random.Random(seed))
        assert complement(complement(ranges)) == ranges
