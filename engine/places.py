"""What a model's name stands for: a folder of this machine, or an id of the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path

from engine.failures import ModelError


def local_folder(name: str) -> Path | None:
    """The folder that a name stands for; None for an id of the hub. Raises ModelError for a path without a folder."""
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if name.startswith(("/", ".", "~")) or "\\" in name or name.count("/") > 1:
        raise ModelError(f"{name}: no such folder")
    return None


def shown_name(name: str) -> str:
    """A folder's own name, or the id: no path of this machine goes into a trace."""
    try:
        folder = local_folder(name)
    except ModelError:
        return Path(name).name or name
    return folder.resolve().name if folder is not None else name
