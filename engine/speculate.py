"""Speculative decoding with an n-gram draft: what followed the same words before is guessed to follow again.

The guess rides at the end of a decode's row. The pass that computes its KV gives the logits of every position; the
model's own choice is taken at each, up to and with the first that differs, so the answer is that of plain decoding,
greedy or seeded. After prompt lookup decoding (Saxena 2023), a draft without a draft model.
"""

from __future__ import annotations

from typing import Any

from engine import events as ev
from engine.config import EngineConfig
from engine.executor.base import Executor, Row, Sampled
from engine.request import Request, Status
from engine.scheduler.holdings import Holdings
from engine.totals import Totals


class Index:
    """Where each run of `n` tokens of a growing sequence occurred last, before its end."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._after: dict[tuple[int, ...], int] = {}
        self._known = 0

    def follow(self, tokens: list[int]) -> int | None:
        """The position that follows the latest earlier occurrence of the last n of `tokens`; None where there is none."""
        for end in range(max(self._known, self._n), len(tokens)):
            self._after[tuple(tokens[end - self._n : end])] = end
        self._known = max(self._known, len(tokens))
        return self._after.get(tuple(tokens[-self._n :])) if len(tokens) > self._n else None


class Drafts:
    """Lengthens the decodes of a plan by what followed their last words before."""

    def __init__(self, config: EngineConfig, executor: Executor, holdings: Holdings, totals: Totals, emit: Any) -> None:
        self._most = config.speculate
        self._n = config.speculate_ngram
        self._executor = executor
        self._holdings = holdings
        self._totals = totals
        self._emit = emit
        self._indexes: dict[str, Index] = {}
        self._since: dict[str, int] = {}

    def extend(self, rows: list[Row]) -> None:
        """Draft for every row that decodes without a grammar."""
        if not self._most:
            return
        for row in rows:
            if row.request.status is Status.DECODE and row.request.walk is None:
                self._draft(row)

    def _draft(self, row: Row) -> None:
        request = row.request
        tokens = request.tokens
        since = self._indexes.setdefault(request.id, Index(self._n)).follow(tokens)
        if since is None:
            return
        size = row.start + len(row.tokens)
        most = min(
            self._most,
            request.params.max_new_tokens - len(request.output) - 1,
            self._executor.max_positions - size - 1,
            self._holdings.slots(request) - size,
        )
        draft = tokens[since : since + max(most, 0)]
        if not draft:
            return
        self._holdings.cover(request, size + len(draft))
        row.tokens, row.drafted = row.tokens + draft, len(draft)
        self._since[request.id] = since

    def tell(self, row: Row, sampled: Sampled, new: list[int]) -> None:
        """After the pass: what became of a draft; what was not taken goes back with its pages."""
        request = row.request
        accepted = agreed(row.draft, new)
        pages = self._holdings.shrink(request, self._holdings.pool.pages_for(request.kv))
        self._emit(
            ev.DraftVerified, request=request.id, drafted=row.drafted, accepted=accepted, draft=row.draft,
            since=self._since.pop(request.id), pages=pages,
        )  # fmt: skip
        first = len(request.output) - len(new)
        likely = [*sampled.likely, (sampled.logprob, sampled.top)] if sampled.top is not None else []
        for i, token in enumerate(new):
            source = "drafted" if i < len(new) - 1 else "sampled"
            self._totals.drafted_tokens += source == "drafted"
            if source == "drafted" or likely:
                logprob, top = likely[i] if likely else (None, [])
                self._emit(
                    ev.TokenEmitted, request=request.id, position=first + i, token=token, source=source, logprob=logprob, top=top
                )

    def end(self, request: Request) -> None:
        """A request has ended."""
        self._indexes.pop(request.id, None)
        self._since.pop(request.id, None)


def agreed(draft: list[int], new: list[int]) -> int:
    """How many drafted tokens stand at the beginning of what was taken."""
    pairs = enumerate(zip(draft, new, strict=False))
    return next((i for i, (drafted, taken) in pairs if drafted != taken), min(len(draft), len(new)))
