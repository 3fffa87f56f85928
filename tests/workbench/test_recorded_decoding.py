"""The two recorded runs that the Decode page opens on: real, one with jump-forward and one plain, with the same answer."""

from __future__ import annotations

from functools import cache

import pytest

from engine import events as ev
from workbench import presets
from workbench.decoding import Decoding, decode
from workbench.figures.tapes import sentences
from workbench.replay import fold


@cache
def trace(name: str) -> ev.Trace:
    return ev.Trace.read(presets.assets() / "decoding" / f"{name}.jsonl")


def tapes() -> tuple[Decoding, Decoding]:
    return decode(trace("jump")), decode(trace("plain"))


@pytest.mark.parametrize("name", ["jump", "plain"])
def test_a_recorded_run_is_a_real_one(name: str) -> None:
    header = trace(name).header
    assert header.executor == "model" and header.clock == "wall" and header.model and header.vocabulary
    assert fold(trace(name).events).requests["R1"].status == "finished"
    assert all(t.text is not None for t in decode(trace(name)).tokens)


def test_one_jumps_and_the_other_is_plain_and_both_answer_alike() -> None:
    jump, plain = tapes()
    assert (jump.mode, plain.mode) == ("verified", "off")
    assert [t.id for t in jump.tokens] == [t.id for t in plain.tokens]
    assert jump.saved == plain.passes - jump.passes > 0
    assert jump.text == plain.text and not jump.incomplete


def test_both_stand_in_the_same_automaton() -> None:
    jump, plain = tapes()
    assert jump.grammar is not None and plain.grammar is not None
    assert jump.grammar.edges == plain.grammar.edges
    assert [(t.state, t.target) for t in jump.tokens] == [(t.state, t.target) for t in plain.tokens]


def test_times_are_told_as_measured() -> None:
    assert any(s.startswith("As measured in this run, once each") for s in sentences(*tapes()))
