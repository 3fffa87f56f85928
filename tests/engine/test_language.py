"""Programs on a puppet that reads and says text: what is asked when, what branches share, how answers and errors are read."""

from __future__ import annotations

from math import log
from typing import Any

import pytest

from engine import ProgramError, State, program
from engine import events as ev
from engine.language.choosing import Token, choose, scores
from tests.engine.lab import Lab
from tests.engine.templates import Chat, llama, qwen, template

SAID = [0]
"""An exclamation mark, in the ids of `qwen`."""


def chat(**config: Any) -> Chat:
    return Chat(qwen(template()), **config)


def said(lab: Chat, text: str) -> list[int]:
    return lab.engine.tokenizer.encode(text)


def arrived(lab: Lab) -> list[Any]:
    return lab.events(ev.RequestArrived)


# --- writing and reading -----------------------------------------------------------------------


def test_nothing_is_asked_before_a_value_is_read_and_an_answer_becomes_a_part_of_the_text() -> None:
    lab = chat()
    s = State(lab.engine)
    s += "Name a colour: "
    s.gen("colour", says=said(lab, "red"))
    s += ". And a fruit: "
    s.gen("fruit", says=said(lab, "plum"))
    assert not arrived(lab)
    assert s["fruit"] == "plum" and s["colour"] == "red"
    assert s.text() == "Name a colour: red. And a fruit: plum"
    first, second = arrived(lab)
    assert second.prompt == first.prompt + said(lab, "red") + said(lab, ". And a fruit: ")
    # The last id that was said has no KV yet.
    assert lab.hit(second.request) == len(first.prompt) + len("red") - 1
    assert lab.idle()


def test_an_answer_is_streamed_as_it_comes() -> None:
    lab = chat()
    s = State(lab.engine)
    s += "Go"
    s.gen("x", says=said(lab, "abc"))
    pieces = s.stream("x")
    assert next(pieces) == "a" and lab.engine.busy
    assert list(pieces) == ["b", "c"] and s["x"] == "abc"


def test_a_stop_text_is_left_out_and_what_follows_is_spelt_behind_it() -> None:
    lab = chat()
    s = State(lab.engine)
    s += "Q"
    s.gen("x", stop=("\n",), says=said(lab, "yes\nQ: more"), max_tokens=20)
    s += "; "
    s.gen("y", says=SAID)
    assert s["x"] == "yes" and s["y"]
    assert arrived(lab)[1].prompt == said(lab, "Qyes; ")


def test_a_chat_is_spelt_by_the_models_template() -> None:
    lab = chat()
    s = State(lab.engine)
    with s.system():
        s += "Be brief."
    with s.user():
        s += "Is it "
        s += "open?"
    with s.assistant():
        s += "It "
        s.gen("verb", says=said(lab, "is"))
    with s.user():
        s += "Sure?"
    with s.assistant():
        s.gen("sure", says=said(lab, "yes"))
    assert (s["verb"], s["sure"]) == ("is", "yes")
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Is it open?"}]
    tokenizer = lab.engine.tokenizer
    assert arrived(lab)[0].prompt == tokenizer.chat(asked) + tokenizer.ids("It ")
    assert arrived(lab)[1].prompt == tokenizer.chat([*asked, {"role": "assistant", "content": "It is"}, {"role": "user", "content": "Sure?"}])
    assert s.text() == "system: Be brief.\nuser: Is it open?\nassistant: It is\nuser: Sure?\nassistant: yes"


def test_a_begin_marker_stands_once_at_the_start_and_nowhere_else() -> None:
    lab = Chat(llama(template(), adds_bos=True))
    s = State(lab.engine)
    s += "Q"
    s.gen("a", says=[70])
    s += "then"
    s.gen("b", says=[70])
    s.finish()
    assert [e.prompt.count(1) for e in arrived(lab)] == [1, 1] and all(e.prompt[0] == 1 for e in arrived(lab))


def test_without_a_tokenizer_a_program_writes_and_reads_ids() -> None:
    lab = Lab(pages=64)
    s = State(lab.engine)
    s += [1, 2, 3]
    s.gen("x", says=[7, 8])
    s += [4]
    s.select("y", [[5], [6, 7]], says=[[6], [7]])
    assert s["x"] == [7, 8] and s["y"] == [6, 7]
    assert [t.logprob for t in s.selection("y").options[1].tokens] == pytest.approx([-log(2), -log(2)])
    with pytest.raises(ProgramError, match="z: this executor has no tokenizer"):
        s += "text"
        s.gen("z")
        _ = s["z"]


# --- branches ----------------------------------------------------------------------------------


@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_branches_hit_all_whole_pages_of_what_they_share_and_run_in_the_same_steps(page_size: int) -> None:
    lab = chat(page_size=page_size, pages=512 // page_size)
    s = State(lab.engine)
    s += "One essay, three judges. " * 4
    shared = len(said(lab, s.text()))
    forks = s.fork(3)
    for name, branch in zip("abc", forks, strict=True):
        branch += f"Judge {name}: "
        branch.gen("verdict", max_tokens=3, says=said(lab, name * 3))
    s.join(forks)
    assert s["verdict"] == ["aaa", "bbb", "ccc"]

    first, *branches = arrived(lab)
    assert first.label == "what 3 branches share" and first.max_new_tokens == 0 and len(first.prompt) == shared
    assert [e.label for e in branches] == [f"verdict (branch {i} of 3)" for i in (1, 2, 3)]
    over = lab.events(ev.RequestFinished, first.request)[0].seq
    for e in branches:
        assert lab.events(ev.RequestAdmitted, e.request)[0].seq > over
        assert lab.hit(e.request) == shared // page_size * page_size
    (together,) = [e for e in lab.events(ev.StepPlanned) if e.prefills == 3]
    assert together.members == [e.request for e in branches]


def test_branches_share_what_came_before_an_open_and_a_closed_message() -> None:
    for inside in (True, False):
        lab = chat()
        s = State(lab.engine)
        with s.system():
            s += "You judge essays."
        with s.user():
            s += "The essay: it was a dark and stormy night."
            forks = s.fork(2) if inside else []
        forks = forks or s.fork(2)
        for i, branch in enumerate(forks):
            if inside:
                branch += f" Criterion {i}."
            with branch.assistant():
                branch.gen("x", says=SAID)
        s.join(forks)
        assert s["x"] == ["!", "!"]
        head, *branches = arrived(lab)
        assert len(head.prompt) > len("You judge essays.The essay: it was a dark and stormy night.")
        assert [lab.hit(e.request) for e in branches] == [len(head.prompt) - (0 if inside else 1)] * 2


def test_a_fork_in_a_fork_computes_the_outer_part_first() -> None:
    lab = chat()
    s = State(lab.engine)
    s += "outer "
    for branch in (branches := s.fork(2)):
        branch += "inner "  # the same in both, which are computed in the same step
        for leaf in (leaves := branch.fork(2)):
            leaf += "leaf"
            leaf.gen("x", says=SAID)
        branch.join(leaves)
    s.join(branches)
    assert s["x"] == [["!", "!"], ["!", "!"]]
    hits = {e.request: lab.hit(e.request) for e in arrived(lab)}
    inner = [hits[e.request] for e in arrived(lab) if e.label == "what 2 branches share"]
    leaves = [hits[e.request] for e in arrived(lab) if (e.label or "").startswith("x (")]
    assert inner == [0, len("outer "), len("outer ")] and len(leaves) == 4
    assert set(leaves) == {len("outer inner ")}


def test_one_branch_or_nothing_to_share_asks_for_no_prefix() -> None:
    lab = chat()
    s = State(lab.engine)
    for branches in (1, 3):
        for branch in s.fork(branches):
            branch += "x"
            branch.gen("y", says=SAID)
        s += "something"
    s.finish()
    assert [e.label for e in arrived(lab)][:1] == ["y (branch 1 of 1)"]
    lab = chat()
    s = State(lab.engine)
    for branch in s.fork(3):
        branch += "x"
        branch.gen("y", says=SAID)
    s.finish()
    assert len(arrived(lab)) == 3


def test_join_appends_what_branches_have_written_in_their_order() -> None:
    lab = chat()
    s = State(lab.engine)
    s += "Tips:"
    forks = s.fork(2)
    for i, branch in enumerate(forks, 1):
        branch += f" {i}."
        branch.gen("tip", says=said(lab, "ab"[i - 1] * i))
    s.join(forks, "append")
    s += " Done"
    s.gen("end", says=SAID)
    assert s["end"] == "!" and s.text() == "Tips: 1.a 2.bb Done!"
    assert "tip" not in s


def test_names_that_only_some_branches_have_given_stand_as_none_in_the_list() -> None:
    lab = chat()
    s = State(lab.engine)
    s += "x"
    one, two = forks = s.fork(2)
    one.gen("here", says=SAID)
    two.gen("there", says=SAID)
    s.join(forks)
    assert s["here"] == ["!", None] and s["there"] == [None, "!"]


def test_programs_of_a_batch_run_in_the_same_steps() -> None:
    @program(max_new_tokens=9)
    def ask(s: State, what: str) -> None:
        s += what
        s.gen("x", max_tokens=2, says=SAID * 2)

    lab = chat()
    states = ask.batch(lab.engine, [{"what": w} for w in ("one", "two", "three")])
    assert [s["x"] for s in states] == ["!!"] * 3
    assert max(len(e.members) for e in lab.events(ev.StepPlanned)) == 3
    assert ask.run(lab.engine, "four")["x"] == "!!"


# --- choices -----------------------------------------------------------------------------------


def test_a_choice_computes_the_prompt_once_and_shows_every_tokens_probability() -> None:
    lab = chat()
    s = State(lab.engine)
    s += "The opening hours are "
    s.select("hours", ["nine", "ten"], says=[said(lab, "t"), said(lab, "e"), said(lab, "n"), said(lab, "?")])
    s += "!"
    assert s["hours"] == "ten" and s.text() == "The opening hours are ten!"
    table = s.selection("hours")
    assert [o.choice for o in table.options] == ["nine", "ten"] and table.healed is None
    assert ["".join(t.text or "" for t in o.tokens) for o in table.options] == ["nine", "ten"]
    assert [t.logprob for t in table.options[1].tokens] == pytest.approx([-log(2)] * 3)
    assert table.options[1].score == pytest.approx(-log(2))
    before = len(said(lab, "The opening hours are "))
    assert [o.cached for o in table.options] == [before - 1] * 2


def test_each_rule_can_be_asked_for_and_the_unconditional_one_scores_the_choices_alone_as_well() -> None:
    lab = chat()
    for rule, requests in (("token-length-normalised", 3), ("greedy-token", 3), ("unconditional-normalised", 4)):
        before = len(arrived(lab))
        s = State(lab.engine)
        s += "So "
        s.select("x", ["a", "bcd"], rule)
        assert s["x"] in ("a", "bcd") and s.selection("x").rule == rule
        # A single token that nothing stands before is certain: it needs no request.
        assert len(arrived(lab)) - before == requests
        one, two = s.selection("x").options
        if rule == "unconditional-normalised":
            assert one.tokens[0].alone == two.tokens[0].alone == 0 and two.tokens[1].alone < 0
            assert two.score == pytest.approx(sum(t.logprob - t.alone for t in two.tokens) / 3)
        else:
            assert one.tokens[0].alone is None


def test_ground_truth_30_three_rules_choose_three_options() -> None:
    def option(first: int, conditional: list[float], alone: list[float]) -> list[Token]:
        return [Token(first + i, None, a, b) for i, (a, b) in enumerate(zip(conditional, alone, strict=True))]

    options = [option(1, [-0.1], [0.0]), option(1, [-0.1, -0.3], [0.0, -1.4]), option(9, [-0.2, 0, 0, 0], [0.0] * 4)]
    names = ["organ", "organism", "a long word"]
    assert scores("token-length-normalised", options) == pytest.approx([-0.1, -0.2, -0.05])
    assert scores("unconditional-normalised", options) == pytest.approx([-0.1, 0.5, -0.05])
    picked = {rule: names[choose(rule, options)] for rule in ("token-length-normalised", "greedy-token", "unconditional-normalised")}
    assert picked == {"token-length-normalised": "a long word", "greedy-token": "organ", "unconditional-normalised": "organism"}


def test_token_by_token_does_not_part_options_in_tokens_that_they_share() -> None:
    # The last digits of one token's score differ from row to row of a batch.
    one = [Token(1, None, -0.1), Token(2, None, -3.0)]
    two = [Token(1, None, -0.1000001), Token(3, None, -0.5)]
    assert choose("greedy-token", [one, two]) == 1


# --- what goes wrong ---------------------------------------------------------------------------


def test_an_error_is_told_where_the_value_is_read_and_the_engine_serves_on() -> None:
    lab = chat(pages=64)
    s = State(lab.engine)
    s += "x" * 20
    good, bad = s.fork(2)
    good.gen("a", says=SAID)
    bad.gen("b", max_tokens=4, regex="(")
    bad += "then"
    bad.gen("c", says=SAID)
    assert good["a"] == "!"
    with pytest.raises(ProgramError, match=r"^b: regex .*") as caught:
        _ = bad["b"]
    assert caught.value.name == "b"
    with pytest.raises(ProgramError, match=r"^c: was not asked, as what stands before it is missing \(b: regex"):
        _ = bad["c"]
    s += "y" * 100
    s.gen("long", says=SAID)
    with pytest.raises(ProgramError, match=r"^long: refused: it needs more pages than the pool has"):
        _ = s["long"]
    with pytest.raises(ProgramError, match=r"^long: refused"):
        list(s.stream("long"))
    t = State(lab.engine)
    t += "fine"
    t.gen("x", says=SAID)
    assert t["x"] == "!" and lab.idle()


def test_a_pass_that_fails_and_a_request_that_is_taken_back_are_told_by_name() -> None:
    lab = chat()
    s = State(lab.engine)
    s += "x"
    s.gen("gone", max_tokens=9, says=SAID * 9)
    pieces = s.stream("gone")
    next(pieces)
    lab.engine.abort(arrived(lab)[0].request)
    with pytest.raises(ProgramError, match=r"^gone: was taken back"):
        list(pieces)
    for asked, says in (({"typo": 1}, "typo"), ({"fail_at_step": lab.engine.step_number}, "failed: .*")):
        t = State(lab.engine)
        t += "x"
        t.gen("broken", says=SAID, **asked)
        with pytest.raises(ProgramError, match=f"^broken: {says}"):
            _ = t["broken"]
    assert lab.idle()


@pytest.mark.parametrize(("do", "says"), [
    (lambda s: s.select("x", ["a"], "best"), "x: rule must be one of token-length-normalised, greedy-token, unconditional-normalised; got 'best'"),
    (lambda s: s.select("x", []), "x: choices must be a list of texts, none of them empty"),
    (lambda s: s.select("x", "abc"), "x: choices must be a list of texts"),
    (lambda s: s.select("x", ["a", "a"]), "x: the same choice stands there twice"),
    (lambda s: s.fork(0), "fork: must be a number of branches, 1 or more; got 0"),
    (lambda s: s.join([s]), "join: takes branches that this state was forked into"),
    (lambda s: s.user().__enter__(), "user: plain text stands before it"),
])  # fmt: skip
def test_what_makes_no_program_is_refused_at_once(do: Any, says: str) -> None:
    s = State(chat().engine)
    s += "text"
    with pytest.raises(ValueError) as caught:
        do(s)
    assert str(caught.value).startswith(says)


def test_in_a_chat_texts_need_a_role_and_answers_are_the_assistants() -> None:
    s = State(chat().engine)
    with s.user():
        s += "Hello"
        s.gen("x")
    with pytest.raises(ProgramError, match="x: in a chat an answer is the assistant's"):
        _ = s["x"]
    with pytest.raises(ValueError, match="in a chat every text stands in a role"):
        s += "outside"


def test_nothing_before_the_choices_is_refused_where_it_is_read() -> None:
    s = State(chat().engine)
    s.select("x", ["a", "b"])
    with pytest.raises(ProgramError, match="x: nothing stands before the choices"):
        _ = s["x"]
