"""Jump-forward: what a grammar forces next goes through the model in one pass, or through none.

`verified`: the forced run is a draft at the end of the row. The pass that computes its KV anyway gives the logits
to compare it with, so the answer is that of plain constrained decoding. `unverified`: the run is appended without
looking, spelt as the tokenizer would spell the whole answer, after the compressed automaton of SGLang's paper
(Zheng et al. 2023, section 4); the answer's tokens, and with them the model's next choice, may differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine import events as ev
from engine.answers import Answers
from engine.config import EngineConfig
from engine.executor.base import Executor, Row
from engine.grammar.settle import is_closed
from engine.grammar.spelling import Spelling
from engine.request import Request, Status
from engine.scheduler.holdings import Holdings
from engine.totals import Totals

if TYPE_CHECKING:
    from engine.scheduler.scheduler import Plan

DRAFT = 64
"""Most tokens of a forced run that ride along in one pass."""


@dataclass(slots=True)
class Jumped:
    """What an unverified jump did to an answer: `replaced` earlier tokens gave way to `ids`."""

    replaced: int
    ids: list[int]


class Jumps:
    """Lengthens the rows of a plan by what their grammars force."""

    def __init__(
        self, config: EngineConfig, executor: Executor, holdings: Holdings, totals: Totals, emit: Any, answers: Answers
    ) -> None:
        self.mode = config.jump
        self._executor = executor
        self._holdings = holdings
        self._totals = totals
        self._emit = emit
        self._answers = answers
        self._spelling: Spelling | None = None
        self.jumped: dict[str, Jumped] = {}
        """By request, since the last step's end."""

    @property
    def spelling(self) -> Spelling:
        """How this model's tokenizer spells."""
        if self._spelling is None:
            assert self._executor.vocabulary is not None
            tokenizer = self._executor.tokenizer
            self._spelling = Spelling(self._executor.vocabulary.pieces, tokenizer.ids if tokenizer is not None else None)
        return self._spelling

    def extend(self, plan: Plan) -> list[Request]:
        """Lengthen what can be lengthened, in the plan's order; returns those that a jump has ended, rows removed."""
        if self.mode == "off":
            return []
        ended: list[Request] = []
        for row in [r for r in plan.rows if r.sample and r.request.walk is not None]:
            if self.mode == "verified":
                self._draft(row)
            elif row.request.status is Status.DECODE and self._jump(row):
                plan.rows.remove(row)
                ended.append(row.request)
        return ended

    # --- verified ------------------------------------------------------------------------------

    def _draft(self, row: Row) -> None:
        request = row.request
        assert request.walk is not None
        run = request.walk.forced()
        if not run:
            return
        size = row.start + len(row.tokens)
        most = min(
            DRAFT,
            request.params.max_new_tokens - len(request.output) - 1,
            self._executor.max_positions - size - 1,
            self._holdings.slots(request) - size,
        )
        ids = self.spelling.after(request.output, run)[: max(most, 0)]
        if not ids:
            return
        self._holdings.cover(request, size + len(ids))
        row.tokens = row.tokens + ids
        row.drafted = len(ids)

    # --- unverified ----------------------------------------------------------------------------

    def _jump(self, row: Row) -> bool:
        """Append the forced run, spelt together with the answer so far; True when that ends the request."""
        request, walk = row.request, row.request.walk
        assert walk is not None
        run = walk.forced()
        if len(run) < 2:
            return False
        # What it had said when it was admitted again stays as it is: the tree may hold those pages.
        fixed = max(0, request.target - len(request.prompt))
        found = self.spelling.again(request.output[fixed:], run)
        if found is None:
            return False
        keep, ids = fixed + found[0], found[1]
        ids = ids[: request.params.max_new_tokens - keep]
        size = len(request.prompt) + keep + len(ids)
        if size <= request.size or size >= self._executor.max_positions or size > self._holdings.slots(request):
            return False
        state = walk.state
        before = request.output[keep:]
        if not self._walk_over(request, before, ids):
            return False
        taken = self._say(request, before, ids)
        walk.back(len(ids) - taken)
        ids = ids[:taken]
        spelt = self.spelling.text(ids)[len(self.spelling.text(before)) :].decode(errors="replace")
        request.respell(keep, ids)
        request.kv = min(request.kv, len(request.prompt) + keep)
        gain = len(ids) - len(before)
        request.jumped += gain
        self._totals.jumped_tokens += gain
        self._totals.output_tokens += gain
        spare = self._holdings.shrink(request, self._holdings.pool.pages_for(request.size))
        self._emit(
            ev.GrammarJumped, request=request.id, state=state, target=walk.state, run=spelt, before=before, after=ids,
            pages=spare, kv=request.kv,
        )  # fmt: skip
        if self._over(request):
            return True
        self._holdings.cover(request, request.size)
        row.start, row.tokens = request.kv, request.tokens[request.kv :]
        return False

    def _walk_over(self, request: Request, before: list[int], ids: list[int]) -> bool:
        """Move the walk from the end of `before` to the end of `ids`; False, and nothing changes, where it cannot."""
        walk = request.walk
        assert walk is not None
        walk.back(len(before))
        for done, token in enumerate(ids):
            if not walk.advance(token):
                walk.back(done)
                for old in before:
                    walk.advance(old)
                return False
        return True

    def _say(self, request: Request, before: list[int], ids: list[int]) -> int:
        """Turn the new bytes into text, token by token; returns how many tokens there are up to one that ends it."""
        told = len(self.spelling.text(before))
        taken = len(ids)
        for i, token in enumerate(ids):
            data = self.spelling.text(ids[: i + 1])
            ends = self._answers.is_end(request, token)
            if len(data) > told and not ends:
                self._answers.push_bytes(request, data[told:])
                told = len(data)
            if ends or self._answers.stopped(request) is not None:
                taken = i + 1
                break
        self.jumped[request.id] = Jumped(len(before), ids[:taken])
        return taken

    def _over(self, request: Request) -> bool:
        """Whether a jumped run ends the request without another pass."""
        assert request.walk is not None
        ended = self._answers.ended_by(request, request.output[-1]) is not None
        return ended or is_closed(request.walk, self._executor.eos_ids)
