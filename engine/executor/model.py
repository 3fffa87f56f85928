"""The model executor: a real transformers model computes the tokens, its KV in pages."""

from __future__ import annotations

import secrets
import time

import torch

from engine.config import EngineConfig
from engine.executor.base import Row, Sampled, StepResult, Tokenizer
from engine.executor.kv import KV
from engine.executor.memory import check_memory
from engine.executor.step import pack
from engine.failures import model_error
from engine.loaded import LoadedModel
from engine.models import load_model
from engine.request import Request
from engine.sampling import check_numbers, choose, logprobs


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

    def execute(self, rows: list[Row]) -> StepResult:
        """One forward pass over all rows, then a token for each row that samples."""
        started = time.perf_counter()
        logits, order = self.logits(rows)
        forwarded = time.perf_counter()
        results: list[Sampled | None] = [None] * len(rows)
        if order:
            for i, sampled in zip(order, self._sample([rows[i].request for i in order], logits), strict=True):
                results[i] = sampled
        return StepResult(results, forwarded - started, time.perf_counter() - forwarded)

    @torch.inference_mode()
    def logits(self, rows: list[Row]) -> tuple[torch.Tensor, list[int]]:
        """Write the KV of all rows; logits [n, vocab_size] of those that sample, and which rows they are."""
        step = pack(rows, self.kv.page_size, self.loaded.device, self.loaded.dtype)
        # What lies beyond the tokenizer's vocabulary is padding and is never chosen.
        found = self.loaded.forward(step, self.kv)[:, : self.vocab_size]
        if self.loaded.device.type == "cuda":
            torch.cuda.synchronize()
        return found, step.sampled_rows

    @torch.inference_mode()
    def _sample(self, requests: list[Request], logits: torch.Tensor) -> list[Sampled]:
        best = logits.max(-1)
        check_numbers(best.values)
        greedy = best.indices.tolist()
        chosen = []
        for i, request in enumerate(requests):
            params = request.params
            token = int(greedy[i])
            if params.temperature > 0:
                token = choose(logits[i], params, self._seed(request), len(request.output))
            if params.logprobs is None:
                chosen.append(Sampled(token))
            else:
                chosen.append(Sampled(token, *logprobs(logits[i], token, params.logprobs)))
        return chosen

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
