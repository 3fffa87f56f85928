"""Token masks: every bit against a reading of every token, on small vocabularies and on the embedded model's."""

from __future__ import annotations

import random

import numpy as np
import pytest

from engine.grammar import regex
from engine.grammar.automaton import build
from engine.grammar.masks import Masks
from engine.grammar.syntax import GrammarError
from engine.grammar.vocabulary import Vocabulary
from tests.engine.grammar.patterns import pattern
from tests.engine.grammar.words import END, SMOLLM_ENDS, SMOLLM_WIDTH, BruteForce, embedded_vocabulary, small, smollm

STRING = r'"([^"\\\x00-\x1f]|\\["\\/bfnrt])*"'
BOOK = (
    r'\{"title": '
    + STRING
    + r', "year": -?(0|[1-9][0-9]*), "summary": "([^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}){0,120}"\}'
)
VISITED = [
    BOOK,
    r"\w+( \w+){0,12}[.!?]",
    r"[a-z]{1,40}",
    r"(.|\n){0,200}",
    "(yes|no|maybe|vielleicht|peut-être|может быть|多分)",
    "([😀-😏]|é){3,30}",
]


def masks_of(source: str, vocabulary: Vocabulary) -> Masks:
    return Masks(build(regex.parse(source)), vocabulary)


def visited(masks: Masks, draw: random.Random, count: int) -> list[int]:
    """States that answers come to: walks by allowed tokens, begun anew where they end; long texts as well as short."""
    states: list[int] = []
    state = 0
    while len(states) < count:
        states.append(state)
        ids = np.flatnonzero(masks.mask(state))
        said = [i for i in draw.sample(ids.tolist(), min(8, len(ids))) if i not in masks.vocabulary.ends]
        state = masks.next(state, draw.choice(said)) if said and draw.random() > 0.02 else 0
    return states


def hold(count: int, seed: int) -> None:
    vocabulary = embedded_vocabulary()
    every = BruteForce(smollm().pieces, SMOLLM_ENDS, SMOLLM_WIDTH)
    draw = random.Random(seed)
    for source in VISITED:
        masks = masks_of(source, vocabulary)
        states = visited(masks, draw, count // len(VISITED) // 2 + 1)
        states += draw.choices(range(masks.automaton.states), k=count // len(VISITED) // 2 + 1)
        original = build(regex.parse(source))
        for state in states:
            assert np.array_equal(masks.mask(state), every.mask(original, state)), (source, state)


def test_masks_of_200_states_are_right_for_all_49152_tokens() -> None:
    hold(200, seed=1)


@pytest.mark.slow
def test_masks_of_2000_states_are_right_for_all_49152_tokens() -> None:
    hold(2000, seed=2)


@pytest.mark.parametrize("seed", range(40))
def test_masks_of_random_patterns_are_right_in_every_state(seed: int) -> None:
    draw = random.Random(seed)
    more = ["".join(draw.choices("abcé😀7_ ", k=draw.randrange(1, 7))).encode() for _ in range(60)]
    more += [piece[draw.randrange(3) :] for piece in more] + [b"a" * 40, b"ab" * 15, "é".encode() * 12]
    vocabulary = small(*[piece for piece in more if piece], ends=(END, 3), width=700)
    every = BruteForce(vocabulary.pieces, vocabulary.ends, 700)
    try:
        automaton = build(regex.parse(pattern(draw)))
    except GrammarError:
        return
    masks = Masks(automaton, vocabulary)
    for state in range(min(automaton.states, 60)):
        assert np.array_equal(masks.mask(state), every.mask(automaton, state))
        for token in range(700):
            if token not in vocabulary.ends:
                assert (masks.next(state, token) >= 0) == masks.mask(state)[token]


def test_a_mask_cannot_be_written_to() -> None:
    mask = masks_of("ab", small()).mask(0)
    with pytest.raises(ValueError, match="read-only"):
        mask[5] = True


def test_tokens_of_the_same_bytes_are_all_allowed() -> None:
    vocabulary = small("ab", "ab", "a")
    mask = masks_of("ab+", vocabulary).mask(0)
    assert np.flatnonzero(mask).tolist() == [ord("a"), 257, 258, 259]


def test_tokens_without_bytes_and_special_ones_are_never_allowed() -> None:
    masks = masks_of(
        "a*(</s>)?", Vocabulary([b"a", b"b", b"", b"a", b"</s>", b"<", b"/", b"s", b">"], ends={4}, special={3})
    )
    assert np.flatnonzero(masks.mask(0)).tolist() == [0, 4, 5]
    assert masks.next(0, 3) == masks.next(0, 2) == masks.next(0, 4) == -1


def test_a_token_that_would_be_too_long_for_what_is_left_is_forbidden_where_it_is() -> None:
    vocabulary = small("ab", "abab", "ababab")
    masks = masks_of("(ab){0,3}", vocabulary)
    state, allowed = 0, []
    for _ in range(4):
        allowed.append(np.flatnonzero(masks.mask(state)[257:]).tolist())
        state = masks.next(state, 257)
    assert allowed == [[0, 1, 2], [0, 1], [0], []]


def test_bytes_that_no_token_has_are_never_counted_on() -> None:
    pieces = [bytes([b]) for b in range(256)]
    pieces[ord("x")] = b""
    vocabulary = Vocabulary(pieces, ends={0})
    masks = masks_of("a(x|bc)|d(x)|x*e", vocabulary)
    assert np.flatnonzero(masks.mask(0)).tolist() == [ord("a"), ord("e")]
    with pytest.raises(GrammarError, match="can be said with this vocabulary"):
        masks_of("a+x", vocabulary)


def test_a_vocabulary_refuses_ends_and_pieces_that_the_logits_do_not_have() -> None:
    with pytest.raises(ValueError, match="end of sequence 9"):
        Vocabulary([b"a"], ends={9}, width=4)
    with pytest.raises(ValueError, match="2 tokens, but only 1 logits"):
        Vocabulary([b"a", b"b"], ends=(), width=1)


# --- what is remembered


def test_states_of_a_counted_string_share_their_walks_until_near_its_end() -> None:
    vocabulary = small("ab", "abc", "a" * 8)
    masks = masks_of("[a-z]{0,1000}", vocabulary)
    for state in range(masks.automaton.states):
        masks.mask(state)
    assert (
        masks.walks == vocabulary.depth + 1 == 4
    )  # one for all but the last three states; eight letters are a long token


def test_a_state_that_was_seen_is_not_walked_again() -> None:
    masks = masks_of(r"\w+ \w+", small("ab", " a"))
    first = [masks.mask(state).copy() for state in range(masks.automaton.states)]
    walks = masks.walks
    again = [masks.mask(state) for state in range(masks.automaton.states)]
    assert masks.walks == walks and all(map(np.array_equal, first, again))


def test_masks_that_no_longer_fit_are_forgotten_and_right_again() -> None:
    vocabulary = small(*[f"{a}{b}" for a in "abcdef" for b in "abcdef"])
    automaton = build(regex.parse("(a[bc]|b[cd]e|c(d|ef)|[d-f]{3}a){4}"))
    roomy, tight = Masks(automaton, vocabulary), Masks(automaton, vocabulary, room=3 * vocabulary.width // 8)
    for _ in range(2):
        for state in range(automaton.states):
            assert np.array_equal(roomy.mask(state), tight.mask(state))
    assert tight.walks > roomy.walks
