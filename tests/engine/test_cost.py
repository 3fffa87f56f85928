"""The cost executor: what it answers follows from the request, and what a step takes from the roofline."""

from __future__ import annotations

import re
from typing import Any

import pytest

from engine import Engine, EngineConfig
from engine import events as ev
from engine.config import ConfigError
from engine.executor.cost import CostExecutor
from engine.executor.words import PIECES
from engine.hardware import PROFILES
from engine.roofline import rates, seconds, work
from tests.engine.lab import ids

CARD = "h100-llama-3.1-8b"
PROFILE = PROFILES[CARD]


def engine(**knobs: Any) -> Engine:
    """A simulated H100 that checks itself."""
    return Engine(config=EngineConfig(executor="cost", hardware=CARD, **{"pages": 256, **knobs}), check=True)


def finish(one: Engine) -> dict[str, list[int]]:
    """Run to the end; what everybody was answered."""
    said: dict[str, list[int]] = {}
    for progress in one.run():
        for p in progress:
            said.setdefault(p.request, []).extend(p.ids)
    return said


def answers(**knobs: Any) -> dict[str, list[int]]:
    """What four requests get, of which three share a prefix and two are the same."""
    one = engine(**knobs)
    for i, prompt in enumerate(("A40+B9", "A40+C9", "A40+B9", "E30")):
        one.submit(ids(prompt), id=f"R{i}", max_new_tokens=9)
    return finish(one)


@pytest.mark.parametrize("knobs", [
    {"cache": "off"}, {"page_size": 16, "pages": 16}, {"chunk": 7}, {"chunk": 7, "mixed": True}, {"max_running": 1}, {"pages": 64, "cache": "blocks"},
])  # fmt: skip
def test_answers_are_the_same_whatever_the_cache_the_batch_and_the_chunks(knobs: dict[str, Any]) -> None:
    said = answers()
    assert said == answers(**knobs) and all(len(ids) == 9 for ids in said.values())
    assert said["R0"] == said["R2"] and len({tuple(ids) for ids in said.values()}) == 3


def test_another_namespace_gets_another_answer() -> None:
    one = engine()
    one.submit(ids("A9"), id="plain", max_new_tokens=4)
    one.submit(ids("A9"), id="salted", max_new_tokens=4, namespace=("salt", None, None))
    said = finish(one)
    assert said["plain"] != said["salted"]


def test_a_script_is_followed_and_a_grammar_obeyed() -> None:
    one = engine()
    one.submit(ids("A9"), id="told", max_new_tokens=9, says=[7, 8, 9])
    one.submit(ids("A9"), id="shaped", max_new_tokens=60, regex=r'\{"year": [0-9]{4}\}')
    said = finish(one)
    assert said["told"] == [7, 8, 9]
    assert re.fullmatch(rb'\{"year": [0-9]{4}\}', b"".join(PIECES[i] for i in said["shaped"]))


def test_steps_take_what_the_roofline_says() -> None:
    one = engine(clock={"plan": 0.125})
    one.submit(ids("A40"), max_new_tokens=3)
    one.submit(ids("B20"), max_new_tokens=2)
    finish(one)
    steps = [e for e in one.trace if isinstance(e, ev.StepFinished)]
    rows = [[(0, 40, 1), (0, 20, 1)], [(40, 1, 1), (20, 1, 1)], [(41, 1, 1)]]
    expected = [seconds(PROFILE.accelerator, work(PROFILE.shape, step)) for step in rows]
    assert [e.forward_seconds for e in steps] == pytest.approx(expected, abs=1e-9)
    assert steps[-1].t == pytest.approx(sum(expected) + 3 * 0.125)


def test_a_chunk_that_is_not_the_last_needs_no_lm_head() -> None:
    one = engine(chunk=32)
    one.submit(ids("A40"), max_new_tokens=1)
    finish(one)
    first = next(e for e in one.trace if isinstance(e, ev.StepFinished))
    assert first.forward_seconds == pytest.approx(seconds(PROFILE.accelerator, work(PROFILE.shape, [(0, 32, 0)])), abs=1e-9)


def test_the_header_says_what_is_simulated_and_by_which_numbers() -> None:
    header = engine(host_bandwidth=5e9).trace.header
    assert (header.model, header.device, header.dtype, header.clock) == ("Llama-3.1-8B", "H100 SXM, simulated", "bfloat16", "virtual")
    assert header.hardware["name"] == "H100 SXM" and header.hardware["simulated"] == "yes" and "data sheet" in header.hardware["source"]
    assert header.rates == rates(PROFILE) | {"host_bandwidth": 5e9}
    assert ev.decode_header(ev.encode(header)) == header
    assert Engine(config=EngineConfig()).trace.header.hardware == {}


def test_a_prompt_beyond_the_models_positions_is_refused() -> None:
    one = Engine(config=EngineConfig(executor="cost", hardware="m4-qwen2.5-1.5b", pages=40_000))
    one.submit([300] * 32_768, id="long")
    finish(one)
    refused = next(e for e in one.trace if isinstance(e, ev.RequestRefused))
    assert (refused.reason, refused.available) == ("positions", 32_768)


def test_an_executor_made_by_hand_refuses_pages_that_do_not_fit() -> None:
    with pytest.raises(ConfigError, match=r"^pages: KV for 60,000 x 16 tokens takes 125.8 GB; of the 80.0 GB of H100 SXM"):
        CostExecutor(PROFILE, 60_000, 16)
