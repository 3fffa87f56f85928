"""The tape of an answer: every token's source, pass, mask and states, told from the trace alone."""

from __future__ import annotations

from itertools import pairwise

import pytest

from engine import Engine
from engine import events as ev
from engine.config import EngineConfig
from engine.executor.words import PIECES
from tests.workbench.decoded import ids, known, run
from workbench.decoding import NothingToShowError, decode
from workbench.replay import fold

MODES = ("off", "verified", "unverified")


@pytest.mark.parametrize("mode", MODES)
def test_the_tape_is_the_answer(mode: str) -> None:
    trace = known(mode)
    d = decode(trace)
    assert [t.id for t in d.tokens] == fold(trace.events).requests["R1"].output
    assert "".join(str(t.text) for t in d.tokens).startswith('{"name": "')
    assert (d.status, d.reason, d.mode) == ("finished", "stop", mode)


@pytest.mark.parametrize("mode", MODES)
def test_counts_by_source_are_those_that_the_state_keeps(mode: str) -> None:
    trace = known(mode)
    d, state = decode(trace), fold(trace.events)
    grammar = state.requests["R1"].grammar
    assert grammar is not None
    assert (d.count("forced"), d.count("jumped")) == (grammar.forced, grammar.jumped)
    gone = [e.tokens for e in trace.events if isinstance(e, ev.GrammarRolledBack)]
    assert d.rolled_back == sum(map(len, gone))
    assert d.passes == state.totals["forward_passes"]


def test_plain_decoding_takes_a_pass_a_token_and_saves_none() -> None:
    d = decode(known("off"))
    assert [t.number for t in d.tokens] == list(range(1, len(d.tokens) + 1))
    assert (d.saved, d.passes, d.back) == (0, len(d.tokens), [])


def test_a_verified_jump_saves_as_many_passes_as_it_has_jumped_tokens() -> None:
    plain, jump = decode(known("off")), decode(known("verified"))
    assert [t.id for t in jump.tokens] == [t.id for t in plain.tokens]
    assert jump.saved == plain.passes - jump.passes == jump.count("jumped") > 0


def test_what_was_computed_again_counts_as_a_pass_and_gives_nothing() -> None:
    trace = ev.Trace(keep=True)
    engine = Engine(config=EngineConfig(executor="puppet", pages=32, chunk=4, jump="off"), trace=trace)
    engine.submit(list(range(300, 310)), id="R1", max_new_tokens=2, regex="[a-z]{9}")
    while engine.step() is not None:
        pass
    d = decode(trace)
    assert (d.passes, d.giving, len(d.tokens), d.saved) == (4, 2, 2, 0)


@pytest.mark.parametrize("mode", MODES)
def test_each_token_goes_on_in_the_state_where_the_one_before_has_led(mode: str) -> None:
    d = decode(known(mode))
    assert d.grammar is not None and d.tokens[0].state == d.grammar.start
    for before, after in pairwise(d.tokens):
        assert before.target == after.state is not None
    assert d.tokens[-1].target in d.grammar.ends


def test_tokens_that_jumped_in_a_pass_belong_to_it() -> None:
    d = decode(known("verified"))
    for token, following in pairwise(d.tokens):
        if token.source == "jumped":
            assert token.number == following.number


def test_what_was_drafted_and_rolled_back_stands_where_the_model_said_something_else() -> None:
    d = decode(known("verified"))
    for back in d.back:
        assert back.why == "rolled back" and back.number == d.tokens[back.position].number
        assert back.ids[0] != d.tokens[back.position].id
        assert back.texts == [PIECES[i].decode() for i in back.ids]


def test_a_mask_tells_how_many_tokens_it_allowed_and_a_forced_token_was_the_only_one() -> None:
    d = decode(known("off"))
    assert all(t.allowed for t in d.tokens)
    assert {t.source for t in d.tokens if t.allowed == 1} == {"forced"}
    assert {t.source for t in d.tokens if t.allowed != 1} == {"sampled"}


def test_nobody_looked_at_what_an_unverified_jump_appended() -> None:
    d = decode(known("unverified"))
    assert {t.allowed for t in d.tokens if t.source == "jumped"} == {None}
    assert d.count("jumped") > 0


def test_an_unverified_jump_respells_what_the_model_had_begun() -> None:
    # The model says `{` alone; the tokenizer would write `{"`, so the jump spells the brace anew.
    d = decode(run("unverified", r'\{"name": [0-9]\}', says=tuple(ids("{__7}"))))
    assert [(t.text, t.source) for t in d.tokens[:3]] == [('{"', "respelt"), ("name", "jumped"), ('": ', "jumped")]
    (back,) = d.back
    assert (back.why, back.position, back.texts) == ("respelt", 0, ["{"])
    assert [t.text for t in d.tokens][-1] == "}" and d.count("jumped") == d.saved


def test_an_answer_that_ends_within_its_draft_keeps_the_token_that_was_right() -> None:
    d = decode(run("verified", "(ab)(cdefgh)x", tokens=4))
    assert len(d.tokens) == 4
    assert [t.id for t in d.tokens] == [t.id for t in decode(run("off", "(ab)(cdefgh)x", tokens=4)).tokens]
    assert not any(back.position < 4 and back.ids[0] == d.tokens[back.position].id for back in d.back)


def test_a_cut_document_says_so_and_how_much_is_missing() -> None:
    d = decode(run("verified", tokens=6))
    assert d.incomplete and d.reason == "length" and d.still_needed is not None and d.still_needed > 0


def test_the_edges_of_a_grammar_that_was_compiled_for_another_are_found() -> None:
    trace = ev.Trace(keep=True)
    engine = Engine(config=EngineConfig(executor="puppet", pages=64), trace=trace)
    for name in ("R1", "R2"):
        engine.submit([300, 301], id=name, max_new_tokens=8, regex="ab[c-e]{2}")
    while engine.step() is not None:
        pass
    first, second = decode(trace, "R1"), decode(trace, "R2")
    assert first.grammar is not None and second.grammar is not None
    assert not first.grammar.reused and second.grammar.reused
    assert second.grammar.edges == first.grammar.edges != []


def test_a_request_without_a_grammar_has_a_tape_as_well() -> None:
    trace = ev.Trace.read("tests/golden/walkthrough.jsonl")
    d = decode(trace)
    assert d.grammar is None and [t.source for t in d.tokens] == ["sampled", "sampled"]


def test_a_request_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(NothingToShowError, match="R9"):
        decode(known("off"), "R9")
    with pytest.raises(NothingToShowError, match="no request"):
        decode(ev.Trace(keep=True))
