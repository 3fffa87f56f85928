"""What a comparison says in sentences, held against numbers put in by hand."""

from __future__ import annotations

from typing import Any

from workbench import scenario
from workbench.compare import Comparison, compare
from workbench.figures.ttft import ttft_pairs
from workbench.figures.verdict import for_whom_later, noise, sentence

ON_OFF: list[tuple[str, dict[str, Any]]] = [("on", {}), ("off", {"engine.cache": "off"})]


def walkthrough(ttft: dict[str, tuple[float, float]], clock: str = "wall") -> Comparison:
    """The walkthrough's two arms with first tokens as given; each ends a second after its first token."""
    result = compare(scenario.load("walkthrough"), ON_OFF)[0]
    for pair in result.paired:
        pair.ttft = list(ttft[pair.id])
    for place, arm in enumerate(result.arms):
        arm.report.header.clock = clock
        for r in arm.report.requests:
            r.ttft = ttft[r.id][place]
            r.finished = r.arrived + r.ttft + 1
    return result


def test_the_median_of_two_lies_between_them() -> None:
    result = walkthrough({"R1": (1, 1), "R2": (0.5, 1), "R3": (0.25, 1)})
    assert sentence(result).startswith("For the 2 requests that found something in the cache, the first token came 3.0 times sooner (median)")
    assert ttft_pairs(result)["median"] == [0.5, 1]


def test_a_gain_no_larger_than_between_equal_work_is_called_chance() -> None:
    result = walkthrough({"R1": (1, 2), "R2": (1, 1.5), "R3": (1, 1.9)})
    assert noise(result) == ("R1", 2.0)
    assert sentence(result).endswith("no more than chance. R1 did the same work in both arms, and one run took 2.0 times as long as the other.")


def test_a_larger_gain_is_told_with_chance_beside_it() -> None:
    said = sentence(walkthrough({"R1": (1, 1.3), "R2": (0.2, 1), "R3": (0.2, 1)}))
    assert "5.0 times sooner" in said
    assert said.endswith("For scale: R1 did the same work in both arms, and its first token took 1.3 times as long in one as in the other.")


def test_simulated_time_knows_no_chance() -> None:
    assert noise(walkthrough({"R1": (1, 2), "R2": (1, 2), "R3": (1, 2)}, clock="virtual")) is None


def test_nothing_found_is_nothing_saved() -> None:
    result = compare(scenario.load("walkthrough"), [("off", {"engine.cache": "off"}), ("again", {"engine.cache": "off"})])[0]
    assert sentence(result) == "No request found anything in the cache, so the cache saved nothing here."


def test_whoever_waits_longer_is_named() -> None:
    result = walkthrough({"R1": (1, 3), "R2": (2, 1), "R3": (1, 1)})
    assert for_whom_later(result, 1) == "First tokens in off against on: sooner for 1 of 3; later for 1: R1 (3.0 times)."
    same = walkthrough({"R1": (1, 1), "R2": (1, 1.01), "R3": (1, 1)})
    assert for_whom_later(same, 1) == "off against on: nobody's first token came noticeably later or sooner."


def test_requests_are_paired_by_id_where_the_arms_saw_them_in_another_order() -> None:
    requests = [
        {"id": "S", "tokens": "A30", "max_new_tokens": 1},
        {"id": "P", "tokens": "C12", "after": "S", "max_new_tokens": 1},
        {"id": "Q", "tokens": "A30+B1", "after": "S", "max_new_tokens": 1},
        {"id": "after P", "tokens": "D2", "after": "P", "max_new_tokens": 1},
        {"id": "after Q", "tokens": "E2+F9", "after": "Q", "max_new_tokens": 1},
    ]
    read = scenario.parse({"requests": requests, "engine": {"max_running": 1}})
    rows = ttft_pairs(compare(read, [("fcfs", {}), ("lpm", {"engine.policy": "lpm"})])[0])["rows"]
    assert {r["id"]: r["computed"] for r in rows} == {"S": [30, 30], "P": [12, 12], "Q": [1, 1], "after P": [2, 2], "after Q": [11, 11]}
