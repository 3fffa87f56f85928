"""LoadedModel: a model in memory and what the engine needs to know about it."""

from __future__ import annotations

import ctypes
import gc
import sys
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import PreTrainedModel

from engine.executor.llama_forward import LlamaForward
from engine.executor.transformers_forward import TransformersForward
from engine.grammar.vocabulary import Vocabulary, vocabulary_of
from engine.tokenizer import TextTokenizer


@dataclass
class LoadedModel:
    """A model that any number of executors may serve, one running at a time.

    `plain`: its device needs the plain attention. `notes` are sentences for the user about what was chosen.
    """

    name: str
    model: PreTrainedModel
    forward: LlamaForward | TransformersForward
    tokenizer: TextTokenizer | None
    device: torch.device
    dtype: torch.dtype
    eos_ids: frozenset[int]
    vocab_size: int
    """Ids that may be given or sampled; logits beyond it are padding."""
    max_positions: int
    plain: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The bytes of its tokens, for grammars; None without a tokenizer."""
        if self.tokenizer is None:
            return None
        return vocabulary_of(self.tokenizer, self.eos_ids, self.vocab_size)

    @property
    def kv_shape(self) -> tuple[int, int, int]:
        """Layers, KV heads, head width."""
        config = self.model.config.get_text_config()
        heads = config.num_attention_heads
        width = getattr(config, "head_dim", None) or config.hidden_size // heads
        return config.num_hidden_layers, getattr(config, "num_key_value_heads", None) or heads, width

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes that one token's keys and values take in all layers."""
        layers, heads, width = self.kv_shape
        return layers * 2 * heads * width * self.dtype.itemsize


def wrap(model: PreTrainedModel, tokenizer: TextTokenizer | None, name: str) -> LoadedModel:
    """A LoadedModel around a model that is in memory already; untested, and served by transformers' forward."""
    model.requires_grad_(False).eval()
    config = model.config.get_text_config()
    vocabulary = config.vocab_size
    if tokenizer is not None:
        vocabulary = min(vocabulary, tokenizer.size)
    return LoadedModel(
        name=name, model=model, forward=TransformersForward(model), tokenizer=tokenizer, device=model.device,
        dtype=model.dtype, eos_ids=_eos_ids(model, tokenizer), vocab_size=vocabulary,
        max_positions=config.max_position_embeddings,
    )  # fmt: skip


def give_back() -> None:
    """Hand the memory of models that nobody holds any more back to the device."""
    gc.collect()
    if sys.platform == "linux":
        # The C library keeps freed weights for itself: half a gigabyte of a model that takes as much.
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if torch.backends.mps.is_available():
        torch.mps.empty_cache()


def _eos_ids(model: PreTrainedModel, tokenizer: TextTokenizer | None) -> frozenset[int]:
    """Every end-of-text id that generation config, config or tokenizer declares."""
    declared: list[Any] = [tokenizer.eos_id if tokenizer else None, model.config.get_text_config().eos_token_id]
    if model.generation_config is not None:
        declared.append(model.generation_config.eos_token_id)
    ids: set[int] = set()
    for item in declared:
        ids.update(item if isinstance(item, (list, tuple)) else [] if item is None else [item])
    return frozenset(ids)
