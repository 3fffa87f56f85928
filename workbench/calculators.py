"""What a prefix weighs, when to load it, what reuse is worth, and how GPUs share a cache: pure arithmetic, nothing measured."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.experiments.arithmetic import GIB, amdahl, expected_speedup

__all__ = ["GIB", "MODELS", "Cached", "Choice", "Model", "amdahl", "expected_speedup", "kv_bytes", "load_or_compute", "tokens_held"]


@dataclass(frozen=True)
class Model:
    """What a model's attention keeps of a token. `vectors`: 2, keys and values; 1, one latent vector that stands for both."""

    name: str
    layers: int
    kv_heads: int
    head_width: int
    source: str
    vectors: int = 2


MODELS = {
    "llama-3.1-8b": Model("Llama-3.1-8B", 32, 8, 128, "config.json of meta-llama/Llama-3.1-8B"),
    "llama-3.1-70b": Model("Llama-3.1-70B", 80, 8, 128, "config.json of meta-llama/Llama-3.1-70B"),
    "llama-2-7b": Model("Llama-2-7B", 32, 32, 128, "config.json of meta-llama/Llama-2-7b-hf"),
    "qwen2.5-1.5b": Model("Qwen2.5-1.5B", 28, 2, 128, "config.json of Qwen/Qwen2.5-1.5B-Instruct"),
    "qwen2.5-7b": Model("Qwen2.5-7B", 28, 4, 128, "config.json of Qwen/Qwen2.5-7B-Instruct"),
    "smollm2-135m": Model("SmolLM2-135M", 30, 3, 64, "config.json of HuggingFaceTB/SmolLM2-135M-Instruct"),
    # 512 numbers of the compressed vector and 64 of the rotary key.
    "deepseek-v3": Model("DeepSeek-V3", 61, 1, 576, "config.json of deepseek-ai/DeepSeek-V3", vectors=1),
}
"""Published shapes, by the names that `--model` takes."""


def kv_bytes(layers: int, kv_heads: int, head_width: int, number: int, vectors: int = 2) -> int:
    """Bytes that one token's state takes in all layers: vectors x layers x KV heads x head width x bytes a number.

    An 8-bit number counts one byte; the scales that some formats keep beside it are left out.
    """
    return vectors * layers * kv_heads * head_width * number


@dataclass(frozen=True)
class Choice:
    """Seconds that loading and computing take, and where they would take the same."""

    load: float
    compute: float
    even_link: float
    """Link speed, bytes a second, from which on loading wins;"""
    even_rate: float
    """and the rate of computing, tokens a second, up to which it does."""

    @property
    def loads(self) -> bool:
        """Whether loading takes less; equal times compute, which needs no link."""
        return self.load < self.compute


def load_or_compute(saved: float, link: float, tokens: int, rate: float) -> Choice:
    """Bring `saved` bytes back over a link of so many bytes a second, or compute their `tokens` at so many a second."""
    return Choice(saved / link, tokens / rate, saved * rate / tokens, tokens * link / saved)


@dataclass(frozen=True)
class Cached:
    """Tokens of cache that GPUs hold together: on each, and different ones in all; and how often each KV head is stored."""

    each: int
    whole: int
    copies: int


def tokens_held(room: float, gpus: int, model: Model, number: int, parallel: str) -> Cached:
    """Tokens whose state fits when each of `gpus` has `room` bytes for it.

    `tensor`: every GPU takes part in every request and keeps its share of the KV heads; where there are fewer heads than
    GPUs, each head is kept by several of them. `data`: each GPU keeps all heads of its own requests alone, which is
    data-parallel attention; a prefix that requests on two GPUs share is then kept twice.
    Raises ValueError where the heads cannot be shared out evenly.
    """
    heads = model.kv_heads
    if parallel == "data":
        each = int(room // kv_bytes(model.layers, heads, model.head_width, number, model.vectors))
        return Cached(each, each * gpus, 1)
    if heads % gpus and gpus % heads:
        raise ValueError(f"gpus: {heads} KV heads cannot be shared out evenly; take a divisor or a multiple of {heads}, got {gpus}")
    share = max(1, heads // gpus)
    each = int(room // kv_bytes(model.layers, share, model.head_width, number, model.vectors))
    return Cached(each, each, max(1, gpus // heads))
