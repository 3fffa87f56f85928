"""Ground truth for the scheduler, case by case: what the tests of the trade's engines say of theirs.

Cases 23 to 30 of the project's list of facts. 23, 24, 25 and 29 stand in `test_policies`, beside the policies
that they are about. Not applied:

- 26 orders by routing keys, which only a front door over several engines hands out;
- 30 is about choices of the front-end language, which comes with that language;
- of 24, 27 and 29, the halves where the smallest priority is the most important: here the biggest always is;
- of 25, priorities with longest output first: here priority is a policy of its own.

What no engine's own tests hold and these do: the order of longest prefix first and its limit of 128, the sort
key at 32 shared tokens and depth first by weight (`test_policies`), the reserve's course (`test_scheduler`),
dates after a split (`test_radix`), and what a retracted prompt finds again (field notes A7 and C11).
"""

from __future__ import annotations

from typing import Any

import pytest

from engine import events as ev
from engine.request import Request, SamplingParams
from engine.scheduler.policy import VICTIMS
from tests.engine.lab import Lab


def runner(index: int, outputs: int, prompt: int = 10, priority: int = 0) -> Request:
    made = Request(f"{index}", [1] * prompt, SamplingParams(), 0.0, index, priority=priority)
    made.output = [2] * outputs
    return made


def kept(victim: str, *running: Request) -> list[int]:
    """The order in which they are kept: the first retracted stands last."""
    return [r.index for r in sorted(running, key=VICTIMS[victim], reverse=True)]


def test_27_the_fewest_outputs_are_retracted_first_and_of_equals_the_longest_prompt() -> None:
    assert kept("least-output", runner(0, 5), runner(1, 1), runner(2, 3)) == [0, 2, 1]
    assert kept("least-output", runner(0, 4, prompt=10), runner(1, 4, prompt=20)) == [0, 1]
    assert kept("least-output", runner(0, 4, prompt=20), runner(1, 4, prompt=10)) == [1, 0]


def test_27_by_priority_the_least_important_are_retracted_first_and_of_equals_the_fewest_outputs() -> None:
    assert kept("priority", runner(0, 1, priority=2), runner(1, 9, priority=0), runner(2, 9, priority=-1)) == [0, 1, 2]
    assert kept("priority", runner(0, 1, priority=1), runner(1, 5, priority=1)) == [1, 0]


def test_27_the_last_one_running_is_never_retracted() -> None:
    lab = Lab(pages=64, mixed=True)
    for name, step in (("five", 1), ("one", 5), ("three", 3)):
        lab.ask(name, f"{name[0].upper()}4", 20, at_step=step)
    for _ in range(5):
        lab.step()
    assert {r.id: len(r.output) for r in lab.engine.scheduler.running} == {"five": 5, "three": 3, "one": 1}
    gone = []
    while (victim := lab.engine.scheduler._victim([])) is not None:
        gone.append(victim.id)
        lab.engine.scheduler._retract(victim)
    assert gone == ["one", "three"]


def mixed(decodes: int, *prompts: int, **config: Any) -> tuple[Lab, ev.StepPlanned]:
    """`decodes` requests that may each say 50, one said; then prompts arrive. The step that meets both."""
    lab = Lab(pages=1000, mixed=True, admission="full", max_running=64, prefill_budget=200, **config)
    for i in range(decodes):
        lab.ask(f"D{i}", [900 + i], 50)
    lab.step()
    for i, tokens in enumerate(prompts):
        lab.ask(f"P{i}", [1000 + 100 * i + k for k in range(tokens)], 1)
    lab.step()
    return lab, lab.events(ev.StepPlanned)[1]


@pytest.mark.parametrize(("decodes", "left", "had"), [(8, 0, 592), (5, 3, 745)])
def test_28_each_decode_of_a_mixed_step_counts_against_the_chunk_and_keeps_room_for_its_output(
    decodes: int, left: int, had: int
) -> None:
    """Pool 1,000, chunk 64, a prompt of 56: with 8 decodes nothing of the chunk is left, with 5 three tokens.

    Room: 8 decodes and 8 x 50 possible outputs are 408 of the 1,000, 5 are 255.
    """
    lab, plan = mixed(decodes, 56, 3, 1, chunk=64)
    assert lab.events(ev.RequestAdmitted, "P0")[0].available == had
    assert plan.tokens[: plan.prefills] == ([56, 3] if left else [56])
    assert len(plan.members) == plan.prefills + decodes and sum(plan.tokens) == 64
    over = lab.events(ev.RequestPassedOver)[0]
    assert (over.request, over.limit, over.available) == ("P2" if left else "P1", "chunk", 0)


def test_28_the_prompt_budget_counts_prompts_alone() -> None:
    """SGLang takes the decodes of a mixed step off this budget too; here they count against the chunk only."""
    lab, plan = mixed(8, 150, 50, 1)
    assert plan.tokens[:2] == [150, 50] and plan.prefills == 2
    over = lab.events(ev.RequestPassedOver)[0]
    assert (over.request, over.limit, over.needed, over.available) == ("P2", "budget", 1, 0)
