"""Workloads from files: what each format holds becomes requests; what cannot be used is counted and named, and nothing else is lost."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

import pytest

from workbench.runner import run
from workbench.scenario import ScenarioError, parse
from workbench.workloads import Maker, Traffic, read
from workbench.workloads.lines import own_sets
from workbench.workloads.mooncake import tokens
from workbench.workloads.texts import FIRST, LAST, TOLD_WORDS, Words

OWN = {
    "chats.jsonl": {"kind": "chat"}, "agents.jsonl": {"kind": "agent"}, "corpus.jsonl": {"kind": "rag"}, "mooncake.jsonl": {"kind": "mooncake", "block": 16},
    "prompts.txt": {"kind": "prompts"}, "requests.jsonl": {"kind": "requests"},
}  # fmt: skip


def made(path: Path, executor: str = "puppet", **keys: Any) -> Traffic:
    return read({"file": str(path), **keys}).traffic(Maker(executor=executor, files=True))


def written(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), encoding="utf-8")
    return path


def word(text: str) -> int:
    return FIRST + zlib.crc32(text.encode()) % (LAST - FIRST)


# --- all formats -------------------------------------------------------------------------------


def test_each_format_has_a_small_set_of_the_projects_own() -> None:
    assert own_sets() == sorted(OWN)


@pytest.mark.parametrize("name", OWN)
def test_a_page_may_name_an_own_set_and_it_runs(name: str) -> None:
    text = {} if name == "mooncake.jsonl" else {"text": "words"}
    scenario = parse({"engine": {"pages": 8192}, "workload": {"file": name, **OWN[name], **text}})
    report = run(scenario, check=True).report
    assert report.invariants == "ok" and {r.status for r in report.requests} == {"finished"}
    assert not any("could not be used" in line for line in scenario.told)


@pytest.mark.parametrize("name", OWN)
def test_a_page_cannot_name_a_file_of_the_machine(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("x", encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"^workload\.file: a page cannot name a file of the machine that serves it"):
        parse({"workload": {"file": str(path), **OWN[name]}})


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize(("content", "says"), [(None, "no such file"), (b"", "(the file is empty)"), (b"\xff\n{\n", "2 of 2 records could not be used: line 1: not readable as UTF-8")])
def test_a_file_without_a_usable_line_is_bad_input(name: str, content: bytes | None, says: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    if content is not None:
        path.write_bytes(content)
    if name == "prompts.txt" and content:
        path.write_bytes(b"\xff\n\xfe\n")  # any text is a prompt
    with pytest.raises(ScenarioError) as caught:
        parse({"workload": {"file": str(path), **OWN[name]}}, files=True)
    assert str(caught.value).startswith("workload.file: ") and says in str(caught.value)


def test_bad_lines_are_counted_the_first_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    good = {"messages": [{"role": "user", "content": "hi"}]}
    bad: list[Any] = [
        "{", 5, {}, {"messages": []}, {"messages": [{"role": "bot", "content": "x"}]}, {"messages": [{"role": "user", "content": 5}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, {"messages": [{"role": "user", "content": "\ud800"}]},
        {"messages": [{"role": "assistant", "content": "x"}]}, {**good, "max_tokens": -1}, {**good, "timestamp": "soon"}, {"prompt": " "},
    ]  # fmt: skip
    traffic = made(written(tmp_path / "log.jsonl", [*bad, good, "", good]), kind="requests", text="words")
    assert len(traffic.requests) == 2
    assert traffic.told[0] == (
        "12 of 14 records could not be used: line 1: not readable as JSON; line 2: is no JSON object; line 3: has neither messages nor a prompt; …"
    )


def test_what_stands_in_for_a_tokenizer_is_told_in_the_report_s_header() -> None:
    done = run(parse({"engine": {"pages": 512}, "note": "mine.", "workload": {"kind": "prompts", "file": "prompts.txt", "text": "words"}}))
    assert done.report.header.note == f"mine. Workload: {TOLD_WORDS}."


def test_words_stand_for_themselves() -> None:
    words = Words()
    assert words.encode("Two  words, twice:\ntwo words.") == [word(w) for w in ("Two", "words", ",", "twice", ":", "two", "words", ".")]
    history = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    assert words.chat(history) == [4, word("a"), 2, 5, word("b"), 2, 5]
    first = words.chat(history[:1])
    assert words.chat(history)[: len(first)] == first


# --- mooncake ----------------------------------------------------------------------------------


def trace(path: Path, *rows: tuple[int, int, list[int]]) -> Path:
    return written(path, [{"timestamp": 1000 * i, "input_length": n, "output_length": out, "hash_ids": ids} for i, (n, out, ids) in enumerate(rows)])


def test_equal_hash_ids_are_equal_tokens_and_a_last_block_may_be_partial(tmp_path: Path) -> None:
    path = trace(tmp_path / "t.jsonl", (1000, 7, [3, 9]), (1024, 0, [3, 9]), (1, 3, [70_000]))
    a, b, c = made(path, kind="mooncake").requests
    assert [len(r["tokens"]) for r in (a, b, c)] == [1000, 1024, 1] and b["tokens"][:1000] == a["tokens"]
    assert [r["at"] for r in (a, b, c)] == [0, 1, 2] and [r["max_new_tokens"] for r in (a, b, c)] == [7, 0, 3]
    assert [r.get("after") for r in made(path, kind="mooncake", arrivals="sequential").requests] == [None, "R1", "R2"]


def test_no_two_blocks_are_alike_and_any_block_size_keeps_them_apart() -> None:
    for block in (2, 16, 512):
        assert len({tuple(tokens(i, block)) for i in range(0, 200_000, 997)}) == len(range(0, 200_000, 997))
        assert len(tokens(5, block)) == block


@pytest.mark.parametrize("length", [1, 511, 512, 513, 1023, 1024, 1025])
@pytest.mark.parametrize("block", [2, 7, 512])
def test_at_any_size_a_prompt_has_the_same_whole_blocks_and_may_reuse_as_many(tmp_path: Path, length: int, block: int) -> None:
    path = trace(tmp_path / "t.jsonl", (length, 0, list(range(-(-length // 512)))))
    short = len(made(path, kind="mooncake", block=block).requests[0]["tokens"])
    assert (short // block, (short - 1) // block) == (length // 512, (length - 1) // 512)


def test_lines_of_a_trace_that_contradict_themselves_are_named(tmp_path: Path) -> None:
    good = {"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": [1, 2]}
    bad = [{**good, "hash_ids": [1]}, {**good, "hash_ids": [1, -2]}, {**good, "input_length": "600"}, {"timestamp": 0}]
    traffic = made(written(tmp_path / "t.jsonl", [good, *bad]), kind="mooncake")
    assert len(traffic.requests) == 1 and traffic.told == [
        "4 of 5 records could not be used: line 2: hash_ids: 600 tokens make 2 blocks of 512; got 1 ids; line 3: hash_ids: must be 0 or more and under "
        "1,007,681,536; line 4: input_length: input should be a valid integer; got '600'; …"
    ]


def test_a_trace_that_is_too_long_at_its_full_size_says_which_key_to_change(tmp_path: Path) -> None:
    path = trace(tmp_path / "t.jsonl", *((51_200, 0, list(range(100))) for _ in range(200)))
    with pytest.raises(ValueError, match=r"^block: 10,240,000 prompt tokens are asked for; at most 8,000,000 are made"):
        made(path, kind="mooncake")
    assert len(made(path, kind="mooncake", block=16).requests) == 200


@pytest.mark.slow
def test_the_real_traces_are_read_whole() -> None:
    data = os.environ.get("RADIX_DATA")
    if not data:
        pytest.skip("RADIX_DATA is not set")
    for name, count in (("conversation", 12_031), ("synthetic", 3_993)):
        traffic = made(Path(data) / "mooncake" / f"{name}_trace.jsonl", kind="mooncake", block=2)
        assert len(traffic.requests) == count and not any("could not be used" in line for line in traffic.told)


# --- request logs ------------------------------------------------------------------------------

LOG: list[Any] = [
    {"custom_id": "a", "timestamp": 10.5, "body": {"messages": [{"role": "developer", "content": "be brief"}, {"role": "user", "content": [{"type": "text", "text": "one"}]}],
     "tools": [{"type": "function", "function": {"name": "f"}}]}, "response": {"body": {"choices": [{"message": {"content": "two three"}}]}}},
    {"created": 12, "messages": [{"role": "user", "content": "four"}, {"role": "assistant", "content": "five"}]},
    {"time": "1970-01-01T00:00:20+00:00", "request": {"prompt": "six seven", "max_tokens": 9}},
]  # fmt: skip


def test_a_log_s_requests_have_their_prompts_answers_tools_and_times(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", LOG)
    a, b, c = made(path, kind="requests", text="words", arrivals="recorded").requests
    words = Words()
    system = '{"type":"function","function":{"name":"f"}}\nbe brief'
    assert a["tokens"] == words.chat([{"role": "system", "content": system}, {"role": "user", "content": "one"}])
    assert a["says"] == [word("two"), word("three"), 2] and b["says"] == [word("five"), 2] and "says" not in c
    assert b["tokens"] == words.chat([{"role": "user", "content": "four"}])
    assert (c["tokens"], c["max_new_tokens"]) == ([word("six"), word("seven")], 9)
    assert [r["at"] for r in (a, b, c)] == [0, 1.5, 9.5]
    assert [r["says"] for r in made(path, kind="requests", text="words", output=1).requests[:2]] == [[word("two")], [word("five")]]


def test_a_model_gets_a_log_s_messages_and_texts_as_they_are(tmp_path: Path) -> None:
    a, b, c = made(written(tmp_path / "log.jsonl", LOG), "model", kind="requests").requests
    assert [m["role"] for m in a["messages"]] == ["system", "user"] and b["messages"] == [{"role": "user", "content": "four"}]
    assert (c["prompt"], c["max_new_tokens"], a["max_new_tokens"]) == ("six seven", 9, 16)


def test_recorded_arrivals_need_a_time_on_every_line(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", [*LOG, {"prompt": "x"}])
    with pytest.raises(ValueError, match=r"^arrivals: 1 of 4 requests have no time"):
        made(path, kind="requests", text="words", arrivals="recorded")


# --- prompts, passages, trajectories -----------------------------------------------------------


def test_prompts_are_lines_and_blank_ones_are_none(tmp_path: Path) -> None:
    path = tmp_path / "p.txt"
    path.write_bytes(b"\xef\xbb\xbfone two\r\n\r\n  \n\xff\xfe\nthree\n")
    traffic = made(path, kind="prompts", text="words", sequential=True)
    assert [(r["tokens"], r.get("after")) for r in traffic.requests] == [([word("one"), word("two")], None), ([word("three")], "R1")]
    assert traffic.told[0] == "1 of 3 records could not be used: line 4: not readable as UTF-8"
    assert made(path, "model", kind="prompts").requests[0]["prompt"] == "one two"
    assert made(path, "model", kind="prompts", chat=True).requests[0]["messages"] == [{"role": "user", "content": "one two"}]


def test_passages_may_come_in_squads_layout(tmp_path: Path) -> None:
    data = {"data": [{"title": "T", "paragraphs": [{"context": f"passage {i}", "qas": [{"question": f"q{i}?"}]} for i in range(3)]}]}
    path = tmp_path / "squad.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    requests = made(path, "model", kind="rag", passages=2, order="canonical").requests
    texts = [r["messages"][1]["content"].split("\n\n") for r in requests]
    assert len(requests) == 3 and all(t[:-1] == sorted(t[:-1]) and f"passage {t[-1][1]}" in t for t in texts)
    first = [r["messages"][1]["content"].split("\n\n") for r in made(path, "model", kind="rag", passages=2).requests]
    assert all(t[0] == f"passage {t[-1][1]}" for t in first)


def test_each_assistant_message_of_a_trajectory_was_a_call(tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}, {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]},
                {"role": "tool", "content": "t"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "never answered"}]  # fmt: skip
    path = written(tmp_path / "t.jsonl", [{"traj": messages}, {"messages": messages[:2]}])
    tools = written(tmp_path / "tools.jsonl", [{"name": "f"}, {"name": "g"}])
    traffic = made(path, "model", kind="agent", tools_file=str(tools))
    assert traffic.told == ["1 of 2 records could not be used: line 2: no message is the assistant's, so the model is never called"]
    one, two = (r["messages"] for r in traffic.requests)
    assert one == [{"role": "system", "content": '{"name":"f"}\n{"name":"g"}\ns'}, {"role": "user", "content": "u"}]
    assert two[2:] == [{"role": "assistant", "content": '{"name":"f","arguments":"{}"}'}, {"role": "tool", "content": "t"}]
    last = made(path, "model", kind="agent", order="dynamic last").requests[0]["messages"][-1]
    assert last["role"] == "system" and "Working memory, revision 1" in last["content"] and last["content"].count("Now: ") == 1


def test_a_key_that_a_file_decides_is_refused_beside_one() -> None:
    for kind, key in (("agent", "steps"), ("rag", "documents")):
        with pytest.raises(ScenarioError, match=rf"^workload\.{key}: the file says; leave it out, or leave file out"):
            parse({"workload": {"kind": kind, "file": "x", key: 5}}, files=True)
