"""The host tier under the whole engine, on the puppet: load or compute, what that takes, and what is counted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import events as ev
from engine.executor.puppet import LINK
from tests.engine.lab import Lab
from tests.engine.test_properties import same_answers
from tests.engine.traffic import Case, cases, play, second_tiers
from workbench.recording import run_again

TOKEN = 0.01
"""Seconds that computing a token takes: a hundred a second."""


def lab(**config: Any) -> Lab:
    """A pool of 40 single-token pages over a host of 200; a byte a token."""
    return Lab(**({"pages": 40, "host_pages": 200, "clock": {"step": 0.5, "token": TOKEN}, "host_bandwidth": 200.0} | config))


def push_out(lab: Lab, *prompts: str) -> None:
    """Serve prompts, then take all pages of the tree."""
    for i, prompt in enumerate(prompts):
        lab.serve(f"put{i}", prompt, 1)
    take_all(lab)
    assert not any(lab.found(p) for p in prompts)


def take_all(lab: Lab) -> None:
    """Evict whatever can be evicted."""
    lab.engine.scheduler.holdings.evict(lab.engine.cache.evictable)
    lab.trace.commit()


def admitted(lab: Lab, request: str) -> Any:
    return lab.events(ev.RequestAdmitted, request)[0]


def lasted(lab: Lab, step: int) -> float:
    """Simulated seconds from a step's plan to its end."""
    planned, done = (next(e.t for e in lab.events(kind) if e.step == step) for kind in (ev.StepPlanned, ev.StepFinished))
    return round(done - planned, 6)


# --- the decision ------------------------------------------------------------------------------


@pytest.mark.parametrize(("bandwidth", "loaded", "load", "took"), [
    (200.0, 16, 0.08, 0.08 + 0.5 + 0.04), (100.1, 16, 0.16, 0.16 + 0.5 + 0.04), (100.0, 0, 0.16, 0.5 + 0.2), (50.0, 0, 0.32, 0.5 + 0.2),
])  # fmt: skip
def test_a_prefix_on_the_host_is_loaded_only_where_that_takes_less_than_computing_it(
    bandwidth: float, loaded: int, load: float, took: float
) -> None:
    at = lab(host_bandwidth=bandwidth)
    push_out(at, "A16")
    at.serve("R", "A16+B4", 1)
    event = admitted(at, "R")
    assert (event.host, event.loaded, event.recompute_seconds) == (16, loaded, 0.16)
    assert event.load_seconds == pytest.approx(load, abs=1e-3)
    assert (at.hit("R"), at.new("R")) == (loaded, 20 - loaded)
    assert lasted(at, event.step) == pytest.approx(took, abs=1e-3)
    totals = at.engine.totals
    assert (totals.loaded_tokens, totals.cached_tokens) == (loaded, loaded)


def test_the_second_of_a_step_waits_for_the_link_and_the_next_step_finds_it_free() -> None:
    at = lab(pages=60, host_bandwidth=150.0)
    push_out(at, "A16", "B16")
    for name, prompt in (("R1", "A16+C2"), ("R2", "B16+C2")):
        at.ask(name, prompt, 1)
    at.run()
    one, two = admitted(at, "R1"), admitted(at, "R2")
    assert one.step == two.step and (one.loaded, two.loaded) == (16, 0)
    assert (one.load_seconds, two.load_seconds) == (pytest.approx(16 / 150), pytest.approx(32 / 150))
    assert lasted(at, one.step) == pytest.approx(16 / 150 + 0.5 + TOKEN * (2 + 18), abs=1e-6)
    take_all(at)
    at.serve("R3", "B16+D2", 1)
    assert admitted(at, "R3").loaded == 16


def test_where_computing_is_free_nothing_is_loaded_and_where_nothing_is_held_nothing_is_decided() -> None:
    at = lab(clock={"step": 1, "token": 0}, host_bandwidth=None)
    push_out(at, "A16")
    at.serve("R", "A16+B4", 1)
    event = admitted(at, "R")
    assert (event.host, event.loaded, event.recompute_seconds, event.load_seconds) == (16, 0, 0.0, round(16 / LINK, 9))
    nothing = admitted(at, "put0")
    assert (nothing.host, nothing.load_seconds, nothing.recompute_seconds) == (0, None, None)


def test_the_constants_of_the_decision_stand_in_the_header() -> None:
    assert lab().trace.header.rates == {"kv_bytes": 1.0, "host_bandwidth": 200.0, "prefill_rate": 100.0}
    assert lab(host_bandwidth=None).trace.header.rates["host_bandwidth"] == LINK
    assert Lab(pages=8).trace.header.rates == {} == lab(cache="off").trace.header.rates


def test_only_the_matched_part_is_loaded_in_whole_pages() -> None:
    at = lab(page_size=4, pages=10, host_pages=50)
    push_out(at, "A16")
    at.serve("R", "A10+B3", 1)
    assert (admitted(at, "R").host, admitted(at, "R").loaded, at.hit("R")) == (8, 8, 8)
    assert [(e.pages and len(e.pages)) for e in at.events(ev.NodeRestored)] == [2]


def test_the_host_continues_what_the_device_still_has() -> None:
    at = lab()
    at.serve("put", "A16", 1)
    at.serve("flood", "Z30", 2)
    kept = at.found("A16")
    assert 0 < kept < 16
    at.serve("R", "A16+B4", 1)
    assert (admitted(at, "R").host, at.hit("R")) == (16 - kept, 16)
    assert at.engine.totals.loaded_tokens == 16 - kept < at.engine.totals.cached_tokens == 16


def test_what_is_computed_again_takes_its_place_in_the_tree_and_is_found_on_the_device() -> None:
    at = lab(host_bandwidth=1.0)
    push_out(at, "A16")
    node = at.engine.cache.match(at_bytes("A16"), None).host_path[0].id
    at.serve("R", "A16+B4", 1)
    told = at.events(ev.NodeRestored)
    assert [(e.node, e.request, len(e.pages)) for e in told] == [(node, "R", 16)]
    assert at.found("A16") == 16 and at.node_of("A16").tier == "both"


def at_bytes(prompt: str) -> bytes:
    from engine.cache.base import pack
    from tests.engine.lab import ids

    return pack(ids(prompt))


@pytest.mark.parametrize("policy", ["write-through", "write-back"])
def test_a_retracted_request_recovers_from_the_host_what_left_the_device_meanwhile(policy: str) -> None:
    at = lab(pages=24, host_pages=100, reserve_start=0.0, reserve_min=0.0, host_policy=policy)
    for i in range(3):
        at.ask(f"R{i}", f"{'ABC'[i]}6", 16)
    at.run()
    again = [e for e in at.events(ev.RequestAdmitted) if not e.first]
    assert any(e.loaded for e in again) and all(e.recovered >= e.loaded for e in again)
    assert at.engine.totals.loaded_tokens == sum(e.loaded for e in again)
    assert at.engine.totals.cached_tokens == 0 < at.engine.totals.recovered_tokens


# --- with the rest of the scheduler ------------------------------------------------------------


@pytest.mark.parametrize("policy", ["lpm", "lpm-fair", "lpm-as-shipped"])
def test_longest_prefix_first_counts_what_either_tier_holds(policy: str) -> None:
    at = lab(policy=policy, max_running=1, host_bandwidth=1.0)
    push_out(at, "A16")
    at.serve("put", "Z20", 1)
    for name, prompt in (("none", "B8"), ("host", "A16+C2"), ("device", "Z20+C2")):
        at.ask(name, prompt, 1)
    at.run()
    order = [e.request for e in at.events(ev.RequestAdmitted) if e.request in ("none", "host", "device")]
    assert order == ["device", "host", "none"]


def test_whoever_waits_for_a_prefix_in_flight_does_not_wait_for_one_that_is_loaded() -> None:
    for bandwidth, together in ((1000.0, True), (1.0, False)):
        at = lab(pages=80, host_bandwidth=bandwidth, in_batch="barrier")
        push_out(at, "A16")
        for name in ("R1", "R2"):
            at.ask(name, "A16+" + ("B2" if name == "R1" else "C2"), 1)
        at.run()
        assert (admitted(at, "R1").step == admitted(at, "R2").step) == together
        held = [e.limit for e in at.events(ev.RequestPassedOver, "R2")]
        assert held == ([] if together else ["prefix in flight"])
        assert at.hit("R2") == 16


# --- field notes with two tiers ----------------------------------------------------------------


def test_d6_of_ten_leaves_one_page_is_taken_when_one_is_asked_for_also_where_it_goes_to_the_host() -> None:
    at = Lab(pages=31, host_pages=40)
    for k in range(10):
        at.serve(f"R{k}", [10 * k + 1, 10 * k + 2, 10 * k + 3], 1)
    assert at.engine.cache.evictable == 30
    at.engine.scheduler.holdings.evict(1)
    at.trace.commit()
    last = at.events(ev.Eviction)[-1]
    assert (last.asked, last.freed, last.evictable, last.ranking[0].taken) == (1, 1, 30, 1)
    assert at.events(ev.NodeDemoted)[-1].kept is False and at.engine.pool.free == 2


@pytest.mark.parametrize("policy", ["write-through", "write-back"])
def test_d9_a_pinned_prompt_stays_on_the_device_through_a_flood_and_then_goes_to_the_host(policy: str) -> None:
    at = Lab(pages=32, host_pages=20, host_policy=policy)
    at.serve("R1", "A8", 1, pin=50)
    end = at.engine.step_number - 1
    flood = 0
    while at.engine.step_number <= end + 50:
        flood += 1
        at.serve(f"F{flood}", f"X{chr(97 + flood % 26)}20", 2)
        assert at.found("A8") == 8
    assert at.events(ev.Eviction)
    at.serve("after", "B26", 2)
    assert at.found("A8") < 8
    over = [e for e in at.events(ev.NodePinned) if e.until == 0]
    assert [e.step for e in over] == [end + 51]


# --- whatever happens --------------------------------------------------------------------------


@pytest.mark.parametrize(("page_size", "examples"), [
    (4, 20), pytest.param(1, 100, marks=pytest.mark.slow), pytest.param(4, 200, marks=pytest.mark.slow),
])  # fmt: skip
def test_traffic_that_comes_in_waves_says_the_same_with_the_tier_and_without(page_size: int, examples: int) -> None:
    seen = {"loaded": 0, "computed again": 0, "left the host": 0}

    @settings(max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(cases(page_size, grammars=False), second_tiers(page_size), st.integers(2, 3))
    def run(case: Case, tier: dict[str, Any], waves: int) -> None:
        waved = [
            {k: v for k, v in r.items() if k != "after"} | {"id": f"{r['id']}.{wave}", "at_step": 1 + 60 * wave + r.get("at_step", 0)}
            for wave in range(waves)
            for r in case.requests
        ]
        waved.sort(key=lambda r: r["at_step"])  # type: ignore[arg-type, return-value]
        config = case.config | {"cache": "radix", "eviction": "lru" if case.config["cache"] == "blocks" else case.config["eviction"]}
        again = Case(config | tier, waved)
        two = play(again, fold=True)
        same_answers(two, play(again, host_pages=0))
        for event in two.trace:
            if isinstance(event, ev.NodeRestored):
                seen["loaded" if event.request is None else "computed again"] += 1
            elif isinstance(event, ev.NodeEvicted):
                seen["left the host"] += not event.pages

    run()
    assert min(seen.values()) > 5, seen


def test_a_recording_with_a_host_tier_is_decided_again_as_it_was() -> None:
    at = lab(pages=60, host_bandwidth=150.0)
    for name, prompt in (("put1", "A16"), ("put2", "B16"), ("flood", "Y59")):
        at.serve(name, prompt, 2)
    for name, prompt in (("R1", "A16+C2"), ("R2", "B16+C2")):
        at.ask(name, prompt, 1)
    at.run()
    at.engine.finish()
    again = run_again(at.trace, check=True)
    assert again.same
    assert again.run.report.totals.loaded_tokens == again.recorded.totals.loaded_tokens == 16
