"""The tests notice each named way to break the engine (`tests/mutations`), and pass when nothing is broken."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.mutations import MUTATIONS, NAMED, ROOT, caught_by


def test_the_eleven_named_faults_are_among_the_mutations() -> None:
    assert len(NAMED) == 11
    assert {m.__name__ for faults in NAMED.values() for m in faults} <= set(MUTATIONS)


def test_what_the_mutations_break_is_still_there() -> None:
    code = "from tests.mutations import MUTATIONS; [put() for put in MUTATIONS.values()]"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_nothing_is_caught_when_nothing_is_broken() -> None:
    assert caught_by("") is None


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_engine_is_noticed(name: str) -> None:
    assert caught_by(name) is not None
