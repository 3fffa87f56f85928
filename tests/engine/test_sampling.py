"""Sampling: greedy, temperature, top-k and top-p, and draws that depend on seed and position alone."""

from __future__ import annotations

import pytest
import torch

from engine.request import SamplingParams
from engine.sampling import LogitsError, check_numbers, choose, logprobs, uniform

LOGITS = torch.log(torch.tensor([0.05, 0.4, 0.15, 0.1, 0.3]))
DRAWS = 4000


def shares(**params: object) -> list[float]:
    """How often each id is drawn."""
    asked = SamplingParams.model_validate(params)
    drawn = [choose(LOGITS, asked, 11, position) for position in range(DRAWS)]
    return [drawn.count(i) / DRAWS for i in range(len(LOGITS))]


def test_greedy_takes_the_best() -> None:
    assert choose(LOGITS, SamplingParams(), 0, 0) == 1


def test_temperature_one_draws_as_the_model_says() -> None:
    assert shares(temperature=1.0) == pytest.approx([0.05, 0.4, 0.15, 0.1, 0.3], abs=0.03)


def test_a_low_temperature_sharpens() -> None:
    sharp = (LOGITS / 0.5).softmax(0).tolist()
    assert shares(temperature=0.5) == pytest.approx(sharp, abs=0.03)


def test_top_k_keeps_the_k_likeliest() -> None:
    assert shares(temperature=1.0, top_k=2) == pytest.approx([0, 4 / 7, 0, 0, 3 / 7], abs=0.03)


def test_top_p_keeps_the_smallest_set_that_reaches_p() -> None:
    assert shares(temperature=1.0, top_p=0.71) == pytest.approx([0, 0.4 / 0.85, 0.15 / 0.85, 0, 0.3 / 0.85], abs=0.03)
    assert shares(temperature=1.0, top_p=0.01) == [0, 1, 0, 0, 0]


def test_top_p_looks_at_what_top_k_left() -> None:
    # Of 0.4 and 0.3 the first alone is 0.571 of the two.
    assert shares(temperature=1.0, top_k=2, top_p=0.5) == [0, 1, 0, 0, 0]


def test_a_seed_and_a_position_say_all() -> None:
    assert uniform(3, 5) == uniform(3, 5)
    assert len({uniform(seed, position) for seed in range(30) for position in range(30)}) == 900
    assert all(0 <= uniform(seed, 0) < 1 for seed in (0, 2**63 - 1))


def test_a_token_without_any_chance_is_never_drawn() -> None:
    logits = torch.tensor([-torch.inf, 0.0, -torch.inf])
    asked = SamplingParams(temperature=1.0)
    assert {choose(logits, asked, 1, position) for position in range(500)} == {1}


def test_logprobs_are_of_the_logits_before_temperature() -> None:
    chosen, top = logprobs(LOGITS, 4, 2)
    assert chosen == pytest.approx(torch.tensor(0.3).log().item(), abs=1e-5)
    assert [i for i, _ in top] == [1, 4]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_logits_that_are_no_numbers_are_refused(bad: float) -> None:
    with pytest.raises(LogitsError):
        check_numbers(torch.tensor([1.0, bad]))
