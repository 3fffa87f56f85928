"""The shared schemas, decoded by the embedded model: every document is valid, and verified jumps change no id."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from engine import Engine, EngineConfig
from engine.grammar.schema import read
from engine.grammar.syntax import GrammarError
from engine.loaded import LoadedModel

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("embedded")]

CAP = 2500
SMALL = "Write a small example document, as JSON."
ASKED = {"github-issue-config": "Write the shortest JSON document that you can: one item, every text one word."}
"""What is asked where SMALL leads this model to fill sixteen items to their bounds, which takes more than CAP tokens."""
DATA = os.environ.get("RADIX_DATA")
FILES = sorted(Path(DATA, "schemas").rglob("*.json")) if DATA else []


def schemas() -> list[Any]:
    """Those of the shared schemas that are inside the subset."""
    found = []
    for path in FILES:
        held = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(held, dict) or "schema" not in held:
            continue
        try:
            read(held["schema"], "compact")
        except GrammarError:
            continue
        found.append(pytest.param(held["schema"], ASKED.get(path.stem, SMALL), id=path.stem))
    return found or [pytest.param(None, SMALL, marks=pytest.mark.skip("RADIX_DATA is not set"))]


def decode(loaded: LoadedModel, schema: Any, asked: str, jump: str) -> tuple[list[int], str, str | None, int]:
    config = EngineConfig(executor="model", pages=CAP + 600, jump=jump, spacing="compact")
    engine = Engine(config=config, loaded=loaded)
    engine.submit(messages=[{"role": "user", "content": asked}], json_schema=schema, max_new_tokens=CAP)
    ids: list[int] = []
    text, reason = "", None
    for step in engine.run():
        for p in step:
            ids, text, reason = ids + p.ids, text + p.text, p.reason
    return ids, text, reason, engine.totals.forward_passes


@pytest.mark.parametrize(("schema", "asked"), schemas())
def test_a_real_schema_is_decoded_to_a_valid_document_and_jumps_change_no_id(
    embedded: LoadedModel, schema: Any, asked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = decode(embedded, schema, asked, "off")
    jumped = decode(embedded, schema, asked, "verified")
    with capsys.disabled():
        print(f" {len(plain[0])} tokens, {plain[3]} passes plain, {jumped[3]} verified")
    assert plain[2] == "stop"
    jsonschema.validate(json.loads(plain[1]), schema)
    assert jumped[:3] == plain[:3]
