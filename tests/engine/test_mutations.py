"""The tests notice each named way to break the engine (`tests/mutations`), and pass when nothing is broken."""

from __future__ import annotations

import pytest

from tests.mutations import MUTATIONS, NAMED, caught_by


def test_the_eleven_named_faults_are_among_the_mutations() -> None:
    assert len(NAMED) == 11
    assert {m.__name__ for faults in NAMED.values() for m in faults} <= set(MUTATIONS)


@pytest.mark.slow
def test_nothing_is_caught_when_nothing_is_broken() -> None:
    assert caught_by("") is None


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_engine_is_noticed(name: str) -> None:
    assert caught_by(name) is not None
