"""L6's queue of a few lines against the engine's, its check against rules of many kinds, and its charts."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from engine import Plugs
from workbench.figures.waiting import first_tokens, gantt
from workbench.lessons import CheckFailed, Lesson
from workbench.lessons.checks import l6


@pytest.fixture(autouse=True)
def _own_progress(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADIX_PROGRESS", str(tmp_path / "progress.json"))


@pytest.mark.parametrize("tokens", [0, 8, 16, 20, 50, 128, 1000])
def test_the_reference_serves_in_the_engines_order_whatever_ageing_counts(tokens: int) -> None:
    run = Lesson("L6").run(l6.stream(), plugs=Plugs(order=lambda w: -(w.matched + tokens * w.waits)))
    names = ["S", "cold", *(f"H{i + 1}" for i in range(l6.HOT))]
    assert [names[i] for i, _ in l6.served(l6.the_stream(), l6.aged(tokens))] == run.report.order
    bound = -(-l6.HANDBOOK // tokens) if tokens else l6.HOT
    assert l6.overtook(run) == min(bound, l6.HOT)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("policy", ["fcfs", "lpm"])
def test_the_reference_serves_a_queue_as_the_engine_does(seed: int, policy: str) -> None:
    rng = random.Random(seed)
    books = [rng.choice("ABC") for _ in range(12)]
    asks = [l6.Ask(1, book, l6.SHORT, l6.ASKED) for book in books]
    requests = [{"id": f"R{i}", "at_step": 1, "tokens": f"{b}{l6.SHORT}+Q{chr(97 + i)}{l6.ASKED}", "max_new_tokens": 1} for i, b in enumerate(books)]
    engine = {"executor": "puppet", "page_size": l6.SHORT, "pages": 2, "max_running": 1, "policy": policy}
    run = Lesson("L6").run({"name": "queue", "engine": engine, "requests": requests})
    expected = l6.served(asks, l6.lpm if policy == "lpm" else l6.fcfs, 1)
    assert run.report.order == [f"R{i}" for i, _ in expected]
    assert l6.finds(run) == sum(known > 0 for _, known in expected)


@pytest.mark.parametrize("policy", ["fcfs", "lpm"])
def test_the_mean_time_is_the_engines(policy: str) -> None:
    run = Lesson("L6").run("mixed", policy=policy)
    times = [r.ttft for r in run.report.requests if r.id != "S" and r.ttft is not None]
    assert sum(times) / len(times) == pytest.approx(l6.mean_time(l6.lpm if policy == "lpm" else l6.fcfs))


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (None, "give it your function itself"),
        (lambda w: None, "None is no key.*\n.*one whole number"),
        (lambda w: -w.matched / 2, "is no key.*\n.*int"),
        (lambda w: w.age, "AttributeError: 'Waiting' object has no attribute 'age'"),
        (lambda w: -w.matched, "20 hot requests: expected at most 8 of them to go before the cold one, got 20"),
        (lambda w: w.matched + 20 * w.waits, "three|two families|expected at most"),
        (lambda w: -(w.matched + 8 * w.waits), "got 16"),
        (lambda w: w.arrived, "two families in turns"),
        (lambda w: -(w.matched + 1000 * w.waits), "two families in turns"),
    ],
)  # fmt: skip
def test_too_little_ageing_and_too_much_are_told_apart(order: Callable[..., Any], said: str) -> None:
    with pytest.raises(CheckFailed, match=said):
        l6.check_ageing(Lesson("L6"), order)


@pytest.mark.parametrize("tokens", [16, 20, 32, 64])
def test_every_ageing_between_the_two_bounds_passes(tokens: int) -> None:
    assert len(l6.check_ageing(Lesson("L6"), lambda w: -(w.matched + tokens * w.waits))) == 2


def test_a_lane_for_each_request_and_a_mark_for_each_first_token() -> None:
    run = Lesson("L6").run("stream")
    lanes = gantt(run, l6.kind)
    assert {trace.name for trace in lanes.data} == {"waits", "makes A known: is computed", "cold: is computed", "hot: is computed"}
    assert sum(len(trace.y) for trace in lanes.data[1:]) == 22 and "seconds (simulated" in lanes.layout.xaxis.title.text
    cold = next(trace for trace in lanes.data if trace.name.startswith("cold"))
    waits = dict(zip(lanes.data[0].y, lanes.data[0].x, strict=True))
    assert cold.base[0] == pytest.approx(waits["cold"] + next(r.arrived for r in run.report.requests if r.id == "cold"))
    marks = first_tokens({"lpm": run, "again": run}, l6.kind)
    assert sum(len(trace.x) for trace in marks.data) == 44 and len({trace.marker.symbol for trace in marks.data}) == 3
