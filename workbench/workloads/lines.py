"""Files of one record a line: what cannot be used is counted and the first few named; none stops the reading."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from workbench.presets import assets
from workbench.workloads.traffic import File, Maker, Upload

NAMED = 3
"""Bad records that are named; the others are only counted."""
SAID = 200
"""Characters that are said of each: it may quote its file."""
UPLOADED = "uploaded:"
"""How the name of an upload begins in a scenario."""
T = TypeVar("T")


class ReadError(ValueError):
    """A file that holds nothing usable; one sentence."""


@contextmanager
def under(key: str = "file") -> Iterator[None]:
    """What goes wrong with a file inside is told as the fault of the workload's key: raises ValueError naming it."""
    try:
        yield
    except ReadError as error:
        raise ValueError(f"{key}: {error}") from None


@dataclass
class Tally:
    """How many records there were, and what was wrong with those that could not be used."""

    records: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def told(self) -> list[str]:
        """One sentence about the records that could not be used; nothing where all could."""
        if not self.wrong:
            return []
        named = "; ".join(_short(wrong) for wrong in self.wrong[:NAMED]) + ("; …" if len(self.wrong) > NAMED else "")
        return [f"{len(self.wrong):,} of {self.records:,} records could not be used: {named}"]

    def nothing(self, path: File, what: str) -> ReadError:
        """What to raise when no record was of use."""
        why = "; ".join(self.told) or "the file is empty"
        return ReadError(f"{path}: no {what} that can be used" + (f"; {why}" if self.wrong else f" ({why})"))


def _short(said: str) -> str:
    return said if len(said) <= SAID else f"{said[: SAID - 1]}…"


def own_sets() -> list[str]:
    """The names of the small sets that come with the workbench."""
    return sorted(p.name for p in (assets() / "workloads").glob("*") if p.suffix in (".jsonl", ".txt"))


def find(file: str, maker: Maker, key: str = "file") -> File:
    """The file that a workload names under `key`: a path, an upload, or one of the project's own sets by its name.

    Raises ValueError where a page names a file of the machine that serves it, or an upload that is not held.
    """
    path = _path(file) if maker.files else Path(file)
    if maker.files and path.exists():
        return path
    if file.startswith(UPLOADED):
        return _upload(file, maker, key)
    if file in own_sets():
        return assets() / "workloads" / file
    if not maker.files:
        raise ValueError(
            f"{key}: a page cannot name a file of the machine that serves it; run this scenario from the command "
            f"line, upload the file, or name one of the sets that come with the workbench: {', '.join(own_sets())}"
        )
    return path


def _path(file: str) -> Path:
    try:
        return Path(file).expanduser()
    except RuntimeError:  # a home of nobody on this machine
        return Path(file)


def _upload(file: str, maker: Maker, key: str) -> Upload:
    found = maker.uploads(file) if maker.uploads is not None else None
    if found is None:
        raise ValueError(
            f"{key}: no upload is held here as {_short(repr(file))}, or not any more; open the file on the Lab page again, "
            "or name it by its path on the command line"
        )
    return found


def raw(path: File) -> bytes:
    """A file's content, without a byte order mark. Raises ReadError where it cannot be read."""
    try:
        return path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except FileNotFoundError:
        raise ReadError(f"{path}: no such file") from None
    except OSError as error:
        raise ReadError(f"{path}: cannot be read ({error})") from None


def lines(path: File) -> Iterator[tuple[int, bytes]]:
    """(number from 1, line) of all that are not blank. Raises ReadError where the file cannot be read."""
    return ((number, line.strip()) for number, line in enumerate(raw(path).split(b"\n"), 1) if line.strip())


def records(path: File) -> Iterator[tuple[str, Any]]:
    """Where each record stands, and what it holds: a JSON list's items, or lines that are still to be decoded.

    Raises ReadError where the file cannot be read at all.
    """
    if raw(path).lstrip()[:1] != b"[":
        return ((f"line {number}", line) for number, line in lines(path))
    try:
        found = json.loads(raw(path).decode())
    except (ValueError, RecursionError) as error:
        raise ReadError(f"{path}: not readable as JSON ({error})") from None
    return ((f"record {number}", record) for number, record in enumerate(found, 1))


def decoded(record: Any) -> Any:
    """A record as JSON has it. Raises ValueError saying what is wrong with its line."""
    if not isinstance(record, bytes | str):
        return record
    try:
        return json.loads(record.decode() if isinstance(record, bytes) else record)
    except UnicodeDecodeError:
        raise ValueError("not readable as UTF-8") from None
    except (ValueError, RecursionError):
        raise ValueError("not readable as JSON") from None


def collect(path: File, parse: Callable[[Any], T], what: str, found: Iterable[tuple[str, Any]] | None = None) -> tuple[list[T], Tally]:
    """What `parse` makes of each JSON record; it raises ValueError saying what is wrong with one.

    `found` are records that were read otherwise. Raises ReadError when the file cannot be read or no record is of use.
    """
    good: list[T] = []
    tally = Tally()
    for where, record in records(path) if found is None else found:
        tally.records += 1
        try:
            good.append(parse(decoded(record) if found is None else record))
        except ValueError as error:
            tally.wrong.append(f"{where}: {error}")
    if not good:
        raise tally.nothing(path, what)
    return good, tally


def whole_text(text: Any, what: str) -> str:
    """A text that can be written down. Raises ValueError naming what it is."""
    if not isinstance(text, str):
        raise ValueError(f"{what} is no text")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} holds half a character (a lone surrogate)") from None
    return text
