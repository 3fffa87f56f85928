"""How far a learner has come: one small file of this machine. Nothing of it leaves it."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

from filelock import FileLock

PARTS = ("predictions", "exercises", "questions", "quiz")


def place() -> Path:
    """The file: `$RADIX_PROGRESS`, or in the user's data folder."""
    named = os.environ.get("RADIX_PROGRESS")
    if named:
        return Path(named).expanduser()
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "radix-workbench" / "progress.json"


def load() -> dict[str, Any]:
    """What is known; an unreadable file counts as none, and is replaced at the next change."""
    try:
        known = json.loads(place().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def learner() -> str:
    """This learner's own number, drawn once: it seeds the questions. `$RADIX_LEARNER` goes before it."""
    given = os.environ.get("RADIX_LEARNER")
    if given:
        return given
    known = load().get("learner")
    return str(known) if known else _change(lambda all_of_it: all_of_it.setdefault("learner", secrets.token_hex(4)))


def lesson(name: str) -> dict[str, dict[str, Any]]:
    """What is known of one lesson: predictions, exercises, questions and quiz, each by name."""
    known = load().get("lessons", {}).get(name, {})
    return {part: dict(known.get(part, {})) for part in PARTS}


def record(name: str, part: str, key: str, what: Any) -> None:
    """Write one result down: of lesson `name`, among its `part`, under `key`."""
    assert part in PARTS
    _change(lambda all_of_it: all_of_it.setdefault("lessons", {}).setdefault(name, {}).setdefault(part, {}).update({key: what}))


def forget(name: str) -> None:
    """Start a lesson anew."""
    _change(lambda all_of_it: all_of_it.setdefault("lessons", {}).pop(name, None))


def _change(how: Any) -> Any:
    path = place()
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        known = load()
        out = how(known)
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(known, indent=1, sort_keys=True), encoding="utf-8")
        fresh.replace(path)
    return out
