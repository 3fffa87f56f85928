"""The model executor: a real transformers model computes the tokens, its KV in pages."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence

import numpy as np
import torch

from engine.config import EngineConfig
from engine.executor.base import Row, Sampled, StepResult, Tokenizer
from engine.executor.host_kv import HostKV, median_seconds, rounded
from engine.executor.kv import KV
from engine.executor.memory import check_memory
from engine.executor.step import pack
from engine.failures import model_error
from engine.grammar.settle import settle
from engine.grammar.syntax import GrammarError
from engine.grammar.vocabulary import Vocabulary
from engine.loaded import LoadedModel
from engine.models import load_model
from engine.request import Request, SamplingParams
from engine.sampling import check_numbers, choose, logprobs, prompt_logprobs

PROBE_TOKENS = 256
"""Tokens of the prompt that is computed to measure the prefill rate."""
FEW = 5
"""The model's top few that are told of each masked position."""


class ModelExecutor:
    """Serves a loaded model from `pages` x `page_size` slots of KV.

    Several executors may share a loaded model, one running at a time. `fill` is what unused slots hold,
    for tests. With `host_pages` there is a second tier, and the rates by which loads are decided are measured here, but
    for a `host_bandwidth` that is given. Raises ModelError when the KV does not fit into memory.
    """

    name = "model"
    virtual = False

    def __init__(
        self, loaded: LoadedModel, pages: int, page_size: int, fill: float = 0.0, host_pages: int = 0, host_bandwidth: float | None = None
    ) -> None:
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
        self.hardware: dict[str, str] = {}
        self._seeds: dict[str, int] = {}
        layers, heads, width = loaded.kv_shape
        try:
            self.kv = KV(layers, pages, page_size, heads, width, loaded.dtype, loaded.device, fill, loaded.plain)
        except RuntimeError as error:
            raise model_error(error, f"making room for the KV of {pages * page_size:,} tokens") from error
        self.host: HostKV | None = None
        if host_pages:
            self._open_host(host_pages, host_bandwidth)

    def _open_host(self, pages: int, bandwidth: float | None) -> None:
        """Make room for the second tier and measure what loading and computing take."""
        try:
            self.host = HostKV(self.kv, pages)
        except RuntimeError as error:
            raise model_error(error, f"making room for {pages:,} host pages of {self.kv.page_size} tokens") from error
        self.facts["host"] = self.host.name
        self.rates = {
            "kv_bytes": float(self.loaded.kv_bytes_per_token),
            "prefill_rate": self._prefill_rate(),
            "host_bandwidth": bandwidth or self.host.bandwidth(),
        }

    def _prefill_rate(self) -> float:
        """Prompt tokens a second: one prompt of some length, alone. Overwrites the first pages, which are free yet."""
        size = self.kv.page_size
        pages = list(range(self.kv.layers[0].shape[0] // size))
        count = max(1, min(PROBE_TOKENS, len(pages) * size, self.max_positions))
        nobody = Request("", [0] * count, SamplingParams(), 0.0, 0)
        row = Row(nobody, nobody.prompt, 0, pages, sample=True)
        return rounded(count / median_seconds(lambda: self.logits([row]), self.loaded.device))

    def demote(self, pages: Sequence[int], host_pages: Sequence[int]) -> None:
        """Copy pages to the host's."""
        assert self.host is not None
        self.host.demote(pages, host_pages)

    def restore(self, host_pages: Sequence[int], pages: Sequence[int]) -> None:
        """Copy the host's pages back."""
        assert self.host is not None
        self.host.restore(host_pages, pages)

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
            elif row.request.walk is not None:
                sampled = self._look(row, here)
            elif row.drafted:
                sampled = self._agree(row, here, greedy[at : at + len(here)])
            else:
                sampled = self._choose(row, here[0], greedy[at])
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

    def _agree(self, row: Row, logits: torch.Tensor, greedy: list[int]) -> Sampled:
        """Tokens for a row with a free draft, up to the first that differs: logits [drafted + 1, vocab_size]."""
        request, params = row.request, row.request.params
        agreed: list[int] = []
        likely = []
        for i, best in enumerate(greedy):
            token = best
            if params.temperature > 0:
                token = choose(logits[i], params, self._seed(request), len(request.output) + i)
            if i == row.drafted or token != row.draft[i]:
                break
            agreed.append(token)
            if params.logprobs is not None:
                likely.append(logprobs(logits[i], token, params.logprobs))
        if params.logprobs is None:
            return Sampled(token, agreed=agreed)
        return Sampled(token, *logprobs(logits[len(agreed)], token, params.logprobs), agreed=agreed, likely=likely)

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
    return ModelExecutor(
        loaded, config.pages, config.page_size, host_pages=config.second_tier, host_bandwidth=config.host_bandwidth
    )
