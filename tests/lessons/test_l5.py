"""L5's references against known values and against the engine, and its audit against a trace that was tampered with."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from engine import Plugs
from engine import events as ev
from workbench.lessons import CheckFailed, Lesson
from workbench.lessons.checks import l5


@pytest.fixture(autouse=True)
def _own_progress(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADIX_PROGRESS", str(tmp_path / "progress.json"))


def string(found: list[bool]) -> str:
    return "".join("1" if one else "0" for one in found)


@pytest.mark.parametrize(
    ("order", "room", "hits"),
    [("ABCDABCD", 2, "00000000"), ("AABBCCDD", 2, "01010101"), ("ABACADAB", 2, "00101010"), ("ABCDDCBA", 2, "00001100"),
     ("ABCDABCD", 4, "00001111"), ("ABCDABCD", 3, "00000000")],
)  # fmt: skip
def test_the_list_of_names_finds_what_was_published_and_what_the_engine_finds(order: str, room: int, hits: str) -> None:
    assert string(l5.kept(order, room)) == hits
    assert string(l5.found(Lesson("L5").run(l5.visits(order, room)))) == hits


@pytest.mark.parametrize("seed", range(6))
def test_the_list_of_names_is_the_engines_lru_for_any_order(seed: int) -> None:
    rng = random.Random(seed)
    order, room = [rng.choice("ABCDEF") for _ in range(40)], rng.randint(1, 5)
    run = Lesson("L5").run(l5.visits(order, room))
    assert l5.found(run) == l5.kept(order, room)
    assert not l5.audit(run).orphaned


def test_a_page_that_is_given_away_twice_and_a_parent_that_goes_first_are_noticed() -> None:
    lesson = Lesson("L5")
    assert l5.audit(lesson.run("naive")).orphaned and not l5.audit(lesson.run("tree")).orphaned
    run = lesson.run("cyclic")
    events: list[Any] = run.trace.events
    at = next(e.seq for e in events if isinstance(e, ev.PageFreed))
    twice = [msgspec.structs.replace(e, pages=[*e.pages, *e.pages]) if e.seq == at else e for e in events]
    lost = [e for e in events if e.seq != at]
    for tampered, said in ((twice, "given back, though nobody held it"), (lost, "given away, though it was not free")):
        with pytest.raises(CheckFailed, match=said):
            l5.audit(dataclasses.replace(run, trace=cast(Any, SimpleNamespace(events=tampered))))


def _raises(node: Any) -> Any:
    return node.colour


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (lambda node: None, "None is no key.*\n.*a number, or a tuple"),
        (lambda node: (node.hits > 1, node.last_used), "the cyclic trace: expected more"),
        (lambda node: [0, node.last_used], "is no key.*\n.*a tuple of numbers"),
        (lambda node: "old", "'old' is no key"),
        (_raises, "AttributeError: 'TreeNode' object has no attribute 'colour'"),
        (lambda node: random.random(), "the same node must get the same key"),
        (lambda: 1, "TypeError"),
        (lambda node: node.last_used, "expected more handbooks found than LRU's 0 of 24, got 0"),
        (lambda node: node.hits, "the cyclic trace: expected more"),
        (lambda node: -node.last_used, "only 22 of 60"),
        (lambda node: -node.id, "only .* of 60"),
        (lambda node: (node.hits, -node.last_used), "only .* of 60"),
        (lambda node: node.id * 2654435761 % 1009, "only .* of 60"),
        (lambda node: node.tokens[0], "with its handbooks renamed|only .* of 60"),
    ],
)  # fmt: skip
def test_what_does_not_hold_on_both_traces_is_told_in_a_sentence(policy: Callable[..., Any], said: str) -> None:
    with pytest.raises(CheckFailed, match=said) as caught:
        l5.check_policy(Lesson("L5"), policy)
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize("seed", range(4))
def test_a_rule_that_looks_at_hits_holds_on_other_ordinary_traces_too(seed: int) -> None:
    lesson = Lesson("L5")
    order = l5.sessions(random.Random(seed), "ABCDEFGHIJKL", 5, 2)
    mine = lesson.run(l5.visits(order), plugs=Plugs(eviction=lambda node: (1, node.last_used) if node.hits else (0, -node.last_used)))
    assert sum(l5.found(mine)) >= l5.KEPT * sum(l5.kept(order))
