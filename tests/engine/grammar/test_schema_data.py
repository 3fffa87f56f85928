"""Forty real schemas with labelled documents: which are inside the subset, and what their documents come to.

The schemas (MaskBench and SchemaStore) are outside data: RADIX_DATA says where; without it the test is skipped.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from engine.grammar.automaton import build
from engine.grammar.joined import MAX_STATES
from engine.grammar.schema import read
from engine.grammar.schema_layout import SPACINGS
from engine.grammar.syntax import GrammarError
from tests.engine.grammar.declared import in_declared_order, undeclared
from tests.engine.grammar.documents import serialised

REFUSED = {
    "Github_easy---o50674": ("`format` 'counter'", "#/properties/type/oneOf/0/format"),
    "Github_easy---o6379": ("`preferredOrder`", "#/definitions/TestStruct/preferredOrder"),
    "Github_medium---o37614": ("`elements`", "#/definitions/text_list/elements"),
    "Snowplow---sp_42_Normalized": ("`self`", "#/self"),
    "sourcemap-v3": ("`uniqueItems`", "#/properties/sections/uniqueItems"),
}
"""Schemas outside the subset, with the word that is not supported and where it stands."""

NARROWED = {"Github_hard---o41349": 1, "JsonSchemaStore---tenants": 2, "dtool-dataset-metadata-1.0": 1}
"""How many of a schema's valid documents hold keys that it neither declares nor speaks of: refused by design."""


@pytest.mark.slow
@pytest.mark.parametrize("spacing", SPACINGS)
def test_the_shared_schemas(spacing: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = os.environ.get("RADIX_DATA")
    if not data:
        pytest.skip("RADIX_DATA is not set")
    listed = json.loads((Path(data) / "schemas" / "index.json").read_text(encoding="utf-8"))
    refused: dict[str, tuple[str, str]] = {}
    counts: Counter[str] = Counter()
    narrowed: Counter[str] = Counter()
    for entry in listed:
        path = Path(data) / entry["file"]
        found = json.loads(path.read_text(encoding="utf-8"))
        began = time.process_time()
        try:
            reading = read(found["schema"], spacing)
        except GrammarError as error:
            refused[path.stem] = (str(error).split(" is not supported")[0], str(error.where))
            continue
        automaton = build(reading.node)
        seconds = time.process_time() - began
        for test in found["tests"]:
            value: Any = in_declared_order(test["data"], found["schema"])
            accepted = automaton.accepts(serialised(value, spacing).encode())
            if test["valid"] and undeclared(value, found["schema"]):
                assert not accepted, (path.stem, value)
                narrowed[path.stem] += 1
            else:
                assert accepted == test["valid"], (path.stem, value)
                counts["accepted" if accepted else "refused"] += 1
        assert automaton.states <= reading.states <= MAX_STATES
        with capsys.disabled():
            print(f"{path.stem}: {automaton.states} states, {seconds:.2f} s, {len(reading.notes)} notes")
    inside = len(listed) - len(refused)
    with capsys.disabled():
        print(f"{spacing}: {inside} of {len(listed)} schemas inside; {dict(counts)}, narrowed {dict(narrowed)}")
    assert (len(listed), inside) == (40, 35) and refused == REFUSED and dict(narrowed) == NARROWED
