"""Generated workloads: what each shares and what it does not, and that a knob moves what it says and nothing else."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from workbench.runner import run
from workbench.scenario import ScenarioError, parse
from workbench.workloads import Maker, read
from workbench.workloads.prompt_order import ORDERS

SMALL: dict[str, dict[str, Any]] = {
    "shared_prefix": {"groups": 4, "per_group": 50, "prefix": 8, "question": 3, "zipf": 1},
    "random": {"requests": 12, "length": [3, 9]},
    "rag": {"requests": 12, "documents": 6, "document": 8, "subject": 3, "question": 4, "system": 5},
    "agent": {"sessions": 3, "steps": 4, "tools": 3, "tool": 5, "system": 7, "step": [2, 6], "output": 3},
    "template": {
        "parts": [{"name": "rules", "tokens": 9}, {"name": "tenant", "tokens": 4, "changes": "tenant"}, {"name": "clock", "tokens": 2, "changes": "request"}],
        "requests": 24, "tenants": 3,
    },
}  # fmt: skip


def made(kind: str, seed: int = 7, **keys: Any) -> list[dict[str, Any]]:
    return read({"kind": kind, **SMALL[kind], **keys}).traffic(Maker(seed=seed)).requests


def hit_rate(kind: str, **keys: Any) -> float:
    return run(parse({"seed": 7, "engine": {"pages": 8192}, "workload": {"kind": kind, **SMALL[kind], **keys}})).report.totals.hit_rate or 0


@pytest.mark.parametrize("kind", SMALL)
def test_the_same_seed_makes_the_same_traffic_and_it_runs(kind: str) -> None:
    assert made(kind) == made(kind) and made(kind) != made(kind, seed=8)
    report = run(parse({"engine": {"pages": 8192}, "workload": {"kind": kind, **SMALL[kind]}}), check=True).report
    assert report.invariants == "ok" and len(report.requests) == len(made(kind))


@pytest.mark.parametrize("kind", ["random", "rag", "template", "shared_prefix"])
def test_independent_requests_arrive_as_asked(kind: str) -> None:
    assert [r.get("after") for r in made(kind, sequential=True)][:3] == [None, "R1", "R2"]
    assert [r["at_step"] for r in made(kind, every=2)][:3] == [1, 3, 5]
    assert [r["tokens"] for r in made(kind, rate=2)] == [r["tokens"] for r in made(kind)]


def test_popular_passages_are_asked_for_more_often_in_proportion() -> None:
    def groups(**keys: Any) -> Counter[str]:
        return Counter(r["label"].split(",")[0] for r in made("shared_prefix", per_group=1000, **keys))

    assert set(groups(zipf=0).values()) == {1000}
    drawn = groups(zipf=1)
    shares = [drawn[f"group {k}"] * k for k in (1, 2, 3, 4)]
    assert drawn.total() == 4000 and max(shares) < 1.2 * min(shares)
    questions = Counter(r["label"] for r in made("shared_prefix", order="round-robin"))
    assert set(questions.values()) == {1}


def test_popular_passages_keep_the_orders() -> None:
    def groups(order: str) -> list[int]:
        return [int(r["label"].split()[1].strip(",")) for r in made("shared_prefix", order=order)]

    assert groups("grouped") == sorted(groups("grouped")) and sorted(groups("shuffled")) == groups("grouped")
    assert groups("round-robin")[:8] == [1, 2, 3, 4] * 2 and sorted(groups("round-robin")) == groups("grouped")


def test_random_prompts_share_nothing_and_keep_their_lengths() -> None:
    requests = made("random", output=[0, 4])
    assert len({r["tokens"][0] for r in requests}) == 12 and hit_rate("random") == 0
    assert {len(r["tokens"]) for r in requests} <= set(range(3, 10)) and {r["max_new_tokens"] for r in requests} <= set(range(5))


def test_a_retrieved_prompt_has_instructions_passages_of_one_subject_and_the_question() -> None:
    found, fixed = made("rag"), made("rag", order="canonical")
    for a, b in zip(found, fixed, strict=True):
        numbers = [int(n) for n in a["label"].split()[1:]]
        assert [int(n) for n in b["label"].split()[1:]] == sorted(numbers) and len({(n - 1) // 3 for n in numbers}) == 1
        assert len(a["tokens"]) == len(b["tokens"]) == 5 + 3 * 8 + 4
        assert (a["tokens"][:5], a["tokens"][-4:]) == (b["tokens"][:5], b["tokens"][-4:])
    assert made("rag", question_first=True)[0]["tokens"][5:9] == found[0]["tokens"][-4:]


def test_a_fixed_order_of_passages_is_found_again_more_often() -> None:
    assert hit_rate("rag", requests=60, question_first=True) < hit_rate("rag", requests=60) < hit_rate("rag", requests=60, order="canonical")


def test_an_agents_history_grows_by_what_was_said_and_what_came_back() -> None:
    requests = {r["id"]: r for r in made("agent")}
    for session in (1, 2, 3):
        for call in (2, 3, 4):
            before, now = requests[f"A{session}-{call - 1}"], requests[f"A{session}-{call}"]
            said = [*before["tokens"], *before["says"]]
            assert now["tokens"][: len(said)] == said and 2 <= len(now["tokens"]) - len(said) <= 6 and now["after"] == before["id"]
    assert len({tuple(r["tokens"][: 3 * 5 + 7]) for r in requests.values()}) == 1


def test_the_order_of_an_agents_parts_moves_them_and_changes_none() -> None:
    plain = made("agent")
    for order in ORDERS:
        for a, b in zip(plain, made("agent", order=order), strict=True):
            extra = Counter(b["tokens"]) - Counter(a["tokens"])
            assert not Counter(a["tokens"]) - Counter(b["tokens"])
            assert extra.total() == {"canonical": 0, "tools shuffled": 0, "timestamp first": 12, "header first": 24, "note in the middle": 48}.get(order, 60)
    rates = [hit_rate("agent", order=order, sequential=True) for order in ORDERS]
    assert rates[0] == max(rates) and rates[-1] == 0


def test_a_templates_parts_change_with_whom_they_say() -> None:
    requests = made("template")
    by_tenant = {(r["label"], tuple(r["tokens"][9:13])) for r in requests}
    assert len({tuple(r["tokens"][:9]) for r in requests}) == 1 and len(by_tenant) == len({r["label"] for r in requests}) == 3
    assert len({tuple(r["tokens"][13:]) for r in requests}) == 24
    moved = made("template", order=["clock", "rules", "tenant"])
    assert [r["tokens"][2:] + r["tokens"][:2] for r in moved] == [r["tokens"] for r in requests]
    assert hit_rate("template", order=["clock", "rules", "tenant"], sequential=True) == 0 < hit_rate("template", sequential=True)


@pytest.mark.parametrize(("kind", "keys", "says"), [
    ("random", {"length": [5, 3]}, "length: must be two numbers, 1 or more, the second no smaller; got [5, 3]"),
    ("random", {"requests": 100_001}, "requests: 100,001 requests are asked for; at most 100,000 are made"),
    ("random", {"ids": [0, 5]}, "ids: 12 runs must begin with different ids, and there are 5"),
    ("rag", {"requests": None}, "requests: is missing; say how many to generate, or name a file"),
    ("rag", {"order": "best"}, "order: must be 'retrieval' or 'canonical'; got 'best'"),
    ("agent", {"sessions": None}, "sessions: is missing; say how many to generate, or name a file"),
    ("agent", {"step": [0, 4]}, "step: must be two numbers, 1 or more, the second no smaller; got [0, 4]"),
    ("agent", {"tools_file": "x"}, "tools_file: belongs to a file of trajectories; give file as well"),
    ("agent", {"steps": 400, "system": 60_000}, "sessions: more than 8,000,000 prompt tokens are asked for; take fewer sessions"),
    ("template", {"order": ["rules"]}, "order: must name each part once (rules, tenant, clock); got rules"),
    ("template", {"parts": [{"name": "a", "tokens": 1}] * 2}, "parts: each needs a name of its own; got a, a"),
    ("template", {"parts": [{"name": "a", "tokens": 1, "changes": "daily"}]}, "parts.0.changes: must be 'never', 'tenant' or 'request'; got 'daily'"),
    ("template", {"parts": []}, "parts: list should have at least 1 item"),
    ("shared_prefix", {"zipf": -1}, "zipf: input should be greater than or equal to 0; got -1"),
    ("rag", {"think": 1}, "think: counts from the end of the request before"),
])  # fmt: skip
def test_what_a_generator_cannot_make_is_refused_with_its_key(kind: str, keys: dict[str, Any], says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse({"workload": {"kind": kind, **SMALL[kind], **keys}})
    assert str(caught.value).startswith(f"workload.{says}")


def test_stored_answers_need_one_request_at_a_time_and_a_script() -> None:
    chat = {"kind": "chat", "file": "chats.jsonl", "answers": "stored"}
    with pytest.raises(ScenarioError, match=r"^workload\.answers: stored ones need their turn"):
        parse({"workload": chat})
    with pytest.raises(ScenarioError, match=r"^workload\.answers: a model answers for itself"):
        parse({"engine": {"executor": "model"}, "workload": chat | {"sequential": True}})
