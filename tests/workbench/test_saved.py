"""The answers that a saved page carries are the explainer's own, and no more of them than a page can hold."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.make_trace import make
from engine import events as ev
from workbench import runner, scenario
from workbench.explain import Explainer, ExplainError
from workbench.explain.saved import LONGEST, Opening, saved


@cache
def short() -> ev.Trace:
    return runner.run(scenario.load("retraction")).trace


def test_every_event_and_all_that_its_trace_names_is_answered() -> None:
    trace, explainer = short(), Explainer(short())
    (got,) = saved(trace, Opening())
    assert got.whole and got.events == [(i, explainer.event(i)) for i in range(len(trace))]
    assert set(got.requests) == {e.request for e in trace if isinstance(e, ev.RequestArrived)}
    assert set(got.nodes) == {e.node for e in trace if isinstance(e, ev.NodeCreated)} | {e.front for e in trace if isinstance(e, ev.NodeSplit)}
    for id, answers in got.requests.items():
        assert [seq for seq, _ in answers] == sorted({seq for seq, _ in answers}) and answers[-1][0] == len(trace) - 1
        assert {e.seq for e in trace if getattr(e, "request", None) == id} <= {seq for seq, _ in answers}
        assert all(answer == explainer.request(seq, id) for seq, answer in answers)
    for node, answers in got.nodes.items():
        assert answers[-1] == (len(trace) - 1, explainer.node(len(trace) - 1, node))


def test_a_long_run_is_answered_at_its_opening_moment_only() -> None:
    trace = make(LONGEST + 200, 40, seed=3)
    explainer = Explainer(trace)
    arrived = next(e for e in trace if isinstance(e, ev.RequestArrived) and e.seq > 500)
    (got,) = saved(trace, Opening(arrived.seq, request=arrived.request))
    assert not got.whole and got.nodes == {}
    assert got.events == [(arrived.seq, explainer.event(arrived.seq))]
    assert got.requests == {arrived.request: [(arrived.seq, explainer.request(arrived.seq, arrived.request))]}


@pytest.mark.parametrize(
    ("opening", "says"),
    [(Opening(100_000), "seq: must be 0 to"), (Opening(-1), "seq: must be 0 to"), (Opening(3, node=999), "999"), (Opening(3, request="nobody"), "'nobody'")],
)
def test_an_opening_that_the_trace_does_not_hold_is_refused(opening: Opening, says: str) -> None:
    with pytest.raises(ExplainError, match=says):
        saved(short(), opening)


def test_an_order_that_tells_fewer_keys_than_names_ranks_only_those_that_have_one() -> None:
    """Such an order comes from no engine of ours, but a file may hold it."""
    trace = ev.Trace(ev.Header(config={"policy": "lpm"}, pages=8))
    trace.emit(ev.RunStarted, pages=8, page_size=1)
    for id in ("R1", "R2"):
        trace.emit(ev.RequestArrived, request=id, prompt=[1, 2], max_new_tokens=1, arrived=0)
    trace.emit(ev.QueueOrdered, policy="lpm", waiting=2, head=["R1", "R2"], keys=[0])
    trace.commit()
    explainer = Explainer(trace)
    last = len(trace) - 1
    assert "first of two in the queue: longest prefix first" in explainer.request(last, "R1").detail[0]
    assert "the trace tells the first 1 only" in explainer.request(last, "R2").detail[0]
