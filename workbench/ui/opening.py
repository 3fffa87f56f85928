"""An uploaded workload file as a scenario: of its kind, as much of it as a page may run, with room for all of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

from workbench import scenario as scenarios
from workbench.scenario import Scenario, ScenarioError
from workbench.ui import asking
from workbench.ui.uploads import LARGEST, Uploads, new_name, plain_name
from workbench.workloads import Upload
from workbench.workloads.lines import ReadError
from workbench.workloads.recognise import COUNTS, NEEDS, recognise

SMALL = 4096
"""Tokens in all up to which a page is one token; beyond, it is 16."""
PAGE = 16
BLOCK = {"mooncake": {"block": PAGE}}
"""A block of a Mooncake trace becomes one page, so hits are those of the full size."""
UNITS = {"chat": "conversations", "agent": "sessions", "rag": "questions", "prompts": "prompts", "mooncake": "requests", "requests": "requests"}
KEYS = {"chat": "conversations", "agent": "sessions"}
"""What says how much of a file is taken; `requests` for the others."""


def kind_of(path: str | Path) -> str:
    """`scenario`, `trace` or a kind of workload, by what is in an uploaded file. Raises ScenarioError where it cannot be told."""
    path = Path(path)
    size = path.stat().st_size
    if not size:
        raise ScenarioError("the file is empty")
    with path.open("rb") as file:
        kind = recognise(file.read(LARGEST if size <= LARGEST else asking.CHARACTERS))
    if kind in (None, "prompts") and path.suffix in (".yaml", ".yml"):
        return "scenario"
    if kind in ("scenario", "trace"):
        return kind
    if size > LARGEST:
        raise ScenarioError(
            f"the file has {size / 1e6:.0f} MB; a workload of at most {LARGEST / 1e6:.0f} MB is taken here: "
            "upload its first lines, or run it by its path from the command line"
        )
    if kind is None or (kind == "prompts" and path.suffix in (".json", ".jsonl")):
        raise ScenarioError(
            "the file is neither a scenario, a trace nor a workload: its first records would be plain lines of text, "
            f"or JSON objects with {'; '.join(NEEDS)}"
        )
    return kind


def workload(path: str | Path, kind: str, uploads: Uploads) -> tuple[str, str]:
    """Make a scenario of a workload file and hold the file: its YAML, and a few words on it. Raises ScenarioError; then nothing is held."""
    upload = Upload(plain_name(path), Path(path).read_bytes())
    name = new_name(upload.name)
    try:
        total = COUNTS[kind](upload)
    except ReadError as error:
        raise ScenarioError(str(error)) from None
    data: dict[str, Any] = {"kind": kind, "file": name, **BLOCK.get(kind, {})}
    most, first = _first(data, total, {name: upload})
    taken = _fitting(first, most)
    if not taken:
        raise ScenarioError(f"{upload.name}: the first of its {total:,} {UNITS[kind]} alone asks for more than is served here")
    if taken < total:
        data[KEYS.get(kind, "requests")] = taken
    scenario = _parsed(data, {name: upload}, f"The {UNITS[kind]} of {upload.name}.", _room(kind, first, taken))
    asking.check_size(scenario)
    uploads.add(name, upload)
    return scenarios.dump(scenario), _said(kind, upload.name, taken, total)


def _parsed(data: dict[str, Any], held: dict[str, Upload], note: str = "", engine: dict[str, Any] | None = None) -> Scenario:
    file = next(iter(held.values())).name
    return scenarios.parse(
        {"name": Path(file).stem or "uploaded", "note": note, "engine": engine or {}, "workload": data}, uploads=held.get
    )


def _first(data: dict[str, Any], total: int, held: dict[str, Upload]) -> tuple[int, Scenario]:
    """As many as may be asked for at all, or fewer where those are more than any generator makes."""
    most = min(total, asking.REQUESTS)
    while True:
        try:
            return most, _parsed(data | {KEYS.get(data["kind"], "requests"): most}, held)
        except ScenarioError:
            if most == 1:
                raise
            most //= 2


def _unit(request: scenarios.RequestSpec) -> int:
    """The number of the conversation, session or request that this is of: C3-1, A3-1, R3."""
    assert request.id is not None
    return int(request.id[1:].partition("-")[0])


def _fitting(scenario: Scenario, most: int) -> int:
    """How many of the first fit into what a page may ask for."""
    asked = [[0, 0, 0] for _ in range(most)]
    for request in scenario.requests:
        unit = asked[_unit(request) - 1]
        unit[0] += 1
        unit[1] += len(request.tokens or [])
        unit[2] += request.max_new_tokens
    sums = accumulate(asked, lambda a, b: [x + y for x, y in zip(a, b, strict=True)])
    limits = (asking.REQUESTS, asking.TOKENS, asking.OUTPUTS)
    return sum(all(has <= limit for has, limit in zip(one, limits, strict=True)) for one in sums)


def _sizes(scenario: Scenario, taken: int) -> Iterator[int]:
    return (len(r.tokens or []) + r.max_new_tokens for r in scenario.requests if _unit(r) <= taken)


def _room(kind: str, scenario: Scenario, taken: int) -> dict[str, int]:
    """Pages that hold all prompts and answers, shared or not, as far as a page may ask for them."""
    sizes = list(_sizes(scenario, taken))
    page = PAGE if kind in BLOCK or sum(sizes) > SMALL else 1
    pages = sum(-(-size // page) + 1 for size in sizes)
    return {"page_size": page, "pages": min(asking.SLOTS // page, max(64, 1 << (pages - 1).bit_length()))}


def _said(kind: str, name: str, taken: int, total: int) -> str:
    of = f"the first {taken:,} of {total:,}" if taken < total else f"{total:,}"
    less = " (more is not served to a page)" if taken < total else ""
    model = "" if kind == "mooncake" else " For the loaded model's answers write executor: model under engine."
    return f"Opened {name} as a workload, kind {kind}: {of} {UNITS[kind]}{less}. Run plays them by a script: no model computes.{model}"
