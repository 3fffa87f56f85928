"""Contract 1 on disk: every event survives JSON, a broken trace says which line is broken, the schema is in step."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from engine import events as ev
from workbench import scenario
from workbench.runner import run

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "walkthrough.jsonl"
SCHEMA = ROOT / "assets" / "events.schema.json"


CONTRACT = """
run.started run.ended clock.jumped
request.arrived request.refused request.routed request.matched request.admitted request.first_token
request.remapped request.retracted request.aborted request.finished
queue.ordered request.passed_over
node.created node.split node.grown node.touched node.locked node.unlocked node.trimmed node.evicted
node.demoted node.restored node.pinned eviction
page.allocated page.freed step.planned step.started step.finished token.emitted tokens.scored
grammar.compiled grammar.waiting grammar.masked grammar.jumped grammar.verified grammar.rolled_back
draft.verified
executor.failed invariant.broken
"""


def sample(kind: Any) -> Any:
    """A value of a field's type that is not its default."""
    match kind:
        case msgspec.inspect.IntType():
            return 7
        case msgspec.inspect.FloatType():
            return 0.25
        case msgspec.inspect.BoolType():
            return True
        case msgspec.inspect.StrType():
            return 'a "quoted" \u00e9\u2028 word'
        case msgspec.inspect.NoneType():
            return None
        case msgspec.inspect.UnionType():
            return sample(next(t for t in kind.types if not isinstance(t, msgspec.inspect.NoneType)))
        case msgspec.inspect.ListType():
            return [sample(kind.item_type)]
        case msgspec.inspect.TupleType():
            return tuple(sample(t) for t in kind.item_types)
        case msgspec.inspect.StructType():
            return kind.cls(**{f.name: sample(f.type) for f in kind.fields})
    raise AssertionError(f"no sample for {kind}")


@pytest.mark.parametrize("kind", ev.KINDS)
def test_an_event_of_every_kind_round_trips_through_json(kind: str) -> None:
    event = sample(msgspec.inspect.type_info(ev.KINDS[kind]))
    line = ev.encode(event)
    assert json.loads(line)["kind"] == kind and b"\n" not in line
    assert msgspec.json.decode(line, type=ev.AnyEvent) == event


@pytest.mark.parametrize("kind", ev.KINDS)
def test_an_event_of_every_kind_fits_the_schema(kind: str) -> None:
    event = json.loads(ev.encode(sample(msgspec.inspect.type_info(ev.KINDS[kind]))))
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert not list(validator.iter_errors(event))
    assert list(validator.iter_errors({**event, "seq": "seven"}))


def test_a_recorded_trace_fits_the_schema_header_and_all() -> None:
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    for line in lines():
        assert not list(validator.iter_errors(json.loads(line))), line


def test_every_event_kind_of_the_contract_is_there() -> None:
    assert set(ev.KINDS) == set(CONTRACT.split())


def test_the_schema_file_is_what_its_command_prints() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "engine.events"], cwd=ROOT, capture_output=True, text=True, encoding="utf-8", timeout=60
    )
    assert done.stdout == SCHEMA.read_text(encoding="utf-8"), "run: python -m engine.events > assets/events.schema.json"
    jsonschema.Draft202012Validator.check_schema(json.loads(done.stdout))


# --- a file that is not what it should be ------------------------------------------------------


def lines() -> list[bytes]:
    return GOLDEN.read_bytes().splitlines(keepends=True)


BROKEN: dict[str, tuple[Any, str]] = {
    "an empty file": (lambda rows: [], "line 1: the file is empty"),
    "no header": (lambda rows: rows[1:], "line 1: not a trace header (schema_version is missing)"),
    "a header that is a list": (lambda rows: [b"[1]\n", *rows[1:]], "line 1: not a trace header"),
    "a header that is no JSON": (lambda rows: [b"header\n", *rows[1:]], "line 1: not a trace header"),
    "a header in another encoding": (lambda rows: [b"\xff\xfe{\n", *rows[1:]], "line 1: not a trace header"),
    "a version from the future": (
        lambda rows: [rows[0].replace(b'"schema_version":1', b'"schema_version":99'), *rows[1:]],
        "line 1: schema_version is 99; this version reads 1 to 1",
    ),
    "version 0": (lambda rows: [rows[0].replace(b'"schema_version":1', b'"schema_version":0'), *rows[1:]], "schema_version is 0"),
    "a header alone": (lambda rows: rows[:1], "line 2: the first event must be run.started"),
    "no run.started": (
        lambda rows: [rows[0], rows[2].replace(b'"seq":1', b'"seq":0')],
        "line 2: the first event must be run.started",
    ),
    "a line that is no JSON": (lambda rows: [*rows[:5], b"{oops\n", *rows[6:]], "line 6: "),
    "a line cut off": (lambda rows: [*rows[:30], rows[30][:-20]], "line 31: "),
    "bytes that are no text": (lambda rows: [*rows[:4], rows[4].replace(b"R1", b"\xff\xfe"), *rows[5:]], "line 5: "),
    "an unknown kind": (lambda rows: [*rows[:3], b'{"kind":"request.lost","seq":2,"t":0,"step":1}\n'], "line 4: "),
    "a missing field": (lambda rows: [*rows[:3], b'{"kind":"request.refused","seq":2,"t":0,"step":1}\n'], "line 4: "),
    "a line left out": (lambda rows: [*rows[:9], *rows[10:]], "line 10: seq is 9, expected 8"),
    "a line twice": (lambda rows: [*rows[:9], *rows[8:]], "line 10: seq is 7, expected 8"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_trace_is_refused_with_the_line_that_is_wrong(what: str, tmp_path: Path) -> None:
    breaking, says = BROKEN[what]
    path = tmp_path / "broken.jsonl"
    path.write_bytes(b"".join(breaking(lines())))
    with pytest.raises(ev.TraceError) as caught:
        ev.Trace.read(path)
    assert says in str(caught.value)
    assert str(caught.value).startswith("line ")


def test_a_trace_without_its_end_can_still_be_read() -> None:
    assert len(ev.Trace.parse(lines()[:40])) == 39


def test_reading_and_writing_gives_back_the_same_bytes(tmp_path: Path) -> None:
    ev.Trace.read(GOLDEN).write(tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == GOLDEN.read_bytes()


# --- the trace itself --------------------------------------------------------------------------


def test_a_trace_that_nobody_hears_emits_nothing() -> None:
    trace = ev.Trace(keep=False)
    trace.emit(ev.StepStarted)
    trace.commit()
    assert not trace.on and not len(trace)


def test_a_sink_gets_each_operation_whole_and_its_last_event_closes_it() -> None:
    got: list[list[ev.Event]] = []
    trace = ev.Trace(keep=False, sinks=[lambda batch: got.append(list(batch))])
    trace.emit(ev.StepStarted)
    trace.emit(ev.RunEnded)
    assert got == []
    trace.commit()
    trace.commit()
    assert [[(e.seq, e.commit) for e in batch] for batch in got] == [[(0, False), (1, True)]]


def test_a_fresh_walkthrough_is_the_golden_trace() -> None:
    fresh = run(scenario.load("walkthrough"), check=True).trace
    golden = ev.Trace.read(GOLDEN)
    assert [ev.encode(e).decode() for e in fresh] == [ev.encode(e).decode() for e in golden]
    fresh.header.versions = golden.header.versions
    assert fresh.header == golden.header


HEAVY = ("torch", "transformers", "gradio", "plotly", "numpy", "pydantic")


def test_reading_events_needs_neither_torch_nor_a_page() -> None:
    code = f"import sys, engine.events; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_puppet_run_needs_neither_torch_nor_a_page() -> None:
    code = (
        "import sys; from workbench import scenario; from workbench.runner import run; "
        "run(scenario.load('walkthrough')); "
        "print([m for m in ('torch', 'transformers', 'gradio', 'plotly') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
