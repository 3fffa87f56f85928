"""Models on the Hugging Face hub: which files are loaded, how big they are, which are here, and the download.

Nothing here retries for long: whether the hub can be reached is asked once, with a short patience.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from huggingface_hub import HfApi, constants, snapshot_download, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, RepositoryNotFoundError
from huggingface_hub.utils.tqdm import disable_progress_bars, enable_progress_bars

from engine.embedded import Progress, bytes_under
from engine.failures import ModelError, model_error

PATIENCE = 5.0
"""Seconds that the hub may take to answer a question."""
SMALL = (
    "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "vocab.json", "vocab.txt", "merges.txt", "tokenizer.model", "chat_template.jinja", "chat_template.json",
)  # fmt: skip
"""Files that are read beside the weights, where a model has them."""
WEIGHTS = (
    r"model\.safetensors", r"model-\d+-of-\d+\.safetensors|model\.safetensors\.index\.json",
    r"pytorch_model\.bin", r"pytorch_model-\d+-of-\d+\.bin|pytorch_model\.bin\.index\.json",
)  # fmt: skip
"""Weights in the order in which transformers looks for them: the first kind that is there is loaded."""
CHILD = """
import sys
from huggingface_hub import snapshot_download
try:
    snapshot_download(sys.argv[1], allow_patterns=sys.argv[2:])
except Exception as error:
    sys.exit(" ".join(str(error).split()))
"""
"""The download runs in a process of its own, so that it can be stopped at any byte."""


class UnreachableError(ModelError):
    """The hub gave no answer."""


@dataclass(frozen=True)
class Listing:
    """What the hub says about a model: the files that are loaded, with their bytes; parameters by type of number."""

    files: dict[str, int]
    parameters: dict[str, int]


def host() -> str:
    """The hub's name, as people know it."""
    return urlsplit(constants.ENDPOINT).hostname or constants.ENDPOINT


def listing(name: str) -> Listing:
    """Ask the hub about a model. Raises ModelError: no such model, or (UnreachableError) no answer."""
    try:
        info = HfApi().model_info(name, files_metadata=True, timeout=PATIENCE)
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise ModelError(f"{name!r} is neither a local folder nor an open model on the Hugging Face hub") from error
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else "nothing"
        raise UnreachableError(f"{name!r} is not on this machine, and {host()} answered {status}") from error
    except Exception as error:
        raise UnreachableError(
            f"{name!r} is not on this machine, and the Hugging Face hub ({host()}) cannot be reached"
        ) from error
    sizes = {s.rfilename: s.size or 0 for s in info.siblings or []}
    return Listing(
        {n: sizes[n] for n in loaded_files(sizes)}, dict(info.safetensors.parameters) if info.safetensors else {}
    )


def loaded_files(names: Iterable[str]) -> list[str]:
    """Of a model's files those that loading it reads, weights last."""
    names = sorted(names)
    kinds = ([n for n in names if re.fullmatch(kind, n)] for kind in WEIGHTS)
    return [n for n in names if n in SMALL] + next((kind for kind in kinds if kind), [])


def missing(name: str, files: dict[str, int]) -> dict[str, int]:
    """The files of a listing that are not on this machine yet."""
    return {n: size for n, size in files.items() if not isinstance(try_to_load_from_cache(name, n), str)}


def folder_of(name: str) -> Path | None:
    """Where a model that was fetched before lies, whole; None where it, or part of it, is not here."""
    try:
        config = try_to_load_from_cache(name, "config.json")
    except HFValidationError:
        return None
    folder = Path(config).parent if isinstance(config, str) else None
    return folder if folder is not None and is_whole(folder) else None


def is_whole(folder: Path) -> bool:
    """Whether a folder holds a tokenizer and all its weights (which a download fetches last)."""
    names = [p.name for p in folder.iterdir()]
    weights = loaded_files(n for n in names if n not in SMALL)
    shards = re.search(r"-of-(\d+)\.", " ".join(weights))
    enough = int(shards[1]) + 1 if shards else 1
    return len(weights) >= enough and any(
        n in names for n in ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")
    )


def check_disk(name: str, found: Listing) -> None:
    """Raise ModelError when what is missing of a model does not fit on the disk."""
    cache = Path(constants.HF_HUB_CACHE)
    cache.mkdir(parents=True, exist_ok=True)
    needed, free = sum(missing(name, found.files).values()), shutil.disk_usage(cache).free
    if free < needed:
        raise ModelError(f"the disk is full: {name} needs {needed / 1e6:,.0f} MB and {free / 1e6:,.0f} MB are free")


def fetch_small(name: str, found: Listing) -> None:
    """Download what is read before the weights. Raises ModelError."""
    small = [n for n in found.files if n in SMALL]
    if "config.json" not in small or len(small) == len(found.files):
        raise ModelError(f"{name!r} holds no model that transformers reads: config.json or weights are missing")
    disable_progress_bars()
    try:
        snapshot_download(name, allow_patterns=small)
    except Exception as error:
        raise _refused(str(error), name) from error
    finally:
        enable_progress_bars()


def fetch_weights(name: str, found: Listing, tell: Progress) -> None:
    """Download the weights; `tell` is called a few times a second, and stops the download when it raises.

    Raises ModelError: no connection, no leave to read the model.
    """
    lacking = missing(name, found.files)
    whole = sum(lacking.values())
    blobs = Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}" / "blobs"
    before, stale = bytes_under(blobs), set(blobs.glob("*.incomplete"))
    stage = f"downloading {name.rpartition('/')[2]} ({whole / 1e6:,.0f} MB)"
    tell(stage, 0.0)
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, name, *lacking], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        while True:
            try:
                said = process.communicate(timeout=0.3)[1]
                break
            except subprocess.TimeoutExpired:
                tell(stage, min((bytes_under(blobs) - before) / max(whole, 1), 1.0))
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
            for half in set(blobs.glob("*.incomplete")) - stale:
                half.unlink(missing_ok=True)
    if process.returncode != 0:
        reason = (said.strip().splitlines() or ["no reason was given"])[-1]
        raise _refused(reason, name)


def _refused(said: str, name: str) -> ModelError:
    if "gated" in said or "restricted" in said:
        return ModelError(f"{name!r} is not an open model: its owner gives leave on {host()} to read it")
    return model_error(RuntimeError(said), f"downloading {name}")
