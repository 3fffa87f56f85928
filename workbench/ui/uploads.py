"""Workload files that came through a page: held in memory, each under a name that only its own page was told."""

from __future__ import annotations

import re
import secrets
import threading
from collections import OrderedDict
from pathlib import Path

from workbench.workloads import Upload
from workbench.workloads.lines import UPLOADED

LARGEST = 16_000_000
"""Largest workload file, in bytes: it is read again with every edit of its scenario."""
KEPT, HELD = 20, 64_000_000
"""Files and bytes that are held; beyond either, what was not used for the longest time is forgotten."""
NAME = 60


def plain_name(path: str | Path) -> str:
    """A file's own name, of plain characters only."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", Path(path).name)[-NAME:].strip("-.") or "file"


def new_name(name: str) -> str:
    """What a scenario calls an upload: nobody guesses its 64 random bits."""
    return f"{UPLOADED}{secrets.token_hex(8)}-{name}"


class Uploads:
    """The uploads of one server."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, Upload] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, name: str, upload: Upload) -> None:
        """Hold an upload under the name that scenarios have for it."""
        with self._lock:
            self._held[name] = upload
            while len(self._held) > KEPT or sum(len(one.content) for one in self._held.values()) > HELD:
                self._held.popitem(last=False)

    def get(self, name: str) -> Upload | None:
        """The upload of this name, or None."""
        with self._lock:
            if name in self._held:
                self._held.move_to_end(name)
            return self._held.get(name)
