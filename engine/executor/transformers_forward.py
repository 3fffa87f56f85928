"""Any transformers causal LM as it is: only its attention is ours.

One function is registered with transformers' attention interface, and none for masks, so transformers
builds no mask; a step's layout travels to it as a keyword through `model.forward`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AttentionInterface, PreTrainedModel

from engine.executor.kv import KV
from engine.executor.step import Step
from engine.failures import ModelError

ATTENTION = "radix_paged"

HARMLESS = frozenset({"position_ids", "position_embeddings", "use_cache", "cache_position", "return_dict"})
"""Keywords of an attention call that change nothing about it."""


@dataclass(slots=True)
class Paged:
    """What travels through `model.forward` to each layer's attention."""

    kv: KV
    step: Step


def paged_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    is_causal: bool | None = None,
    paged: Paged | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Attention as transformers calls it: query [1, heads, T, d]; returns [1, T, heads, d].

    Raises ModelError naming a keyword that asks for another kind of attention than full and causal.
    """
    for name, wanted in others.items():
        if name not in HARMLESS and wanted is not None and wanted is not False:
            raise ModelError(f"this model's attention asks for {name}={_short(wanted)}, which is not supported")
    if is_causal is False or dropout or attention_mask is not None:
        raise ModelError("this model's attention is not plain causal attention, which is not supported")
    if paged is None:
        raise ModelError("this model does not pass keywords on to its attention, which is not supported")
    if key.shape[-1] != value.shape[-1]:
        raise ModelError(f"keys of width {key.shape[-1]} and values of width {value.shape[-1]} are not supported")
    q, k, v = (x[0].transpose(0, 1) for x in (query, key, value))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    return paged.kv.attend(int(module.layer_idx), q, k, v, scale, paged.step)[None], None  # type: ignore[arg-type]


AttentionInterface.register(ATTENTION, paged_attention)


def _short(value: Any) -> str:
    return repr(value) if isinstance(value, (int, float, str, bool)) else type(value).__name__


@contextmanager
def own_attention(model: PreTrainedModel) -> Iterator[PreTrainedModel]:
    """The model with transformers' own attention, for comparisons."""
    model.set_attn_implementation("eager" if not model._supports_sdpa else "sdpa")
    try:
        yield model
    finally:
        model.set_attn_implementation(ATTENTION)


class TransformersForward:
    """Runs a step through the model as transformers wrote it."""

    name = "transformers"

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model
        model.set_attn_implementation(ATTENTION)

    def __call__(self, step: Step, kv: KV) -> torch.Tensor:
        """Logits [n, vocabulary] at the step's sampled tokens; KV of all its tokens is written."""
        keep = step.sampled if len(step.sampled_rows) else step.sampled.new_zeros(1)
        out = self.model(
            input_ids=step.ids[None],
            position_ids=step.positions[None],
            use_cache=False,
            logits_to_keep=keep,
            paged=Paged(kv, step),
        )
        logits: torch.Tensor = out.logits[0][: len(step.sampled_rows)]
        return logits
