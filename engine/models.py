"""Loading a model: the embedded one, a transformers id or a local folder; device, dtype, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.utils import logging

from engine import hub
from engine.embedded import NAME as EMBEDDED_NAME
from engine.embedded import Progress, embedded_folder, embedded_here
from engine.executor.memory import free_bytes
from engine.failures import ModelError, model_error
from engine.loaded import LoadedModel, wrap
from engine.needs import stored
from engine.places import local_folder, shown_name
from engine.selftest import choose_path
from engine.tokenizer import TextTokenizer

__all__ = ["LoadedModel", "ModelError", "devices", "fetch_model", "free_memory", "load_model", "load_tokenizer"]

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
    source = str(fetch_model(name, progress))
    shown = EMBEDDED_NAME if name == "embedded" else shown_name(name)
    tell(f"loading {shown}", None)
    logging.disable_progress_bar()
    try:
        config = _read(AutoConfig.from_pretrained, source, shown)
        check_config(config, shown)
        kind = pick_dtype(dtype, where, config)
        _check_room(Path(source), shown, where, kind)
        model = _read(AutoModelForCausalLM.from_pretrained, source, shown, dtype=kind).to(where).eval()
        tokenizer = _tokenizer(source, shown)
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


def fetch_model(name: str, progress: Progress | None = None) -> Path:
    """The folder of a model; downloads what is not on this machine yet, unless the engine could not serve it.

    `progress` stops a download by raising. Raises ModelError with one sentence.
    """
    if name == "embedded":
        return embedded_folder(progress)
    folder = local_folder(name) or hub.folder_of(name)
    if folder is None:
        found = hub.listing(name)
        hub.check_disk(name, found)
        hub.fetch_small(name, found)
        check_config(_read(AutoConfig.from_pretrained, name, name), name)
        hub.fetch_weights(name, found, progress or (lambda stage, fraction: None))
        folder = hub.folder_of(name)
    if folder is None:
        raise ModelError(f"{name} was downloaded, and still some of its files are missing")
    return folder


def load_tokenizer(name: str = "embedded") -> TextTokenizer:
    """The tokenizer of a model that is on this machine, without its weights. Fetches nothing; raises ModelError."""
    shown = EMBEDDED_NAME if name == "embedded" else shown_name(name)
    folder = embedded_here() if name == "embedded" else local_folder(name) or hub.folder_of(name)
    if folder is None:
        raise ModelError(f"{shown} is not on this machine yet; it is fetched by the first run that needs it")
    return _tokenizer(str(folder), shown)


def devices() -> list[str]:
    """The devices that this machine has, the one that `auto` takes first."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    return [device for device, has in there.items() if has]


def free_memory(device: str) -> int | None:
    """Free bytes of a device; None where it cannot be asked."""
    return free_bytes(pick_device(device))


def pick_device(wanted: str) -> torch.device:
    """`auto` is cuda, else mps, else cpu. Raises ModelError for one that is not there."""
    here = devices()
    if wanted == "auto":
        wanted = here[0]
    if wanted not in here:
        raise ModelError(f"device {wanted} is not available here; this machine has {', '.join(here)}")
    return torch.device(wanted)


def pick_dtype(wanted: str, device: torch.device, config: Any) -> torch.dtype:
    """`auto` is the model's own on cuda and float32 elsewhere."""
    if wanted != "auto":
        return DTYPES[wanted]
    own = config.dtype if isinstance(config.dtype, torch.dtype) else torch.float32
    return own if device.type == "cuda" else torch.float32


def resolve(name: str, device: str, dtype: str, progress: Progress | None = None) -> tuple[str, str]:
    """The device and dtype that a model would be loaded on and in. Raises ModelError."""
    where = pick_device(device)
    if dtype == "auto" and where.type == "cuda":  # the model's own: its configuration has to be here
        config = _read(AutoConfig.from_pretrained, str(fetch_model(name, progress)), shown_name(name))
        return where.type, str(pick_dtype(dtype, where, config)).removeprefix("torch.")
    return where.type, "float32" if dtype == "auto" else dtype


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


def _read(read: Any, source: str, name: str, **options: Any) -> Any:
    """Read from this machine's files alone."""
    try:
        return read(source, local_files_only=True, **options)
    except (OSError, ValueError) as error:
        raise ModelError(f"{name} does not hold a model that can be read: {_brief(error)}") from error


def _check_room(folder: Path, shown: str, device: torch.device, dtype: torch.dtype) -> None:
    """Raise ModelError when the weights cannot fit into the device's free memory."""
    needed = sum(stored(folder).values()) * dtype.itemsize
    free = free_bytes(device)
    if free is not None and needed > free:
        raise ModelError(
            f"{shown} takes {needed / 1e9:.1f} GB in {str(dtype).removeprefix('torch.')} and {free / 1e9:.1f} GB are free "
            f"on {device.type}: choose a smaller model{'' if dtype.itemsize == 2 else ' or bfloat16'}"
        )


def _brief(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _tokenizer(source: str, name: str) -> TextTokenizer:
    try:
        return TextTokenizer(_read(AutoTokenizer.from_pretrained, source, name))
    except (ModelError, ValueError, KeyError, ImportError) as error:
        raise ModelError(f"the tokenizer of {name} cannot be read: {_brief(error)}") from error
