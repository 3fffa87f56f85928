"""The state by hand: what `Engine.snapshot()` finds and the fold rebuilds, and where the two are comparable."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from engine import events as ev
from engine.snapshot import fnv1a
from tests.engine.lab import Lab, ids
from workbench.replay import digest, fold


def hashed(tokens: list[int]) -> str:
    return fnv1a(struct.pack(f"<{len(tokens)}i", *tokens))


def test_the_state_of_a_small_run_is_what_a_hand_would_write() -> None:
    lab = Lab(pages=12, page_size=2, reserve_start=0.5, reserve_min=0.5)
    lab.ask("R1", "A5", 3, says=[901, 902, 903], namespace=("s", None, None))
    lab.ask("R2", "B2", 9, at_step=2)
    lab.ask("R3", "C30")
    lab.step()
    lab.step()
    lab.ask("R4", "D4")
    tokens = ids("A5")
    assert lab.engine.snapshot() == {
        "queue": ["R4"],
        "requests": {
            "R4": request("waiting", 4, None, None, 0, [], [], 0),
            "R1": request("decode", 5, 0, 5, 5, [901], [2], 1),
            "R2": request("decode", 2, 0, 2, 2, lab.out("R2"), [], 2),
        },
        "nodes": {
            "1": node(0, ["s", None, None], 0, tokens[:4], [0, 1], 1, 3),
            "2": node(0, None, 0, ids("B2"), [3], 1, 6),
        },
        "owners": [1, 1, "R1", 2, *[None] * 8],
        "totals": dict.fromkeys(lab.shadow.state.totals, 0)
        | {"arrived": 4, "refused": 1, "prompt_tokens": 7, "computed_tokens": 7, "output_tokens": 2, "forward_passes": 2, "steps": 2},
    }  # fmt: skip


def request(
    status: str, prompt: int, cached: int | None, computed: int | None, kv: int, output: list[int], pages: list[int], node: int
) -> dict[str, Any]:
    return {
        "status": status, "prompt": prompt, "cached": cached, "computed": computed, "recovered": 0, "recomputed": 0, "kv": kv,
        "output": output, "pages": pages, "node": node, "retractions": 0, "grammar": None,
    }  # fmt: skip


def node(
    parent: int, namespace: list[str | None] | None, depth: int, tokens: list[int], pages: list[int], locks: int, last_used: int
) -> dict[str, Any]:
    return {
        "parent": parent, "namespace": namespace, "run": [depth, len(tokens), hashed(tokens)], "pages": pages, "locks": locks,
        "hits": 0, "last_used": last_used, "pins": 0, "host": [], "tier": "device",
    }  # fmt: skip


def test_each_submit_abort_plan_and_step_ends_with_one_commit() -> None:
    lab = Lab(pages=16)
    lab.ask("R1", "A4", 2)
    lab.ask("R2", "B30")
    lab.ask("R3", "C4", 5)
    lab.step()
    lab.engine.abort("R3")
    lab.run()
    lab.engine.finish()
    closing = [type(e).__name__ for e in lab.trace if e.commit]
    assert closing == [
        "RunStarted", "RequestArrived", "RequestRefused", "RequestArrived",
        "StepPlanned", "NodeLocked", "RequestAborted", "StepPlanned", "RequestFinished", "RunEnded",
    ]  # fmt: skip
    assert [e.seq for e in lab.trace] == list(range(len(lab.trace)))


@pytest.mark.parametrize("change", [
    lambda s: s["queue"].append("R9"), lambda s: s["requests"]["R1"].update(kv=1), lambda s: s["nodes"]["1"].update(locks=9),
    lambda s: s["nodes"]["1"].update(last_used=9), lambda s: s["owners"].reverse(), lambda s: s["totals"].update(steps=9),
    lambda s: s["nodes"]["1"]["run"].__setitem__(2, "0"),
])  # fmt: skip
def test_a_state_that_differs_anywhere_has_another_hash(change: Any) -> None:
    lab = Lab(pages=16)
    lab.ask("R1", "A4", 9)
    lab.step()
    state = lab.engine.snapshot()
    assert digest(state) == digest(fold(lab.trace.events).canonical())
    before = digest(state)
    change(state)
    assert digest(state) != before


def test_between_two_commits_the_fold_goes_on_event_by_event() -> None:
    lab = Lab(pages=16)
    lab.serve("R1", "A4", 2)
    state = fold([])
    for event in lab.trace:
        before = digest(state.canonical())
        state.apply(event)
        silent = (ev.StepPlanned, ev.RequestMatched, ev.RequestFirstToken)
        assert (digest(state.canonical()) == before) is isinstance(event, silent), event
