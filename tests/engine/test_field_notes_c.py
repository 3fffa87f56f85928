"""Field notes C and D11 (C1, C2, C10 and C12 by other policies in `test_policies`): who runs when, and at what cost to the others."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from engine import events as ev
from engine.config import Clock, ConfigError, config_from
from engine.executor.puppet import PuppetExecutor
from engine.scheduler.telling import HEAD
from tests.engine.lab import Lab, outputs_of
from workbench.explain import Explainer


def test_c1_plain_longest_prefix_first_serves_the_cold_one_last_and_counts_by_how_much() -> None:
    lab = Lab(pages=400, max_running=1, policy="lpm")
    lab.serve("S", "A8")
    start = lab.engine.step_number
    lab.ask("R0", "Z8", at_step=start)
    for i in range(50):
        lab.ask(f"X{i}", f"A8+X{chr(97 + i % 26)}{1 + i // 26}", at_step=start + i)
    lab.run()
    order = [e.request for e in lab.events(ev.RequestAdmitted) if e.first]
    assert order[-1] == "R0" and order[1:-1] == [f"X{i}" for i in range(50)]
    assert lab.events(ev.RequestAdmitted, "R0")[0].overtaken == sum(lab.new(f"X{i}") for i in range(50))
    counted = [e.overtaken for e in lab.events(ev.RequestPassedOver, "R0")]
    assert len(counted) == 50 and counted == sorted(set(counted))


def test_c1_first_come_first_served_serves_the_cold_one_first() -> None:
    lab = Lab(pages=400, max_running=1, policy="fcfs")
    lab.serve("S", "A8")
    for name, prompt in (("R0", "Z8"), ("X0", "A8+X1"), ("X1", "A8+Y1")):
        lab.ask(name, prompt)
    lab.run()
    assert [e.request for e in lab.events(ev.RequestAdmitted)] == ["S", "R0", "X0", "X1"]
    assert lab.events(ev.RequestAdmitted, "R0")[0].overtaken == 0


@pytest.mark.parametrize(("mixed", "gap"), [(True, 1), (False, 26)])
def test_c3_a_long_prompt_stops_a_running_stream_for_one_chunk_at_most_when_mixed(mixed: bool, gap: int) -> None:
    lab = Lab(pages=600, chunk=16, mixed=mixed)
    lab.ask("R1", "B4", 50)
    lab.ask("R2", "A400", 1, at_step=4)
    at: list[int] = []
    while lab.step():
        if len(lab.out("R1")) > len(at):
            at.append(lab.engine.step_number)
    assert max(b - a for a, b in pairwise(at)) == gap
    if mixed:
        plan = next(e for e in lab.events(ev.StepPlanned) if e.mode == "mixed")
        assert (plan.members, plan.tokens, plan.prefills) == (["R2", "R1"], [15, 1], 1)


def test_c4_four_cold_prompts_end_up_running_together() -> None:
    lab = Lab(pages=400, max_running=4, chunk=8)
    for i in range(4):
        lab.ask(f"R{i}", f"{'ABCD'[i]}20", 30)
    lab.run()
    planned = lab.events(ev.StepPlanned)
    assert sum(e.mode == "prefill" for e in planned) == 10 and all(sum(e.tokens) <= 8 for e in planned)
    assert max(len(e.members) for e in planned if e.mode == "decode") == 4


def test_c5_what_a_chunk_has_left_goes_to_the_next_prompt() -> None:
    lab = Lab(pages=200, chunk=16)
    lab.ask("R1", "A19")
    lab.ask("R2", "B30")
    lab.run()
    assert [(e.members, e.tokens) for e in lab.events(ev.StepPlanned)] == [
        (["R1"], [16]), (["R1", "R2"], [3, 13]), (["R2"], [16]), (["R2"], [1]),
    ]  # fmt: skip


@pytest.mark.parametrize("mixed", [True, False])
@pytest.mark.parametrize("cache", ["radix", "off"])
@pytest.mark.parametrize("chunk", [1, 2, 3, 4, 5])
def test_c6_a_chunk_changes_no_output(chunk: int, cache: str, mixed: bool) -> None:
    asked = [("R1", "A9+B2", 5), ("R2", "A9+C3", 4), ("R3", "A6", 6)]
    want = outputs_of(asked, pages=40, page_size=4)
    assert outputs_of(asked, pages=40, page_size=4, chunk=chunk, cache=cache, mixed=mixed) == want


def test_c7_a_chunk_above_the_step_budget_is_refused_with_both_numbers() -> None:
    with pytest.raises(ConfigError, match=r"chunk: 64 is above prefill_budget \(32\)"):
        config_from({"chunk": 64, "prefill_budget": 32})


@pytest.mark.parametrize("after_steps", [1, 2, 3, 4])
def test_c8_no_token_comes_after_an_abort(after_steps: int) -> None:
    lab = Lab(pages=64, chunk=8)
    lab.ask("R", "A20", 9)
    for _ in range(after_steps):
        lab.step()
    produced = len(lab.out("R"))
    lab.engine.abort("R")
    lab.serve("next", "B2", 3)
    assert len(lab.out("R")) == produced == max(0, after_steps - 2) and lab.idle()


def test_c9_more_than_one_runs_though_each_may_say_much_more_than_it_does() -> None:
    lab = Lab(pages=250, page_size=4)
    for i in range(10):
        lab.ask(f"R{i}", f"{'ABCDEFGHIJ'[i]}20", 500, says=[900 + k for k in range(5)])
    lab.run()
    planned = lab.events(ev.StepPlanned)
    assert max(len(e.members) for e in planned) == 2
    held = [e for e in lab.events(ev.RequestPassedOver) if e.limit == "pages"]
    assert held[0].needed == 93 and held[0].available < 93 and held[0].request == "R2"
    assert all(lab.reasons[f"R{i}"] == "stop" for i in range(10))


@pytest.mark.parametrize(("to", "next_one"), [("front", "R1"), ("back", "R2")])
def test_c11_a_retracted_request_goes_where_the_knob_says(to: str, next_one: str) -> None:
    lab = Lab(pages=64, max_running=1, retract_to=to)
    lab.ask("R1", "A8", 5)
    lab.ask("R2", "B8", 5)
    lab.step()
    lab.step()
    lab.engine.scheduler._retract(lab.live("R1"))
    lab.run()
    admitted = lab.events(ev.RequestAdmitted)
    assert [e.request for e in admitted][1] == next_one
    again = next(e for e in admitted if not e.first)
    assert (again.request, again.recovered, again.recomputed) == ("R1", 8, 1)


def test_c12_without_a_barrier_a_cold_burst_computes_its_shared_head_once_a_request() -> None:
    lab = Lab(pages=200)
    for i, c in enumerate("abcde"):
        lab.ask(f"R{i}", f"A16+X{c}2")
    lab.run()
    assert sum(lab.new(f"R{i}") for i in range(5)) == 90
    assert [e.stop for e in lab.events(ev.RequestMatched)] == ["no child"] + ["not written yet"] * 4
    assert [e.writer for e in lab.events(ev.RequestMatched)][1:] == ["R0"] * 4
    assert sum(n.count for n in lab.engine.cache.walk()) == 16 + 10


@pytest.mark.parametrize(("policy", "order"), [("fcfs", "abcabcabc"), ("lpm", "aaabbbccc")])
def test_c13_longest_prefix_first_groups_what_shares_a_head(policy: str, order: str) -> None:
    lab = Lab(pages=14, max_running=1, policy=policy)
    for i, name in enumerate("abcabcabc"):
        lab.ask(f"{name}{i}", f"{name.upper()}8+X{chr(97 + i)}2")
    lab.run()
    assert "".join(e.request[0] for e in lab.events(ev.RequestAdmitted)) == order
    hits = sum(lab.hit(f"{name}{i}") for i, name in enumerate("abcabcabc"))
    assert hits == (6 * 8 if policy == "lpm" else 0)


@pytest.mark.parametrize("policy", ["lpm", "lpm-as-shipped"])
def test_c14_with_2000_waiting_longest_prefix_first_holds_or_says_that_it_does_not(policy: str) -> None:
    lab = Lab(pages=30_000, max_running=1, policy=policy, fold=False)
    lab.serve("S", "A20")
    for i in range(2000):
        lab.ask(f"R{i}", [20_000 + i, 1])
    lab.ask("hot", "A20+B1")
    lab.step()
    order = [e.request for e in lab.events(ev.RequestAdmitted)][1:]
    said = [e.why for e in lab.events(ev.QueueOrdered) if e.fell_back]
    if policy == "lpm":
        assert (order, said) == (["hot"], [])
    else:
        assert (order, said) == (["R0"], ["2001 wait, and it sorts only while at most 128 do"])


def test_c14_a_step_with_2000_waiting_plans_by_a_few_look_ups_and_keys() -> None:
    lab = Lab(pages=30_000, max_running=1, policy="lpm", fold=False)
    for i in range(2000):
        lab.ask(f"R{i}", [256 + i % 40, 20_000 + i, 1])
    looked, cache = 0, lab.engine.cache
    match = cache.match

    def counted(*asked: Any) -> Any:
        nonlocal looked
        looked += 1
        return match(*asked)

    cache.match = counted  # type: ignore[method-assign]
    written = lab.engine.scheduler.policy.updates
    for _ in range(100):
        lab.step()
    per_step = (lab.engine.scheduler.policy.updates - written) / 100
    assert looked == 100 and per_step <= HEAD + 4, (looked, per_step)  # the head is told at every step


def test_c14_each_step_tells_what_its_planning_took(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def tick() -> float:
        return now

    monkeypatch.setattr("engine.clock.time.perf_counter", tick)
    executor = PuppetExecutor(64, 1, clock=Clock(step=0))
    executor.virtual = False
    lab = Lab(pages=64, executor=executor, policy="lpm")
    arrange = lab.engine.scheduler.policy.arrange

    def slowly() -> None:
        nonlocal now
        now += 0.25
        arrange()

    monkeypatch.setattr(lab.engine.scheduler.policy, "arrange", slowly)
    lab.serve("R1", "A4", 3)
    assert [e.plan_seconds for e in lab.events(ev.StepFinished)] == [0.25, 0.0, 0.0]
    finished = lab.events(ev.StepFinished)[0]
    assert Explainer(lab.trace).event(finished.seq).headline.startswith("Step 1 is done after 250 ms, 250 ms of it planning: ")


def test_c15_an_idle_engine_looks_ten_times_a_second_and_serves_the_first_request_when_it_is_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, looks = 0.0, 0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr("engine.clock.time.perf_counter", lambda: now)
    monkeypatch.setattr("engine.clock.time.sleep", sleep)
    executor = PuppetExecutor(64, 1)
    executor.virtual = False
    lab = Lab(pages=64, executor=executor)
    lab.ask("R", "A4", 1, at=10.0)
    while not lab.events(ev.RequestArrived):
        lab.step()
        looks += 1
    assert looks <= 102
    arrived = lab.events(ev.RequestArrived)[0]
    assert (arrived.arrived, arrived.t) == (10.0, 10.0)
    assert lab.events(ev.RequestAdmitted, "R")[0].t == 10.0
    lab.run()
    assert lab.engine.step() is None and round(now, 6) == 10.0  # nothing to wait for: nobody looks at all


def test_c16_pages_that_are_cached_and_locked_by_others_are_not_asked_for_again() -> None:
    asked: dict[str, Any] = {"pages": 9, "page_size": 4, "reserve_start": 0.0, "reserve_min": 0.0}
    lab = Lab(**asked)
    lab.ask("R1", "A12+B8", 4)
    lab.step()
    lab.step()
    assert lab.engine.pool.free == 3 and lab.engine.cache.evictable == 0
    lab.ask("R2", "A12+C8", 1)
    lab.step()
    admitted = lab.events(ev.RequestAdmitted, "R2")[0]
    assert (admitted.cached, admitted.needed, admitted.available) == (12, 2, 3)


def test_d11_a_request_that_stores_nothing_leaves_no_node_and_the_hot_head_untouched() -> None:
    lab = Lab(pages=64)
    lab.serve("S", "A8")
    before = [(n.id, n.pages, n.hits) for n in lab.engine.cache.walk()]
    lab.serve("R", "A8+B8", 4, store=False)
    assert [(n.id, n.pages) for n in lab.engine.cache.walk()] == [(i, p) for i, p, _ in before]
    assert lab.hit("R") == 8 and lab.idle()


def test_f2_a_request_that_waits_is_counted_once() -> None:
    lab = Lab(pages=64, max_running=1)
    lab.ask("H", "H3", 12)
    lab.ask("R", "A6", 1)
    lab.run()
    totals = lab.engine.totals
    assert (totals.prompt_tokens, totals.cached_tokens, totals.computed_tokens) == (9, 0, 9)
    told = lab.events(ev.RequestPassedOver, "R")
    assert [(e.limit, e.needed, e.available) for e in told] == [("running cap", 2, 1)]
