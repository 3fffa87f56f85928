"""Where in a typed grammar something is wrong: the line, and a caret beneath the place."""

from __future__ import annotations

import html
import json
from json.decoder import scanstring
from typing import Any

from engine import GrammarError, check_grammar
from engine.config import EngineConfig

KINDS = ("json_schema", "regex")
WIDEST = 72
"""Characters of a line that are shown around the place."""
BLANK = " \t\n\r"


class TypedError(ValueError):
    """A typed grammar cannot be used; `at` is the offset of the place, None where there is none."""

    def __init__(self, message: str, at: int | None = None) -> None:
        super().__init__(message)
        self.at = at


def read(kind: str, text: str, config: EngineConfig) -> tuple[dict[str, Any], list[str]]:
    """What a request takes for a typed grammar, {"regex": ...} or {"json_schema": ...}, and how it is narrower than typed.

    Raises TypedError.
    """
    if kind == "regex":
        asked: dict[str, Any] = {"regex": text}
        if not text:
            raise TypedError("write a regular expression")
    else:
        asked = {"json_schema": _schema(text)}
    try:
        return asked, check_grammar(config, **asked)
    except GrammarError as error:
        raise TypedError(*_told(kind, text, error)) from None


def _schema(text: str) -> dict[str, Any] | bool:
    if not text.strip():
        raise TypedError("write a JSON schema")
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise TypedError(f"this is not JSON: {error.msg.lower()}", error.pos) from None
    except RecursionError:
        raise TypedError("this is not JSON that can be read: it is nested too deeply") from None
    if not isinstance(found, (dict, bool)):
        raise TypedError(f"a schema is an object, true or false; this is {type(found).__name__}", 0)
    return found


def _told(kind: str, text: str, error: GrammarError) -> tuple[str, int | None]:
    if kind == "regex":
        return str(error), error.where if isinstance(error.where, int) else None
    path = str(error.where or "")
    told = f"{path}: {error}" if path not in ("", "#") else str(error)
    return told, locate(text, path)


def locate(text: str, pointer: str) -> int | None:
    """The offset in JSON text of what a pointer such as #/properties/year names: of its key, or of an item itself.

    None where there is no such thing.
    """
    names = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    at = _skip(text, 0)
    place = at
    for name in names:
        found = _member(text, at, name)
        if found is None:
            return None
        place, at = found
    return place


def _member(text: str, at: int, name: str) -> tuple[int, int] | None:
    """Offsets of a member's key (or an item) and of its value, in the container that begins at `at`."""
    is_object = text[at] == "{"
    if not (is_object or text[at] == "["):
        return None
    at = _skip(text, at + 1)
    count = 0
    while text[at] not in "}]":
        place, key = at, str(count)
        if is_object:
            key, at = scanstring(text, at + 1)
            at = _skip(text, _skip(text, at) + 1)
        if key == name:
            return place, at
        _, at = json.JSONDecoder().raw_decode(text, at)
        at = _skip(text, at)
        at = _skip(text, at + 1) if text[at] == "," else at
        count += 1
    return None


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in BLANK:
        at += 1
    return at


def shown(error: TypedError, text: str) -> str:
    """The complaint as HTML, with the line and a caret where there is a place."""
    said = f'<p class="rw-message rw-error" id="wrong" data-kind="error" role="alert">{html.escape(str(error))}</p>'
    if error.at is None:
        return said
    line, start, column = around(text, error.at)
    return f"{said}<pre>{html.escape(start)}{html.escape(line)}\n<b>{' ' * (len(start) + column)}^</b></pre>"


def narrowed(notes: list[str]) -> str:
    """How a grammar is narrower than its schema, as HTML."""
    if not notes:
        return ""
    items = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    return f'<div class="rw-fine" id="narrowed">Narrower than the schema:<ul>{items}</ul></div>'


def around(text: str, at: int) -> tuple[str, str, int]:
    """The part of a line around an offset, what is written before it (its number, where there are several), the column."""
    number = text.count("\n", 0, at) + 1
    begin = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    line, column = text[begin : end if end >= 0 else len(text)].replace("\t", " "), at - begin
    start = f"line {number}: " if "\n" in text else ""
    if len(line) > WIDEST:
        cut = min(max(0, column - WIDEST // 2), len(line) - WIDEST)
        line, column, start = line[cut : cut + WIDEST], column - cut, f"{start}…" if cut else start
    return line, start, column
