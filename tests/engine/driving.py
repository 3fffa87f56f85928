"""Drives a model executor by hand: scattered pages, prompts cut anywhere, no scheduler and no cache."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from engine.executor.base import Row
from engine.executor.model import ModelExecutor
from engine.executor.transformers_forward import own_attention
from engine.loaded import LoadedModel
from engine.request import Request, SamplingParams


@dataclass
class Driver:
    """Hands out the executor's pages in a shuffled order and runs sequences step by step."""

    executor: ModelExecutor
    free: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        pages = len(self.executor.kv.layers[0]) // self.executor.kv.page_size
        self.free = random.Random(5).sample(range(pages), pages)

    def start(self, prompt: Sequence[int], name: str = "R", shared: Sequence[int] = (), **params: object) -> Request:
        """A request whose first pages may be another's."""
        asked = SamplingParams.model_validate(params)
        return Request(id=name, prompt=list(prompt), params=asked, arrived=0.0, index=0, pages=list(shared))

    def row(self, request: Request, stop: int) -> Row:
        """Forward the request's tokens up to `stop`; the last of them is sampled from when nothing is left."""
        size = self.executor.kv.page_size
        while len(request.pages) * size < stop:
            request.pages.append(self.free.pop())
        tokens = request.tokens[request.kv : stop]
        return Row(request, tokens, request.kv, list(request.pages), stop == request.size)

    def run(self, rows: list[Row]) -> list[int | None]:
        """Execute rows and move their requests on; returns each row's new token."""
        result = self.executor.execute(rows)
        said: list[int | None] = []
        for row, sampled in zip(rows, result.rows, strict=True):
            row.request.kv += len(row.tokens)
            said.append(sampled.token if sampled else None)
            if sampled is not None and sampled.token is not None:
                row.request.output.append(sampled.token)
        return said

    def finish(self, requests: list[Request], new: int, cuts: Sequence[int] = ()) -> list[list[int]]:
        """Prefill all, cut at `cuts`, then decode together until each has `new` tokens; returns the outputs."""
        for stop in sorted(cuts):
            if rows := [self.row(r, stop) for r in requests if r.kv < stop < len(r.prompt)]:
                self.run(rows)
        while live := [r for r in requests if len(r.output) < new]:
            self.run([self.row(r, r.size) for r in live])
        return [r.output for r in requests]


def prompts(loaded: LoadedModel, lengths: Sequence[int], seed: int = 0) -> list[list[int]]:
    """Random prompts of these lengths."""
    draw = random.Random(seed)
    return [[draw.randrange(loaded.vocab_size) for _ in range(n)] for n in lengths]


_answers: dict[tuple[str, tuple[int, ...], int], list[int]] = {}


@torch.inference_mode()
def reference(loaded: LoadedModel, prompt: Sequence[int], new: int) -> list[int]:
    """What `transformers.generate` answers, greedily, with its own attention and cache; remembered."""
    key = (loaded.name, tuple(prompt), new)
    if key in _answers:
        return _answers[key]
    with own_attention(loaded.model) as model:
        ids = torch.tensor([list(prompt)])
        out = model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, min_new_tokens=new, max_new_tokens=new,
            eos_token_id=None, pad_token_id=0,
        )  # fmt: skip
    _answers[key] = out[0, len(prompt) :].tolist()
    return _answers[key]


@torch.inference_mode()
def reference_logits(loaded: LoadedModel, tokens: Sequence[int]) -> torch.Tensor:
    """Logits [tokens, vocabulary] of one sequence, by transformers' own attention."""
    with own_attention(loaded.model) as model:
        logits: torch.Tensor = model(torch.tensor([list(tokens)]), use_cache=False).logits[0]
    return logits


def explain(loaded: LoadedModel, prompt: Sequence[int], wanted: Sequence[int], got: Sequence[int]) -> str:
    """Where two answers part, and how far apart the reference's two best logits are there."""
    at = next(i for i, (a, b) in enumerate(zip(wanted, got, strict=True)) if a != b)
    best = reference_logits(loaded, [*prompt, *wanted[:at]])[-1].topk(2).values
    return f"token {at}: {got[at]} instead of {wanted[at]}; the reference's top-two gap there is {best[0] - best[1]:.2g}"
