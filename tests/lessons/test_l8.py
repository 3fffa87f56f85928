"""Lesson 8's references against known values, and what its text shows against what is served."""

from __future__ import annotations

import random

import pytest

from workbench.course import notebook
from workbench.course.cards import card
from workbench.experiments.bench import Bench
from workbench.experiments.ordering import OWN, scenario
from workbench.lessons.checks import l8
from workbench.scenario import parse
from workbench.workloads.assembled import pieces, requests
from workbench.workloads.texts import Words

KNOBS = {"file": OWN, "open": 8, "sequential": True}


@pytest.fixture(autouse=True)
def _own_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RADIX_DATA", raising=False)


def test_counting_pages_gives_what_a_hand_count_gives() -> None:
    a, b, c = [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 9, 9], [1, 2, 3, 4]
    assert l8.found([a, b, c], 2) == [0, 4, 2], "the last token is never looked up"
    assert l8.found([a, a], 4) == [0, 4] and l8.found([a, [7, *a]], 2) == [0, 0]
    assert l8.found([[1, 2, 3, 4, 0], [5, 6, 3, 4, 0]], 2) == [0, 0], "equal pages behind a difference"


def test_the_two_prompts_in_the_text_are_those_that_are_served() -> None:
    text = next(cell.text for cell in notebook.cells("L8") if "## Predict" in cell.text)
    shown = [line for line in text.splitlines() if line.startswith("Now: ")]
    assert len(shown) == 2
    for line, served in zip(shown, l8.prompts("timestamp first"), strict=False):
        assert Words().encode(line.removesuffix(" ...")) == list(served)[: len(Words().encode(line.removesuffix(" ...")))]


def test_the_card_runs_what_the_notebook_runs() -> None:
    for name, order in {"canonical": "canonical", **l8.TEMPLATES}.items():
        mine = parse(card("L8").runs[name].scenario, files=True)
        assert [r.tokens for r in mine.requests] == [r.tokens for r in parse(scenario(Bench(), OWN, order, text="words"), files=True).requests]


def test_pieces_put_together_are_the_prompts_of_the_workload() -> None:
    """The session line apart, which only one of the templates has."""
    made = pieces(KNOBS)
    last = [r["tokens"] for r in requests(made, lambda p: [*p.tools, p.instructions, *p.history, p.note, p.clock])]
    assert [sorted(one) for one in last] == [sorted(one) for one in l8.prompts("dynamic last")]
    first = [r["tokens"][:16] for r in requests(made, lambda p: [p.clock, *p.tools])]
    assert first == [list(one[:16]) for one in l8.prompts("timestamp first")]
    tools = [p.tools for _, p in made]
    assert len({tuple(t) for t in tools}) > 10 and len({tuple(sorted(t)) for t in tools}) == 1
    assert made[0][1].name_of(tools[0][0]).startswith("tool ") and made[0][1].name_of("?") == "something else"


def test_every_learners_words_are_tokens_of_their_own() -> None:
    for seed in range(100):
        words = {word for prompt in l8.drawn(random.Random(seed))[0] for word in prompt}
        assert all(len(Words().encode(word)) == 1 for word in words) and len({Words().encode(word)[0] for word in words}) == len(words)


