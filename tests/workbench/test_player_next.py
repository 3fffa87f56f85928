"""The leaf that the player marks as next to go is the one that goes, under every policy that it knows; pins fold alike."""

from __future__ import annotations

import json
import subprocess

import pytest

from engine import events as ev
from engine.config import EVICTIONS
from tests.workbench.test_player_fold import check, needs_node
from workbench.runner import run
from workbench.scenario import parse
from workbench.ui import player

DRIVER = """
const fs = require("node:fs");
const job = JSON.parse(fs.readFileSync(0, "utf8"));
(0, eval)(job.script);
const RP = globalThis.RadixPlayer;
const replay = new RP.Replay(RP.parseJsonl(job.jsonl));
console.log(JSON.stringify(job.positions.map((seq) => {
  const state = replay.at(seq);
  const slot = RP.nextToGo(state);
  return slot < 0 ? null : state.get(slot, RP.N.ID);
})));
"""


def busy(eviction: str, unit: str, **more: object) -> ev.Trace:
    """Shared heads, priorities, hits and pins in a pool that is short."""
    requests = [
        {
            "tokens": f"{'ABCD'[i * i % 4]}{4 + i % 5}+{chr(ord('E') + i % 20)}{2 + i % 4}", "max_new_tokens": 3,
            "at_step": i, "priority": i * i % 3, "pin": 8 if i % 7 == 3 else 0,
        }
        for i in range(50)
    ]  # fmt: skip
    engine = {"pages": 44, "max_running": 3, "eviction": eviction, "eviction_unit": unit, "pin_budget": 0.3} | more
    return run(parse({"engine": engine, "requests": requests}), check=True).trace


@needs_node
@pytest.mark.parametrize("host", [{}, {"host_pages": 60, "host_policy": "write-back"}], ids=["one tier", "two tiers"])
@pytest.mark.parametrize("unit", ["page", "leaf"])
@pytest.mark.parametrize("eviction", EVICTIONS)
def test_what_is_marked_as_next_goes_first(eviction: str, unit: str, host: dict[str, object]) -> None:
    trace = busy(eviction, unit, **host)
    assert any(isinstance(e, ev.NodeDemoted) for e in trace) == bool(host)
    assert any(isinstance(e, ev.NodePinned) for e in trace)
    told = [e for e in trace if isinstance(e, ev.Eviction) and e.ranking]
    assert len(told) > 10
    jsonl = b"\n".join([ev.encode(trace.header), *(ev.encode(e) for e in trace)]).decode()
    job = {"script": player.sources(core=True), "jsonl": jsonl, "positions": [e.seq - 1 for e in told]}
    done = subprocess.run(["node", "-e", DRIVER], input=json.dumps(job), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    marked = json.loads(done.stdout)
    assert marked == [None if eviction == "belady" else e.ranking[0].node for e in told]


@needs_node
def test_a_run_with_pins_folds_alike() -> None:
    check(busy("priority", "page"))
