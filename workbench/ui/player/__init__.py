"""The player: the browser-side picture of a trace, one dependency-free script and one style sheet.

The same text is the `js_on_load` of a Gradio component, part of a notebook's iframe, and inlined in an
exported file. Everything hangs on one global, `RadixPlayer`; its README is the head of `player.js`.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from engine import events as ev

SCRIPTS = (
    "paged.js", "hash.js", "columns.js", "trace.js", "packed.js",
    "state.js", "fold.js", "canonical.js", "marks.js", "segments.js", "hits.js", "concerns.js", "next.js", "replay.js", "fleet.js",
    "layout.js", "selection.js",
    "dom.js", "theme.js", "draw.js", "tip.js", "words.js", "nodewords.js", "lost.js", "why.js", "parting.js", "whypanel.js", "savedwhy.js",
    "tween.js", "cells.js", "icicle.js", "tidy.js", "graph.js", "treegrid.js", "treeview.js", "replicas.js",
    "pool.js", "lanebars.js", "lanetold.js", "lanes.js", "queue.js", "curves.js", "timeline.js",
    "tables.js", "longtext.js", "facts.js", "scrubber.js", "search.js", "find.js", "help.js", "keys.js", "screen.js", "player.js", "address.js",
)  # fmt: skip
"""In the order in which they must run."""

BASE_FIELDS = ("seq", "t", "step", "replica", "commit")


def _column(node: Any) -> str:
    """The column type that holds a field: int, num, bool, str, ints, strs or any (plain JSON)."""
    if isinstance(node, msgspec.inspect.UnionType):
        rest = [t for t in node.types if not isinstance(t, msgspec.inspect.NoneType)]
        return _column(rest[0]) if len(rest) == 1 else "any"
    if isinstance(node, msgspec.inspect.ListType):
        return {"int": "ints", "str": "strs"}.get(_column(node.item_type), "any")
    simple = {
        msgspec.inspect.IntType: "int",
        msgspec.inspect.FloatType: "num",
        msgspec.inspect.BoolType: "bool",
        msgspec.inspect.StrType: "str",
    }
    return simple.get(type(node), "any")


@cache
def schema() -> dict[str, list[tuple[str, str, Any]]]:
    """Kind -> its own fields as (name, column type, default), read off contract 1 itself."""
    out = {}
    for kind, cls in ev.KINDS.items():
        fields = []
        for field in msgspec.inspect.type_info(cls).fields:  # type: ignore[attr-defined]
            if field.name in BASE_FIELDS:
                continue
            default: Any = None
            if field.default is not msgspec.NODEFAULT:
                default = field.default
            elif field.default_factory is not msgspec.NODEFAULT:
                default = field.default_factory()
            column = _column(field.type)
            if default is None and column in ("ints", "strs"):
                default = []
            fields.append((field.name, column, default))
        out[kind] = fields
    return out


def _read(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")


@cache
def sources(core: bool = False) -> str:
    """The player's script. `core` leaves out all that needs a page: trace, fold and hash alone."""
    names = SCRIPTS[: SCRIPTS.index("dom.js")] if core else SCRIPTS
    head = (
        "globalThis.RadixPlayer = globalThis.RadixPlayer || {};\n"
        f"RadixPlayer.schema = {json.dumps(schema(), separators=(',', ':'))};\n"
    )
    return head + "\n".join(_read(name) for name in names)


@cache
def styles() -> str:
    """The player's style sheet."""
    return _read("player.css")
