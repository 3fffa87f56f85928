"""Loading a model: the embedded one, a transformers id or a local folder; device, dtype, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.utils import logging

from engine.embedded import NAME as EMBEDDED_NAME
from engine.embedded import Progress, embedded_folder
from engine.failures import ModelError, model_error
from engine.loaded import LoadedModel, wrap
from engine.selftest import choose_path
from engine.tokenizer import TextTokenizer

__all__ = ["LoadedModel", "ModelError", "load_model"]

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
CHANGING_ROPE = ("dynamic", "longrope")
"""Rotary embeddings that depend on the longest sequence of a batch: cached keys would not fit new ones."""


def load_model(
    name: str = "embedded", *, device: str = "auto", dtype: str = "auto", progress: Progress | None = None
) -> LoadedModel:
    """Load `embedded`, a transformers id or a local folder, and test that we compute what transformers does.

    What is on this machine already is used without asking the network. Raises ModelError with one sentence.
    """
    where = pick_device(device)
    tell = progress or (lambda stage, fraction: None)
    source = str(embedded_folder(progress)) if name == "embedded" else name
    shown = EMBEDDED_NAME if name == "embedded" else _shown(name)
    tell(f"loading {shown}", None)
    logging.disable_progress_bar()
    try:
        config = _from_here_or_hub(AutoConfig.from_pretrained, source, name)
        check_config(config, shown)
        kind = pick_dtype(dtype, where, config)
        model = _from_here_or_hub(AutoModelForCausalLM.from_pretrained, source, name, dtype=kind).to(where).eval()
        tokenizer = _tokenizer(source, name)
    except Exception as error:
        raise model_error(error, f"loading {shown}") from error
    finally:
        logging.enable_progress_bar()
    loaded = wrap(model, tokenizer, shown)
    tell(f"testing {shown} on {where.type}", None)
    try:
        choose_path(loaded)
    except Exception as error:
        raise model_error(error, f"testing {shown}") from error
    return loaded


def pick_device(wanted: str) -> torch.device:
    """`auto` is cuda, else mps, else cpu. Raises ModelError for one that is not there."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if wanted == "auto":
        wanted = next(d for d, has in there.items() if has)
    if not there.get(wanted):
        have = ", ".join(d for d, has in there.items() if has)
        raise ModelError(f"device {wanted} is not available here; this machine has {have}")
    return torch.device(wanted)


def pick_dtype(wanted: str, device: torch.device, config: Any) -> torch.dtype:
    """`auto` is the model's own on cuda and float32 elsewhere."""
    if wanted != "auto":
        return DTYPES[wanted]
    own = config.dtype if isinstance(config.dtype, torch.dtype) else torch.float32
    return own if device.type == "cuda" else torch.float32


def check_config(config: Any, name: str) -> None:
    """Refuse by name what we cannot serve, before its weights are fetched. Raises ModelError."""
    if config.model_type not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or getattr(config, "is_encoder_decoder", False):
        raise ModelError(f"{name} ({config.model_type}) is not a causal language model")
    text = config.get_text_config()
    odd = sorted({t for t in getattr(text, "layer_types", None) or () if t != "full_attention"})
    if odd:
        raise ModelError(f"{name} has layers of type {', '.join(odd)}; only full attention is supported")
    rope = (getattr(text, "rope_parameters", None) or {}).get("rope_type")
    if rope in CHANGING_ROPE:
        raise ModelError(f"{name} has rotary embeddings of type {rope}, which change with length; not supported")
    for needed in ("num_hidden_layers", "num_attention_heads", "hidden_size", "max_position_embeddings"):
        if getattr(text, needed, None) is None:
            raise ModelError(f"{name} ({config.model_type}) has no {needed}; only full attention is supported")


def _from_here_or_hub(read: Any, source: str, name: str, **options: Any) -> Any:
    """Read from this machine's files; where some are missing, from the hub (never for the embedded model)."""
    try:
        return read(source, local_files_only=True, **options)
    except (OSError, ValueError) as error:
        if name == "embedded" or Path(source).is_dir() or _is_path(source):
            raise ModelError(f"{source} does not hold a model that can be read: {_brief(error)}") from error
        if isinstance(error, ValueError):
            raise
    try:
        return read(source, **options)
    except OSError as error:
        text = str(error).lower()
        if "not a valid model identifier" in text or "401" in text or "404" in text or "gated" in text:
            raise ModelError(
                f"{name!r} is neither a local folder nor an open model on the Hugging Face hub"
            ) from error
        if os.environ.get("HF_HUB_OFFLINE") or "connect" in text or "offline" in text:
            raise ModelError(f"{name!r} is not on this machine, and the Hugging Face hub cannot be reached") from error
        raise


def _is_path(source: str) -> bool:
    return source.startswith(("/", ".", "~")) or source.count("/") > 1


def _brief(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _shown(name: str) -> str:
    """A folder's own name, or the id: no path of this machine goes into a trace."""
    return Path(name).expanduser().resolve().name if Path(name).expanduser().is_dir() else name


def _tokenizer(source: str, name: str) -> TextTokenizer:
    try:
        return TextTokenizer(_from_here_or_hub(AutoTokenizer.from_pretrained, source, name))
    except (ModelError, ValueError, KeyError, ImportError) as error:
        raise ModelError(f"the tokenizer of {name} cannot be read: {_brief(error)}") from error
