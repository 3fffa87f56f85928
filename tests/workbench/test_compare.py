"""Arms: one workload, several configurations, told apart by request."""

from __future__ import annotations

from typing import Any

import pytest

from engine import events as ev
from workbench import compare as comparing
from workbench import scenario
from workbench.scenario import ScenarioError, parse

ON_OFF = [("on", {}), ("off", {"engine.cache": "off"})]


def compare(data: dict[str, Any] | str, arms: Any = ON_OFF, **options: Any) -> comparing.Comparison:
    read = scenario.load(data) if isinstance(data, str) else parse(data)
    return comparing.compare(read, arms, check=True, **options)[0]


def test_the_cache_saves_what_it_finds_and_changes_no_output() -> None:
    result = compare("walkthrough")
    assert [(a.name, a.report.totals.computed_tokens) for a in result.arms] == [("on", 11), ("off", 24)]
    assert result.outputs_equal and result.first_difference is None
    assert [(p.id, p.ttft) for p in result.paired] == [("R1", [0.9, 0.9]), ("R2", [0.3, 0.9]), ("R3", [0.2, 0.9])]
    assert result.paired[1].share_of_total == [0.6, 0.818182]
    assert result.arms[1].set == {"engine.cache": "off"} and result.warm_up is None


def test_the_first_decision_that_differs_is_named_with_its_place_in_each_arm() -> None:
    found = compare("walkthrough").first_decision
    assert found is not None
    assert found.why == "R2 is admitted with 6 tokens from the cache, against: R2 is admitted with 0 tokens from the cache"
    on, off = (comparing.run(scenario.load("walkthrough", s)).trace for _, s in ON_OFF)
    assert [on.events[found.seq[0]].request, off.events[found.seq[1]].request] == ["R2", "R2"]  # type: ignore[index]


def test_equal_arms_differ_nowhere() -> None:
    result = compare("walkthrough", [("a", {}), ("b", {"engine.max_running": 7})])
    assert result.outputs_equal and result.first_decision is None


def test_requests_are_paired_by_id_even_where_the_arms_saw_them_in_another_order() -> None:
    requests = [
        {"id": "S", "tokens": "A30", "max_new_tokens": 1},
        {"id": "P", "tokens": "C12", "after": "S", "max_new_tokens": 1},
        {"id": "Q", "tokens": "A30+B1", "after": "S", "max_new_tokens": 1},
        {"id": "after P", "tokens": "D2", "after": "P", "max_new_tokens": 1},
        {"id": "after Q", "tokens": "E2", "after": "Q", "max_new_tokens": 1},
    ]
    result = compare({"requests": requests, "engine": {"max_running": 1}}, [("fcfs", {}), ("lpm", {"engine.policy": "lpm"})])
    seen = [[r.id for r in a.report.requests] for a in result.arms]
    assert [ids[3:] for ids in seen] == [["after P", "after Q"], ["after Q", "after P"]]
    assert [p.id for p in result.paired] == [r["id"] for r in requests]
    for place, arm in enumerate(result.arms):
        rows = {r.id: r.ttft for r in arm.report.requests}
        assert [p.ttft[place] for p in result.paired] == [rows[p.id] for p in result.paired]
    assert result.outputs_equal


def test_a_difference_in_output_is_found_at_its_first_token() -> None:
    requests = [{"id": "R1", "tokens": "A4", "max_new_tokens": 3}, {"id": "R2", "tokens": "B8", "max_new_tokens": 40}]
    result = compare({"requests": requests}, [("roomy", {}), ("small", {"engine.pages": 16})])
    found = result.first_difference
    assert not result.outputs_equal and found is not None
    assert (found.request, found.position) == ("R2", 9) and found.ids[0] is not None and found.ids[1] is None


def test_the_gap_is_that_of_the_first_arm_at_the_differing_token() -> None:
    told = [
        ev.TokenEmitted(seq=i, t=0.0, step=1, request="R", position=p, token=5, top=[(5, -0.5), (6, -0.75)]) for i, p in enumerate((0, 1))
    ]
    assert comparing._gap(told, "R", 1) == 0.25 and comparing._gap(told, "R", 2) is None


def test_the_order_of_the_arms_alternates() -> None:
    result = compare("walkthrough", repeats=3)
    assert (result.order, result.repeats) == ([["on", "off"], ["off", "on"], ["on", "off"]], 3)


def test_a_comparison_that_is_stopped_keeps_what_it_has() -> None:
    result = compare("walkthrough", stop=lambda: True)
    assert (result.arms, [p.ttft for p in result.paired], result.repeats) == ([], [[], [], []], 0)


def test_a_request_that_an_arm_refused_has_no_time_there() -> None:
    result = compare({"requests": [{"id": "R1", "tokens": "A20"}]}, [("roomy", {}), ("small", {"engine.pages": 16})])
    assert result.paired[0].ttft == [1.0, None] and result.paired[0].share_of_total[1] is None


@pytest.mark.parametrize(("arms", "says"), [
    ([("on", {})], "at least two arms are needed to compare; got 1"),
    ([("on", {}), ("on", {})], "every arm needs a name of its own; got on, on"),
    ([("on", {}), ("other", {"seed": 1})], "seed: an arm changes engine.* only"),
    ([("on", {}), ("other", {"engine.overlap": True, "engine.host_pages": 8})], "engine.host_pages: pages are copied while a step is planned"),
    ([("on", {}), ("other", {"engine.speed": 1})], "engine.speed: unknown key"),
])  # fmt: skip
def test_arms_that_compare_nothing_are_refused(arms: Any, says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        compare("walkthrough", arms)
    assert says in str(caught.value)


@pytest.mark.parametrize(("text", "arm"), [
    ("off:engine.cache=off", ("off", {"engine.cache": False})), ("base:", ("base", {})),
    ("a:engine.policy=lpm,engine.chunk=8", ("a", {"engine.policy": "lpm", "engine.chunk": 8})),
])  # fmt: skip
def test_an_arm_is_written_as_a_name_and_its_settings(text: str, arm: Any) -> None:
    assert comparing.parse_arm(text) == arm


@pytest.mark.parametrize("text", ["", "off", ":engine.cache=off", "off:engine.cache"])
def test_an_arm_that_is_written_otherwise_is_refused(text: str) -> None:
    with pytest.raises(ScenarioError, match="write"):
        comparing.parse_arm(text)
