"""The player's fold (JavaScript) equals `workbench.replay` (Python): same trace, same position, same hash."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks.make_trace import make
from engine import events as ev
from tests.engine.traffic import PATTERNS
from workbench import export, runner, scenario
from workbench.replay import Replay, digest, fold
from workbench.replicas import traces
from workbench.ui import player

RECORDED = sorted((Path(__file__).parents[2] / "assets" / "traces").glob("*.jsonl"))
MADE = {"single pages": (4000, 60, 1), "pages of 4": (4000, 120, 4), "pages of 16": (3000, 40, 16)}
POSITIONS = 200

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")

DRIVER = """
const fs = require("node:fs");
const job = JSON.parse(fs.readFileSync(0, "utf8"));
(0, eval)(job.script);
const RP = globalThis.RadixPlayer;
(async () => {
  const out = {};
  for (const [form, fleet] of Object.entries({ jsonl: RP.Fleet.parse(job.jsonl), packed: await RP.Fleet.unpack(job.packed) }))
    out[form] = fleet.replicas.map(({ replay }, i) => job.positions[i].map((seq) => RP.digest(replay.at(seq))));
  console.log(JSON.stringify(out));
})();
"""


def positions(trace: ev.Trace, n: int = POSITIONS) -> list[int]:
    """Ends, and random places: half of them at commits, half between."""
    chance = random.Random(len(trace))
    commits = [e.seq for e in trace if e.commit]
    inside = [e.seq for e in trace if not e.commit]
    picked = chance.sample(commits, min(n // 2, len(commits))) + chance.sample(inside, min(n // 2, len(inside)))
    return [-1, 0, len(trace) - 1, *picked]


def check(trace: ev.Trace) -> None:
    """Compare hashes, replica by replica, reading the trace both ways that the player can."""
    parts = traces(trace)
    where = [positions(part) for part in parts]
    jsonl = b"\n".join([ev.encode(trace.header), *(ev.encode(e) for e in trace)]).decode()
    job = {"script": player.sources(core=True), "jsonl": jsonl, "packed": export.pack(trace), "positions": where}
    done = subprocess.run(["node", "-e", DRIVER], input=json.dumps(job), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    got = json.loads(done.stdout)
    for form in ("jsonl", "packed"):
        for part, places, hashes in zip(parts, where, got[form], strict=True):
            replay = Replay(part.events)
            assert hashes == [digest(replay.at(seq).canonical()) for seq in places], form


@needs_node
@pytest.mark.parametrize("name", MADE)
def test_made_traces_fold_alike(name: str) -> None:
    events, live, page_size = MADE[name]
    check(make(events, live, seed=len(name), page_size=page_size))


@needs_node
@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_recorded_traces_fold_alike(path: Path) -> None:
    check(ev.Trace.read(path))


@needs_node
@pytest.mark.parametrize("jump", ["off", "verified", "unverified"])
def test_runs_under_grammars_fold_alike(jump: str) -> None:
    engine = {"executor": "puppet", "pages": 40, "page_size": 2, "reserve_start": 0, "reserve_min": 0, "jump": jump}
    requests = [
        {"tokens": f"A6+B{1 + i % 4}", "max_new_tokens": 30, "at_step": i, "regex": pattern}
        for i, pattern in enumerate([*PATTERNS, None, *PATTERNS[:2]])
    ]
    trace = runner.run(scenario.parse({"name": "grammars", "engine": engine, "requests": requests})).trace
    assert (fold(trace.events).totals["jumped_tokens"] > 0) == (jump != "off")
    check(trace)


@needs_node
@pytest.mark.parametrize("policy", ["write-through", "write-back"])
@pytest.mark.parametrize("page_size", [1, 4])
def test_runs_with_a_host_tier_fold_alike(page_size: int, policy: str) -> None:
    engine = {
        "executor": "puppet", "pages": 64 // page_size, "page_size": page_size, "clock": {"token": 0.1}, "chunk": 9,
        "host_pages": 96 // page_size, "host_policy": policy, "host_bandwidth": 15, "reserve_start": 0, "reserve_min": 0,
    }  # fmt: skip
    heads = ["A20", "B17", "C23", "D12"]
    requests = [
        {"tokens": f"{heads[i * i % 4]}+X{chr(97 + i % 3)}{1 + i % 5}", "max_new_tokens": 4 + i % 7, "at_step": i // 2 * 3}
        for i in range(40)
    ]
    trace = runner.run(scenario.parse({"name": "tiers", "engine": engine, "requests": requests}), check=True).trace
    totals = fold(trace.events).totals
    assert totals["loaded_tokens"] and totals["demoted_tokens"] and totals["evicted_tokens"]
    assert any(isinstance(e, ev.NodeRestored) and e.request is not None for e in trace)
    check(trace)


@needs_node
def test_each_replica_of_a_run_folds_alike() -> None:
    check(runner.run(scenario.load("replicas")).trace)


@needs_node
def test_odd_names_hash_alike() -> None:
    """Keys sort by code point, not by UTF-16 unit; names cannot reach into the player's objects."""
    trace = ev.Trace(ev.Header(pages=8, page_size=2))
    trace.emit(ev.RunStarted, pages=8, page_size=2)
    for name in ("__proto__", "\U0001f600", "\uff21", "é\n\"\\", "10", "9", "\u2028"):
        trace.emit(
            ev.RequestArrived, request=name, prompt=[-1, 2**31 - 1], max_new_tokens=1, arrived=0.0,
            namespace=("salt", None, None),
        )  # fmt: skip
    trace.emit(ev.PageAllocated, pages=[3, 4, 1], owners=["__proto__", "9"], counts=[2, 1])
    trace.commit()
    check(trace)


def test_schema_follows_the_contract() -> None:
    """Every kind is there, with a column type for each field."""
    schema = player.schema()
    assert set(schema) == set(ev.KINDS)
    kinds = {name: column for name, column, _ in schema["node.created"]}
    assert kinds == {
        "node": "int", "parent": "int", "request": "str", "start": "int", "stop": "int", "pages": "ints",
        "namespace": "any",
    }  # fmt: skip
    json.dumps(schema)


def test_packing_is_small_and_repeatable() -> None:
    trace = make(10_000, 400, seed=5)
    assert export.pack(trace) == export.pack(trace)
    assert len(export.pack(trace)) < 100_000 * len(trace) / 10_000
