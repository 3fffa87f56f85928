"""The recorded runs that the page opens on: real, whole, and repeatable without the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine import events as ev
from workbench import presets
from workbench.recording import as_scenario
from workbench.replay import digest, fold
from workbench.runner import run

RECORDED = sorted((presets.assets() / "traces").glob("*.jsonl"))
TIMES = {"t", "arrived", "ttft", "from_t", "to_t", "plan_seconds", "forward_seconds", "sample_seconds", "text"}
"""What a replay cannot know: times, and the text of a run that has no tokenizer."""


def decisions(events: list[ev.Event]) -> list[dict[str, Any]]:
    """The events without times, and without those that only tell of the clock or of probabilities."""
    rows = []
    for event in events:
        if isinstance(event, (ev.ClockJumped, ev.TokenEmitted)):
            continue
        row = msgspec.to_builtins(event)
        rows.append({k: v for k, v in row.items() if k not in TIMES | {"seq", "commit"}})
    return rows


def test_the_page_has_a_run_to_open_on() -> None:
    assert presets.recorded_path("handbook") in RECORDED


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_a_recorded_run_is_a_real_one(path: Path) -> None:
    trace = ev.Trace.read(path)
    assert trace.header.executor == "model" and trace.header.clock == "wall" and trace.header.model
    ids = {i for e in trace.events if isinstance(e, ev.RequestArrived) for i in e.prompt}
    assert {str(i) for i in ids} <= set(trace.header.texts)
    assert isinstance(trace.events[-1], ev.RunEnded) and not trace.events[-1].stopped


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_a_recorded_run_decides_the_same_again_without_the_model(path: Path) -> None:
    trace = ev.Trace.read(path)
    again = run(as_scenario(trace), check=True)
    assert again.report.invariants == "ok"
    assert decisions(again.trace.events) == decisions(trace.events)
    assert digest(fold(again.trace.events).canonical()) == digest(fold(trace.events).canonical())
