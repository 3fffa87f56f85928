"""A transformers tokenizer behind the engine's small interface, and what each token id stands for in bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from engine.detokenize import IncrementalDetokenizer

BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class TextTokenizer:
    """Text and chat messages to ids, ids to text. `pieces[i]` are the bytes of token i.

    Special tokens have no text in an answer; `texts` shows them all the same.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.size: int = len(tokenizer)
        self._special = frozenset(tokenizer.all_special_ids) | {
            i for i, token in tokenizer.added_tokens_decoder.items() if token.special
        }
        bos = tokenizer.bos_token_id
        self._begin: list[int] = [] if bos is None else [int(bos)]
        self._adds_begin = bool(self._begin) and list(tokenizer("")["input_ids"])[:1] == self._begin
        self._all = token_bytes(tokenizer)
        self.pieces = [b"" if i in self._special else piece for i, piece in enumerate(self._all)]

    @property
    def eos_id(self) -> int | None:
        """The end-of-text id that the tokenizer declares."""
        eos: int | None = self._tokenizer.eos_token_id
        return eos

    def encode(self, text: str) -> list[int]:
        """Ids of a text, with the begin marker where the model wants one. Raises ValueError for a lone surrogate."""
        _check(text)
        return list(self._tokenizer(text)["input_ids"])

    def ids(self, text: str) -> list[int]:
        """Ids of a piece of text inside a sequence: no marker is added."""
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def chat(self, messages: Sequence[dict[str, str]]) -> list[int]:
        """Ids of chat messages by the model's template, up to where the answer begins. Raises ValueError.

        They begin with the begin marker wherever texts do, also where the template leaves it to the tokenizer.
        """
        if not getattr(self._tokenizer, "chat_template", None):
            raise ValueError("this model has no chat template; give a prompt instead")
        for message in messages:
            if not isinstance(message.get("role"), str) or not isinstance(message.get("content"), str):
                raise ValueError("each message needs a role and a content, both texts")
            _check(message["content"])
        try:
            ids = self._tokenizer.apply_chat_template(
                list(messages), add_generation_prompt=True, tokenize=True, return_dict=False
            )
        except Exception as error:
            # A template is a program that came with the model; it may raise anything.
            raise ValueError(f"the model's chat template refuses them: {error}") from error
        if self._adds_begin and ids[:1] != self._begin:
            return self._begin + list(ids)
        return list(ids)

    def remark(self, ids: Sequence[int]) -> str | None:
        """What looks wrong with a prompt that can be served all the same; None where nothing does."""
        if not self._begin or list(ids[:2]) != self._begin * 2:
            return None
        marker = self._all[self._begin[0]].decode("utf-8", errors="backslashreplace")
        why = ": the tokenizer adds one to every text" if self._adds_begin else ""
        return (
            f"the begin marker {marker} (id {self._begin[0]}) stands twice at its start, and models expect it once{why}"
        )

    def detokenizer(self, stop: Sequence[str] = ()) -> IncrementalDetokenizer:
        """A fresh detokenizer for one request."""
        return IncrementalDetokenizer(self.pieces, stop)

    def texts(self, ids: Iterable[int]) -> dict[str, str]:
        """Token id (as a string) -> its text for display; bytes that are no whole character as \\xNN."""
        return {str(i): self._all[i].decode("utf-8", errors="backslashreplace") for i in ids if i < len(self._all)}


def token_bytes(tokenizer: Any) -> list[bytes]:
    """The bytes that each token id stands for, by id.

    Byte-level vocabularies write each byte as one printable character; the others write a space as
    U+2581 and single bytes as <0xNN>.
    """
    names: list[str | None] = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    added = {i: str(token.content) for i, token in tokenizer.added_tokens_decoder.items()}
    to_byte = byte_alphabet() if _is_byte_level(names, added) else None
    return [added[i].encode() if i in added else _bytes(name or "", to_byte) for i, name in enumerate(names)]


def _bytes(name: str, to_byte: dict[str, int] | None) -> bytes:
    if to_byte is not None:
        return bytes(to_byte[c] for c in name)
    single = BYTE_TOKEN.fullmatch(name)
    return bytes([int(single[1], 16)]) if single else name.replace("\u2581", " ").encode()


def _is_byte_level(names: list[str | None], added: dict[int, str]) -> bool:
    alphabet = byte_alphabet()
    return all(c in alphabet for i, name in enumerate(names) if i not in added for c in name or "")


def byte_alphabet() -> dict[str, int]:
    """The printable character that stands for each byte in byte-level vocabularies.

    Bytes that print as themselves in Latin-1 keep their character; the others take the characters
    from U+0100 on, in order.
    """
    printing = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [b for b in range(256) if b not in printing]
    return {chr(b): b for b in printing} | {chr(0x100 + k): b for k, b in enumerate(others)}


def _check(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"the text holds half a character (a lone surrogate) at index {error.start}") from None
