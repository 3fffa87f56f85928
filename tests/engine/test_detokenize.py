"""Text as it comes. Trials G1, G2, G4, G5 and G6 of the field notes, and a reference that goes letter by letter."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.detokenize import IncrementalDetokenizer
from engine.loaded import LoadedModel


def deltas(pieces: Sequence[bytes], stop: Sequence[str] = ()) -> tuple[list[str], str, str | None]:
    """One push a piece; the deltas, the tail and the stop string that was met."""
    detokenizer = IncrementalDetokenizer(pieces, stop)
    said = [detokenizer.push([i]) for i in range(len(pieces))]
    return said, detokenizer.finish(), detokenizer.stopped


def test_g1_a_character_in_two_tokens_comes_whole() -> None:
    assert deltas([b"\xf0\x9f", b"\x98\x80"]) == (["", "\U0001f600"], "", None)


def test_g1_a_character_cut_off_by_the_end_is_flushed_once() -> None:
    detokenizer = IncrementalDetokenizer([b"a", b"\xf0\x9f"])
    assert [detokenizer.push([0]), detokenizer.push([1])] == ["a", ""]
    assert [detokenizer.finish(), detokenizer.finish()] == ["\ufffd", ""]


def test_g2_text_before_an_unfinished_character_comes_at_once() -> None:
    said, tail, _ = deltas([b"hi", b"\xf0", b"\x9f", b"\x98", b"\x80"])
    assert said == ["hi", "", "", "", "\U0001f600"]
    assert tail == ""


def test_g4_a_stop_string_over_several_tokens_shows_nothing_of_itself() -> None:
    assert deltas([b"DEF", b"G", b"HI", b"J"], ["DEFGHIJ"]) == (["", "", "", ""], "", "DEFGHIJ")


def test_g4_what_only_began_like_a_stop_string_is_given_back() -> None:
    assert deltas([b"DEF", b"G", b"x"], ["DEFGHIJ"]) == (["", "", "DEFGx"], "", None)
    assert deltas([b"aDEF"], ["DEFGHIJ"]) == (["a"], "DEF", None)


def test_g5_a_long_stop_string_delays_nothing_that_is_not_its_beginning() -> None:
    words = [b"The ", b"river ", b"runs ", b"to ", b"the ", b"sea."]
    said, tail, _ = deltas(words, ["~" * 20])
    assert said == [w.decode() for w in words]
    assert tail == ""


def test_g6_the_text_ends_before_the_first_match_inside_a_token() -> None:
    assert deltas([b"wait", b"..."], [".."]) == (["wait", ""], "", "..")


def test_nothing_follows_a_stop_string() -> None:
    assert deltas([b"ab|", b"cd"], ["|"]) == (["ab", ""], "", "|")


def test_of_several_stop_strings_the_one_complete_first_counts() -> None:
    assert deltas([b"abcd"], ["bcd", "c"]) == (["ab"], "", "c")
    assert deltas([b"abc"], ["c", "bc"]) == (["a"], "", "bc")


@given(st.binary(max_size=40), st.data())
def test_deltas_join_to_the_whole_text(raw: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(raw)), max_size=8)) | {0, len(raw)})
    said, tail, _ = deltas([raw[a:b] for a, b in itertools.pairwise(cuts)])
    assert "".join(said) + tail == raw.decode("utf-8", errors="replace")


def letter_by_letter(text: str, stop: Sequence[str]) -> tuple[str, str | None]:
    """The rule in its plainest form: append a character, look whether a stop string has just ended."""
    seen = ""
    for letter in text:
        seen += letter
        ended = [s for s in stop if seen.endswith(s)]
        if ended:
            longest = max(ended, key=len)
            return seen[: -len(longest)], longest
    return seen, None


@given(
    st.lists(st.text("abc", min_size=1, max_size=4), max_size=8),
    st.lists(st.text("abc", min_size=1, max_size=4), max_size=3),
)
def test_the_answer_does_not_depend_on_where_tokens_end(tokens: list[str], stop: list[str]) -> None:
    said, tail, stopped = deltas([t.encode() for t in tokens], stop)
    assert ("".join(said) + tail, stopped) == letter_by_letter("".join(tokens), stop)


@pytest.mark.parametrize("text", ["Hello  w\u00f6rld \U0001f600, \u4f60\u597d\n\n  x", "def f(x):\n\treturn x\n", "\u0939\u093f\u0928\u094d\u0926\u0940"])
def test_the_embedded_tokenizer_round_trips(embedded: LoadedModel, text: str) -> None:
    assert embedded.tokenizer is not None
    ids = embedded.tokenizer.encode(text)
    detokenizer = embedded.tokenizer.detokenizer()
    assert "".join(detokenizer.push([i]) for i in ids) + detokenizer.finish() == text


def test_every_id_of_the_embedded_model_has_the_tokenizers_own_text(embedded: LoadedModel) -> None:
    tokenizer = embedded.tokenizer
    assert tokenizer is not None
    for i in range(0, tokenizer.size, 7):
        own = tokenizer._tokenizer.decode([i], skip_special_tokens=True)
        assert tokenizer.pieces[i].decode("utf-8", errors="replace") == own


def test_special_tokens_are_shown_but_not_said(embedded: LoadedModel) -> None:
    tokenizer = embedded.tokenizer
    assert tokenizer is not None
    assert tokenizer.texts([2]) == {"2": "<|im_end|>"}
    assert tokenizer.detokenizer().push([2]) == ""


@pytest.mark.parametrize("messages", [[{"role": "user"}], [{"role": 1, "content": "x"}], [{"role": "user", "content": "\ud800"}]])
def test_messages_that_cannot_be_rendered_are_refused(embedded: LoadedModel, messages: list[dict[str, str]]) -> None:
    assert embedded.tokenizer is not None
    with pytest.raises(ValueError, match=r"role|surrogate"):
        embedded.tokenizer.chat(messages)
