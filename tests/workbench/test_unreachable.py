"""Blocks whose beginning has left: both folds, the report and explain know them as what they are."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache

import pytest

from engine import events as ev
from tests.engine.traffic import Case, play
from tests.workbench.test_player_fold import check
from workbench.replay import Replay, fold
from workbench.ui import player

HEAD = list(range(1, 17))
ORDERS = ("head-first", "tail-first")


@cache
def run(order: str) -> ev.Trace:
    """Eight pages of four; one opening of sixteen tokens is asked for again and again, and others come between."""
    requests = []
    for i in range(6):
        own = range(100 + 20 * i, 104 + 20 * i) if i % 2 == 0 else range(100 + 20 * i, 114 + 20 * i)
        requests.append({
            "id": f"R{i}", "prompt": [*(HEAD if i % 2 == 0 else []), *own], "max_new_tokens": 2,
            **({"after": f"R{i - 1}"} if i else {"at_step": 1}),
        })  # fmt: skip
    config = {"executor": "puppet", "cache": "blocks", "block_order": order, "page_size": 4, "pages": 8}
    return play(Case(config, requests), fold=True).trace


def lost_at(order: str) -> list[tuple[int, list[int]]]:
    """The unreachable nodes after each event, where that changes."""
    out: list[tuple[int, list[int]]] = []
    replay = Replay()
    for event in run(order):
        replay.append(event)
        lost = [n for n in replay.last.nodes if not replay.last.reachable(n)]
        if not out or out[-1][1] != lost:
            out.append((event.seq, lost))
    return out


def test_only_head_first_leaves_unreachable_blocks() -> None:
    assert lost_at("tail-first") == [(0, [])]
    assert max(len(lost) for _, lost in lost_at("head-first")) > 2


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("order", ORDERS)
def test_both_folds_agree(order: str) -> None:
    check(run(order))


DRIVER = """
const job = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
(0, eval)(job.script);
const RP = globalThis.RadixPlayer;
const trace = RP.parseJsonl(job.jsonl);
const replay = new RP.Replay(trace);
const next = (state) => { const slot = RP.nextToGo(state); return slot < 0 ? null : state.get(slot, RP.N.ID); };
console.log(JSON.stringify(job.before.map((seq) => next(replay.at(seq)))));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("order", ORDERS)
def test_the_player_marks_the_block_that_really_goes_next(order: str) -> None:
    trace = run(order)
    evictions = [e for e in trace if isinstance(e, ev.Eviction)]
    assert len(evictions) > 2
    jsonl = b"\n".join([ev.encode(trace.header), *(ev.encode(e) for e in trace)]).decode()
    job = {"script": player.sources(core=True), "jsonl": jsonl, "before": [e.seq - 1 for e in evictions]}
    done = subprocess.run(["node", "-e", DRIVER], input=json.dumps(job), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == [e.ranking[0].node for e in evictions]


@pytest.mark.parametrize("order", ORDERS)
def test_the_state_alone_gives_the_order_of_the_free_queue(order: str) -> None:
    trace = run(order)
    along = -1 if order == "tail-first" else 1
    for eviction in (e for e in trace if isinstance(e, ev.Eviction)):
        nodes = fold(trace.events[: eviction.seq]).nodes.values()
        queue = sorted((n for n in nodes if not n.locks), key=lambda n: (n.joined, along * n.depth))
        assert [n.id for n in queue][: len(eviction.ranking)] == [r.node for r in eviction.ranking]
