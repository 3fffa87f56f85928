"""Which token comes next: greedy, or drawn with temperature, top-k and top-p.

A draw depends on nothing but (seed, position in the output), so neither batching nor a retraction
changes what a seeded request says.
"""

from __future__ import annotations

import torch

from engine.request import SamplingParams

_MASK = (1 << 64) - 1


class LogitsError(RuntimeError):
    """The model's logits are not numbers."""


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) for this seed and this position of the output (the splitmix64 mixer)."""
    x = (seed + (position + 1) * 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return ((x ^ (x >> 31)) >> 11) / (1 << 53)


def choose(logits: torch.Tensor, params: SamplingParams, seed: int, position: int) -> int:
    """A token id for one row's logits [vocabulary].

    Temperature first, then top-k, then top-p over what is left: the smallest set of most likely tokens
    whose probability reaches top_p.
    """
    if params.temperature == 0:
        return int(logits.argmax())
    scaled = logits.double().cpu() / params.temperature
    if params.top_k is None and params.top_p >= 1:
        return _walk(scaled.softmax(0), uniform(seed, position))
    k = min(params.top_k or len(scaled), len(scaled))
    ranked = scaled.sort(descending=True, stable=True)
    chances = ranked.values[:k].softmax(0)
    if params.top_p < 1:
        before = chances.cumsum(0) - chances
        chances = chances[before < params.top_p]
        chances = chances / chances.sum()
    return int(ranked.indices[_walk(chances, uniform(seed, position))])


def _walk(chances: torch.Tensor, u: float) -> int:
    """The index at which the cumulative chance passes `u`."""
    reached = chances.cumsum(0)
    at = int(torch.searchsorted(reached, u * float(reached[-1]), right=True))
    # Rounding at the upper end must not land on a token without any chance.
    return min(at, int(chances.nonzero()[-1]))


def check_numbers(best: torch.Tensor) -> None:
    """Raise LogitsError unless the highest logit of each row [rows] is a finite number."""
    if not bool(torch.isfinite(best).all()):
        raise LogitsError("the model's logits are not finite numbers")


def logprobs(logits: torch.Tensor, token: int, few: int) -> tuple[float, list[tuple[int, float]]]:
    """The token's log-probability and the `few` likeliest tokens with theirs, before any temperature."""
    logs = logits.float().log_softmax(0)
    top = logs.topk(min(few, len(logs)))
    pairs = zip(top.indices.tolist(), top.values.tolist(), strict=True)
    return float(logs[token]), [(int(i), float(v)) for i, v in pairs]


def prompt_logprobs(logits: torch.Tensor, tokens: list[int]) -> list[float]:
    """The log-probability of each of `tokens` [n] under the logits before it [n, vocabulary]."""
    logs = logits.float().log_softmax(-1)
    wanted = torch.tensor(tokens, device=logits.device)
    found: list[float] = logs.gather(1, wanted[:, None])[:, 0].tolist()
    return found
