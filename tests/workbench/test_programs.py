"""The example programs on the embedded model, and the preset that shows a fork."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from engine import events as ev
from workbench import cli, experiments, programs
from workbench import scenario as scenarios
from workbench.experiments import Bench
from workbench.programs import essay_judges, tool_agent
from workbench.replay import fold
from workbench.runner import run


def test_the_essays_judges_hit_all_that_they_share_and_each_gives_a_grade(embedded: Any) -> None:
    short = replace(programs.find("essay-judges"), play=lambda engine: essay_judges.judges.run(engine, essay=essay_judges.ESSAY, words=3))
    done, trace = programs.perform(short, "embedded", embedded, check=True)
    assert set(done.found) == {*essay_judges.CRITERIA, "summary"} and all(done.found.values())
    assert {v.rsplit(" ", 1)[1] for k, v in done.found.items() if k != "summary"} <= {f"{g}." for g in essay_judges.GRADES}
    arrived = [e for e in trace if isinstance(e, ev.RequestArrived)]
    prefix, *judges = (e for e in arrived if e.label == "what 3 branches share" or (e.label or "").startswith("remark"))
    cached = {r.id: r.cached_tokens for r in done.run.requests}
    assert len(prefix.prompt) > 100 and [cached[e.request] for e in judges] == [len(prefix.prompt)] * 3
    grades = [e for e in arrived if e.score_from is not None]
    assert len(grades) == len(essay_judges.CRITERIA) * len(essay_judges.GRADES)
    assert all(cached[e.request] == e.score_from - 1 for e in grades)
    # A recording of it is whole, and fits the contract.
    assert fold(trace.events).totals["finished"] == len(arrived) and done.run.invariants == "ok"


def test_the_agent_writes_arguments_by_their_schema_and_stops_in_time(embedded: Any) -> None:
    example = programs.find("tool-agent")
    done, trace = programs.perform(example, "embedded", embedded, check=True)
    assert done.found["answer"] and 2 <= len(done.found) <= 2 + tool_agent.TURNS
    shaped = [e for e in trace if isinstance(e, ev.RequestArrived) and e.json_schema is not None]
    texts = {e.request: e.text for e in trace if isinstance(e, ev.RequestFinished)}
    assert shaped
    for event in shaped:
        jsonschema.validate(json.loads(texts[event.request] or ""), json.loads(event.json_schema or ""))
    # From turn to turn it computes only what is new.
    assert done.run.totals.cached_tokens > 0.8 * done.run.totals.prompt_tokens


@pytest.mark.parametrize(("tool", "arguments", "result"), [
    ("calculator", '{"left": 7, "operation": "times", "right": 13}', "91"),
    ("calculator", '{"left": 7, "operation": "divided by", "right": 0}', "nothing can be divided by 0"),
    ("opening hours", '{"day": "Thursday"}', "12 hours"),
    ("opening hours", '{"day": "Thu', "the arguments are not whole"),
])  # fmt: skip
def test_the_agents_tools(tool: str, arguments: str, result: str) -> None:
    assert tool_agent._use(tool, arguments) == result


def test_the_command_runs_a_program_and_names_those_there_are(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedded: Any
) -> None:
    monkeypatch.setattr("engine.models.load_model", lambda *args, **kwargs: embedded)
    path = tmp_path / "out.jsonl"
    assert cli.main(["program", "tool-agent", "--json", "--trace", str(path)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {"program", "question", "found", "run"} == set(document) and document["run"]["header"]["scenario"] == "tool-agent"
    assert len([e for e in ev.Trace.read(path) if isinstance(e, ev.RequestArrived)]) == len(document["run"]["requests"])
    assert cli.main(["program", "nowhere"]) == 2
    assert "'nowhere' is no program; there are essay-judges, tool-agent" in capsys.readouterr().err


def test_the_fork_preset_computes_the_essay_once_and_scores_no_more_than_the_grades() -> None:
    done = run(scenarios.load("fork"), check=True)
    report = {r.id: r for r in done.report.requests}
    assert done.report.invariants == "ok" and sum(r.computed_tokens or 0 for r in report.values()) == 160 + 3 * 12 + 6 * 3 + 24
    planned = next(e for e in done.trace if isinstance(e, ev.StepPlanned) and e.prefills == 3)
    assert planned.members == ["argument", "facts", "style"]
    scored = [e for e in done.trace if isinstance(e, ev.TokensScored)]
    assert len(scored) == 6 and all(e.start == 178 and len(e.logprobs) == 2 for e in scored)


@pytest.mark.slow  # the same fork is among the engine's own tests
def test_the_language_experiment_holds_on_the_embedded_model_too(embedded: Any) -> None:
    result = experiments.find("language").carry_out(Bench(quick=True, model=lambda: embedded))
    exact = {row.label: row for row in result.rows if row.agrees is not None}
    assert result.failed == [] and len(exact) == 5
    assert {label.split(":")[0] for label in exact} == {"the preset", "puppet, pages of 1", "puppet, pages of 16", "model, pages of 1", "model, pages of 16"}
    apart = [row.ours for row in result.rows if "not forked" in row.label]
    assert apart == [0] * 4
