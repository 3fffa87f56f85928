"""A roofline: a pass takes as long as its arithmetic, or as its memory traffic, whichever is more.

After Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore
architectures", Communications of the ACM 52(4), 2009. Everything follows from lengths; no token is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.hardware import Accelerator, Profile, Shape

RATE_PROMPT = 1024
"""Tokens of the prompt by which a prefill rate is stated."""


@dataclass(frozen=True)
class Work:
    """What one pass asks of a machine: rows, floating-point operations, bytes of weights read and of KV read and written."""

    rows: int
    flops: int
    weight_bytes: int
    kv_bytes: int


def work(shape: Shape, rows: Iterable[tuple[int, int, int]]) -> Work:
    """The work of a pass over rows (tokens before, tokens forwarded, logits wanted).

    Arithmetic: 2 a weight and token in the layers' products, 4 x layers x heads x head width for each pair of a token and one that it
    attends to (itself included), the LM head only where logits are wanted. Bytes: weights once a pass, the KV
    before each row read, that of its tokens written.
    """
    count = tokens = pairs = stored = looks = 0
    for before, new, wanted in rows:
        count += 1
        tokens += new
        pairs += new * before + new * (new + 1) // 2
        stored += before + new
        looks += wanted
    flops = (
        2 * shape.layer_parameters * tokens
        + 4 * shape.layers * shape.heads * shape.head_width * pairs
        + 2 * shape.head_parameters * looks
    )
    weights = shape.layer_parameters + (shape.head_parameters if looks else 0)
    return Work(count, flops, weights * shape.number_bytes, stored * shape.kv_bytes)


def seconds(machine: Accelerator, asked: Work) -> float:
    """How long a pass takes on a machine."""
    computing = asked.flops / (machine.efficiency * machine.flops)
    moving = (asked.weight_bytes + machine.kv_moves * asked.kv_bytes) / (machine.efficiency * machine.bandwidth)
    return machine.overhead + machine.row * asked.rows + max(computing, moving)


def prefill_rate(profile: Profile) -> float:
    """Prompt tokens a second, of one prompt of 1,024 tokens with nothing before it."""
    return RATE_PROMPT / seconds(profile.accelerator, work(profile.shape, [(0, RATE_PROMPT, 1)]))


def rates(profile: Profile) -> dict[str, float]:
    """Everything that the roofline goes by, and what follows from it, for a trace's header."""
    machine, shape = profile.accelerator, profile.shape
    return {
        "flops": machine.flops, "bandwidth": machine.bandwidth, "efficiency": machine.efficiency, "overhead": machine.overhead,
        "row": machine.row, "kv_moves": machine.kv_moves, "memory": machine.memory, "layers": shape.layers, "hidden": shape.hidden, "heads": shape.heads,
        "kv_heads": shape.kv_heads, "head_width": shape.head_width, "intermediate": shape.intermediate, "head_vocabulary": shape.vocabulary,
        "number_bytes": shape.number_bytes, "weight_bytes": shape.weight_bytes, "kv_bytes": shape.kv_bytes,
        "prefill_rate": prefill_rate(profile), "host_bandwidth": machine.link,
    }  # fmt: skip
