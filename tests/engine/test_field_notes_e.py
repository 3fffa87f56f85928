"""Field notes E that concern the engine: jumps, masks in a batch, ends and caps. (The others: tests/engine/grammar.)"""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest

from engine import Engine, EngineConfig
from engine import events as ev
from engine.asking import SubmitError
from engine.engine import Progress
from engine.executor.puppet import PuppetExecutor
from engine.executor.words import PIECES
from engine.grammar import grammars
from engine.grammar.vocabulary import Vocabulary

CARD = r'\{"name": "[a-z]{1,8}", "population": [0-9]{1,6}\}'


def spelt(ids: list[int]) -> str:
    return b"".join(PIECES[i] for i in ids).decode()


def ids_of(text: str) -> list[int]:
    return list(text.encode())


class Run:
    """A puppet engine run to its end: answers, trace and ends by request."""

    def __init__(self, *requests: dict[str, Any], executor: PuppetExecutor | None = None, **config: Any) -> None:
        knobs = {"executor": "puppet", "pages": 256, "page_size": 2, **config}
        self.trace = ev.Trace(keep=True)
        self.engine = Engine(config=EngineConfig(**knobs), executor=executor, trace=self.trace, check=True)
        self.answers: dict[str, list[int]] = {}
        for request in requests:
            asked = {"prompt": [500, 501, 502], "max_new_tokens": 60, **request}
            self.engine.submit(asked.pop("prompt"), **asked)
        for step in self.engine.run():
            self.take(step)

    def take(self, step: list[Progress]) -> None:
        for p in step:
            said = self.answers.setdefault(p.request, [])
            del said[len(said) - p.replaced :]
            said += p.ids

    def of(self, kind: type[Any]) -> list[Any]:
        return [e for e in self.trace if isinstance(e, kind)]


def ending(*ends: int) -> PuppetExecutor:
    """A puppet with end-of-sequence ids, for a pool of 256 pages of 2."""
    executor = PuppetExecutor(256, 2)
    executor.eos_ids = frozenset(ends)
    return executor


def test_e1_jumping_changes_neither_spacing_nor_number() -> None:
    says = [ids_of(c) for c in '{"name": "oslo", "population": 709037}']
    plain = Run({"id": "a", "regex": CARD, "says": [[*s] for s in says]}, jump="off")
    text = spelt(plain.answers["a"])
    assert text == '{"name": "oslo", "population": 709037}'
    for jump in ("verified", "unverified"):
        jumped = Run({"id": "a", "regex": CARD, "says": [[*s] for s in says]}, jump=jump)
        assert re.fullmatch(CARD, spelt(jumped.answers["a"]))
    verified = Run({"id": "a", "regex": CARD, "says": [[*s] for s in says]}, jump="verified")
    assert verified.answers == plain.answers


def test_e1_a_respelt_span_is_told() -> None:
    # The model says `{` and `"` apart; the tokenizer writes both as one token.
    run = Run({"id": "a", "regex": r'\{"na[a-z]{2}": 1\}', "says": [[123], [34], *[[109]] * 20]}, jump="unverified")
    jumped = run.of(ev.GrammarJumped)
    assert [spelt(e.before) for e in jumped][:1] == ["{"]
    assert [spelt(e.after) for e in jumped][:1] == ['{"na']
    assert jumped[0].after[0] == PIECES.index(b'{"')


def test_e2_what_follows_a_jump_begins_as_without_it() -> None:
    pattern = r'\["[a-z]{3}", "[a-z]{3}", "[a-z]{3}"\]'
    plain, jumped = (Run({"id": "a", "regex": pattern}, jump=jump) for jump in ("off", "verified"))
    assert jumped.of(ev.GrammarVerified)
    assert jumped.answers == plain.answers


def test_e3_what_the_model_would_merge_is_rolled_back_with_its_slots() -> None:
    # Forced is `{"na`; the model goes on with the one token `{"` and then the longer `name`, over the forced run's end.
    says = [[PIECES.index(b'{"')], [PIECES.index(b"name")], [PIECES.index(b'"}')]]
    run = Run({"id": "a", "regex": r'\{"na(me|il)"\}', "says": says}, page_size=1, pages=64)
    drafted, back = run.of(ev.GrammarVerified)[0], run.of(ev.GrammarRolledBack)[0]
    assert spelt(drafted.draft) == '{"na' and drafted.accepted == 1
    assert spelt(back.tokens) == "na" and len(back.pages) == 1
    assert spelt(run.answers["a"]) == '{"name"}'
    assert run.engine.pool.free + run.engine.cache.evictable == 64


def test_e4_a_prompt_that_ends_in_a_blank_is_served_and_remarked_upon() -> None:
    run = Run({"id": "a", "prompt": ids_of("It is "), "regex": "[0-9]{4}"}, {"id": "b", "prompt": ids_of("It is"), "regex": "[0-9]{4}"})
    assert all(re.fullmatch("[0-9]{4}", spelt(ids)) for ids in run.answers.values())
    notes = [e.note for e in run.of(ev.RequestArrived)]
    assert notes[0] is not None and notes[0].startswith("the prompt ends in a blank") and notes[1] is None


def test_e15_an_end_at_the_first_token_is_masked() -> None:
    executor = ending(400)
    run = Run({"id": "a", "regex": CARD, "says": [[400, 123], *[[400, 109, 49, 34]] * 59]}, executor=executor)
    assert spelt(run.answers["a"]).startswith("{")
    assert re.fullmatch(CARD, spelt(run.answers["a"]))


def test_e15_an_end_is_taken_where_the_document_may_end() -> None:
    run = Run({"id": "a", "regex": "[0-9]+", "says": [[400, 49], [50], [400]]}, executor=ending(400, 401))
    assert run.answers["a"] == [49, 50, 400]
    assert run.of(ev.RequestFinished)[0].reason == "stop"


def test_e20_a_cap_ends_with_length_and_tells_what_is_missing() -> None:
    run = Run({"id": "a", "regex": CARD, "max_new_tokens": 5, "says": [[b] for b in b'{"nam']}, jump="off")
    end = run.of(ev.RequestFinished)[0]
    assert (end.reason, end.incomplete) == ("length", True)
    assert spelt(run.answers["a"]) == '{"nam'
    # e ": "  a  ",  ␣" …: a shortest way on, counted in this vocabulary's tokens.
    assert end.still_needed is not None and end.still_needed >= 4
    whole = Run({"id": "a", "regex": CARD}).of(ev.RequestFinished)[0]
    assert (whole.incomplete, whole.still_needed) == (False, None)


def test_e21_compiling_holds_up_nobody_else_and_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    may_compile = threading.Event()
    grammar = grammars._compiler.grammar

    def slowly(*asked: Any) -> Any:
        assert may_compile.wait(20)
        return grammar(*asked)

    monkeypatch.setattr(grammars._compiler, "grammar", slowly)
    executor = PuppetExecutor(256, 2)
    executor.virtual = False  # a wall clock: compiling goes on beside the steps
    run = Run(executor=executor)
    run.engine.submit([1, 2, 3], id="waits", regex="once[a-z]{3}", max_new_tokens=9)
    run.engine.submit([1, 2, 3], id="streams", max_new_tokens=6)
    while len(run.answers.get("streams", ())) < 6:
        run.take(run.engine.step() or [])
    assert "waits" not in run.answers and run.engine.snapshot()["queue"] == []
    may_compile.set()
    while run.engine.busy:
        run.take(run.engine.step() or [])
    assert spelt(run.answers["waits"]).startswith("once")
    assert [e.request for e in run.of(ev.GrammarWaiting)] == ["waits"]
    run.engine.submit([1, 2, 3], id="again", regex="once[a-z]{3}", max_new_tokens=9)
    while run.engine.busy:
        run.take(run.engine.step() or [])
    assert [e.request for e in run.of(ev.GrammarWaiting)] == ["waits"]
    assert [e.reused for e in run.of(ev.GrammarCompiled)] == [False, True]


def test_e21_a_request_taken_back_while_it_waits_for_its_grammar_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    may_compile = threading.Event()
    grammar = grammars._compiler.grammar
    monkeypatch.setattr(grammars._compiler, "grammar", lambda *asked: may_compile.wait(20) and grammar(*asked))
    executor = PuppetExecutor(256, 2)
    executor.virtual = False
    run = Run(executor=executor)
    run.engine.submit([1, 2, 3], id="gone", regex="taken back[a-z]{3}")
    assert run.engine.step() == []
    assert run.engine.abort("gone") and not run.engine.busy
    may_compile.set()
    assert run.engine.step() is None and run.engine.pool.free == 256


def test_e26_rows_of_one_batch_stand_each_for_itself() -> None:
    free = {"id": "free", "says": [7, 8, 9, 10, 11], "max_new_tokens": 5}
    same = [{"id": "one", "regex": CARD, "at_step": 0}, {"id": "two", "regex": CARD, "at_step": 4}]
    together = Run(*same, free)
    assert together.answers["free"] == [7, 8, 9, 10, 11]
    alone = [Run(request) for request in same]
    assert together.answers["one"] == alone[0].answers["one"] and together.answers["two"] == alone[1].answers["two"]
    assert any(len(e.members) == 3 for e in together.of(ev.StepPlanned))


def test_e27_two_grammars_at_once_are_refused() -> None:
    engine = Run().engine
    with pytest.raises(SubmitError, match=r"^regex: give either regex or json_schema; both are there"):
        engine.submit([1], regex="a", json_schema={"type": "null"})
    with pytest.raises(SubmitError, match=r"^ignore_eos: a grammar says where the answer may end"):
        engine.submit([1], regex="a", ignore_eos=True)
    with pytest.raises(SubmitError, match=r"^regex \(character 1\): "):
        engine.submit([1], regex="a(?=b)")
    assert not engine.busy


def test_a_grammar_that_turns_out_empty_is_refused_on_arrival() -> None:
    run = Run({"id": "a", "regex": r"a[^\s\S]"}, {"id": "b", "regex": "a"})
    refused = run.of(ev.RequestRefused)
    assert [(e.request, e.reason) for e in refused] == [("a", "grammar")] and "nothing can match" in refused[0].error
    assert spelt(run.answers["b"]) == "a"


@pytest.mark.parametrize("jump", ["verified", "unverified"])
def test_a_forced_run_never_passes_the_cap(jump: str) -> None:
    for cap in range(1, 12):
        run = Run({"id": "a", "regex": "a(true, false, null, name, title)b", "max_new_tokens": cap}, jump=jump)
        assert len(run.answers["a"]) <= cap
        assert run.of(ev.RequestFinished)[0].reason == ("stop" if spelt(run.answers["a"]).endswith("b") else "length")


def test_a_forced_text_alone_takes_no_pass_of_its_own_unverified() -> None:
    run = Run({"id": "a", "regex": "[ab] true, false, null, name, title"}, jump="unverified")
    assert run.engine.totals.forward_passes == 1
    assert spelt(run.answers["a"])[1:] == " true, false, null, name, title"


@pytest.mark.parametrize("jump", ["verified", "unverified"])
def test_a_stop_inside_a_forced_run_ends_answer_pages_and_automaton_there(jump: str) -> None:
    pattern = "[ab]true, false, null"
    comma = PIECES.index(b", ")
    says = [[97], [PIECES.index(b"true")], [comma], [PIECES.index(b"false")], [comma], [PIECES.index(b"null")]]
    plain, jumped = (
        Run({"id": "a", "regex": pattern, "says": says, "stop_token_ids": [comma]}, jump=how) for how in ("off", jump)
    )
    assert jumped.answers == plain.answers == {"a": [97, PIECES.index(b"true"), comma]}
    assert jumped.engine.totals.forward_passes < plain.engine.totals.forward_passes
    ends = [run.of(ev.RequestFinished)[0] for run in (plain, jumped)]
    assert ends[0].still_needed == ends[1].still_needed == 3
    assert ends[0].matched_stop == ends[1].matched_stop == comma
    assert jumped.engine.pool.free + jumped.engine.cache.evictable == 256


def test_a_draft_that_closes_the_document_is_agreed_with_to_its_last_token() -> None:
    run = Run({"id": "a", "regex": "[ab]true", "says": [[97], [PIECES.index(b"true")], [0]]})
    verified = run.of(ev.GrammarVerified)[0]
    assert (verified.drafted, verified.accepted) == (1, 1)
    assert not run.of(ev.GrammarRolledBack)
    assert spelt(run.answers["a"]) == "atrue" and run.engine.totals.forward_passes == 2


def test_a_request_that_its_vocabulary_cannot_go_on_with_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # `b` is a byte of one token, but no token by itself: after `a` nothing can follow.
    vocabulary = Vocabulary([b"a", b"xb", b"y"], (), width=65_536)
    monkeypatch.setattr(PuppetExecutor, "vocabulary", vocabulary)
    run = Run({"id": "stuck", "regex": "ab|xb", "says": [[0], [1]]}, {"id": "fine", "regex": "y|xb", "says": [[2]]}, {"id": "free", "says": [7, 8, 9]})
    ends = {e.request: (e.reason, e.error) for e in run.of(ev.RequestFinished)}
    assert ends["stuck"] == ("error", "no token of this vocabulary can go on here")
    assert ends["fine"] == ("stop", None) and run.answers["free"] == [7, 8, 9]
    assert not run.of(ev.ExecutorFailed) and run.engine.pool.free + run.engine.cache.evictable == 256


def test_edges_come_once_for_each_grammar_however_many_there_are() -> None:
    run = Run(*({"id": f"R{i}", "regex": f"[ab]{{{1 + i % 40}}}", "after": f"R{i - 1}" if i else None} for i in range(80)))
    compiled = run.of(ev.GrammarCompiled)
    assert [e.reused for e in compiled] == [False] * 40 + [True] * 40
    assert all(bool(e.edges) != e.reused for e in compiled)


@pytest.mark.parametrize("jump", ["off", "verified", "unverified"])
def test_a_document_that_is_whole_at_the_cap_has_not_been_cut(jump: str) -> None:
    run = Run({"id": "a", "regex": "[ab]true", "max_new_tokens": 2, "says": [[97], [PIECES.index(b"true")], [0]]}, jump=jump)
    end = run.of(ev.RequestFinished)[0]
    assert (end.reason, end.outputs, end.incomplete) == ("stop", 2, False)
