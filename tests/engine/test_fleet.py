"""Replicas: several engines on one virtual clock behind a router, each with its own tree, pool and queue."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from engine import EngineConfig, Fleet
from engine import events as ev
from engine.asking import SubmitError
from engine.config import ConfigError, config_from
from engine.fleet.guess import Guess
from engine.request import Request, SamplingParams
from tests.engine.lab import ids
from tests.engine.traffic import Case, cases, hear, play
from workbench.replay import State


@dataclass
class Bus:
    """A fleet, each replica's trace folded beside it and held against it at every commit."""

    fleet: Fleet = field(init=False)
    states: list[State] = field(init=False)
    outputs: dict[str, list[int]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def __init__(self, **config: Any) -> None:
        settled = EngineConfig(**{"replicas": 2, **config})
        self.states = [State() for _ in range(settled.replicas)]
        self.outputs, self.reasons = {}, {}
        self.fleet = Fleet(settled, trace=ev.Trace(), check=True)
        self.fleet.trace.sinks.append(self.fold)
        for event in self.fleet.trace:
            self.states[event.replica].apply(event)

    def fold(self, batch: list[ev.Event]) -> None:
        for event in batch:
            self.states[event.replica].apply(event)
        replica = batch[-1].replica
        assert self.states[replica].canonical() == self.fleet.engines[replica].snapshot()

    def ask(self, id: str, prompt: str | list[int], new: int = 1, **asked: Any) -> None:
        self.fleet.submit(ids(prompt), id=id, max_new_tokens=new, **asked)

    def run(self) -> Bus:
        for progress in self.fleet.run():
            hear(progress, self.outputs, self.reasons)
        return self

    def events(self, kind: type[Any]) -> list[Any]:
        return [e for e in self.fleet.trace if isinstance(e, kind)]

    def routed(self) -> dict[str, int]:
        return {e.request: e.chosen for e in self.events(ev.RequestRouted)}


def test_round_robin_goes_in_turn() -> None:
    bus = Bus(replicas=3, router="round-robin")
    for i in range(5):
        bus.ask(f"R{i}", "A4", at=float(10 * i))
    assert bus.run().routed() == {"R0": 0, "R1": 1, "R2": 2, "R3": 0, "R4": 1}


def test_least_loaded_counts_what_has_not_ended() -> None:
    bus = Bus(router="least-loaded")
    bus.ask("long", "A4", 20, at=0.0)
    for i in range(3):
        bus.ask(f"R{i}", "B4", 2, at=4.0 + 4 * i)
    assert bus.run().routed() == {"long": 0, "R0": 1, "R1": 1, "R2": 1}
    assert [e.loads for e in bus.events(ev.RequestRouted)] == [[0, 0], [1, 0], [1, 0], [1, 0]]


def test_power_of_two_takes_the_less_loaded_of_two_and_is_the_same_for_the_same_seed() -> None:
    def run() -> Bus:
        bus = Bus(replicas=4, router="power-of-two")
        for i in range(12):
            bus.ask(f"R{i}", "A4", 6, at=0.5 * i)
        return bus.run()

    one, two = run(), run()
    assert one.fleet.trace.events == two.fleet.trace.events
    for event in one.events(ev.RequestRouted):
        pair = [int(word) for word in event.reason.split() if word.isdecimal()]
        assert len(pair) == 2 and event.loads[event.chosen] == min(event.loads[r] for r in pair)


def test_cache_aware_sends_a_prompt_where_its_prefix_was_sent() -> None:
    bus = Bus(pages=64)
    for i, prompt in enumerate(("A8+B2", "C8+D2", "A8+E2", "C8+F2", "A8+G2")):
        bus.ask(f"R{i}", prompt, at=float(10 * i))
    # Nothing is known of C8, and both are idle: it goes to the first, as A8 did.
    assert bus.run().routed() == dict.fromkeys(("R0", "R1", "R2", "R3", "R4"), 0)
    bus = Bus(pages=64)
    bus.ask("R0", "A8+B2", 9, at=0.0)
    bus.ask("R1", "C8+D2", 9, at=1.0)
    bus.ask("R2", "C8+E2", at=40.0)
    bus.ask("R3", "A8+F2", at=50.0)
    assert bus.run().routed() == {"R0": 0, "R1": 1, "R2": 1, "R3": 0}
    assert [e.matches for e in bus.events(ev.RequestRouted)][2:] == [[0, 8], [8, 0]]


def test_cache_aware_gives_up_the_prefix_where_the_loads_are_too_far_apart() -> None:
    bus = Bus(pages=256, router_balance=(2, 1.5))
    for i in range(5):
        bus.ask(f"R{i}", f"A8+B{i + 1}", 30, at=0.1 * i)
    assert bus.run().routed() == {"R0": 0, "R1": 0, "R2": 0, "R3": 1, "R4": 1}  # R3 shares the most with R4
    assert bus.events(ev.RequestRouted)[3].reason == "loads too far apart (3 and 0)"


def test_a_guess_forgets_what_was_sent_longest_ago() -> None:
    guess = Guess(20)
    made = [Request(id=f"R{i}", prompt=ids(p), params=SamplingParams(), arrived=0.0, index=i) for i, p in enumerate(("A8+B2", "C8+D2", "E8+F2"))]
    for request in made:
        guess.sent(request, request.packed(10))
    assert [guess.match(r.packed(10), None) for r in made] == [0, 10, 10]


def test_replicas_share_a_clock_that_never_goes_back_and_a_sequence_of_events() -> None:
    bus = Bus(replicas=3, router="round-robin", clock={"plan": 0.25, "step": 1.0, "token": 0.125})
    for i in range(9):
        bus.ask(f"R{i}", f"A8+B{i + 1}", 1 + i, at=0.3 * i)
    bus.run()
    events = list(bus.fleet.trace)
    assert [e.seq for e in events] == list(range(len(events)))
    assert [e.t for e in events] == sorted(e.t for e in events)
    assert {e.replica for e in events} == {0, 1, 2}


def test_one_that_waits_for_another_arrives_after_it_has_ended_elsewhere() -> None:
    bus = Bus(router="round-robin")
    bus.ask("R1", "A4", 5, at=0.0)
    bus.ask("R2", "B4", 1, after="R1", think=2.0)
    bus.run()
    assert bus.routed() == {"R1": 0, "R2": 1}
    assert bus.events(ev.RequestArrived)[1].arrived == bus.events(ev.RequestFinished)[0].t + 2.0


def test_a_request_is_taken_back_wherever_it_is() -> None:
    bus = Bus(router="round-robin")
    bus.ask("R1", "A4", 50, at=0.0)
    bus.ask("R2", "B4", 50, at=0.0)
    bus.ask("R3", "C4", 50, at=100.0)
    for _ in range(8):
        bus.fleet.step()
    assert [bus.fleet.abort(name) for name in ("R2", "R3", "R4")] == [True, True, False]
    bus.run()
    assert bus.reasons == {"R1": "length"} and not bus.fleet.busy


SEPARATE = {"executor": "cost", "hardware": "l4-llama-3.1-8b", "replicas": 3, "prefill_replicas": 1, "page_size": 4, "pages": 256}


def test_a_prompt_is_computed_where_it_is_prefilled_and_its_kv_lies_in_the_cache_where_it_decodes() -> None:
    bus = Bus(**SEPARATE)
    bus.ask("R1", "A16+B4", 5, at=0.0)
    bus.ask("R2", "A16+C4", 1, at=1.0)
    bus.run()
    first, second, other = bus.events(ev.RequestRouted)
    assert (first.request, first.chosen, second.request, second.chosen, other.chosen) == ("R1", 0, "R1+", 1, 0)
    rates = bus.fleet.executor.rates
    assert (second.transferred, second.source) == (20, 0)
    assert second.seconds == pytest.approx(20 * rates["kv_bytes"] / rates["host_bandwidth"])
    arrived = {e.request: e for e in bus.events(ev.RequestArrived)}
    assert arrived["R1+"].prompt == [*arrived["R1"].prompt, *bus.outputs["R1"]] and arrived["R1+"].max_new_tokens == 4
    admitted = {e.request: (e.cached, e.computed) for e in bus.events(ev.RequestAdmitted)}
    assert admitted == {"R1": (0, 20), "R1+": (20, 1), "R2": (16, 4)}  # R2 says one token: there is no second half


def test_separate_engines_say_what_one_engine_says_and_one_that_waits_waits_for_the_second_half() -> None:
    whole = Bus(**SEPARATE | {"prefill_replicas": 0, "replicas": 2})
    apart = Bus(**SEPARATE)
    for bus in (whole, apart):
        for i in range(8):
            bus.ask(f"R{i}", f"A16+B{i + 1}", 1 + 3 * i, at=0.01 * i)
        bus.ask("last", "C4", 2, after="R7", think=1.0)
        bus.run()
    assert {name: apart.outputs[name] + apart.outputs.get(f"{name}+", []) for name in whole.outputs} == whole.outputs
    ends = {e.request: e.t for e in apart.events(ev.RequestFinished)}
    assert next(e.arrived for e in apart.events(ev.RequestArrived) if e.request == "last") == pytest.approx(ends["R7+"] + 1.0)


def test_a_request_whose_kv_is_on_its_way_can_be_taken_back_and_who_waited_for_it_comes() -> None:
    bus = Bus(**SEPARATE | {"host_bandwidth": 1e6})  # a link that takes seconds
    bus.ask("R1", "A16+B4", 5, at=0.0)
    bus.ask("R2", "C4", 1, after="R1")
    while not bus.events(ev.RequestFinished):
        bus.fleet.step()
    assert bus.fleet.abort("R1") and not bus.fleet.abort("R1")
    bus.run()
    assert sorted(bus.outputs) == ["R2"] and "R1+" not in {e.request for e in bus.events(ev.RequestArrived)}


def test_the_times_of_a_run_that_is_stopped_do_not_go_back_either() -> None:
    bus = Bus(replicas=3, router="round-robin", clock={"step": 1.0, "token": 0.25})
    for i in range(9):
        bus.ask(f"R{i}", f"A{4 + i}", 20, at=0.3 * i)
    for _ in range(14):
        bus.fleet.step()
    assert sum(e.flight is not None for e in bus.fleet.engines) == 3
    bus.fleet.finish(stopped=True)
    times = [e.t for e in bus.fleet.trace]
    assert times == sorted(times) and len(bus.events(ev.RequestAborted)) == 9
    assert [e.replica for e in bus.events(ev.RunEnded)] == [0, 1, 2]


@pytest.mark.parametrize(("config", "says"), [
    ({"prefill_replicas": 2}, "prefill_replicas: at least one of the replicas has to decode; got 2 of 2"),
    ({"prefill_replicas": 1}, "prefill_replicas: KV travels between engines on the cost executor alone; executor is puppet"),
    ({"executor": "model"}, "executor: replicas share a virtual clock, so with replicas above 1 it must be one of cost, puppet; got model"),
    ({"overlap": True}, "overlap: replicas plan serially, so with replicas above 1 it must be one of False; got True"),
])  # fmt: skip
def test_what_replicas_cannot_do_is_refused_by_name(config: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_from({"replicas": 2, **config})
    assert says in str(caught.value)


def test_arrivals_by_step_are_refused() -> None:
    with pytest.raises(SubmitError, match="at_step: replicas count their steps each for itself"):
        Bus().ask("R", "A4", at_step=3)


@pytest.mark.parametrize("router", ["cache-aware", "round-robin", "least-loaded", "power-of-two"])
def test_random_traffic_on_replicas_says_what_one_engine_says(router: str) -> None:
    """Invariant, fold and outputs, for every router."""
    seen: Counter[str] = Counter()

    @settings(max_examples=25, deadline=None, derandomize=True, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(case=cases(2))
    def check(case: Case) -> None:
        config = case.config | {"overlap": False, "speculate": 0, "jump": "verified", "replicas": 3, "router": router, "router_balance": (2, 1.5)}
        if config["eviction"] == "belady":
            config["eviction"] = "lru"
        requests = [dict(r) for r in case.requests]
        for request in requests:
            request.pop("abort_at_step", None)
            request.pop("fail_at_step", None)
        one = play(Case(config | {"replicas": 1}, requests))
        bus = Bus(**config)
        for request in requests:
            asked = dict(request)
            if "at_step" in asked:
                asked["at"] = float(asked.pop("at_step"))
            bus.fleet.submit(asked.pop("prompt"), **asked)
        bus.run()
        for name, said in bus.outputs.items():
            if {bus.reasons[name], one.reasons[name]} <= {"stop", "length"}:
                assert said == one.outputs[name], name
        seen.update(type(e).__name__ for e in bus.fleet.trace)
        seen.update(f"at {e.chosen}" for e in bus.events(ev.RequestRouted))

    check()
    assert seen["at 1"] and seen["at 2"] and seen["RequestRetracted"] and seen["NodeEvicted"]
