"""The tests notice each named way to break the engine (`tests/mutations.py`), and pass when nothing is broken."""

from __future__ import annotations

import pytest

from tests.mutations import MUTATIONS, caught_by

pytestmark = pytest.mark.slow


def test_nothing_is_caught_when_nothing_is_broken() -> None:
    assert caught_by("") is None


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_engine_is_noticed(name: str) -> None:
    assert caught_by(name) is not None
