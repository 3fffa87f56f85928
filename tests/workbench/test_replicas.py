"""A run of several replicas, read replica by replica: its parts, its moments, and every why."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engine import events as ev
from workbench import cli, runner, scenario
from workbench.decoding import decode
from workbench.explain import Explainer, ExplainError, RunExplainer
from workbench.explain.saved import Opening, saved
from workbench.figures.ttft import pool_fill
from workbench.recording import as_scenario
from workbench.replicas import Parts, split, trace_of, traces
from workbench.scenario import ScenarioError
from workbench.ui import asking
from workbench.ui.runs import Run


@cache
def ran() -> runner.Run:
    return runner.run(scenario.load("replicas"))


def told_by(replica: int) -> list[int]:
    """The numbers, in the run, of one replica's events."""
    return [e.seq for e in ran().trace if e.replica == replica]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    ran().trace.write(path)
    return path


def test_the_parts_are_all_of_the_run_and_each_counts_from_0() -> None:
    parts = split(ran().trace.events, 3)
    for replica, part in enumerate(parts):
        assert [e.seq for e in part] == list(range(len(part)))
        assert [(e.t, type(e)) for e in part] == [(e.t, type(e)) for e in ran().trace if e.replica == replica]
        assert all(e.chosen == replica for e in part if isinstance(e, ev.RequestRouted))
    assert [one.events for one in traces(ran().trace)] == parts and trace_of(ran().trace, 2).events == parts[2]
    with pytest.raises(ValueError, match="replica: must be 0 to 2; got 3"):
        trace_of(ran().trace, 3)


def test_a_moment_of_the_run_is_a_place_in_each_part() -> None:
    parts = Parts(3)
    for event in ran().trace:
        parts.take(event)
    for moment in (0, 1, 500, len(ran().trace) - 1):
        assert parts.told_by(moment) == ran().trace.events[moment].replica
        for replica in range(3):
            assert parts.at(moment, replica) == sum(seq <= moment for seq in told_by(replica)) - 1


def test_why_is_what_the_replica_alone_says_of_itself() -> None:
    run = Run.of_trace(ran().trace, "uploaded")
    for replica in range(3):
        alone = Explainer(trace_of(ran().trace, replica))
        seq = len(alone) // 2
        assert run.why(seq, {}, replica) == alone.event(seq)
        assert run.why(told_by(replica)[seq], {}) == alone.event(seq)
        request = next(e.request for e in trace_of(ran().trace, replica) if isinstance(e, ev.RequestArrived))
        assert run.why(len(alone) - 1, {"request": request}, replica) == alone.request(len(alone) - 1, request)
        # Whoever asks about a request at a moment of the whole run need not know where it went.
        at = sum(seq <= 1500 for seq in told_by(replica)) - 1
        assert run.why(1500, {"request": request}) == alone.request(at, request)
    with pytest.raises(ExplainError, match="replica: must be 0 to 2; got -1"):
        run.why(0, {}, -1)


def test_why_on_the_command_line(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def why(*argv: str) -> tuple[int, str, str]:
        code = cli.main(["why", str(written), *argv])
        out = capsys.readouterr()
        return code, out.out, out.err

    explainer = RunExplainer(ran().trace.header, ran().trace)
    code, out, err = why("--replica", "1", "--seq", "300")
    assert (code, err) == (0, "replica 1, its event 300\n") and out.startswith(explainer.replicas[1].event(300).headline)
    assert why("--seq", "1000")[1].startswith(explainer.ask(1000, {}).headline)
    home = next(e for e in ran().trace if isinstance(e, ev.RequestRouted) and e.request == "R17").chosen
    code, out, err = why("--request", "R17")
    assert code == 0 and err.startswith(f"replica {home}, ") and f"It went to replica {home}:" in out
    assert why("--replica", "7") == (2, "", "error: replica: must be 0 to 2; got 7\n")
    assert cli.main(["run", str(written)]) == 2
    assert "a trace of 3 replicas cannot be replayed" in capsys.readouterr().err


def test_a_saved_page_carries_the_answers_of_each_replica_at_its_moment() -> None:
    seq, request = 400, next(e.request for e in trace_of(ran().trace, 1) if isinstance(e, ev.RequestArrived))
    got = saved(ran().trace, Opening(seq, request=request, replica=1))
    moment = told_by(1)[seq]
    for replica, one in enumerate(got):
        alone = Explainer(trace_of(ran().trace, replica))
        at = sum(n <= moment for n in told_by(replica)) - 1
        assert one.events == [(at, alone.event(at))] and list(one.requests) == ([request] if replica == 1 else [])
    with pytest.raises(ExplainError, match="replica: must be 0 to 2; got 3"):
        saved(ran().trace, Opening(seq, replica=3))


def test_what_else_reads_a_trace_reads_one_of_replicas(written: Path) -> None:
    assert asking.read_trace(written).events == ran().trace.events
    outputs = {r.id: r.output_ids for r in ran().report.requests}
    for request in ("R1", "R30", "R60"):
        assert [t.id for t in decode(ran().trace, request).tokens] == outputs[request]
    fills = [share for _, share in pool_fill(ran().trace)]
    assert 0.9 < max(fills) <= 1  # all pages of all replicas are the whole
    with pytest.raises(ScenarioError, match="cannot be replayed"):
        as_scenario(ran().trace)


def test_arms_with_other_routers_part_where_the_first_request_goes_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    arms = ["--arm", "aware:engine.router=cache-aware", "--arm", "turn:engine.router=round-robin", "--json"]
    assert cli.main(["compare", "replicas", *arms]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    routed = [{e.request: e.chosen for e in runner.run(scenario.load("replicas", {"engine.router": r})).trace if isinstance(e, ev.RequestRouted)}
              for r in ("cache-aware", "round-robin")]  # fmt: skip
    apart = next(r for r in routed[0] if routed[0][r] != routed[1][r])
    assert found["first_decision"]["why"] == ", against: ".join(f"{apart} goes to replica {of[apart]}" for of in routed)


def test_kv_that_travelled_is_not_told_as_work_that_was_spared() -> None:
    done = runner.run(scenario.load("prefill-decode"), check=True)
    totals = done.report.totals
    moved = sum(e.transferred for e in done.trace if isinstance(e, ev.RequestRouted))
    assert totals.transferred_tokens == moved > 0 and "spared nobody computing them" in totals.transfer
    explainer = RunExplainer(done.trace.header, done.trace)
    over = {e.replica: explainer.ask(e.seq, {}) for e in done.trace if isinstance(e, ev.RunEnded)}
    assert not any("spared" in line for line in over[0].detail)
    assert over[1].detail[0] == f"The KV of {moved:,} tokens came here from where they were prefilled: found, but not spared."
    assert ran().report.totals.transfer == ""
