"""Calculators: what a token's state weighs, and what a faster prefill or a hit rate is worth. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

GIB = 2**30


def bytes_a_token(layers: int, kv_heads: int, head_width: int, bytes_a_number: int) -> int:
    """Bytes that one token's keys and values take: 2 x layers x KV heads x head width x bytes a number."""
    return 2 * layers * kv_heads * head_width * bytes_a_number


def amdahl(prefill: float, rest: float, faster: float) -> float:
    """How many times faster a request becomes when only its prefill becomes `faster` times faster (Amdahl's law)."""
    return (prefill + rest) / (prefill / faster + rest)


def prefill_time(computed: float, step: float, token: float) -> float:
    """Seconds of one prefill pass that computes so many tokens."""
    return step + token * computed


def expected_speedup(
    lengths: Sequence[int], hit_rate: float, outputs: Sequence[int], step: float, token: float
) -> tuple[float, float]:
    """(prefill, whole request): how many times faster the sum of requests becomes at a hit rate over all prompt tokens.

    A pass takes `step` + `token` seconds a token that it forwards; the first output comes with the prefill,
    each further one takes a pass of its own. Requests run one at a time.
    """
    cold = sum(prefill_time(n, step, token) for n in lengths)
    warm = len(lengths) * step + token * sum(lengths) * (1 - hit_rate)
    decode = sum(max(n - 1, 0) * (step + token) for n in outputs)
    return cold / warm, (cold + decode) / (warm + decode)
