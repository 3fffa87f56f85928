"""Simulated machines on the bench: from the command line, in comparisons, and named wherever a simulated time stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine import events as ev
from engine.config import EngineConfig
from engine.events import Header
from workbench import cli, experiments, times
from workbench import scenario as scenarios
from workbench.compare import compare
from workbench.experiments import Bench, groups
from workbench.export import columns
from workbench.figures.paired import paired_dots
from workbench.figures.ttft import ttft_pairs
from workbench.runner import run
from workbench.ui.compared import words_of

CARD = Header(hardware={"name": "H100 SXM", "model": "Llama-3.1-8B", "source": "a data sheet", "simulated": "yes"})
SMALL: dict[str, Any] = {
    "name": "small", "engine": {"executor": "cost", "hardware": "h100-llama-3.1-8b", "pages": 64, "page_size": 16},
    "requests": [{"id": f"R{i}", "tokens": f"A200+B{i}", "max_new_tokens": 3, **({"after": f"R{i - 1}"} if i > 1 else {})} for i in (1, 2)],
}  # fmt: skip


def test_whose_seconds_they_are_is_said_in_words() -> None:
    assert times.simulated(CARD) == "simulated for H100 SXM" and times.simulated(Header()) == "simulated"
    assert times.simulated(Header(clock="wall")) is None and times.machine(Header()) is None
    assert times.machine(CARD) == "Times are simulated: what a roofline says of H100 SXM with Llama-3.1-8B (a data sheet)."


def test_only_a_calibrated_machine_needs_the_model() -> None:
    configs = [EngineConfig(executor=e) for e in ("model", "cost", "puppet")] + [EngineConfig(executor="cost", hardware="l4-llama-3.1-8b")]
    assert [times.uses_model(c) for c in configs] == [True, True, False, False]


def test_a_preset_on_a_simulated_card_runs_from_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace = tmp_path / "out.jsonl"
    assert cli.main(["run", "h100-burst", "--set", "workload.per_group=4", "--trace", str(trace)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[-1].startswith("Times are simulated: what a roofline says of H100 SXM with Llama-3.1-8B (NVIDIA")
    header = ev.Trace.read(trace).header
    assert header.hardware["simulated"] == "yes" and header.rates["kv_bytes"] == 131_072
    assert columns(ev.Trace.read(trace))["header"]["device"] == "H100 SXM, simulated"  # what a saved page shows


def test_a_comparison_names_the_machine_in_its_words_its_figures_and_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    result, _ = compare(scenarios.parse(SMALL), [("on", {}), ("off", {"engine.cache": "off"})])
    assert result.outputs_equal and ttft_pairs(result)["simulated"] == "simulated for H100 SXM"
    assert paired_dots(result).layout.xaxis.title.text == "time to first token, seconds (simulated for H100 SXM)"
    assert words_of(result).count("what a roofline says of H100 SXM") == 1
    off = result.arms[1].report.requests
    assert [r.cached_tokens for r in result.arms[0].report.requests] == [0, 192] and off[0].ttft < off[1].ttft


def test_calibrate_prints_every_pass_and_the_roofline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import engine
    from engine.calibration import Calibration, Timed
    from engine.hardware import PROFILES

    made = Calibration(1, PROFILES["m4-qwen2.5-1.5b"], "mps", 4, "2026-01-02", [Timed(8, 1024, 1, 0.1, 0.11)])
    monkeypatch.setattr(engine, "calibrate", lambda model, **rest: made)
    assert cli.main(["calibrate"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[1].split() == ["8", "1,024", "1", "100.0", "ms", "110.0", "ms", "+10", "%"]
    assert "3,763.2 GFLOP/s and 120.0 GB/s" in out
    assert cli.main(["calibrate", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["profile"]["shape"]["layers"] == 28


def test_a_measured_machine_is_calibrated_before_a_run_that_simulates_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import engine

    asked: list[Any] = []

    def calibrated(model: str, **rest: Any) -> None:
        asked.append((model, rest["device"], rest["dtype"]))
        rest["progress"]("calibrating", 0.5)

    monkeypatch.setattr(engine, "calibrated", calibrated)
    cli._calibrated(scenarios.parse(SMALL | {"engine": {"executor": "cost", "pages": 64}}))
    assert asked == [("embedded", "auto", "auto")] and "calibrating 50%" in capsys.readouterr().err
    cli._calibrated(scenarios.parse(SMALL))
    assert len(asked) == 1


# --- the experiment `groups` -------------------------------------------------------------------


def test_groups_computes_every_system_prompt_once_on_the_simulated_card() -> None:
    bench = Bench(quick=True)
    on = bench.run(groups.simulated(True), "on")
    off = bench.run(groups.simulated(True), "off", cache="off", in_batch="off")
    assert on.report.totals.computed_tokens == 4 * 4096 + 16 * 128 == groups.once(on)
    assert off.report.totals.computed_tokens == 16 * (4096 + 128) and on.report.invariants == "ok"
    rows = groups.rows_of(on, off, "L4", "simulated", None, True)
    assert [r.published for r in rows] == [None, None, 479, 14_706, None]
    assert all(r.agrees is None for r in rows if r.published)  # no agreement is asserted with these
    assert all(r.kind == "simulated" for r in rows) and rows[0].agrees


def test_the_traffic_scaled_to_this_machine_shares_as_the_full_one_does() -> None:
    data = groups.traffic({"executor": "puppet"}, **groups.QUICK_HERE)
    on = run(scenarios.parse(data), check=True)
    assert on.report.invariants == "ok" and on.report.totals.evictions == 0
    assert on.report.totals.computed_tokens == groups.once(on) == 4 * 96 + 8 * 16
    full = scenarios.parse(groups.scaled(False))
    assert len(full.requests) == 24 and full.engine.executor == "model"
    assert len({tuple((r.tokens or [])[:512]) for r in full.requests}) == 4


def test_the_full_size_is_ten_times_sooner_with_the_cache() -> None:
    bench = Bench()
    on = bench.run(groups.simulated(False), "on")
    off = bench.run(groups.simulated(False), "off", cache="off", in_batch="off")
    ratio = groups.times_sooner(on.report, off.report)
    assert ratio is not None and ratio >= groups.LEAST  # simulated: the same on every machine


@pytest.mark.model
def test_groups_runs_on_the_card_and_on_the_model(embedded: Any) -> None:
    result = experiments.find("groups").carry_out(Bench(quick=True, model=lambda: embedded))
    assert result.failed == [] and {r.kind for r in result.rows} == {"simulated", "measured"}
    assert result.run is not None and result.run.header.hardware["name"] == "L4"
    assert not any(r.published for r in result.rows)  # the quick version is another size
