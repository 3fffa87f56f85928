"""Any moment of a trace, in bounded time, is the fold up to it."""

from __future__ import annotations

import random

import msgspec
import pytest

from engine import events as ev
from workbench import scenario
from workbench.replay import Replay, ReplayError, cut, digest, fnv1a, fold, pack
from workbench.runner import run
from workbench.scenario import parse


@pytest.fixture(scope="module")
def busy() -> ev.Trace:
    """A run with splits, evictions, retractions, an abort and a failure."""
    chance = random.Random(3)
    requests = [
        {
            "id": f"R{i}", "tokens": f"{chance.choice('AB')}{chance.randint(2, 9)}+{chance.choice('XYZ')}{chance.randint(1, 6)}",
            "max_new_tokens": chance.randint(1, 24), "at_step": chance.randint(1, 60),
            "abort_at_step": 20 + i if i % 9 == 4 else None, "fail_at_step": 30 if i % 13 == 5 else None,
        }
        for i in range(40)
    ]  # fmt: skip
    engine = {"pages": 40, "chunk": 5, "mixed": True, "reserve_start": 0.0, "reserve_min": 0.0}
    return run(parse({"engine": engine, "requests": requests}), check=True).trace


def test_the_busy_trace_has_what_a_fold_must_follow(busy: ev.Trace) -> None:
    kinds = {e.__struct_config__.tag for e in busy}
    assert kinds >= {"node.split", "node.trimmed", "node.evicted", "request.retracted", "request.aborted", "executor.failed"}


@pytest.mark.parametrize("every", [1, 7, 512])
def test_any_moment_is_the_fold_up_to_it(busy: ev.Trace, every: int) -> None:
    replay = Replay(busy.events, every)
    for seq in [-1, 0, len(busy) - 1, *random.Random(every).sample(range(len(busy)), 60)]:
        there = replay.at(seq)
        folded = fold(busy.events[: seq + 1])
        assert there.seq == folded.seq == seq
        assert there.canonical() == folded.canonical()
        assert (there.gone, there.members, there.t, there.step) == (folded.gone, folded.members, folded.t, folded.step)


def test_looking_at_one_moment_leaves_the_others_as_they_were(busy: ev.Trace) -> None:
    replay = Replay(busy.events, 64)
    middle = len(busy) // 2
    before = digest(replay.at(middle).canonical())
    for seq in range(0, len(busy), 37):
        state = replay.at(seq)
        fold(busy.events[seq + 1 :], state)
        state.queue.append("x")
        state.owners[0] = "x"
    assert digest(replay.at(middle).canonical()) == before


@pytest.mark.parametrize("seq", [-2, 10**9])
def test_a_moment_outside_the_trace_is_refused(busy: ev.Trace, seq: int) -> None:
    with pytest.raises(IndexError, match="seq: must be -1 to"):
        Replay(busy.events).at(seq)


@pytest.mark.parametrize("kind", [ev.RequestArrived, ev.RequestAdmitted, ev.NodeCreated, ev.PageAllocated, ev.NodeSplit, ev.StepPlanned])
def test_a_trace_that_lacks_an_event_contradicts_itself_or_tells_another_state(busy: ev.Trace, kind: type[ev.Event]) -> None:
    at = next(i for i, e in enumerate(busy) if isinstance(e, kind) and i > 100 and getattr(e, "mode", "") != "decode")
    whole, lacking = fold(busy.events[:at]), fold(busy.events[:at])
    whole.apply(busy.events[at])
    differs = []
    try:
        for event in busy.events[at + 1 : at + 40]:
            whole.apply(event)
            lacking.apply(event)
            differs.append(event.commit and lacking.canonical() != whole.canonical())
    except ReplayError as error:
        assert "does not fit what came before" in str(error)
        return
    assert any(differs)


def test_tokens_are_named_not_copied_and_read_back_across_prompt_and_output() -> None:
    trace = run(scenario.load("walkthrough")).trace
    state = fold(trace.events)
    assert state.sequence("R1", 6, 10) == [20, 21, 901, 902]
    texts = {n.id: state.tokens(n) for n in state.nodes.values()}
    assert texts == {3: [10, 11, 12, 13, 14, 15], 6: [20], 1: [21], 2: [901], 4: [30, 31], 5: [903], 7: [40], 8: [905]}
    assert state.path(8) == [8, 7, 6, 3]


def test_what_left_the_tree_is_remembered(busy: ev.Trace) -> None:
    state = fold(busy.events)
    evicted = [e for e in busy if isinstance(e, ev.NodeEvicted)]
    assert {e.node: e.seq for e in evicted} == {node: seq for node, (seq, _) in state.gone.items()}
    assert not set(state.gone) & set(state.nodes)


def test_runs_of_tokens_are_cut_at_any_place() -> None:
    pieces = (("a", 0, 3), ("b", 5, 7))
    assert [cut(pieces, at) for at in (0, 2, 3, 4, 5)] == [
        ((), (("a", 0, 3), ("b", 5, 7))),
        ((("a", 0, 2),), (("a", 2, 3), ("b", 5, 7))),
        ((("a", 0, 3),), (("b", 5, 7),)),
        ((("a", 0, 3), ("b", 5, 6)), (("b", 6, 7),)),
        ((("a", 0, 3), ("b", 5, 7)), ()),
    ]


def test_the_hash_is_fnv_1a_of_sorted_plain_json() -> None:
    assert fnv1a(b"") == "cbf29ce484222325" and fnv1a(b"a") == "af63dc4c8601ec8c" and fnv1a(b"foobar") == "85944171f73967e8"
    assert pack([1, -1, 256]) == b"\x01\x00\x00\x00\xff\xff\xff\xff\x00\x01\x00\x00"
    assert digest({"b": [1, None, True], "a": "é"}) == fnv1a('{"a":"é","b":[1,null,true]}'.encode())


def test_a_trace_read_from_disk_folds_alike(busy: ev.Trace) -> None:
    lines = [ev.encode(busy.header), *(ev.encode(e) for e in busy)]
    again = ev.Trace.parse(lines)
    assert digest(fold(again.events).canonical()) == digest(fold(busy.events).canonical())
    assert msgspec.json.decode(lines[0]) == msgspec.to_builtins(busy.header)
