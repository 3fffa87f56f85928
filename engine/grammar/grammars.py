"""The grammars that an engine's requests ask for: looked at when asked for, compiled off the engine's thread."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from engine.config import EngineConfig
from engine.grammar import schema
from engine.grammar.compile import FRONT_ENDS, Compiler
from engine.grammar.door import Grammar
from engine.grammar.vocabulary import Vocabulary
from engine.request import SamplingParams

PLACES = 3
"""Places of a schema that a note names."""

_compiler = Compiler()
_thread = ThreadPoolExecutor(1, thread_name_prefix="grammar")


class Grammars:
    """Compiles for one engine; what was compiled is shared by all. `at_once`: in the caller's thread."""

    def __init__(self, backend: str, spacing: str, at_once: bool) -> None:
        self.backend = backend
        self.spacing = spacing
        self._at_once = at_once

    def check(self, params: SamplingParams) -> None:
        """Raise GrammarError for what can be seen without compiling: syntax, what is not supported, what contradicts itself."""
        kind, source = self.source(params)
        FRONT_ENDS[kind](source, self.spacing)

    def source(self, params: SamplingParams) -> tuple[str, str]:
        """What a request asks for: `regex` and the pattern, or `json_schema` and the schema as JSON text."""
        if params.regex is not None:
            return "regex", params.regex
        return "json_schema", json.dumps(params.json_schema, ensure_ascii=False)

    def ask(self, params: SamplingParams, vocabulary: Vocabulary) -> Future[Grammar]:
        """The grammar, now or later. Its error is GrammarError where nothing can match or it grows too large."""
        asked = (self.backend, *self.source(params), self.spacing, vocabulary)
        if not (self._at_once or _compiler.made(*asked)):
            return _thread.submit(_compiler.grammar, *asked)
        coming: Future[Grammar] = Future()
        try:
            coming.set_result(_compiler.grammar(*asked))
        except Exception as error:  # noqa: BLE001 - whoever asked finds it in the future, as from the thread
            coming.set_exception(error)
        return coming


def check_grammar(config: EngineConfig, *, regex: str | None = None, json_schema: Any = None) -> list[str]:
    """Look at a grammar without an engine; returns in sentences what it does not allow although the schema does.

    Raises GrammarError, with the place, for what can be seen without compiling.
    """
    if json_schema is None:
        Grammars(config.grammar, config.spacing, True).check(SamplingParams(regex=regex))
        return []
    return [f"{note.message} ({_listed(note.places)})" for note in schema.read(json_schema, config.spacing).notes]


def _listed(places: Sequence[str]) -> str:
    more = f" and {len(places) - PLACES} more" if len(places) > PLACES else ""
    return ", ".join(places[:PLACES]) + more
