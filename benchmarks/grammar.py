"""What constrained decoding costs a step: compiling, token masks, advancing; beside llguidance, xgrammar and outlines-core.

    python benchmarks/grammar.py [--documents 60]

The embedded model's 49,152 tokens; the schema {title, year, summary of at most 120 characters} as a regular expression,
with every JSON escape (xgrammar
gets the schema itself). Random documents are cut into tokens by the model's own tokenizer and read by every
backend in turn: each token's mask, then the token. A step whose state (of our automaton) no document has come to
before counts as a first visit, for every backend; afterwards the same documents are read again. Each library fills
masks in the form that it likes best, ours a bool for each id. Times are the process's CPU time, less what reading the clock
takes, so that other work on the machine does not count; one thread.

llguidance comes with the workbench; xgrammar and outlines-core are measured where they are installed, and the
script says so where they are not.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from engine.events import GrammarEdge
from engine.grammar import regex
from engine.grammar.compile import compile_regex
from engine.grammar.guidance import GuidanceGrammar
from engine.grammar.vocabulary import Vocabulary
from engine.models import load_tokenizer

CHARACTER = r'([^"\\\x00-\x1f]|\\(["\\/bfnrt]|u([0-9a-ce-fA-CE-F][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})))'
SCHEMA = rf'\{{"title": "{CHARACTER}*", "year": -?(0|[1-9][0-9]*), "summary": "{CHARACTER}{{0,120}}"\}}'
JSON = json.dumps({
    "type": "object",
    "properties": {"title": {"type": "string"}, "year": {"type": "integer"}, "summary": {"type": "string", "maxLength": 120}},
    "required": ["title", "year", "summary"], "additionalProperties": False,
})  # fmt: skip
WORDS = [
    "a",
    "the",
    "of",
    "river",
    "light",
    "over",
    "under",
    "stone",
    "and",
    "glass",
    "winter",
    "garden",
    "machine",
    "letter",
    "small",
    "long",
    "first",
    "paper",
    "sea",
    "café",
    "naïve",
    "4",
    "7",
    "year",
]
ENDS = (0, 2)
WIDTH = 49_152

Reader = tuple[Callable[[], Any], Callable[[int], Any], Callable[[], Any]]
"""Of one document: fill the mask, take a token, ask what is forced."""


def documents(count: int) -> list[str]:
    """Random documents of the schema; some titles have an escape."""
    draw = random.Random(1)
    found = []
    for _ in range(count):
        title = " ".join(draw.choices(WORDS, k=draw.randrange(2, 9))) + draw.choice(["", "", ' "so"', "\n"])
        summary = " ".join(draw.choices(WORDS, k=draw.randrange(3, 40)))[: draw.choice([60, 120])]
        found.append(
            json.dumps({"title": title, "year": draw.randrange(-50, 2100), "summary": summary}, ensure_ascii=False)
        )
    return found


# --- the backends: each sets up once, compiles, and gives a reader for each document


class Ours:
    """This project's own backend."""

    name = "own"

    def __init__(self, pieces: list[bytes]) -> None:
        self.vocabulary = Vocabulary(pieces, ENDS, width=WIDTH)

    def compile(self) -> Any:
        return compile_regex(SCHEMA, self.vocabulary)

    def reader(self, compiled: Any) -> Reader:
        walk = compiled.walk()
        return walk.allowed, walk.advance, walk.forced


class Guidance:
    """llguidance, with our tree of the pattern in its own notation."""

    name = "llguidance"

    def __init__(self, pieces: list[bytes]) -> None:
        import llguidance.numpy

        self.vocabulary = Vocabulary(pieces, ENDS, width=WIDTH)
        GuidanceGrammar("a", regex.parse("a"), self.vocabulary)  # makes its tokenizer
        self.bits = llguidance.numpy.allocate_token_bitmask(1, WIDTH)
        self.fill = llguidance.numpy.fill_next_token_bitmask

    def compile(self) -> Any:
        return GuidanceGrammar(SCHEMA, regex.parse(SCHEMA), self.vocabulary)

    def reader(self, compiled: Any) -> Reader:
        matcher = compiled.walk()._matcher
        return (lambda: self.fill(matcher, self.bits)), matcher.consume_token, matcher.compute_ff_bytes


class XGrammar:
    """xgrammar, with the JSON schema itself: of the pattern each mask costs it twenty milliseconds."""

    name = "xgrammar"

    def __init__(self, pieces: list[bytes]) -> None:
        import xgrammar

        self.library = xgrammar
        info = xgrammar.TokenizerInfo(
            pieces,
            vocab_type=xgrammar.VocabType.RAW,
            vocab_size=WIDTH,
            stop_token_ids=list(ENDS),
            add_prefix_space=False,
        )
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.bits = np.zeros((1, WIDTH // 32), np.int32)

    def compile(self) -> Any:
        return self.compiler.compile_json_schema(JSON, any_whitespace=False)

    def reader(self, compiled: Any) -> Reader:
        matcher = self.library.GrammarMatcher(compiled)
        return (
            (lambda: matcher.fill_next_token_bitmask(self.bits)),
            matcher.accept_token,
            matcher.find_jump_forward_string,
        )


class Outlines:
    """outlines-core, with the pattern as it stands. It has no forced runs."""

    name = "outlines-core"

    def __init__(self, pieces: list[bytes]) -> None:
        import outlines_core

        self.library = outlines_core
        ids: dict[bytes, list[int]] = {}
        for i, piece in enumerate(pieces):
            if piece and i not in ENDS:
                ids.setdefault(piece, []).append(i)
        self.vocabulary = outlines_core.Vocabulary(ENDS[-1], ids)
        self.bits = np.zeros(WIDTH // 32, np.int32)

    def compile(self) -> Any:
        return self.library.Index(SCHEMA, self.vocabulary)

    def reader(self, compiled: Any) -> Reader:
        guide = self.library.Guide(compiled)
        place = self.bits.ctypes.data, self.bits.size, self.bits.itemsize
        return (lambda: guide.write_mask_into(*place)), (lambda i: guide.advance(i, return_tokens=False)), (lambda: b"")


# --- measuring


def clock_cost() -> float:
    """Nanoseconds that reading the clock twice takes."""
    spent = []
    for _ in range(2000):
        begin = time.process_time_ns()
        spent.append(time.process_time_ns() - begin)
    return statistics.median(spent)


def timed(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """CPU nanoseconds of one call, the clock's share included, and what it returned."""
    begin = time.process_time_ns()
    result = call(*arguments)
    return time.process_time_ns() - begin, result


def shown(values: list[float], unit: float, marks: tuple[int, ...]) -> str:
    return " / ".join(f"{np.percentile(values, mark) / unit:.4g}" for mark in marks)


def measure(
    backend: Any, setup: float, texts: list[list[int]], states: list[list[int]], cost: float
) -> dict[str, float]:
    """Read all documents twice; print a row for the backend and return its medians."""
    compiles, compiled = [], None
    for _ in range(5):
        spent, compiled = timed(backend.compile)
        compiles.append(spent)
    first: list[float] = []
    again: list[float] = []
    advances: list[float] = []
    asked: list[float] = []
    forced, seen = 0, set()
    for rounds in range(2):
        for ids, path in zip(texts, states, strict=True):
            mask, advance, ahead = backend.reader(compiled)
            for token, state in zip(ids, path, strict=True):
                spent, _ = timed(mask)
                (again if state in seen else first).append(max(spent - cost, 0))
                seen.add(state)
                if rounds:
                    spent, run = timed(ahead)
                    asked.append(max(spent - cost, 0))
                    forced += bool(run)
                spent, _ = timed(advance, token)
                advances.append(max(spent - cost, 0))
    steps = sum(map(len, texts))
    print(
        f"{backend.name:14}{setup / 1e6:9.0f}{statistics.median(compiles) / 1e6:12.1f}"
        f"{shown(first, 1e6, (50, 90, 99, 100)):>40}{shown(again, 1e3, (50, 90, 99)):>24}"
        f"{shown(advances, 1e3, (50,)):>9}{shown(asked, 1e3, (50,)):>9}   {forced} of {steps}"
    )
    medians = {"compiling": compiles, "first visits": first, "revisits": again, "advancing": advances}
    return {name: statistics.median(values) for name, values in medians.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=60)
    tokenizer = load_tokenizer()
    pieces, cost = tokenizer.pieces, clock_cost()
    texts = [tokenizer.encode(text) for text in documents(parser.parse_args().documents)]
    guide = compile_regex(SCHEMA, Vocabulary(pieces, ENDS, width=WIDTH))
    states = []
    for ids in texts:
        walk, path = guide.walk(), []
        for token in ids:
            path.append(walk.state)
            if not walk.advance(token):
                raise SystemExit("a document does not match its schema")
        if not walk.complete:
            raise SystemExit("a document is not whole")
        states.append(path)
    runs: list[GrammarEdge] = [edge for edge in guide.edges() if edge.forced]
    print(
        f"{len(texts)} documents, {sum(map(len, texts))} tokens, {len({s for path in states for s in path})} of {guide.states} states come to; {len(runs)} forced runs"
    )
    print(
        f"{'':14}{'set-up ms':>9}{'compile ms':>12}{'first mask ms: 50/90/99/100%':>40}{'again us: 50/90/99%':>24}{'advance':>9}{'forced':>9}   steps with forced bytes"
    )
    medians: dict[str, dict[str, float]] = {}
    for backend in (Ours, Guidance, XGrammar, Outlines):
        try:
            setup, made = timed(backend, pieces)
        except ImportError:
            print(f"{backend.name:14}is not installed here")
            continue
        medians[backend.name] = measure(made, setup, texts, states, cost)
    ours = medians.pop("own")
    for name, others in medians.items():
        slower = [
            f"{what} ({ours[what] / 1e3:.3g} us against {spent / 1e3:.3g} us)"
            for what, spent in others.items()
            if spent < ours[what]
        ]
        print(
            f"ours takes longer than {name} for " + (", ".join(slower) if slower else "nothing that is measured here")
        )


if __name__ == "__main__":
    main()
