"""The picture's state is the engine's: hashes of the player's fold in a real browser against Python's."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.make_trace import make
from engine import events as ev
from tests.engine.traffic import PATTERNS
from workbench import export, runner, scenario
from workbench.replay import Replay, digest
from workbench.ui import player

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser-2")]

ROOT = Path(__file__).parents[2]
RECORDED = sorted([*(ROOT / "assets" / "traces").glob("*.jsonl"), *(ROOT / "tests" / "golden").glob("*.jsonl")])
POSITIONS = 200


def puppet() -> ev.Trace:
    """A run of the real engine under pressure: shared starts, evictions, retractions, an abort, a failed pass."""
    chance = random.Random(4)
    requests: list[dict[str, Any]] = []
    for i in range(60):
        name = chance.choice("ABCD")
        requests.append(
            {
                "tokens": f"{name}{chance.randint(6, 20)}+{chr(ord('E') + i % 20)}{chance.randint(1, 6)}",
                "max_new_tokens": chance.choice([0, 4, 9, 24]), "at_step": i * 2, "ignore_eos": i % 4 > 0,
                **({"salt": "tenant"} if i % 9 == 0 else {}),
                **({"abort_at_step": i * 2 + 3} if i % 11 == 0 else {}),
                **({"fail_at_step": i * 2 + 2} if i == 25 else {}),
                **({"regex": chance.choice(PATTERNS)} if i % 4 == 0 else {}),
            }
        )  # fmt: skip
    engine = {"executor": "puppet", "pages": 48, "page_size": 2, "chunk": 12, "policy": "lpm", "reserve_start": 0, "reserve_min": 0}
    engine["jump"] = "unverified"  # it spells answers anew
    return runner.run(scenario.parse({"name": "pressure", "engine": engine, "requests": requests})).trace


def positions(trace: ev.Trace) -> list[int]:
    chance = random.Random(len(trace))
    commits = [e.seq for e in trace if e.commit]
    inside = [e.seq for e in trace if not e.commit]
    half = POSITIONS // 2
    return chance.sample(commits, min(half, len(commits))) + chance.sample(inside, min(half, len(inside)))


TRACES: dict[str, Callable[[], ev.Trace]] = {
    "puppet under pressure": puppet,
    "made, single pages": lambda: make(3000, 80, seed=11),
    "made, pages of 16": lambda: make(3000, 40, seed=12, page_size=16),
    **{path.stem: (lambda path=path: ev.Trace.read(path)) for path in RECORDED},
}


@pytest.mark.parametrize("name", TRACES)
def test_fold_equals_python(name: str, open_page: Callable[..., Any]) -> None:
    trace = TRACES[name]()
    where = positions(trace)
    page = open_page().page
    page.set_content("<!doctype html><title>fold</title>")
    page.add_script_tag(content=player.sources())
    got = page.evaluate(
        """async ([packed, where]) => {
          const replay = (await RadixPlayer.Fleet.unpack(packed)).replicas[0].replay;
          return where.map((seq) => RadixPlayer.digest(replay.at(seq)));
        }""",
        [export.pack(trace), where],
    )
    replay = Replay(trace.events)
    want = [digest(replay.at(seq).canonical()) for seq in where]
    assert dict(zip(where, got, strict=True)) == dict(zip(where, want, strict=True))


def test_the_pressure_is_real() -> None:
    """The puppet's trace has what it was made for."""
    kinds = {type(e) for e in puppet()}
    assert {ev.Eviction, ev.NodeSplit, ev.NodeEvicted, ev.RequestRetracted, ev.RequestAborted, ev.ExecutorFailed} <= kinds
