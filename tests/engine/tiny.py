"""What the tiny random models are made of."""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedModel

from engine.loaded import LoadedModel, wrap
from engine.selftest import choose_path

TINY: dict[str, Any] = {
    "vocab_size": 199, "hidden_size": 96, "intermediate_size": 128, "num_hidden_layers": 3, "num_attention_heads": 6,
    "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 512,
    # The default is so small that attention is nearly even and a wrong page often goes unseen.
    "initializer_range": 0.4,
    "bos_token_id": None, "eos_token_id": None, "pad_token_id": None,
}  # fmt: skip


def accepted(model: PreTrainedModel, name: str) -> LoadedModel:
    """A model in memory that has passed the start-up self-test."""
    loaded = wrap(model, None, name)
    choose_path(loaded)
    return loaded
