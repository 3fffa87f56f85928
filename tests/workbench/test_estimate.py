"""What a run will take is told as a guess."""

from __future__ import annotations

from workbench import scenario as scenarios
from workbench.estimate import Estimate, Rates, estimate
from workbench.ui import text
from workbench.ui.serving import ModelState, offer_of


def test_an_arm_without_reuse_is_estimated_and_called_about_so_long() -> None:
    class Loaded:
        kv_bytes_per_token = 100

    data = {"engine": {"executor": "model", "pages": 64}, "requests": [{"tokens": "A30", "max_new_tokens": 4}, {"tokens": "A30", "max_new_tokens": 4}]}
    scenario = scenarios.parse(data)
    guess = estimate(scenario, Loaded(), Rates(prefill=10.0, decode=0.5))
    assert guess == Estimate(seconds=60 / 10 + 8 * 0.5, kv_bytes=6400, prompt_tokens=60, output_tokens=8)
    told = text.note(scenario, guess, ModelState(offer_of("embedded"), "auto", "auto"))
    assert "about 10 s an arm if nothing is reused" in told and "at most 10" not in told
