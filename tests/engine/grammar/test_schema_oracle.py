"""Random schemas against the `jsonschema` package: what is written is valid, and what is valid is not missed."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from engine.grammar.schema_alternatives import ImpossibleError
from engine.grammar.schema_layout import SPACINGS
from engine.grammar.syntax import GrammarError
from tests.engine.grammar.documents import Asked, serialised
from tests.engine.grammar.schemas import Schemas, closed

FEW = range(0, 75, 15)
MANY = range(1000, 1600, 20)


def judge(schema: Any) -> Draft202012Validator:
    return Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


def check_that_all_that_is_written_is_valid(seed: int) -> int:
    """Draw documents from a schema's automaton, and try values on it. Returns how many were accepted."""
    rng = random.Random(seed)
    schemas = Schemas(rng, tangled=True)
    schema, spacing = schemas.top(), rng.choice(SPACINGS)
    try:
        asked = Asked(schema, spacing)
    except GrammarError:
        return 0
    texts = [asked.draw(rng) for _ in range(6)]
    texts += [text for text in (serialised(schemas.anything(), spacing) for _ in range(20)) if asked.takes_text(text)]
    for text in texts:
        assert judge(schema).is_valid(json.loads(text)), (seed, schema, text)
    return len(texts)


def check_that_valid_values_are_accepted(seed: int) -> tuple[int, int]:
    """Try values on a schema of the kinds that are never narrowed. Returns how many were accepted and refused."""
    rng = random.Random(seed)
    schemas = Schemas(rng, tangled=False)
    schema, spacing = schemas.top(), rng.choice(SPACINGS)
    values = [schemas.near(schema) for _ in range(40)]
    valid = [judge(closed(schema)).is_valid(value) for value in values]
    try:
        asked = Asked(schema, spacing)
    except ImpossibleError:
        assert not any(valid), (seed, schema)
        return 0, 0
    for value, right in zip(values, valid, strict=True):
        assert asked.takes(value) == right, (seed, schema, value)
    return sum(valid), len(valid) - sum(valid)


@pytest.mark.parametrize("first", FEW)
def test_what_is_written_is_valid(first: int) -> None:
    assert sum(map(check_that_all_that_is_written_is_valid, range(first, first + 15))) > 30


@pytest.mark.parametrize("first", FEW)
def test_what_is_valid_is_accepted_and_the_rest_refused(first: int) -> None:
    results = [check_that_valid_values_are_accepted(seed) for seed in range(first, first + 15)]
    assert sum(right for right, _ in results) > 100 and sum(wrong for _, wrong in results) > 50


@pytest.mark.slow
@pytest.mark.parametrize("first", MANY)
def test_many_schemas_hold_to_both(first: int) -> None:
    for seed in range(first, first + 20):
        check_that_all_that_is_written_is_valid(seed)
        check_that_valid_values_are_accepted(seed)
