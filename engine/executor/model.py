"""The model executor: a real transformers model computes the tokens, its KV in pages."""

from __future__ import annotations

import secrets
import time

import numpy as np
import torch

from engine.config import EngineConfig
from engine.executor.base import Row, Sampled, StepResult, Tokenizer
from engine.executor.kv import KV
from engine.executor.memory import check_memory
from engine.executor.step import pack
from engine.failures import model_error
from engine.grammar.settle import settle
from engine.grammar.syntax import GrammarError
from engine.grammar.vocabulary import Vocabulary
from engine.loaded import LoadedModel
from engine.models import load_model
from engine.request import Request
from engine.sampling import check_numbers, choose, logprobs, prompt_logprobs

FEW = 5
"""The model's top few that are told of each masked position."""


class ModelExecutor:
    """Serves a loaded model from `pages` x `page_size` slots of KV.

    Several executors may share a loaded model, one running at a time. `fill` is what unused slots hold,
    for tests. Raises ModelError when the KV does not fit into memory.
    """

    name = "model"
    virtual = False

    def __init__(self, loaded: LoadedModel, pages: int, page_size: int, fill: float = 0.0) -> None:
        check_memory(loaded, pages * page_size)
        self.loaded = loaded
        self.vocab_size = loaded.vocab_size
        self.max_positions = loaded.max_positions
        self.eos_ids = loaded.eos_ids
        self.tokenizer: Tokenizer | None = loaded.tokenizer
        self.facts: dict[str, str | None] = {
            "model": loaded.name,
            "device": loaded.device.type,
            "dtype": str(loaded.dtype).removeprefix("torch."),
        }
        self.rates: dict[str, float] = {}
        self._seeds: dict[str, int] = {}
        layers, heads, width = loaded.kv_shape
        try:
            self.kv = KV(layers, pages, page_size, heads, width, loaded.dtype, loaded.device, fill, loaded.plain)
        except RuntimeError as error:
            raise model_error(error, f"making room for the KV of {pages * page_size:,} tokens") from error

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The bytes of the model's tokens."""
        return self.loaded.vocabulary

    def execute(self, rows: list[Row]) -> StepResult:
        """One forward pass over all rows, then a token for each row that samples."""
        started = time.perf_counter()
        logits, order = self.logits(rows)
        forwarded = time.perf_counter()
        results: list[Sampled | None] = [None] * len(rows)
        if order:
            self._sample(rows, logits, order, results)
        return StepResult(results, forwarded - started, time.perf_counter() - forwarded)

    @torch.inference_mode()
    def logits(self, rows: list[Row]) -> tuple[torch.Tensor, list[int]]:
        """Write the KV of all rows; logits [n, vocab_size] where they are wanted, and whose row each of them is.

        A row's logits lie together, in the order of its tokens.
        """
        step = pack(rows, self.kv.page_size, self.loaded.device, self.loaded.dtype)
        # What lies beyond the tokenizer's vocabulary is padding and is never chosen.
        found = self.loaded.forward(step, self.kv)[:, : self.vocab_size]
        if self.loaded.device.type == "cuda":
            torch.cuda.synchronize()
        return found, step.sampled_rows

    @torch.inference_mode()
    def _sample(self, rows: list[Row], logits: torch.Tensor, order: list[int], results: list[Sampled | None]) -> None:
        """Fill in what each row goes on with; `order` says whose row each of the logits [n, vocab_size] is."""
        best = logits.max(-1)
        check_numbers(best.values)
        greedy = best.indices.tolist()
        at = 0
        while at < len(order):
            row = rows[order[at]]
            here = logits[at : at + (1 + row.drafted if row.sample else len(row.scored))]
            if not row.sample:
                sampled = Sampled(None, scores=prompt_logprobs(here, [row.request.prompt[i] for i in row.scored]))
            else:
                sampled = self._choose(row, here[0], greedy[at]) if row.request.walk is None else self._look(row, here)
            results[order[at]] = sampled
            at += len(here)

    def _choose(self, row: Row, logits: torch.Tensor, greedy: int) -> Sampled:
        """A token for a row that is free to say anything: logits [vocab_size]."""
        request, params = row.request, row.request.params
        token = greedy
        if params.temperature > 0:
            token = choose(logits, params, self._seed(request), len(request.output))
        if params.logprobs is None:
            return Sampled(token)
        return Sampled(token, *logprobs(logits, token, params.logprobs))

    def _look(self, row: Row, logits: torch.Tensor) -> Sampled:
        """Tokens for a row under a grammar: logits [drafted + 1, vocab_size]."""
        request, params = row.request, row.request.params
        masks: list[np.ndarray] = []

        def pick(i: int, allowed: np.ndarray) -> int:
            masks.append(allowed)
            mask = torch.tensor(allowed, device=logits.device)
            masked = logits[i].masked_fill(~mask, -torch.inf)
            if params.temperature > 0:
                return choose(masked, params, self._seed(request), len(request.output) + i)
            return int(masked.argmax())

        assert request.walk is not None
        try:
            looks = settle(request.walk, row.draft, self.eos_ids, pick)
        except GrammarError as error:
            return Sampled(None, error=str(error))
        for i, (look, mask) in enumerate(zip(looks, masks, strict=True)):
            look.logprob, look.top = logprobs(logits[i], look.token, params.logprobs or FEW)
            look.forbade = [token for token, _ in look.top if not mask[token]]
        return Sampled(looks[-1].token if looks else None, looks=looks)

    def _seed(self, request: Request) -> int:
        """The request's seed; one that names none gets a random one of its own."""
        if request.params.seed is not None:
            return request.params.seed
        return self._seeds.setdefault(request.id, secrets.randbits(63))

    def end(self, request: Request) -> None:
        """Forget the request's random seed."""
        self._seeds.pop(request.id, None)


def load_executor(config: EngineConfig, loaded: LoadedModel | None = None) -> ModelExecutor:
    """The executor that a configuration asks for; loads its model unless one is given. Raises ModelError."""
    if loaded is None:
        loaded = load_model(config.model, device=config.device, dtype=config.dtype)
    return ModelExecutor(loaded, config.pages, config.page_size)
