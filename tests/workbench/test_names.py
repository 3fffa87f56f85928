"""Token runs by name: `A8`, `Xa2`, `A8+B2`."""

from __future__ import annotations

import string

import pytest

from workbench import names


def test_a_name_is_the_beginning_of_a_fixed_run() -> None:
    assert names.parse("A8") == list(range(256, 264))
    assert names.parse("A5") == names.parse("A8")[:5]
    assert names.parse("B1") == [256 + 1024]
    assert names.parse("Aa1") == [26_880] and names.parse("Xa2") == [26_880 + 32 * 26 * 23, 26_880 + 32 * 26 * 23 + 1]


def test_a_plus_joins_runs() -> None:
    assert names.parse("A8+B2") == names.parse("A8") + names.parse("B2")
    assert names.parse(" A8 + B2 ") == names.parse("A8+B2")


def test_no_two_names_share_an_id_and_all_lie_within_the_embedded_vocabulary() -> None:
    runs = [f"{c}1024" for c in string.ascii_uppercase]
    runs += [f"{c}{s}32" for c in string.ascii_uppercase for s in string.ascii_lowercase]
    ids = [i for run in runs for i in names.parse(run)]
    assert len(ids) == len(set(ids)) == 26 * 1024 + 26 * 26 * 32
    assert min(ids) == 256 and max(ids) < 49_152


@pytest.mark.parametrize("text", ["", "A", "a8", "8", "A-1", "A0", "A1.5", "ABC3", "AA3", "A8+", "+A8", "A8,B2", "Aa33", "A1025", "é8", "A٣"])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(names.TokenNameError):
        names.parse(text)


def test_a_run_that_is_too_long_says_how_long_it_is() -> None:
    with pytest.raises(names.TokenNameError, match="the run Xa has 1 to 32 tokens"):
        names.parse("A8+Xa33")
