"""Generated traffic: the same for the same seed, exact in what it shares, refused by the key that is wrong."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import pytest

from workbench import scenario
from workbench.compare import arms_of
from workbench.report import Report
from workbench.runner import run
from workbench.scenario import ScenarioError, parse, parse_text
from workbench.workloads import KINDS, Maker, read
from workbench.workloads.ceiling import best_possible
from workbench.workloads.lines import ReadError
from workbench.workloads.sharegpt import conversation
from workbench.workloads.sharegpt import read as read_chats

SMALL = {"kind": "shared_prefix", "groups": 3, "per_group": 4, "prefix": 20, "question": 5}


def shared(**keys: Any) -> list[dict[str, Any]]:
    return read(SMALL | keys).traffic(Maker(seed=7)).requests


def common(a: Sequence[int], b: Sequence[int]) -> int:
    """Ids that two prompts share from their start."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


# --- shared prefixes ---------------------------------------------------------------------------


def test_prompts_share_what_the_workload_says_and_part_right_there() -> None:
    requests = shared(common=10)
    assert [len(r["tokens"]) for r in requests] == [35] * 12
    for a in requests:
        for b in requests:
            same = a["label"].split(",")[0] == b["label"].split(",")[0]
            expected = 35 if a is b else 30 if same else 10
            assert common(a["tokens"], b["tokens"]) == expected


def test_questions_without_passages_share_nothing() -> None:
    firsts = [r["tokens"][0] for r in shared(prefix=0)]
    assert len(set(firsts)) == 12


def test_the_same_seed_makes_the_same_traffic_and_another_another() -> None:
    assert shared() == shared()
    assert [r["tokens"] for r in read(SMALL).traffic(Maker(seed=8)).requests] != [r["tokens"] for r in shared()]


def test_the_order_depends_on_the_seed_alone() -> None:
    assert [r["label"] for r in shared()] == [r["label"] for r in shared(prefix=2000, question=1, common=3)]


@pytest.mark.parametrize(("order", "groups"), [
    ("grouped", [1] * 4 + [2] * 4 + [3] * 4), ("round-robin", [1, 2, 3] * 4),
])  # fmt: skip
def test_orders(order: str, groups: list[int]) -> None:
    assert [int(r["label"].split()[1].strip(",")) for r in shared(order=order)] == groups


def test_a_shuffled_order_keeps_everybody() -> None:
    labels = [r["label"] for r in shared()]
    assert sorted(labels) == sorted(r["label"] for r in shared(order="grouped"))
    assert labels != [r["label"] for r in shared(order="grouped")]


def test_arrivals_at_once_one_by_one_by_rate_and_by_step() -> None:
    times = ("at", "at_step", "after", "think")
    assert not any(k in r for r in shared() for k in times)
    assert [r.get("after") for r in shared(sequential=True)] == [None, *(f"R{i}" for i in range(1, 12))]
    assert {r.get("think") for r in shared(sequential=True, think=2)[1:]} == {2.0}
    assert [r["at_step"] for r in shared(every=3)] == list(range(1, 37, 3))
    at = [r["at"] for r in shared(rate=5, per_group=400)]
    assert at == sorted(at) and 0.18 < at[-1] / len(at) < 0.22


def test_ids_stay_in_their_range_and_answers_are_as_long_as_asked() -> None:
    requests = shared(ids=[100, 130], output=3)
    assert {i for r in requests for i in r["tokens"]} <= set(range(100, 130))
    assert {(r["max_new_tokens"], r["ignore_eos"]) for r in requests} == {(3, True)}


@pytest.mark.parametrize(("workload", "says"), [
    (5, f"workload: must be a mapping with a kind, one of {', '.join(KINDS)}; got 5"),
    ({"kind": "x"}, f"workload.kind: must be one of {', '.join(KINDS)}; got 'x'"),
    ({"kind": ["x"]}, f"workload.kind: must be one of {', '.join(KINDS)}"),
    ({"kind": "shared_prefix"}, "workload.groups: is missing"),
    (SMALL | {"groups": 0}, "workload.groups: input should be greater than or equal to 1; got 0"),
    (SMALL | {"groups": True}, "workload.groups: must be a number; got True"),
    (SMALL | {"order": "sorted"}, "workload.order: must be 'grouped', 'shuffled' or 'round-robin'; got 'sorted'"),
    (SMALL | {"passages": 3}, "workload.passages: unknown key"),
    (SMALL | {"ids": [9, 9]}, "workload.ids: must be two numbers"),
    (SMALL | {"ids": [9, 11]}, "workload.ids: 4 runs must begin with different ids, and there are 2"),
    (SMALL | {"prefix": 0, "question": 0}, "workload.question: prompts are empty"),
    (SMALL | {"rate": 1, "every": 1}, "workload.every: give at most one of sequential, rate, every; got rate, every"),
    (SMALL | {"think": 1}, "workload.think: counts from the end of the request before"),
    (SMALL | {"groups": 50_000}, "workload.groups: 200,000 requests are asked for; at most 100,000"),
    (SMALL | {"prefix": 10_000_000}, "workload.groups: 120,000,060 prompt tokens are asked for; at most 8,000,000"),
    ({"kind": "chat"}, "workload.file: is missing"),
    ({"kind": "chat", "file": "x.json", "open": 0}, "workload.open: "),
])  # fmt: skip
def test_what_a_workload_cannot_say_is_refused_with_its_path(workload: Any, says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse({"workload": workload})
    assert str(caught.value).startswith(says)


# --- in a scenario -----------------------------------------------------------------------------


def test_a_scenario_lists_requests_or_generates_them_not_both() -> None:
    with pytest.raises(ScenarioError, match=r"^workload: give either requests or a workload"):
        parse({"workload": SMALL, "requests": [{"tokens": "A4"}]})


def test_a_generated_scenario_is_written_as_its_workload() -> None:
    read_ = parse({"name": "x", "seed": 3, "workload": SMALL | {"sequential": True}})
    assert len(read_.requests) == 12 and "requests" not in scenario.dump(read_)
    assert parse_text(scenario.dump(read_)) == read_
    assert len(parse_text(scenario.retuned(scenario.dump(read_), {"pages": 99})).requests) == 12


def test_arms_share_their_generated_traffic() -> None:
    on, off = arms_of(parse({"workload": SMALL}), [("on", {}), ("off", {"engine.cache": "off"})])
    assert on.requests == off.requests and off.engine.cache == "off"


def test_a_generated_scenario_runs() -> None:
    report = run(
        parse({"engine": {"pages": 512}, "workload": SMALL | {"sequential": True, "output": 2}}), check=True
    ).report
    assert report.invariants == "ok"
    assert report.totals.cached_tokens == 3 * 3 * 20 and {len(r.output_ids) for r in report.requests} == {2}


# --- chats -------------------------------------------------------------------------------------

GOOD = {"id": "g", "conversations": [
    {"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello you"}, {"from": "human", "value": "and now?"}, {"from": "gpt", "value": "now this"},
]}  # fmt: skip
OPEN = {
    "id": "o",
    "conversations": [
        {"from": "system", "value": "be kind"},
        {"from": "user", "value": "one"},
        {"from": "assistant", "value": "two"},
        {"from": "user", "value": "three"},
    ],
}


class Letters:
    """One id a character; a message is its role's id, its text and an end marker."""

    eos_id = 2

    def encode(self, text: str) -> list[int]:
        return [ord(c) for c in text]

    def chat(self, messages: Sequence[dict[str, str]]) -> list[int]:
        roles = {"system": 3, "user": 4, "assistant": 5}
        return [i for m in messages for i in (roles[m["role"]], *self.encode(m["content"]), 2)] + [5]


def maker(**keys: Any) -> Maker:
    return Maker(**{"seed": 1, "tokenizer": Letters, "files": True} | keys)


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    path = tmp_path / "chats.jsonl"
    path.write_text("\n".join(json.dumps(c) for c in (GOOD, OPEN, GOOD | {"id": "h"})), encoding="utf-8")
    return path


def chat(path: Path, **keys: Any) -> Any:
    return read({"kind": "chat", "file": str(path)} | keys)


def test_a_turns_prompt_holds_all_before_it_and_its_answer_is_the_recorded_one(chats: Path) -> None:
    requests = chat(chats).traffic(maker()).requests
    first, second = requests[:2]
    assert (first["id"], second["id"], second["label"]) == ("C1-1", "C1-2", "and now?")
    assert second["tokens"][: len(first["tokens"]) + len(first["says"])] == first["tokens"] + first["says"]
    assert bytes(first["says"]) == b"hello you\x02" and first["stop_token_ids"] == [2]
    assert first["max_new_tokens"] == len(first["says"])


def test_a_last_question_without_an_answer_is_read_and_not_answered(chats: Path) -> None:
    last = next(r for r in chat(chats).traffic(maker()).requests if r["id"] == "C2-2")
    assert (last["says"], last["max_new_tokens"]) == ([], 0)
    assert last["tokens"][:9] == [3, *b"be kind", 2]


def test_each_turn_follows_the_one_before_and_a_new_chat_the_end_of_an_old_one(chats: Path) -> None:
    def after(**keys: Any) -> dict[str, str | None]:
        return {r["id"]: r.get("after") for r in chat(chats, **keys).traffic(maker()).requests}

    assert after(open=2) == {"C1-1": None, "C1-2": "C1-1", "C2-1": None, "C2-2": "C2-1", "C3-1": "C1-2", "C3-2": "C3-1"}
    assert after(open=1)["C2-1"] == "C1-2"
    assert {r["id"]: r.get("think") for r in chat(chats, open=1, think=3).traffic(maker()).requests}["C1-2"] == 3.0


def test_one_request_at_a_time_over_all_chats(chats: Path) -> None:
    requests = chat(chats, open=2, sequential=True).traffic(maker()).requests
    ids = [r["id"] for r in requests]
    assert [r.get("after") for r in requests] == [None, *ids[:-1]] and len(set(ids)) == 6
    for number in (1, 2, 3):
        assert [i for i in ids if i.startswith(f"C{number}-")] == [f"C{number}-1", f"C{number}-2"]
    # Two are open: the third begins when one of the others has had its last turn.
    assert ids.index("C3-1") > min(ids.index("C1-2"), ids.index("C2-2"))


def test_which_conversations_and_how_much_of_them(chats: Path) -> None:
    def labels(**keys: Any) -> list[str]:
        return [r["label"] for r in chat(chats, **keys).traffic(maker()).requests]

    assert labels(conversations=2) == ["hi", "and now?", "one", "three"]
    assert labels(max_turns=1) == ["hi", "one", "hi"]
    assert Counter(labels(pick="random")) == Counter(labels())
    assert {len(r["says"]) for r in chat(chats, output=3).traffic(maker()).requests} == {3, 0}
    with pytest.raises(ValueError, match=r"^conversations: 4 of 1 or more turns are asked for; the file has 3"):
        labels(conversations=4)
    with pytest.raises(ValueError, match=r"^conversations: 0 of 3 or more turns"):
        labels(min_turns=3)


def test_a_model_gets_messages_and_answers_for_itself(chats: Path) -> None:
    second = chat(chats).traffic(maker(executor="model")).requests[1]
    assert [m["role"] for m in second["messages"]] == ["user", "assistant", "user"]
    assert second["max_new_tokens"] == 16 and "says" not in second and "tokens" not in second


def test_a_chat_that_is_replayed_finds_all_that_was_said_before(chats: Path) -> None:
    requests = chat(chats, open=1).traffic(maker()).requests
    rows = {r.id: r for r in run(parse({"engine": {"pages": 512}, "requests": requests}), check=True).report.requests}
    # All of the first turn and of its answer, whose end marker was sampled last and has no KV.
    assert rows["C1-2"].cached_tokens == rows["C1-1"].prompt_tokens + len(rows["C1-1"].output_ids) - 1
    # The same conversation again: everything but its last token.
    assert rows["C3-2"].cached_tokens == rows["C3-2"].prompt_tokens - 1
    assert rows["C1-1"].finish_reason == "stop"
    best = best_possible([r["tokens"] for r in requests], answers=[r["says"] for r in requests])
    assert sum(r.cached_tokens or 0 for r in rows.values()) == best


def test_records_that_cannot_be_used_are_counted_and_the_first_named(tmp_path: Path) -> None:
    path = tmp_path / "mixed.jsonl"
    bad: list[Any] = [
        {"id": 1}, {"conversations": [{"from": "gpt", "value": "first"}]}, {"conversations": [{"from": "bot", "value": "x"}]},
        {"conversations": [{"from": "human"}]}, {"conversations": []}, {"conversations": [{"from": "human", "value": "\ud800"}]},
    ]  # fmt: skip
    lines = [*(json.dumps(b) for b in bad), "{not json", json.dumps(GOOD), ""]
    path.write_text("\n".join(lines), encoding="utf-8")
    told = read_chats(path).told
    assert told == [
        "7 of 8 records could not be used: line 1: has no list of conversations; line 2: message 1 is gpt's, out of turn; "
        "line 3: message 1 is from 'bot'; known are human, user, gpt, assistant, chatgpt, system; …"
    ]
    assert len(read_chats(path).conversations) == 1


def test_a_json_list_is_read_as_well_as_lines(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps([GOOD, 5, OPEN]), encoding="utf-8")
    chats = read_chats(path)
    assert [c.id for c in chats.conversations] == ["g", "o"] and chats.told == [
        "1 of 3 records could not be used: record 2: has no list of conversations"
    ]


def test_a_text_may_hold_any_line_separator(tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    odd = {"conversations": [{"from": "human", "value": "a\u2028b\x85c"}]}
    path.write_text(json.dumps(odd, ensure_ascii=False), encoding="utf-8")
    assert read_chats(path).conversations[0].turns == [("a\u2028b\x85c", None)]


@pytest.mark.parametrize(("content", "says"), [
    (None, "no such file"), (b"\xff\xfe", "line 1: not readable as UTF-8"), (b"", "no conversation that can be used (the file is empty)"),
    (b"[1, 2", "not readable as JSON"), (b'{"a": 1}', "no conversation that can be used; 1 of 1 records"),
])  # fmt: skip
def test_a_file_without_conversations_is_refused(tmp_path: Path, content: bytes | None, says: str) -> None:
    path = tmp_path / "x.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ReadError) as caught:
        read_chats(path)
    assert says in str(caught.value)
    with pytest.raises(ScenarioError, match=r"^workload\.file: "):
        parse({"workload": {"kind": "chat", "file": str(path)}}, files=True)


def test_a_browser_cannot_name_a_file(chats: Path) -> None:
    text = f"engine: {{executor: model}}\nworkload: {{kind: chat, file: {chats}}}"
    for refuse in (lambda: parse_text(text), lambda: scenario.retuned(text, {"pages": 9})):
        with pytest.raises(ScenarioError, match=r"^workload\.file: a page cannot name a file"):
            refuse()
    path = chats.parent / "own.yaml"
    path.write_text(text, encoding="utf-8")
    assert len(scenario.load(str(path)).requests) == 6


def test_roles_out_of_turn_are_named() -> None:
    twice = {"conversations": [{"from": "human", "value": "a"}, {"from": "human", "value": "b"}]}
    with pytest.raises(ValueError, match="message 2 is human's, out of turn"):
        conversation(twice, "x")


@pytest.mark.slow
def test_the_real_chats_are_read_whole() -> None:
    data = os.environ.get("RADIX_DATA")
    if not data:
        pytest.skip("RADIX_DATA is not set")
    files = sorted((Path(data) / "chat_replay").glob("*.jsonl"))
    chats = [read_chats(f) for f in files]
    assert sum(len(c.conversations) for c in chats) == 4_554 and not any(c.wrong for c in chats)
    assert sum(len(one.turns) for c in chats for one in c.conversations) == 12_607


# --- the ceiling -------------------------------------------------------------------------------


def reused(prompts: Sequence[Sequence[int]], page_size: int) -> int:
    """Reuse with room for everything, one prompt after the other: the longest match with any before it."""
    total = 0
    for i, prompt in enumerate(prompts):
        limit = len(prompt) - 1
        total += max(
            (
                min(common(prompt, p), len(p) // page_size * page_size, limit) // page_size * page_size
                for p in prompts[:i]
            ),
            default=0,
        )
    return total


@pytest.mark.parametrize("page_size", [1, 2, 3])
def test_the_ceiling_is_the_best_of_all_orders(page_size: int) -> None:
    rng = Random(page_size)
    for _ in range(120):
        prompts = [[rng.randrange(2) for _ in range(rng.randrange(1, 8))] for _ in range(rng.randrange(1, 6))]
        best = max(reused(order, page_size) for order in permutations(prompts))
        assert best_possible(prompts, page_size) == best, prompts


def test_the_published_ceiling() -> None:
    prompts = [
        r["tokens"]
        for r in read(SMALL | {"groups": 64, "per_group": 16, "prefix": 64, "question": 4}).traffic(Maker()).requests
    ]
    assert best_possible(prompts) / sum(map(len, prompts)) == pytest.approx(0.882353, abs=1e-6)


def test_answers_that_were_stored_raise_the_ceiling() -> None:
    turns = [[1, 2, 3], [1, 2, 3, 7, 8, 9, 4]]
    assert best_possible(turns) == 3
    assert best_possible(turns, answers=[[7, 8, 9], []]) == 5


def engine_reuse(prompts: list[list[int]], page_size: int) -> Report:
    engine = {"page_size": page_size, "pages": 4096, "max_running": 1}
    return run(parse({"engine": engine, "requests": [{"tokens": p, "max_new_tokens": 0} for p in prompts]})).report


@pytest.mark.parametrize("page_size", [1, 4])
def test_the_engine_reaches_the_ceiling_with_room_for_everything(page_size: int) -> None:
    prompts = sorted((r["tokens"] for r in shared(prefix=17, question=6, common=5)), key=len)
    assert engine_reuse(prompts, page_size).totals.cached_tokens == best_possible(prompts, page_size)


def test_texts_become_ids_by_the_models_own_tokenizer_or_by_words_and_it_is_told(
    chats: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scripted = {"workload": {"kind": "chat", "file": str(chats)}}
    scenario._tokenizer.cache_clear()
    with monkeypatch.context() as empty:
        empty.setenv("RADIX_CACHE", str(tmp_path / "nothing"))
        made = parse(scripted, files=True)
        with pytest.raises(ScenarioError, match=r"^workload\.file: texts become ids by the tokenizer of engine\.model, and .* is not on this machine yet.*text: words stands in"):
            parse({"workload": scripted["workload"] | {"text": "tokenizer"}}, files=True)
    assert made.told[0].startswith("texts became ids without a tokenizer: one id a word")
    assert (run(made).trace.header.note or "").startswith("Workload: texts became ids without a tokenizer")
    assert made.requests == parse({"workload": scripted["workload"] | {"text": "words"}}, files=True).requests
    assert made.requests[0].tokens is not None and len(made.requests[0].tokens) == len(["user", "hi", "end", "assistant"])


@pytest.mark.model
def test_a_scripted_chat_is_what_the_embedded_model_would_read(embedded: Any, chats: Path) -> None:
    made = parse({"engine": {"pages": 512}, "workload": {"kind": "chat", "file": str(chats)}}, files=True).requests
    tokenizer = embedded.tokenizer
    assert made[0].tokens == tokenizer.chat([{"role": "user", "content": "hi"}])
    assert made[0].says == [*tokenizer.encode("hello you"), tokenizer.eos_id]
    assert made[1].tokens is not None and made[0].tokens is not None
    assert made[1].tokens[: len(made[0].tokens) + len(made[0].says)] == made[0].tokens + made[0].says
