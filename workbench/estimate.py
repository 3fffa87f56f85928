"""What a run will take, said before it starts: from rates measured on this machine with this model.

A guess for the time, not a bound: every prompt token computed, nothing reused, one decode step a token. Reuse and
batches make a run shorter; attention over long prompts makes it longer than short ones were measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine import Engine
from engine import events as ev
from engine.config import EngineConfig
from workbench.scenario import Scenario

PREFILL, DECODES = 256, 12


@dataclass(frozen=True)
class Rates:
    """Measured once after loading: prompt tokens a second, and seconds a decode step of one request."""

    prefill: float
    decode: float


@dataclass(frozen=True)
class Estimate:
    """Of one arm: seconds without any reuse (None where nothing was measured), bytes of KV, prompt tokens, most output tokens."""

    seconds: float | None
    kv_bytes: int | None
    prompt_tokens: int
    output_tokens: int


def measure(loaded: Any) -> Rates:
    """Run 256 prompt tokens and a dozen decode steps twice; the second time counts."""
    prefill = decode = 0.0
    for _ in range(2):
        config = EngineConfig(executor="model", pages=PREFILL + DECODES + 8)
        engine = Engine(config=config, loaded=loaded)
        engine.submit([(17 + i) % min(loaded.vocab_size, 1000) for i in range(PREFILL)], max_new_tokens=DECODES, ignore_eos=True)
        for _step in engine.run():
            pass
        steps = [e for e in engine.trace if isinstance(e, ev.StepFinished)]
        times = [e.plan_seconds + e.forward_seconds + e.sample_seconds for e in steps]
        prefill, decode = times[0], sum(times[1:]) / (len(times) - 1)
    return Rates(PREFILL / prefill, decode)


def estimate(scenario: Scenario, loaded: Any, rates: Rates | None) -> Estimate:
    """What one run of a scenario will take."""
    prompt = 0
    for request in scenario.requests:
        if request.tokens is not None:
            prompt += len(request.tokens)
        elif loaded is not None:
            ids = loaded.tokenizer.chat(request.messages) if request.messages else loaded.tokenizer.encode(request.prompt)
            prompt += len(ids)
    output = sum(r.max_new_tokens for r in scenario.requests)
    config = scenario.engine
    if config.executor != "model":
        return Estimate(None, None, prompt, output)
    seconds = prompt / rates.prefill + output * rates.decode if rates else None
    kv = loaded.kv_bytes_per_token * config.pages * config.page_size if loaded else None
    return Estimate(seconds, kv, prompt, output)
