"""Jump-forward on the embedded model in float32: the ids of plain constrained decoding, in fewer passes."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from engine import Engine, EngineConfig
from engine import events as ev
from engine.loaded import LoadedModel

pytestmark = pytest.mark.xdist_group("embedded")

SCHEMAS: dict[str, dict[str, Any]] = {
    "title, year, summary": {
        "type": "object",
        "properties": {
            "title": {"type": "string", "maxLength": 30},
            "year": {"type": "integer", "minimum": 0, "maximum": 2100},
            "summary": {"type": "string", "maxLength": 60},
        },
        "required": ["title", "year", "summary"],
    },
    "many keys": {
        "type": "object",
        "properties": {
            "first_name": {"type": "string", "maxLength": 12},
            "postal_code": {"type": "string", "pattern": "^[0-9]{5}$"},
            "is_business_address": {"type": "boolean"},
            "country": {"enum": ["France", "Germany", "Georgia"]},
        },
        "required": ["first_name", "postal_code", "is_business_address", "country"],
    },
    "nested": {
        "type": "object",
        "properties": {
            "crew": {
                "type": "array", "minItems": 2, "maxItems": 3,
                "items": {
                    "type": "object",
                    "properties": {"name": {"type": "string", "maxLength": 10}, "age": {"type": "integer", "minimum": 18, "maximum": 70}},
                    "required": ["name", "age"],
                },
            },
        },
        "required": ["crew"],
    },
    "words with one beginning": {"enum": ["interested", "interesting", "international", "interval"]},
    "accents": {"type": "array", "items": {"enum": ["café", "crème brûlée", "日本", "naïve"]}, "minItems": 2, "maxItems": 2},
    "dates and choices": {
        "type": "object",
        "properties": {"on": {"type": "string", "format": "date"}, "what": {"anyOf": [{"type": "null"}, {"type": "number", "minimum": 0, "maximum": 9.5}]}},
        "required": ["on", "what"],
    },
}  # fmt: skip
MESSAGES = [{"role": "user", "content": "Answer in JSON: who sailed with Captain Ahab, when, and how did it end?"}]


class Answer:
    """One request on a fresh engine."""

    def __init__(self, loaded: LoadedModel, schema: dict[str, Any], stop: tuple[str, ...] = (), **config: Any) -> None:
        self.trace = ev.Trace(keep=True)
        engine = Engine(config=EngineConfig(executor="model", pages=600, **config), loaded=loaded, trace=self.trace, check=True)
        engine.submit(messages=MESSAGES, json_schema=schema, max_new_tokens=160, id="a", stop=stop)
        self.ids: list[int] = []
        self.text = ""
        self.reason: str | None = None
        for step in engine.run():
            for p in step:
                self.ids += p.ids
                self.text += p.text
                self.reason = p.reason
        self.passes = engine.totals.forward_passes
        self.jumped = engine.totals.jumped_tokens


@pytest.mark.parametrize("name", SCHEMAS)
def test_verified_jumps_give_the_ids_of_plain_decoding_in_fewer_passes(embedded: LoadedModel, name: str) -> None:
    plain = Answer(embedded, SCHEMAS[name], jump="off")
    jumped = Answer(embedded, SCHEMAS[name], jump="verified", page_size=5)
    assert jumped.ids == plain.ids and jumped.text == plain.text
    assert jumped.passes == plain.passes - jumped.jumped
    assert jumped.passes < plain.passes
    assert plain.reason == "stop"
    jsonschema.validate(json.loads(plain.text), SCHEMAS[name], format_checker=jsonschema.FormatChecker())


@pytest.mark.parametrize("spacing", ["compact", "one-space", "pretty"])
def test_e9_every_spacing_gives_a_document_and_its_own_forced_runs(embedded: LoadedModel, spacing: str) -> None:
    answer = Answer(embedded, SCHEMAS["many keys"], spacing=spacing)
    document = json.loads(answer.text)
    jsonschema.validate(document, SCHEMAS["many keys"])
    shape: dict[str, Any] = {"compact": {"separators": (",", ":")}, "one-space": {}, "pretty": {"indent": 2}}[spacing]
    assert answer.text == json.dumps(document, ensure_ascii=False, **shape)
    assert answer.jumped > 0


def test_an_unverified_jump_ends_whole_and_follows_the_schema(embedded: LoadedModel) -> None:
    answer = Answer(embedded, SCHEMAS["many keys"], jump="unverified")
    jsonschema.validate(json.loads(answer.text), SCHEMAS["many keys"])
    assert any(isinstance(e, ev.GrammarJumped) for e in answer.trace)


def test_a_drawn_answer_is_the_same_with_verified_jumps(embedded: LoadedModel) -> None:
    def drawn(jump: str) -> list[int]:
        engine = Engine(config=EngineConfig(executor="model", pages=600, jump=jump), loaded=embedded)
        engine.submit(messages=MESSAGES, json_schema=SCHEMAS["many keys"], max_new_tokens=80, temperature=1.2, top_p=0.95, seed=7)
        return [i for step in engine.run() for p in step for i in p.ids]

    assert drawn("verified") == drawn("off")


def test_a_stop_string_inside_a_forced_run_cuts_the_text_there(embedded: LoadedModel) -> None:
    stop = ("_code",)
    plain, verified, unverified = (
        Answer(embedded, SCHEMAS["many keys"], stop, jump=jump) for jump in ("off", "verified", "unverified")
    )
    assert plain.text.endswith(', "postal') and verified.text == plain.text and verified.ids == plain.ids
    assert unverified.text.endswith(', "postal') and "_code" not in unverified.text
    assert {plain.reason, verified.reason, unverified.reason} == {"stop"}
