"""The commands: what they print where, and how they exit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine import events as ev
from workbench import cli

ROOT = Path(__file__).parents[2]


def call(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr of one command."""
    code = cli.main(list(argv))
    out = capsys.readouterr()
    return code, out.out, out.err


def test_run_prints_a_row_a_request_and_exits_0(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "run", "walkthrough", "--check")
    assert (code, err) == (0, "")
    rows = out.splitlines()
    assert rows[0].split() == ["request", "status", "prompt", "cached", "computed", "output", "TTFT"]
    assert rows[2].split() == ["R2", "finished,", "length", "8", "6", "2", "2", "0.300", "s", "sim."]
    assert "13 of 24 prompt tokens reused (54.2%), 6 steps" in out and rows[-1] == "invariants: ok"


def test_run_json_is_one_document_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "run", "walkthrough", "--json", "--check")
    document = json.loads(out)
    assert code == 0 and out.endswith("}\n")
    assert set(document) == {"scenario", "header", "invariants", "requests", "order", "totals", "pool", "tree", "replicas"}
    assert document["invariants"] == "ok" and [r["cached_tokens"] for r in document["requests"]] == [0, 6, 7]


def test_set_changes_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "run", "walkthrough", "--json", "--set", "engine.cache=off", "--set", "engine.pages=20")
    document = json.loads(out)
    assert [r["cached_tokens"] for r in document["requests"]] == [0, 0, 0] and document["pool"]["pages"] == 20


def test_trace_writes_a_trace_that_can_be_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    assert call(capsys, "run", "walkthrough", "--trace", str(path))[0] == 0
    trace = ev.Trace.read(path)
    assert trace.header.scenario == "walkthrough" and isinstance(trace.events[-1], ev.RunEnded)


def test_a_recorded_trace_runs_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    call(capsys, "run", "walkthrough", "--trace", str(path))
    code, out, _ = call(capsys, "run", str(path), "--check", "--json")
    document = json.loads(out)
    assert code == 0 and document["header"]["executor"] == "replay"
    assert [(r["cached_tokens"], r["output_ids"]) for r in document["requests"]] == [(0, [901, 902]), (6, [903, 904]), (7, [905, 906])]


HANDBOOK = str(ROOT / "assets" / "traces" / "handbook.jsonl")


def test_a_replay_tells_the_times_that_were_measured_and_keeps_the_texts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    recorded = ev.Trace.read(HANDBOOK)
    first = next(e for e in recorded if isinstance(e, ev.RequestFirstToken))
    path = tmp_path / "again.jsonl"
    code, out, _ = call(capsys, "run", HANDBOOK, "--trace", str(path), "--check")
    assert code == 0 and out.splitlines()[1].endswith(f" {first.ttft:.3f} s")
    assert "sim." not in out and "The times are the recording's (SmolLM2-135M-Instruct (Q4_1, dequantised) · cpu · float32)." in out
    assert "invariants: ok" in out
    again = ev.Trace.read(path)
    assert again.header.clock == "virtual" and again.header.texts == recorded.header.texts
    document = json.loads(call(capsys, "run", HANDBOOK, "--json")[1])
    assert document["requests"][0]["output_text"].startswith("In the first year")


def test_a_replay_with_another_knob_says_that_its_times_are_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "run", HANDBOOK, "--set", "engine.cache=off")
    assert "1.000 s sim." in out and "served otherwise than it was recorded. Times are simulated, not measured: a step counts 1 s" in out
    code, out, _ = call(capsys, "compare", HANDBOOK, "--arm", "on:engine.cache=radix", "--arm", "off:engine.cache=off")
    assert code == 0 and "off: 4,467 prompt tokens computed" in out and "Times are simulated, not measured" in out


def test_run_tells_what_the_host_tier_did_where_there_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "host-tier"]) == 0
    said = capsys.readouterr().out
    assert "host tier: 272 tokens left the device for it, 64 were loaded back, 84 pages in use" in said
    assert cli.main(["run", "host-tier", "--set", "engine.cache=off"]) == 0
    assert "host tier" not in capsys.readouterr().out


def test_compare_tells_the_arms_apart(capsys: pytest.CaptureFixture[str]) -> None:
    arms = ("--arm", "on:engine.cache=radix", "--arm", "off:engine.cache=off")
    code, out, err = call(capsys, "compare", "walkthrough", *arms)
    assert code == 0 and "R2: 0.300 s sim. against 0.900 s sim." in out and "outputs: identical" in out
    assert err.splitlines() == ["arm on, run 1 of 1", "arm off, run 1 of 1"]
    code, out, _ = call(capsys, "compare", "walkthrough", *arms, "--json", "--repeats", "2", "--check")
    document = json.loads(out)
    assert code == 0 and document["order"] == [["on", "off"], ["off", "on"]]
    assert [a["report"]["invariants"] for a in document["arms"]] == ["ok", "ok"]


BAD: list[tuple[list[str], str]] = [
    (["run", "nowhere"], "'nowhere' is neither a file nor a preset"),
    (["run", "nowhere.yaml"], "nowhere.yaml: no such file"),
    (["run", "nowhere.jsonl"], "nowhere.jsonl"),
    (["run", "walkthrough", "--set", "engine.hardware=h100"], "engine.hardware: must be measured (this machine, calibrated) or one of h100-"),
    (["run", "walkthrough", "--set", "engine.cash=off"], "engine.cash: unknown key"),
    (["run", "walkthrough", "--set", "engine.cache"], "--set engine.cache: write KEY=VALUE"),
    (["run", HANDBOOK, "--model", "embedded"], "--model: a recorded trace is replayed without a model"),
    (["compare", "walkthrough", "--arm", "on:"], "at least two arms are needed"),
    (["compare", "walkthrough", "--arm", "on", "--arm", "off:engine.cache=off"], "--arm on: write NAME:KEY=VALUE"),
    (["compare", "walkthrough", "--arm", "a:", "--arm", "b:", "--repeats", "0"], "--repeats: must be 1 or more; got 0"),
]


@pytest.mark.parametrize(("argv", "says"), BAD, ids=lambda v: " ".join(v[:4]) if isinstance(v, list) else "")
def test_bad_input_exits_2_with_one_line(capsys: pytest.CaptureFixture[str], argv: list[str], says: str) -> None:
    code, out, err = call(capsys, *argv)
    assert (code, out) == (2, "")
    assert err.startswith("error: ") and says in err and err.count("\n") == 1


def test_a_trace_that_cannot_be_read_exits_2_and_names_the_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl"
    path.write_bytes((ROOT / "tests" / "golden" / "walkthrough.jsonl").read_bytes()[:5000])
    for argv in (["run", str(path)], ["export", str(path), str(tmp_path / "out.html")]):
        code, _, err = call(capsys, *argv)
        assert code == 2 and "line " in err
    assert not (tmp_path / "out.html").exists()


@pytest.mark.parametrize("argv", [[], ["fly"], ["run"], ["run", "walkthrough", "--fast"]])
def test_a_command_that_does_not_exist_exits_2(argv: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(argv)
    assert caught.value.code == 2


@pytest.mark.parametrize("command", [["run", "walkthrough"], ["compare", "walkthrough", "--arm", "a:", "--arm", "b:"]])
def test_a_broken_invariant_exits_1_and_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setattr("engine.cache.radix.RadixCache.release", lambda *_: None)
    code, out, _ = call(capsys, *command, "--check", "--json")
    document = json.loads(out)
    told = document["invariants"] if "invariants" in document else document["arms"][0]["report"]["invariants"]
    assert code == 1 and "running requests hold 0" in told[0]


def test_a_wrong_page_exits_1(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.cache.base import Match

    right = Match.pages.fget
    monkeypatch.setattr(Match, "pages", property(lambda self: right(self)[::-1]))  # type: ignore[misc]
    code, out, _ = call(capsys, "run", "walkthrough", "--check")
    assert code == 1 and "WrongSlot" in out


def test_a_stopped_command_exits_130(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "run", interrupted)
    assert call(capsys, "run", "walkthrough") == (130, "", "stopped\n")


def test_the_module_runs_as_a_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "workbench", "run", "nowhere"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith("error: 'nowhere'")
