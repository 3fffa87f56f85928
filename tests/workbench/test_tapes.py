"""Two tapes side by side: aligned by their text, and what is said about them."""

from __future__ import annotations

import pytest

from tests.workbench.decoded import known, run
from workbench.decoding import Candidate, Decoding, Token, decode
from workbench.figures import masks
from workbench.figures.tapes import align, parted, sentences


def tape(*texts: str) -> list[Token]:
    return [Token(id=sum(text.encode()) + 1000 * len(text), text=text) for text in texts]


def cut(a: list[Token], b: list[Token]) -> list[tuple[str, str, bool]]:
    return [
        ("|".join(str(t.text) for t in a[c.a : c.a_end]), "|".join(str(t.text) for t in b[c.b : c.b_end]), c.same)
        for c in align(a, b)
    ]


def test_the_same_tokens_stand_beside_each_other() -> None:
    assert cut(tape("a", "b"), tape("a", "b")) == [("a", "a", True), ("b", "b", True)]


def test_another_spelling_is_one_column_up_to_where_both_have_a_border() -> None:
    assert cut(tape("{", '"na', 'me"', "x"), tape('{"', "name", '"', "x")) == [
        ('{|"na|me"', '{"|name|"', True),
        ("x", "x", True),
    ]


def test_from_the_first_difference_on_token_stands_beside_token() -> None:
    assert cut(tape("a", "b", "c"), tape("a", "x")) == [("a", "a", True), ("b", "x", False), ("c", "", False)]


def test_a_longer_answer_parts_where_the_shorter_ends() -> None:
    a, b = tape("a", "b"), tape("a")
    part = parted(align(a, b))
    assert part is not None and (part.a, part.b) == (1, 1)


def test_tokens_without_a_text_are_beside_each_other_by_their_ids_alone() -> None:
    a = [Token(id=1, text=None), Token(id=2, text=None)]
    b = [Token(id=1, text=None), Token(id=3, text=None)]
    assert [c.same for c in align(a, b)] == [True, False]


@pytest.mark.parametrize("mode", ["verified", "unverified"])
def test_every_token_of_both_stands_in_one_column(mode: str) -> None:
    a, b = decode(known(mode)).tokens, decode(known("off")).tokens
    columns = align(a, b)
    assert [i for c in columns for i in range(c.a, c.a_end)] == list(range(len(a)))
    assert [i for c in columns for i in range(c.b, c.b_end)] == list(range(len(b)))


def test_the_first_sentence_tells_passes_and_what_was_saved() -> None:
    jump, plain = decode(known("verified")), decode(known("off"))
    first, second, third = sentences(jump, plain)
    saved = plain.passes - jump.passes
    assert f"{jump.passes} passes for 27 tokens, plain decoding 27 for 27: {saved} saved, {saved / 27:.0%}" in first
    assert second == "The answers are identical, token for token."
    assert third == "Times are simulated here."


def test_of_answers_that_differ_the_counts_are_not_set_off_against_each_other() -> None:
    jump, plain = decode(known("unverified")), decode(known("off"))
    first, second, *_ = sentences(jump, plain)
    assert "saved" not in first and f"{jump.saved} of jump-forward's own took no pass" in first
    assert second.startswith("They part at token 6: “ty” with jump-forward, “na” in plain decoding.")


def test_times_are_told_as_measured_with_the_ratio_either_way() -> None:
    def timed(mode: str, seconds: float) -> Decoding:
        return Decoding(
            request="R1", mode=mode, status="finished", tokens=tape("a"), passes=1, giving=1, duration=seconds
        )

    assert sentences(timed("verified", 2.0), timed("off", 3.0))[-1].endswith(
        "took 2.00 s in all and plain decoding 3.00 s: 1.50 times sooner."
    )
    assert sentences(timed("verified", 3.0), timed("off", 2.0))[-1].endswith("1.50 times later.")
    assert sentences(timed("verified", 2.0), timed("off", 2.01))[-1].endswith("no difference worth telling.")


def test_a_cut_answer_is_told_for_each_arm() -> None:
    said = sentences(decode(run("verified", tokens=6)), decode(run("off", tokens=6)))
    assert sum("cut after 6 tokens" in s for s in said) == 2
    assert any("more would have completed it" in s for s in said)


def test_a_run_alone_tells_what_it_saved_by_its_own_trace() -> None:
    d = decode(known("verified"))
    assert sentences(d, None)[0].startswith(f"27 tokens in {d.passes} passes: jump-forward saved {d.saved}")


# --- one position ------------------------------------------------------------------------------


def position(**more: object) -> Decoding:
    token = Token(id=1, text=" a", number=3, allowed=2, **more)  # type: ignore[arg-type]
    return Decoding(request="R1", mode="verified", status="finished", tokens=[token])


def some(id: int, p: float, forbidden: bool = False) -> Candidate:
    return Candidate(id=id, text="x", logprob=p, forbidden=forbidden)


def test_a_forbidden_first_choice_is_named_with_its_probability() -> None:
    told = masks.told(position(top=[some(7, -0.105, True), some(1, -3.0)]), 0, 100)
    assert (
        told
        == "Token 1 of 1, “␣a”: sampled in pass 3. The mask allowed 2 of 100 tokens. The model's first choice, “x” (90 %), was forbidden."
    )


def test_the_models_own_first_choice_is_told_as_that() -> None:
    assert "It was the model's first choice (90 %)." in masks.told(position(top=[some(1, -0.105)]), 0, None)


def test_the_share_that_was_forbidden_is_a_lower_bound_over_the_top_few() -> None:
    token = position(top=[some(7, -0.6931, True), some(1, -1.3863)]).tokens[0]
    assert masks.share(token) == "The mask forbade 1 of the model's top 2: 50 % of all probability at least."
    assert "None of the model's top 1 was forbidden" in masks.share(position(top=[some(1, -0.1)]).tokens[0])


@pytest.mark.parametrize(
    ("value", "words"), [(0.5, "50 %"), (0.0312, "3.1 %"), (0.00001, "under 0.1 %"), (0.095, "9.5 %")]
)
def test_shares_have_as_many_digits_as_tell_something(value: float, words: str) -> None:
    assert masks.percent(value) == words
