"""Field notes E, as far as they are about patterns, masks and walks: what constrained decoding gets wrong in the trade."""

from __future__ import annotations

import random

import numpy as np
import pytest
from transformers import LlamaTokenizer

from engine.grammar import regex
from engine.grammar.automaton import build
from engine.grammar.compile import Compiler, compile_regex
from engine.grammar.door import Grammar, Walk
from engine.grammar.syntax import GrammarError
from engine.grammar.vocabulary import Vocabulary, vocabulary_of
from engine.tokenizer import TextTokenizer
from tests.engine.grammar.test_masks import BOOK, masks_of, visited
from tests.engine.grammar.words import END, embedded_vocabulary, small

each_backend = pytest.mark.parametrize("backend", ["own", "llguidance"])


def grammar(backend: str, pattern: str, vocabulary: Vocabulary) -> Grammar:
    return Compiler().grammar(backend, "regex", pattern, "compact", vocabulary)


def say(walk: Walk, text: str | bytes) -> None:
    for byte in text.encode() if isinstance(text, str) else text:
        assert walk.advance(byte), text


def preferring(walk: Walk, *order: int) -> int:
    """What a model says that always likes the first of `order` best that it may say."""
    return next(token for token in order if walk.allowed()[token])


@each_backend
def test_e8_a_model_that_loves_newlines_gets_as_many_as_the_pattern_has_room_for(backend: str) -> None:
    walk = grammar(backend, r'\{[ \n]{0,2}"a":[ \n]{0,2}1[ \n]{0,2}\}', small()).walk()
    said = b""
    while not walk.complete:
        token = preferring(walk, 10, 32, *range(33, 127))
        assert walk.advance(token)
        said += bytes([token])
    assert said == b'{\n\n"a":\n\n1\n\n}'


@each_backend
def test_e14_anchors_mean_the_whole_text(backend: str) -> None:
    walk = grammar(backend, "^ab$", small()).walk()
    assert walk.forced() == b"ab"
    say(walk, "ab")
    assert walk.complete and np.flatnonzero(walk.allowed()).tolist() == [END]


@each_backend
@pytest.mark.parametrize(
    ("pattern", "what", "where"),
    [
        ("(?!x).*", "look-ahead", 0),
        (r"\bfoo\b", "a word boundary", 0),
        ("(?i)a", "an inline flag", 0),
        ("a(?<=a)", "look-behind", 1),
    ],
)
def test_e14_what_would_mean_something_else_is_refused_with_its_place(
    backend: str, pattern: str, what: str, where: int
) -> None:
    with pytest.raises(GrammarError, match=what) as caught:
        grammar(backend, pattern, small())
    assert caught.value.where == where


@each_backend
def test_e15_the_end_is_masked_at_step_0(backend: str) -> None:
    walk = grammar(backend, r"\{.*\}", small()).walk()
    assert preferring(walk, END, *range(256)) == ord("{")
    assert not walk.advance(END)


@each_backend
def test_e16_the_end_markers_printable_text_is_no_content(backend: str) -> None:
    vocabulary = small()
    assert vocabulary.pieces[END] == b""  # though its text, `<end>`, would do in a string
    walk = grammar(backend, '"[^"]*"', vocabulary).walk()
    say(walk, '"a')
    assert not walk.allowed()[END] and walk.allowed()[ord("<")] and not walk.advance(END)
    say(walk, '<end>"')
    assert np.flatnonzero(walk.allowed()).tolist() == [END] and walk.advance(END)


@each_backend
def test_e17_an_id_that_ends_the_answer_is_no_symbol_and_mask_and_acceptor_agree(backend: str) -> None:
    closing = ord("}")
    walk = grammar(backend, r"\{a*\}?", small("}", ends=(closing,))).walk()
    say(walk, "{aa")
    assert walk.allowed()[closing] and walk.complete  # it ends here; it does not say `}`
    again = grammar(backend, r"\{a*\}", small("}", ends=(closing,))).walk()
    say(again, "{aa")
    assert not again.allowed()[closing] and not again.advance(closing)
    assert again.allowed()[257] and again.advance(257) and again.complete
    assert np.flatnonzero(again.allowed()).tolist() == [closing] and again.advance(closing)


def test_e17_what_only_an_end_could_say_cannot_be_said() -> None:
    with pytest.raises(GrammarError, match="can be said with this vocabulary"):
        compile_regex(r"\{a*\}", small(ends=(ord("}"),)))


E18 = [BOOK, r"(\w+ ){0,9}\w+", "(yes|no|maybe)(, (yes|no|maybe)){0,5}", r"-?\d+(\.\d+)?"]


def test_e18_in_1000_states_every_bit_of_a_mask_is_the_acceptors_verdict() -> None:
    vocabulary = small(
        *["yes", "no, ", "e, maybe", '{"title', '": "', "12", ".5", " word", "ä", "äö ü", '",'],
        ends=(END, 7),
        width=300,
    )
    draw = random.Random(18)
    for pattern in E18:
        made = compile_regex(pattern, vocabulary)
        for state in draw.choices(range(made.states), k=1000 // len(E18)):
            walk = made.walk()
            walk._path[:] = [state]
            mask = walk.allowed()
            for token in range(vocabulary.width):
                accepted = walk.advance(token)
                assert mask[token] == accepted, (pattern, state, token)
                walk.back(int(accepted))


@pytest.mark.parametrize("states", [8, pytest.param(1000, marks=pytest.mark.slow)])
def test_e18_so_it_is_for_every_id_of_the_embedded_model(states: int) -> None:
    vocabulary = embedded_vocabulary()
    draw = random.Random(18)
    for pattern in E18:
        masks = masks_of(pattern, vocabulary)
        for state in visited(masks, draw, states // len(E18)):
            verdicts = [masks.next(state, token) >= 0 for token in range(vocabulary.width)]
            for end in vocabulary.ends:
                verdicts[end] = bool(masks.automaton.accepting[state])
            assert np.array_equal(masks.mask(state), verdicts)


@each_backend
def test_e19_ids_that_only_pad_the_logits_are_never_allowed(backend: str) -> None:
    pieces = [bytes([b]) for b in range(32, 131)] + [b"</s>"]
    vocabulary = Vocabulary(pieces, ends={99}, width=128)
    walk = grammar(backend, "[ -~]{0,9}", vocabulary).walk()
    for _ in range(9):
        assert walk.allowed().shape == (128,) and not walk.allowed()[100:].any()
        token = preferring(walk, 120, 127, 100, 65, 99)
        assert token == 65 and not walk.advance(120) and walk.advance(token)
    assert np.flatnonzero(walk.allowed()).tolist() == [99]


def test_e20_the_fewest_tokens_to_the_end_are_told() -> None:
    walk = compile_regex(r'\{"name": "[a-z]{3,}"\}', small('{"name": "', '"}', "abc")).walk()
    told = []
    for token in (257, ord("x"), ord("y"), ord("z"), ord("w"), 258):
        told.append(walk.closing())
        assert walk.advance(token)
    assert [*told, walk.closing()] == [3, 2, 3, 2, 1, 1, 0]


def test_e22_a_string_of_300_tokens_takes_no_more_walks_than_a_short_one() -> None:
    vocabulary = embedded_vocabulary()
    word = next(i for i, piece in enumerate(vocabulary.pieces) if piece == b" the")
    walks = {}
    for tokens in (3, 300):
        made = compile_regex('"[^"]*"', vocabulary)
        walk = made.walk()
        assert walk.advance(vocabulary.pieces.index(b'"'))
        for _ in range(tokens):
            assert walk.allowed()[word] and walk.advance(word)
        walks[tokens] = made.masks.walks
    assert walks[3] == walks[300] == 1


def test_e22_a_counted_string_takes_one_walk_until_its_end_is_near() -> None:
    vocabulary = embedded_vocabulary()
    word = next(i for i, piece in enumerate(vocabulary.pieces) if piece == b" the")
    made = compile_regex('"[^"]{0,1300}"', vocabulary)
    walk, walks = made.walk(), []
    assert walk.advance(vocabulary.pieces.index(b'"'))
    for _ in range(325):
        walks.append(made.masks.walks)
        assert walk.allowed()[word] and walk.advance(word)
    # Only where fewer characters are left than a short token has bytes does the count matter.
    near = -(-vocabulary.depth // len(" the"))
    assert walks[1] == walks[-near] == 1 and walks[-1] <= near


@each_backend
def test_e23_words_with_accents_are_the_same_raw_and_as_escapes(backend: str) -> None:
    raw = compile_regex("(café|naïve)", small())
    escaped = compile_regex(r"(caf\u00e9|na\xefve)", small())
    assert np.array_equal(raw.automaton.table, escaped.automaton.table)
    for pattern in ("(café|naïve)", r"(caf\u00e9|na\xefve)"):
        walk = grammar(backend, pattern, small()).walk()
        said = b""
        while not walk.complete:
            token = preferring(walk, ord("n"), *range(255, -1, -1))
            assert walk.advance(token)
            said += bytes([token])
        assert said.decode() == "naïve"


@each_backend
def test_e23_accents_are_kept_in_free_strings(backend: str) -> None:
    walk = grammar(backend, '"[^"]*"', small("é", "ï")).walk()
    say(walk, '"')
    assert walk.allowed()[[257, 258]].all() and walk.advance(257)
    say(walk, "ü字😀")
    assert not walk.allowed()[0x80]  # no byte that begins no character
    say(walk, '"')
    assert walk.complete


@each_backend
def test_e24_part_of_a_character_is_allowed_only_where_some_character_of_the_range_has_it(backend: str) -> None:
    walk = grammar(
        backend, "[😀-😏]", small("😀", "😐", "😁".encode()[:2], "😁".encode()[2:], "😐".encode()[2:])
    ).walk()
    assert np.flatnonzero(walk.allowed()).tolist() == [0xF0, 257, 259]
    assert walk.forced() == b"\xf0\x9f\x98"
    assert walk.advance(259) and np.flatnonzero(walk.allowed()).tolist() == [0x98, 260]
    assert walk.advance(0x98) and np.flatnonzero(walk.allowed()).tolist() == list(range(0x80, 0x90))
    assert not walk.advance(0x90) and not walk.complete
    assert walk.advance(0x8F) and walk.complete


@each_backend
def test_e28_a_space_marker_is_a_space(backend: str) -> None:
    vocabulary = {"<unk>": 0, "<s>": 1, "</s>": 2} | {f"<0x{i:02X}>": 3 + i for i in range(256)}
    vocabulary |= {"\u2581": 259, "a": 260, "b": 261, "\u2581b": 262}
    tokenizer = TextTokenizer(LlamaTokenizer(vocab=vocabulary, merges=[("\u2581", "b")]))
    walk = grammar(backend, "a b", vocabulary_of(tokenizer, frozenset({2}), 263)).walk()
    assert walk.advance(260)
    assert np.flatnonzero(walk.allowed()).tolist() == [3 + 0x20, 259, 262]
    assert walk.advance(262) and walk.complete and np.flatnonzero(walk.allowed()).tolist() == [2]


def test_e21_the_same_pattern_asked_twice_is_compiled_once() -> None:
    compiler, vocabulary = Compiler(), small()
    assert compiler.grammar("own", "regex", BOOK, "compact", vocabulary) is compiler.grammar(
        "own", "regex", BOOK, "compact", vocabulary
    )


def test_a_pattern_and_its_automaton_are_not_bound_to_a_vocabulary() -> None:
    assert build(regex.parse("[^a]")).accepts("\U000f0000".encode())  # its first byte is no token of the embedded model
