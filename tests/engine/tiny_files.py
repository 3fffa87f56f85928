"""Tiny random models as files, with a tokenizer of bytes: what may be loaded where no network is."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tests.engine.tiny import TINY

TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "


def tiny_files(folder: Path, seed: int = 1) -> Path:
    """Write a random Llama of 320 ids and its tokenizer into `folder`; returns it."""
    torch.manual_seed(seed)
    config = LlamaConfig(**{**TINY, "vocab_size": 320, "max_position_embeddings": 4096})
    LlamaForCausalLM(config).save_pretrained(folder)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    bytewise = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(letters)}, merges=[]))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bytewise.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytewise, eos_token="<|end|>")
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    return folder
