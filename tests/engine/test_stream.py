"""Text in and out, with a tokenizer of one letter a token around the puppet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from engine import events as ev
from engine.engine import SubmitError
from engine.executor.puppet import PuppetExecutor
from tests.engine.lab import Lab


class Letters:
    """Token id = code point; holds a text back while it may be the start of a stop string."""

    def encode(self, text: str) -> list[int]:
        if "\x00" in text:
            raise ValueError("has a NUL character")
        return [ord(c) for c in text]

    def chat(self, messages: Sequence[dict[str, str]]) -> list[int]:
        return self.encode("".join(f"{m['role'][0]}:{m['content']}\n" for m in messages) + "a:")

    def remark(self, ids: Sequence[int]) -> None:
        return None

    def detokenizer(self, stop: Sequence[str] = ()) -> Speaker:
        return Speaker(stop)

    def texts(self, ids: Iterable[int]) -> dict[str, str]:
        return {str(i): chr(i) for i in ids}


class Speaker:
    def __init__(self, stop: Sequence[str]) -> None:
        self.stop, self.stopped, self.held = stop, None, ""

    def push(self, ids: list[int]) -> str:
        self.held += "".join(map(chr, ids))
        for word in self.stop:
            if word in self.held:
                self.stopped, self.held = word, self.held.partition(word)[0]
                return self.finish()
        keep = max((n for w in self.stop for n in range(1, len(w)) if self.held.endswith(w[:n])), default=0)
        said, self.held = self.held[: len(self.held) - keep], self.held[len(self.held) - keep :]
        return said

    def finish(self) -> str:
        said, self.held = self.held, ""
        return said


def lab(**config: int) -> Lab:
    executor = PuppetExecutor(256, 1)
    executor.tokenizer = Letters()
    return Lab(pages=256, executor=executor, **config)


def script(text: str) -> list[int]:
    return [ord(c) for c in text]


def test_a_stream_yields_the_text_as_it_comes() -> None:
    one = lab()
    said = one.engine.stream("hello", id="R1", says=script("world"), max_new_tokens=9)
    assert list(said) == ["w", "o", "r", "l", "d"]
    ended = one.events(ev.RequestFinished)[0]
    assert (ended.text, ended.reason) == ("world", "stop") and one.request("R1").text == "world"


def test_others_run_on_while_one_is_streamed() -> None:
    one = lab()
    one.ask("R2", [1, 2, 3], 4)
    assert "".join(one.engine.stream("hello", id="R1", says=script("hi"), max_new_tokens=2)) == "hi"
    assert len(one.request("R2").output) >= 2
    one.run()
    assert len(one.request("R2").output) == 4


def forwarded(one: Lab, id: str) -> list[int]:
    """The steps that had a row of this request."""
    return [e.step for e in one.events(ev.StepPlanned) if id in e.members]


def test_g7_a_stream_that_is_dropped_takes_its_request_back_and_keeps_what_it_computed() -> None:
    one = lab()
    stream = one.engine.stream("hello", id="R1", says=script("world"), max_new_tokens=9)
    assert [next(stream), next(stream)] == ["w", "o"]
    stream.close()
    assert [(e.was, e.text) for e in one.events(ev.RequestAborted)] == [("decode", "wo")]
    assert one.idle() and one.found(script("hellow")) == 6 and not one.engine.busy


@pytest.mark.parametrize("chunks", [1, 2])
def test_g7_a_request_that_is_dropped_in_its_prefill_computes_no_further_chunk(chunks: int) -> None:
    one = lab(chunk=4)
    one.engine.submit("a prompt of many chunks", id="R1", says=script("never"), max_new_tokens=5)
    for _ in range(chunks):
        one.step()
    one.engine.abort("R1")
    assert [(e.was, e.text) for e in one.events(ev.RequestAborted)] == [("prefill", "")]
    assert one.idle() and one.found(script("a prompt of many chunks")) == 4 * chunks
    one.run()
    assert len(forwarded(one, "R1")) == chunks and one.out("R1") == []


def test_g7_a_request_that_nobody_streams_is_dropped_while_others_go_on() -> None:
    one = lab()
    other = one.engine.stream("hello", id="R2", says=script("world"), max_new_tokens=9)
    one.ask("R1", script("a plain one"), 50)
    assert next(other) == "w"
    one.engine.abort("R1")
    before = forwarded(one, "R1")
    assert "".join(other) == "orld"
    assert forwarded(one, "R1") == before == forwarded(one, "R2")[:1] and one.idle()


def test_g7_a_stream_whose_request_somebody_else_takes_back_ends() -> None:
    one = lab()
    stream = one.engine.stream("hello", id="R1", says=script("world"), max_new_tokens=9)
    assert next(stream) == "w"
    one.engine.abort("R1")
    assert list(stream) == [] and len(one.events(ev.RequestAborted)) == 1


def test_g7_a_normal_end_makes_no_noise_of_an_abort() -> None:
    one = lab()
    stream = one.engine.stream("hello", id="R1", says=script("hi"), max_new_tokens=9)
    assert [next(stream), next(stream)] == ["h", "i"]
    stream.close()
    assert list(one.engine.stream("hello", id="R2", says=script("yo"), max_new_tokens=9)) == ["y", "o"]
    one.serve("R3", script("hello"), 2)
    assert not one.events(ev.RequestAborted) and not one.engine.abort("R1")
    assert [e.reason for e in one.events(ev.RequestFinished)] == ["stop", "stop", "length"]


def test_a_stop_string_ends_the_text_before_it_and_is_named() -> None:
    one = lab()
    said = one.engine.stream("hello", id="R1", says=script("one.END.two"), max_new_tokens=20, stop=(".END.",))
    assert "".join(said) == "one"
    ended = one.events(ev.RequestFinished)[0]
    assert (ended.text, ended.reason, ended.matched_stop, ended.outputs) == ("one", "stop", ".END.", 8)


def test_text_that_was_held_back_comes_with_the_end() -> None:
    one = lab()
    one.ask("R1", script("hello"), 6, says=script("one.EN"), stop=(".END.",))
    texts = []
    while (progress := one.engine.step()) is not None:
        texts += [p.text for p in progress]
    assert texts == ["o", "n", "e", "", "", ".EN"]
    assert one.events(ev.RequestFinished)[0].text == "one.EN"


def test_a_chat_is_laid_out_by_the_tokenizer() -> None:
    one = lab()
    one.engine.submit(messages=[{"role": "user", "content": "hi"}], id="R1", max_new_tokens=1)
    assert one.request("R1").prompt == script("u:hi\na:")


def test_what_the_tokenizer_cannot_read_is_refused_by_name() -> None:
    with pytest.raises(SubmitError, match="prompt: has a NUL character"):
        lab().engine.submit("a\x00b")
    with pytest.raises(SubmitError, match="prompt: is empty"):
        lab().engine.submit("")
