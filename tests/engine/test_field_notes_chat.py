"""Field notes A12 to A16: where text becomes ids, and the second turn of a chat misses without a word."""

from __future__ import annotations

import os
from typing import Any

import pytest

from engine import events as ev
from engine import load_tokenizer
from engine.failures import ModelError
from engine.tokenizer import TextTokenizer
from tests.engine.templates import Chat, llama, qwen, template
from workbench.report import build

ASK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Is it open?"}]
AGAIN = {"role": "user", "content": "And when?"}


def reply(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def told(chat: Chat, id: str) -> Any:
    return chat.events(ev.RequestMatched, id)[0]


# --- A12: ids that were said, and ids of the same text -------------------------------------------


@pytest.mark.parametrize("page_size", [1, 4])
def test_a12_a_reply_sent_back_as_text_misses_at_the_first_id_that_differs_and_ids_sent_back_hit(
    page_size: int,
) -> None:
    chat = Chat(qwen(template()), page_size=page_size)
    tokenizer = chat.engine.tokenizer
    asked = tokenizer.encode("Say it")
    newline, two = tokenizer.encode("\n"), tokenizer.encode("\n\n")
    assert len(newline) == len(two) == 1
    said = [*tokenizer.encode("x"), *newline, *newline, *tokenizer.encode("So.")]
    text = chat.say("R1", "Say it", says=said)
    assert text == "x\n\nSo."

    chat.say("as text", "Say it" + text + "?")
    same = len(asked) + 1
    assert chat.hit("as text") == same // page_size * page_size
    assert (told(chat, "as text").raw_length, told(chat, "as text").stored, told(chat, "as text").wanted) == (
        same,
        newline[0],
        two[0],
    )

    chat.say("as ids", asked + said + tokenizer.encode("?"))
    assert chat.hit("as ids") == (len(asked) + len(said) - 1) // page_size * page_size  # the last id has no KV

    (rows,) = chat.why("as text").rows
    assert rows.same_text and rows.differs == same - rows.start
    assert rows.stored.ids[rows.differs : rows.differs + 2] == newline * 2 and rows.asked.ids[rows.differs] == two[0]


# --- A13, A14: a template that writes history otherwise than it was --------------------------------


def second_turn(chat: Chat, said: str, kept: str) -> None:
    """Turn 1 is answered with `said`, of which turn 2 gives back `kept`."""
    chat.say("turn 1", ASK, says=chat.engine.tokenizer.encode(said))
    chat.say("turn 2", [*ASK, reply(kept), AGAIN])


def test_a13_a_think_marker_that_history_omits_ends_the_hit_behind_the_assistants_header() -> None:
    chat = Chat(qwen(template(opens="<think>\n")))
    tokenizer = chat.engine.tokenizer
    second_turn(chat, "hm</think>Yes.", "Yes.")
    header = len(tokenizer.encode("<|system|>Be brief.\n<|user|>Is it open?\n<|assistant|>"))
    marker, first = tokenizer.encode("<think>")[0], tokenizer.encode("Yes.")[0]
    assert chat.hit("turn 2") == header
    assert (told(chat, "turn 2").raw_length, told(chat, "turn 2").stored, told(chat, "turn 2").wanted) == (
        header,
        marker,
        first,
    )
    assert chat.why("turn 2").headline.endswith(
        f"it parts from turn 1 after {header} tokens, where turn 1 has “<think>” and turn 2 has “Y”."
    )


def test_a14_a_space_before_an_old_reply_leaves_the_head_hit_and_names_where_it_parts() -> None:
    chat = Chat(qwen(template(before_reply=" ")))
    second_turn(chat, "Yes.", "Yes.")
    header = len(chat.engine.tokenizer.chat(ASK))
    assert chat.hit("turn 2") == header
    assert chat.why("turn 2").headline.endswith(
        f"it parts from turn 1 after {header} tokens, where turn 1 has “Y” and turn 2 has “␣”."
    )


def test_a14_without_that_space_the_whole_first_turn_is_found() -> None:
    chat = Chat(qwen(template()))
    second_turn(chat, "Yes.", "Yes.")
    assert chat.hit("turn 2") == len(chat.engine.tokenizer.chat(ASK)) + len("Yes.") - 1


# --- A15, A16: one begin marker --------------------------------------------------------------------

BOS = 1


def begins(ids: list[int]) -> int:
    """How many begin markers a prompt starts with."""
    return next((i for i, token in enumerate(ids) if token != BOS), len(ids))


@pytest.mark.parametrize("adds", [True, False])
def test_a15_a_template_and_a_tokenizer_that_both_write_the_marker_give_one_in_a_chat_and_a_note_in_a_text(
    adds: bool,
) -> None:
    chat = Chat(llama(template(bos=True), adds_bos=adds))
    rendered = "<s>" + "".join(f"<|{m['role']}|>{m['content']}\n" for m in ASK) + "<|assistant|>"
    chat.say("chat", ASK)
    chat.say("text", rendered)
    assert begins(chat.request("chat").prompt) == 1
    assert begins(chat.request("text").prompt) == (2 if adds else 1)
    assert chat.hit("text") == (1 if adds else len(chat.request("chat").prompt) - 1)

    notes = {e.request: e.note for e in chat.events(ev.RequestArrived)}
    note = "the begin marker <s> (id 1) stands twice at its start, and models expect it once: the tokenizer adds one to every text"
    assert notes == {"chat": None, "text": note if adds else None}
    assert chat.reasons["text"] == "length"
    report = build(chat.trace.header, chat.trace.events)
    assert [r.note for r in report.requests] == [notes["chat"], notes["text"]]


def test_a15_the_note_stands_on_the_screen_where_the_request_arrives() -> None:
    from workbench.explain import Explainer

    chat = Chat(llama(template(), adds_bos=False))
    chat.say("ids", [BOS, BOS, 70])
    arrived = chat.events(ev.RequestArrived, "ids")[0]
    said = Explainer(chat.trace).event(arrived.seq).headline
    assert said.endswith("Note: the begin marker <s> (id 1) stands twice at its start, and models expect it once.")


@pytest.mark.parametrize("how", ["text", "chat"])
@pytest.mark.parametrize("template_writes", [True, False])
@pytest.mark.parametrize("tokenizer_adds", [True, False])
def test_a16_every_prompt_that_wants_a_begin_marker_has_one(
    how: str, template_writes: bool, tokenizer_adds: bool
) -> None:
    tokenizer = llama(template(bos=template_writes), adds_bos=tokenizer_adds)
    ids = tokenizer.chat(ASK) if how == "chat" else tokenizer.encode("Is it open?")
    assert begins(ids) == (tokenizer_adds or (how == "chat" and template_writes))
    assert tokenizer.remark(ids) is None
    names = tokenizer.texts(ids[:4])
    first = "<|system|>" if how == "chat" else " "
    assert [names[str(i)] for i in ids[:4]][begins(ids)] == first and names.get(str(BOS), "<s>") == "<s>"


def test_a16_a_model_without_a_begin_marker_gets_none() -> None:
    tokenizer = qwen(template())
    assert tokenizer.chat(ASK) == tokenizer.encode("<|system|>Be brief.\n<|user|>Is it open?\n<|assistant|>")
    assert tokenizer.remark([257, 257, 3]) is None


# --- the embedded model's own tokenizer and template -------------------------------------------------


@pytest.fixture(scope="module")
def smollm() -> TextTokenizer:
    try:
        return load_tokenizer("embedded")
    except ModelError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


def test_a12_to_a14_the_embedded_models_template_gives_a_reply_back_as_it_was_said(smollm: TextTokenizer) -> None:
    chat = Chat(smollm)
    said = smollm.encode("It opens at nine.")
    chat.say("turn 1", ASK, says=said)
    chat.say("turn 2", [*ASK, reply("It opens at nine."), AGAIN])
    assert chat.hit("turn 2") == len(smollm.chat(ASK)) + len(said) - 1


def test_a15_a16_the_embedded_models_chat_begins_with_one_marker_and_its_texts_with_none(smollm: TextTokenizer) -> None:
    chat, text = smollm.chat(ASK), smollm.encode("Is it open?")
    assert smollm.texts(chat[:2]) == {"1": "<|im_start|>", "9690": "system"}
    assert text[0] != 1 and smollm.remark(chat) is smollm.remark(text) is None
