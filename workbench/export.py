"""A run as one file: the trace packed into columns, and a self-contained page that plays it offline."""

from __future__ import annotations

import base64
import gzip
import html
import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from engine import events as ev
from workbench.explain.saved import LONGEST, Opening, saved
from workbench.replicas import Parts, count, traces
from workbench.ui import player


def _delta(values: Iterable[int | None]) -> list[int | None]:
    """Each value less the one before; None stays None and is skipped over."""
    out: list[int | None] = []
    last = 0
    for value in values:
        if value is None:
            out.append(None)
        else:
            out.append(value - last)
            last = value
    return out


def _runs(values: Iterable[Any]) -> list[Any]:
    """[value, count, value, count, ...] of equal neighbours."""
    out: list[Any] = []
    for value in values:
        if out and out[-2] == value:
            out[-1] += 1
        else:
            out += [value, 1]
    return out


def _lists(lists: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Lists of numbers end to end, each less the start that it shares with an earlier one.

    `from` says how many lists back that one is and `shared` how much of it is taken; both are left out
    when nothing is shared. Prompts share long starts, farther apart than gzip can see.
    """
    latest: dict[tuple[Any, ...], int] = {}
    back, shared, rest = [], [], []
    for i, values in enumerate(lists):
        source, same = i, 0
        heads = [tuple(values[: 16 << k]) for k in range(12) if len(values) >= 16 << k]
        for head in reversed(heads):
            if head in latest:
                source = latest[head]
                other = lists[source]
                same = len(head)
                while same < min(len(values), len(other)) and values[same] == other[same]:
                    same += 1
                break
        latest.update(dict.fromkeys(heads, i))
        back.append(i - source)
        shared.append(same)
        rest += values[same:]
    out = {"lengths": [len(v) for v in lists], "values": _delta(rest)}
    return out | {"from": back, "shared": shared} if any(shared) else out


class _Names:
    """Strings, each kept once, by number."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def __call__(self, text: str | None) -> int | None:
        return None if text is None else self.ids.setdefault(text, len(self.ids))


def _column(column: str, values: Sequence[Any], names: _Names) -> Any:
    if column == "int":
        return _delta(values)
    if column == "str":
        return _delta(names(v) for v in values)
    if column in ("ints", "strs"):
        return _lists(values if column == "ints" else [[names(x) for x in v] for v in values])
    if column == "bool":
        return [int(v) for v in values]
    return [msgspec.to_builtins(v) for v in values]


def columns(trace: ev.Trace) -> dict[str, Any]:
    """The trace as the JSON that the player's `fromColumns` reads; constant columns are left out."""
    names = _Names()
    schema = player.schema()
    groups: dict[str, list[ev.Event]] = {}
    order = []
    for event in trace.events:
        kind = type(event).__struct_config__.tag
        order.append(kind)
        groups.setdefault(str(kind), []).append(event)
    tables = {}
    for kind, group in groups.items():
        packed = {}
        for name, column, default in schema[kind]:
            values = [getattr(event, name) for event in group]
            if any(value != default for value in values):
                packed[name] = _column(column, values, names)
        tables[kind] = {"count": len(group), "columns": packed}
    kinds = {kind: i for i, kind in enumerate(tables)}
    return {
        "header": msgspec.to_builtins(trace.header),
        "kinds": list(kinds),
        "order": [kinds[str(kind)] for kind in order],
        "t": _runs(event.t for event in trace.events),
        "step": _runs(event.step for event in trace.events),
        "commit": _runs(int(event.commit) for event in trace.events),
        "tables": tables,
        "names": list(names.ids),
    }


def pack(trace: ev.Trace) -> str:
    """The trace as base64 of gzipped columns, for `RadixPlayer.Fleet.unpack`. The same trace packs the same.

    With several replicas a list, one trace each with the numbers its events have in the run; the header stands with the first.
    """
    packed: Any = columns(trace) if count(trace.header) == 1 else _fleet(trace)
    return _zipped(json.dumps(packed, separators=(",", ":"), ensure_ascii=False).encode())


def _fleet(trace: ev.Trace) -> list[dict[str, Any]]:
    parts = Parts(count(trace.header))
    for event in trace.events:
        parts.take(event)
    out = [columns(one) | {"numbers": _runs(_delta(numbers))} for one, numbers in zip(traces(trace), parts.numbers, strict=True)]
    for later in out[1:]:
        del later["header"]
    return out


def _zipped(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content, compresslevel=9, mtime=0)).decode()


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; script-src 'unsafe-inline'; style-src 'unsafe-inline'">
<link rel="icon" href="data:,">
<title>{title}</title><style>{styles}
body{{margin:0}}</style></head>
<body class="rp-page"><main id="player"></main>
<script type="application/octet-stream" id="trace">{packed}</script>
<script type="application/octet-stream" id="answers">{answers}</script>
<script>{script}</script>
<script>
(async () => {{
  const player = RadixPlayer.mount(document.getElementById("player"), {{
    theme: "auto", title: {title_json}, note: {note_json}, recorded: true, keys: "page",
  }});
  await player.load({{ packed: document.getElementById("trace").textContent }});
  const {{ seq, replica, ...selection }} = {opening_json};
  player.show(replica);
  player.seek(seq ?? player.trace.length - 1);
  player.select(Object.keys(selection).length ? selection : null);
  RadixPlayer.linkToAddress(player);
  const answers = await RadixPlayer.unzip(document.getElementById("answers").textContent);
  player.setWhy(RadixPlayer.savedWhy(answers), {without_json});
}})();
</script></body></html>
"""


def _script_json(value: Any) -> str:
    """A value as a literal that cannot end the script element it stands in."""
    return json.dumps(value).replace("<", "\\u003c")


def to_html(trace: ev.Trace, title: str | None = None, note: str | None = None, opening: Opening | None = None) -> str:
    """One page that plays the trace with the network off. `note` tells what to watch for.

    It opens at the end, or at `opening`. Raises ExplainError when the trace does not hold what that names.
    """
    shown = title or trace.header.scenario or "Recorded run"
    told = note if note is not None else trace.header.note
    opening = opening or Opening()
    answers = saved(trace, opening)
    without = "The app tells more of this: open the trace there." if answers[0].whole else (
        f"This run has more than {LONGEST:,} events; for most of them only the app tells more than this."
    )
    return _PAGE.format(
        title=html.escape(shown),
        styles=player.styles(),
        script=player.sources(),
        packed=pack(trace),
        answers=_zipped(msgspec.json.encode(answers)),
        title_json=_script_json(shown),
        note_json=_script_json(told),
        opening_json=_script_json({k: v for k, v in msgspec.to_builtins(opening).items() if v is not None}),
        without_json=_script_json(without),
    )
