"""Workload files that come through the page: recognised by what is in them, bounded, held in memory, known to their own page only."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from workbench import scenario as scenarios
from workbench.presets import assets
from workbench.runner import run
from workbench.scenario import ScenarioError
from workbench.ui import asking, opening, uploads
from workbench.ui.uploads import Uploads, new_name, plain_name
from workbench.workloads import Upload
from workbench.workloads.recognise import recognise

GOLDEN = Path(__file__).parents[1] / "golden" / "walkthrough.jsonl"
OWN = {
    "chats.jsonl": "chat", "agents.jsonl": "agent", "corpus.jsonl": "rag", "mooncake.jsonl": "mooncake", "prompts.txt": "prompts", "requests.jsonl": "requests",
}  # fmt: skip
ASKED, ANSWERED = {"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because."}
TURNS = [{"from": "human", "value": "Why?"}, {"from": "gpt", "value": "Because."}]


@pytest.fixture(autouse=True)
def words(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tokenizer is on this machine: texts become ids by words, soon."""

    def missing(model: str) -> Any:
        raise ValueError(f"{model} is not here")

    monkeypatch.setattr(scenarios, "_tokenizer", missing)


def rows(*found: Any) -> bytes:
    return b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in found)


def opened(path: Path, held: Uploads | None = None) -> tuple[scenarios.Scenario, str, str]:
    """The scenario that a page makes of a file, its text, and what is said of it."""
    held = held or Uploads()
    yaml, said = opening.workload(path, opening.kind_of(path), held)
    scenario = scenarios.parse_text(yaml, uploads=held.get)
    asking.check_size(scenario)
    return scenario, yaml, said


# --- recognition -------------------------------------------------------------------------------


KINDS: dict[str, tuple[bytes, str | None]] = {
    "a trace": (GOLDEN.read_bytes(), "trace"),
    "a trace whose header is gone": (GOLDEN.read_bytes().split(b"\n", 1)[1], "trace"),
    "a scenario": (b"name: x\nrequests:\n- tokens: A4\n", "scenario"),
    "a scenario as JSON": (json.dumps({"requests": [{"tokens": "A4"}]}, indent=1).encode(), "scenario"),
    "a scenario of a workload": (b"workload: {kind: prompts, file: prompts.txt}\n", "scenario"),
    "prompts that speak of requests": (b"requests are many\nWhy: is that so?\n", "prompts"),
    "ShareGPT as a list, written wide": (json.dumps([{"conversations": TURNS}], indent=1).encode(), "chat"),
    "ShareGPT as a list in one line": (json.dumps([{"conversations": TURNS}]).encode(), "chat"),
    "chat JSONL": (rows({"messages": [ASKED, ANSWERED]}), "requests"),
    "request bodies in a wrapper": (rows({"custom_id": "1", "body": {"messages": [ASKED]}}), "requests"),
    "a request with tools": (rows({"model": "m", "messages": [ASKED, {"role": "tool", "content": "7"}]}), "requests"),
    "bare prompts as JSON": (rows({"prompt": "Why?"}), "requests"),
    "a trajectory": (rows({"messages": [ASKED, {"role": "tool", "content": "7"}, ANSWERED]}), "agent"),
    "tau-bench": (json.dumps([{"traj": [ASKED, ANSWERED]}]).encode(), "agent"),
    "SQuAD": (json.dumps({"data": [{"title": "t", "paragraphs": []}]}, indent=1).encode(), "rag"),
    "a byte order mark and junk before": (b"\xef\xbb\xbf" + rows(b"# exported", b"\xff\xfe", {"other": 1}, {"hash_ids": [1]}), "mooncake"),
    "text with a broken line": ("Où?\n".encode("latin-1") + b"Why?\n", "prompts"),
    "JSON of no known kind": (rows({"a": 1}), None),
    "nested without an end": (b"[" * 1_000_000, None),
    "bytes": (bytes(range(256)) * 10, None),
    "UTF-16": ("Why?\nHow?\n".encode("utf-16"), None),
    "nothing": (b" \n\n", None),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_what_a_file_is_shows_in_its_first_records(name: str) -> None:
    content, kind = KINDS[name]
    assert recognise(content) == kind


@pytest.mark.parametrize("name", OWN)
def test_a_file_of_each_kind_becomes_a_scenario_that_runs_with_room_for_all(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"mine{Path(name).suffix}"
    path.write_bytes((assets() / "workloads" / name).read_bytes())
    scenario, yaml, _ = opened(path)
    path.unlink()
    assert scenario.workload is not None and scenario.workload.kind == OWN[name]
    own = scenarios.parse({"workload": {**scenario.workload.model_dump(exclude_unset=True), "file": name}})
    assert [r.tokens for r in scenario.requests] == [r.tokens for r in own.requests]
    report = run(scenario, check=True).report
    assert {r.status for r in report.requests} == {"finished"} and report.totals.evictions == 0
    assert re.search(r"^  file: uploaded:[0-9a-f]{16}-mine\.(jsonl|txt)$", yaml, re.M)


def test_a_name_decides_only_where_the_content_does_not(tmp_path: Path) -> None:
    path = tmp_path / "notes.yaml"
    path.write_bytes(rows({"hash_ids": [1]}))
    assert opening.kind_of(path) == "mooncake"
    path.write_text("Why?\n")
    assert opening.kind_of(path) == "scenario"  # which then says what is wrong with it
    with pytest.raises(ScenarioError, match="neither a scenario, a trace nor a workload"):
        opening.kind_of(path.rename(tmp_path / "notes.jsonl"))


# --- bad lines and bounds ----------------------------------------------------------------------


def test_lines_that_cannot_be_used_are_counted_and_the_first_named_shortly(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    evil = "<img src=x>" * 100_000
    path.write_bytes(rows({"prompt": "Why?"}, b"{", {"prompt": ""}, {"messages": [{"role": evil}]}, {"a": 1}, {"prompt": "How?"}))
    scenario, _, _ = opened(path)
    bad = next(line for line in scenario.told if "could not be used" in line)
    assert bad.startswith("4 of 6 records could not be used: line 2: not readable as JSON; line 3: its prompt is empty; line 4: message 1 is from")
    assert bad.endswith("; …") and len(bad) < 800
    assert [r.label for r in scenario.requests] == ["Why?", "How?"]


def test_a_file_without_a_usable_line_is_one_sentence_and_not_held(tmp_path: Path) -> None:
    path, held = tmp_path / "bad.jsonl", Uploads()
    path.write_bytes(rows({"hash_ids": [1], "input_length": "x"}, {"hash_ids": []}))
    with pytest.raises(ScenarioError, match=r"^bad\.jsonl: no request that can be used; 2 of 2 records could not be used: line 1: ") as refused:
        opened(path, held)
    assert str(tmp_path) not in str(refused.value) and held._held == {}


@pytest.mark.parametrize(("name", "record", "taken"), [
    ("many.txt", b"Why?", "the first 256 of 400 prompts"),  # requests
    ("long.txt", b"why " * 4000, "the first 65 of 400 prompts"),  # 262,144 prompt tokens / 4,000
    ("wordy.jsonl", json.dumps({"prompt": "Why?", "max_tokens": 1000}).encode(), "the first 16 of 400 requests"),  # 16,384 to answer / 1,000
    ("chats.jsonl", json.dumps({"conversations": TURNS * 3}).encode(), "the first 85 of 400 conversations"),  # 256 requests / 3
])  # fmt: skip
def test_as_much_of_a_large_file_is_taken_as_a_page_may_run(name: str, record: bytes, taken: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(rows(*[record] * 400))
    scenario, yaml, said = opened(tmp_path / name)
    number = int(taken.split()[2])
    assert taken in said and f": {number}\n" in yaml
    assert len({r.id.split("-")[0] for r in scenario.requests if r.id}) == number


def test_a_file_whose_first_request_is_too_much_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"why " * 300_000)
    with pytest.raises(ScenarioError, match=r"^a\.txt: the first of its 1 prompts alone asks for more than is served here$"):
        opened(tmp_path / "a.txt")


@pytest.mark.parametrize(("name", "start"), [("big.txt", b"Why?\n"), ("big.jsonl", b'{"prompt": "Why?"}\n'), ("big.json", b"[")])
def test_500_mb_are_refused_by_their_size(name: str, start: bytes, tmp_path: Path) -> None:
    with (tmp_path / name).open("wb") as file:
        file.write(start)
        file.truncate(500_000_000)
    with pytest.raises(ScenarioError, match="the file has 500 MB; a workload of at most 16 MB is taken here"):
        opening.kind_of(tmp_path / name)


# --- who may name what -------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["file", "tools_file"])
@pytest.mark.parametrize("name", [
    "uploaded:0000000000000000-a.jsonl", "uploaded:", "uploaded:../../etc/passwd", "uploaded:/etc/passwd", "/etc/passwd", "../a", "~nobody/a", "a\0b",
])  # fmt: skip
def test_a_page_names_neither_what_it_was_not_told_nor_a_path(name: str, key: str) -> None:
    held = Uploads()
    held.add(new_name("a.jsonl"), Upload("a.jsonl", rows({"messages": [ASKED, ANSWERED]})))
    with pytest.raises(ScenarioError, match=rf"^workload\.{key}: (no upload is held here as|a page cannot name a file)"):
        scenarios.parse({"workload": {"kind": "agent", "file": "agents.jsonl"} | {key: name}}, uploads=held.get)


def test_only_the_server_that_holds_an_upload_runs_its_scenario(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("Why?\n")
    _, yaml, _ = opened(path)
    for rights in ({}, {"uploads": Uploads().get}, {"files": True}):
        with pytest.raises(ScenarioError, match=r"^workload\.file: no upload is held here as 'uploaded:"):
            scenarios.parse_text(yaml, **rights)


def test_a_changed_knob_keeps_the_upload(tmp_path: Path) -> None:
    held, path = Uploads(), tmp_path / "mine.txt"
    path.write_text("Why?\nHow?\n")
    _, yaml, _ = opened(path, held)
    changed = scenarios.retuned(yaml, {"pages": 99}, held.get)
    again = scenarios.parse_text(changed, uploads=held.get)
    assert again.engine.pages == 99 and [r.label for r in again.requests] == ["Why?", "How?"]
    assert "requests:" not in changed and yaml.partition("workload:")[2] == changed.partition("workload:")[2]


@pytest.mark.parametrize(("path", "name"), [
    ("/tmp/a/b.txt", "b.txt"), ("my prompts: 'x'\n.txt", "my-prompts-x-.txt"), ("<img src=x>.txt", "img-src-x-.txt"), ("..", "file"), ("é", "file"),
    ("a" * 500 + ".txt", "a" * 56 + ".txt"),
])  # fmt: skip
def test_a_files_own_name_is_kept_in_plain_characters(path: str, name: str) -> None:
    assert plain_name(path) == name


def test_what_was_not_used_for_long_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "KEPT", 2)
    held = Uploads()
    for name in ("a", "b"):
        held.add(name, Upload(name, b"x" * 30))
    held.get("a")
    held.add("c", Upload("c", b"x"))
    assert [held.get(n) is not None for n in "abc"] == [True, False, True]
    monkeypatch.setattr(uploads, "HELD", 50)
    held.add("d", Upload("d", b"x" * 50))
    assert [held.get(n) is not None for n in "acd"] == [False, False, True]


def test_a_page_cannot_have_a_folder_of_this_machine_read_as_a_model(tmp_path: Path) -> None:
    data = {"engine": {"model": str(tmp_path)}, "workload": {"kind": "prompts", "file": "prompts.txt"}}
    with pytest.raises(ScenarioError, match=r"engine\.model: a scenario that comes from a page names no folder of this machine"):
        scenarios.parse(data)
