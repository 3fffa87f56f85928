"""Experiments that replay recorded traffic, request by request against a few lines of brute force; exact ones against arithmetic."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench import cli, experiments
from workbench import scenario as scenarios
from workbench.experiments import Bench, amdahl, attention, aware, hits, memory, mooncake, ordering
from workbench.experiments.arithmetic import amdahl as amdahls_law
from workbench.experiments.arithmetic import bytes_a_token, expected_speedup
from workbench.runner import Run, run
from workbench.scenario import Scenario

pytestmark = pytest.mark.xdist_group("experiments")


def reference(prompts: Sequence[Sequence[int]], page: int, room: int | None = None, beside: bool = True) -> list[int]:
    """Tokens that each prompt reuses, one after the other, least recently used out first. Written without the engine.

    `room` pages are kept beside the running request, or shared with it.
    """
    known: dict[tuple[int, ...], int] = {}
    reused = []
    for tick, prompt in enumerate(prompts):
        pages = [tuple(prompt[:n]) for n in range(page, len(prompt) + 1, page)]
        found = next((n for n, p in enumerate(pages[: (len(prompt) - 1) // page]) if p not in known), (len(prompt) - 1) // page)
        reused.append(found * page)
        own = 0 if beside else -(-len(prompt) // page) - found
        for stored, extra in ((pages[:found], own), (pages, 0)):
            known |= dict.fromkeys(stored, tick)
            while room is not None and len(known) + extra > room:
                del known[min(known, key=lambda p: (known[p], -len(p)))]
    return reused


def cached(done: Run) -> list[int]:
    return [r.cached_tokens or 0 for r in done.report.requests]


def prompts(scenario: Scenario) -> list[list[int]]:
    return [r.tokens or [] for r in scenario.requests]


# --- hits --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chats() -> Scenario:
    bench = Bench(quick=True)
    return scenarios.parse({"name": "x", "engine": {}, "workload": hits.workload(bench, hits.OWN)}, files=True)


@pytest.mark.parametrize("cache", ["radix", "blocks"])
@pytest.mark.parametrize("capacity", [128, 479, 1024, None])
def test_hits_agree_request_by_request_with_brute_force(chats: Scenario, cache: str, capacity: int | None) -> None:
    page = 1 if cache == "radix" else hits.BLOCK
    room = None if capacity is None else capacity // page
    done = Bench().again(chats, "x", cache=cache, page_size=page, pages=8192 // page, cache_pages=room)
    assert cached(done) == reference(prompts(chats), page, room)


def test_an_answer_that_is_stored_leaves_behind_what_a_decoded_one_does() -> None:
    workload = hits.workload(Bench(quick=True), hits.OWN)
    engine = {"pages": 4096, "cache_pages": 600}
    stored = run(scenarios.parse({"engine": engine, "workload": workload})).report
    decoded = run(scenarios.parse({"engine": engine, "workload": workload | {"answers": "decoded"}})).report
    counted = hits.asked(stored)
    assert [(r.id, r.cached_tokens) for r in counted] == [(r.id, r.cached_tokens) for r in decoded.requests]
    assert len(counted) == 36 and len(stored.requests) == 72


def test_the_working_set_is_what_the_open_chats_hold() -> None:
    sizes = [("C1-1", 3), ("C2-1", 4), ("C1-2", 9), ("C3-1", 5), ("C2-2", 6)]
    requests = [scenarios.RequestSpec(id=i, tokens=[0] * n) for i, n in sizes]
    assert hits.working_set(requests) == max(3, 3 + 4, 9 + 4, 4 + 5, 5 + 6)


# --- mooncake ----------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [12, 16, 24, None])
def test_mooncake_agrees_request_by_request_with_brute_force(room: int | None) -> None:
    scenario = scenarios.parse(mooncake.traffic(mooncake.OWN))
    done = Bench().again(scenario, "x", pages=room or 4096)
    assert cached(done) == reference(prompts(scenario), mooncake.SHOWN, room, beside=False)


def test_a_trace_hits_the_same_blocks_at_its_full_size() -> None:
    small = scenarios.parse(mooncake.traffic(mooncake.OWN))
    data = mooncake.traffic(mooncake.OWN)
    whole = scenarios.parse({**data, "engine": {"page_size": 512}, "workload": data["workload"] | {"block": 512}})
    for room in (12, 16, 64):
        assert [n * 256 for n in cached(Bench().again(small, "x", pages=room))] == cached(Bench().again(whole, "x", pages=room))


# --- ordering ----------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ordering.ORDERS)
def test_ordering_agrees_request_by_request_with_brute_force(order: str) -> None:
    data = {"engine": {"page_size": 16, "pages": 8192}, "workload": ordering.workload(Bench(quick=True), ordering.OWN, order)}
    scenario = scenarios.parse(data)
    assert cached(run(scenario)) == reference(prompts(scenario), 16)


# --- aware -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["prefix-heavy", "unique prompts"])
def test_aware_in_order_of_arrival_agrees_with_brute_force(kind: str) -> None:
    data = aware.traffic(64)[kind]
    scenario = scenarios.parse({**data, "engine": data["engine"] | {"max_running": 1}})
    rows = {r.id: r for r in run(scenario).report.requests}
    answers = [rows[str(r.id)].output_ids for r in scenario.requests]
    # The last token of an answer was sampled and never forwarded.
    both = [p for prompt, answer in zip(prompts(scenario), answers, strict=True) for p in (prompt, prompt + answer[:-1])]
    assert [rows[str(r.id)].cached_tokens for r in scenario.requests] == reference(both, 1, data["engine"]["cache_pages"])[::2]


# --- exact -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["attention", "memory", "amdahl"])
def test_exact_rows_print_the_published_figures(name: str) -> None:
    for row in experiments.find(name).carry_out(Bench(quick=True)).rows:
        assert row.published is None or row.ours == row.published


def test_calculators() -> None:
    assert bytes_a_token(memory.LAYERS, memory.HEADS, memory.WIDTH, memory.BYTES) == 131_072
    assert bytes_a_token(30, 3, 64, 4) == 46_080
    assert amdahls_law(100, 900, 5) == 1000 / 920 and amdahls_law(1, 0, 5) == 5
    assert amdahls_law(amdahl.PREFILL, amdahl.DECODE, 1) == 1
    # Two prompts of 100 tokens, half known, 10 further passes of 1 + 1 each: (1 + 100) x 2 against (1 + 50) x 2.
    assert expected_speedup([100, 100], 0.5, [6, 6], 1, 1) == (202 / 102, 222 / 122)


def test_attention_is_softmax_of_the_products_over_what_lies_before() -> None:
    rng = np.random.default_rng(3)
    q, k, v = (rng.standard_normal((5, 4)) for _ in range(3))
    got = attention.attend(q, k, v)
    for i in range(5):
        weights = [np.exp(q[i] @ k[j]) for j in range(i + 1)]
        assert np.allclose(got[i], sum(w * v[j] for j, w in enumerate(weights)) / sum(weights))


# --- files -------------------------------------------------------------------------------------


def test_an_experiment_runs_on_a_file_that_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"timestamp": 0, "input_length": 1024, "output_length": 1, "hash_ids": [5, 6]}\n' * 4 + "{\n", "utf-8")
    result = experiments.find("mooncake").carry_out(Bench(quick=True, file=path))
    # Of two blocks each, all but the first request find one: the last token has to run.
    assert "from the file mine.jsonl" in result.setup and {row.agrees for row in result.rows} == {None}
    assert [row.ours for row in result.rows] == [37.5, 100, 100, 100, 100]
    assert cli.main(["experiment", "ordering", "--quick", "--file", str(path)]) == 2
    assert "no trajectory that can be used; 5 of 5 records could not be used: line 1: has no list of messages" in capsys.readouterr().err


def test_an_experiment_that_makes_its_own_traffic_takes_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["experiment", "walkthrough", "--file", "x.jsonl"]) == 2
    assert capsys.readouterr().err == "error: --file: walkthrough makes its own traffic and takes no file\n"


def test_without_outside_data_the_full_version_runs_on_the_own_set_and_says_so() -> None:
    result = experiments.find("mooncake").carry_out(Bench(data=None))
    assert "the project's own small set mooncake.jsonl, as $RADIX_DATA holds no other" in result.setup


# --- outside data ------------------------------------------------------------------------------


@pytest.fixture
def outside() -> Any:
    if not os.environ.get("RADIX_DATA"):
        pytest.skip("RADIX_DATA is not set")
    return Bench()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hits", "mooncake", "ordering"])
def test_the_real_traffic_holds_what_is_stated(outside: Bench, name: str) -> None:
    result = experiments.find(name).carry_out(outside)
    assert "$RADIX_DATA" in result.setup and result.failed == []


@pytest.mark.slow
@pytest.mark.parametrize("trace", list(mooncake.TRACES))
def test_a_real_trace_agrees_request_by_request_with_brute_force(outside: Bench, trace: str) -> None:
    assert outside.data is not None
    file = outside.data / mooncake.FOLDER / mooncake.TRACES[trace]
    room = 3_000_000 // 512
    scenario = scenarios.parse(mooncake.traffic(str(file)), files=True)
    done = outside.again(scenario, "x", pages=room)
    known: OrderedDict[int, None] = OrderedDict()
    expected = []
    for line in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
        ids, n = line["hash_ids"], line["input_length"]
        found = next((i for i, b in enumerate(ids[: (n - 1) // 512]) if b not in known), (n - 1) // 512)
        expected.append(found)
        for stored, extra in ((ids[:found], len(ids) - found), (ids[: n // 512], 0)):
            for block in reversed(stored):
                known[block] = None
                known.move_to_end(block)
            while len(known) + extra > room:
                known.popitem(last=False)
    assert [n // mooncake.SHOWN for n in cached(done)] == expected
