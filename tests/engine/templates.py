"""Small tokenizers of the trade's own classes and chat templates with the trade's own faults, around a puppet."""

from __future__ import annotations

from typing import Any

from tokenizers import pre_tokenizers
from transformers import LlamaTokenizer, Qwen2Tokenizer

from engine.executor.puppet import PuppetExecutor
from engine.tokenizer import TextTokenizer
from tests.engine.lab import Lab
from workbench.explain import Answer, Explainer
from workbench.runner import texts

MARKERS = ["<|system|>", "<|user|>", "<|assistant|>", "<think>", "</think>"]


def template(bos: bool = False, opens: str = "", before_reply: str = "") -> str:
    """A chat template. `bos`: it writes the begin marker; `opens` follows the header of the answer to come,
    `before_reply` that of an answer given."""
    return (
        ("{{ bos_token }}" if bos else "")
        + "{% for m in messages %}<|{{ m.role }}|>"
        + "{% if m.role == 'assistant' %}" + before_reply + "{% endif %}{{ m.content }}\n{% endfor %}"
        + "{% if add_generation_prompt %}<|assistant|>" + opens + "{% endif %}"
    )  # fmt: skip


def llama(chat: str, adds_bos: bool) -> TextTokenizer:
    """Llama's tokenizer class over single bytes; `<s>` is its begin marker."""
    vocabulary = {"<unk>": 0, "<s>": 1, "</s>": 2} | {f"<0x{i:02X}>": 3 + i for i in range(256)} | {"\u2581": 259}
    tokenizer = LlamaTokenizer(vocab=vocabulary, merges=[], add_bos_token=adds_bos)
    return _with(tokenizer, chat)


def qwen(chat: str) -> TextTokenizer:
    """Qwen2's tokenizer class over single bytes, two newlines being one more token; it has no begin marker."""
    letters = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    newline = "\u010a"
    tokenizer = Qwen2Tokenizer(vocab=letters | {newline * 2: 256, "<|endoftext|>": 257}, merges=[(newline, newline)])
    return _with(tokenizer, chat)


def _with(tokenizer: Any, chat: str) -> TextTokenizer:
    tokenizer.add_special_tokens({"additional_special_tokens": MARKERS})
    tokenizer.chat_template = chat
    return TextTokenizer(tokenizer)


class Chat(Lab):
    """A lab whose puppet reads and says text."""

    def __init__(self, tokenizer: TextTokenizer, **config: Any) -> None:
        executor = PuppetExecutor(512, config.get("page_size", 1))
        executor.tokenizer = tokenizer
        super().__init__(executor=executor, **({"pages": 512} | config))

    def say(self, id: str, prompt: Any, says: list[int] | None = None) -> str:
        """Put a text, ids or messages; answer with `says`; returns the answer's text."""
        how = {"messages": prompt} if isinstance(prompt, list) and isinstance(prompt[0], dict) else {"prompt": prompt}
        self.engine.submit(**how, id=id, says=says or [65], max_new_tokens=len(says or [65]))
        self.run()
        text: str = self.request(id).text
        return text

    def why(self, id: str) -> Answer:
        """What the screen says of a request at the end."""
        self.trace.header.texts = texts(self.engine, self.trace.events)
        return Explainer(self.trace).request(len(self.trace) - 1, id)
