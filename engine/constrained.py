"""Requests under a grammar: compiled before they queue, lengthened before a pass, cut and told after it."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any

from engine import events as ev
from engine.asking import SubmitError
from engine.config import EngineConfig
from engine.executor.base import Executor, Row, Sampled
from engine.grammar.door import Grammar
from engine.grammar.grammars import Grammars
from engine.grammar.jump import Jumps
from engine.grammar.settle import Look, is_closed
from engine.grammar.syntax import GrammarError
from engine.request import Request, SamplingParams
from engine.scheduler.holdings import Holdings
from engine.speculate import agreed


@dataclass(slots=True)
class Held:
    """A request that waits for its grammar."""

    request: Request
    coming: Future[Grammar]


class Constrained:
    """What the engine does for requests whose answer a grammar shapes."""

    def __init__(self, config: EngineConfig, executor: Executor, holdings: Holdings, jumps: Jumps, emit: Any) -> None:
        self._executor = executor
        self._holdings = holdings
        self._emit = emit
        self.jumps = jumps
        self._grammars = Grammars(config.grammar, config.spacing, at_once=executor.virtual)
        self._told: set[tuple[str, str]] = set()
        """Kind and source of the grammars whose edges were told."""
        self.held: dict[str, Held] = {}

    def schema(self, params: SamplingParams) -> str | None:
        """The schema that a request asks for, as JSON text."""
        return self._grammars.source(params)[1] if params.json_schema is not None else None

    # --- before the queue ----------------------------------------------------------------------

    def check(self, params: SamplingParams) -> None:
        """Raise SubmitError for a grammar that cannot be used, naming the place."""
        if not params.constrained:
            return
        field = "regex" if params.regex is not None else "json_schema"
        if self._executor.vocabulary is None:
            raise SubmitError(f"{field}: needs a tokenizer, and this executor has none")
        try:
            self._grammars.check(params)
        except GrammarError as error:
            raise SubmitError(f"{field}{place(error.where)}: {error}") from None

    def remark(self, request: Request) -> str | None:
        """What looks wrong with a prompt that a grammar goes on from; None where nothing does."""
        vocabulary = self._executor.vocabulary
        if not request.params.constrained or vocabulary is None or request.prompt[-1] >= len(vocabulary.pieces):
            return None
        if not vocabulary.pieces[request.prompt[-1]].endswith(b" "):
            return None
        return "the prompt ends in a blank, which models mostly write as a part of the next word's token: the answer may begin oddly"

    def ask(self, request: Request) -> bool:
        """Ask for a request's grammar. True: it is there; False: the request is held until it is.

        Raises GrammarError where it turns out that nothing can match.
        """
        assert self._executor.vocabulary is not None
        coming = self._grammars.ask(request.params, self._executor.vocabulary)
        if coming.done():
            self._begin(request, coming.result())
            return True
        self.held[request.id] = Held(request, coming)
        self._emit(ev.GrammarWaiting, request=request.id)
        return False

    def ready(self) -> list[tuple[Request, GrammarError | None]]:
        """Those that need not be held any longer; with the error where their grammar cannot be used."""
        out: list[tuple[Request, GrammarError | None]] = []
        for held in [h for h in self.held.values() if h.coming.done()]:
            del self.held[held.request.id]
            error = held.coming.exception()
            if error is None:
                self._begin(held.request, held.coming.result())
            elif not isinstance(error, GrammarError):
                error = GrammarError(f"{type(error).__name__}: {error}")
            out.append((held.request, error))
        return out

    def wait(self, seconds: float) -> None:
        """Nothing else to do: give the compiler a moment."""
        wait([held.coming for held in self.held.values()], timeout=seconds, return_when=FIRST_COMPLETED)

    def _begin(self, request: Request, grammar: Grammar) -> None:
        request.walk = grammar.walk()
        asked = self._grammars.source(request.params)
        known = asked in self._told
        self._told.add(asked)
        self._emit(
            ev.GrammarCompiled, request=request.id, seconds=0.0 if self._executor.virtual else round(grammar.seconds, 6),
            source=grammar.source, backend=grammar.backend, states=grammar.states,
            edges=[] if known else list(grammar.edges()), ends=[] if known else list(grammar.ends()),
            start=request.walk.state, reused=known,
        )  # fmt: skip

    # --- after a pass --------------------------------------------------------------------------

    def closed(self, request: Request) -> bool:
        """Whether its document is whole and nothing can follow."""
        return request.walk is not None and is_closed(request.walk, self._executor.eos_ids)

    def missing(self, request: Request) -> tuple[bool, int | None]:
        """Whether its document is not whole, and the fewest tokens that would complete it, where known."""
        if request.walk is None or request.walk.complete:
            return False, None
        return True, request.walk.closing()

    def keep(self, request: Request, looks: list[Look], count: int) -> None:
        """Of a pass's looks only the first `count` are kept: the walk goes back to there."""
        if request.walk is not None and len(looks) > count:
            request.walk.back(len(looks) - count)

    def tell(self, row: Row, sampled: Sampled, new: list[int]) -> None:
        """Tell what a pass did for one row: masks, the draft's fate, pages that go back, tokens by source."""
        request = row.request
        looks = sampled.looks[: len(new)]
        at = len(request.output) - len(new)
        for i, look in enumerate(looks):
            self._emit(
                ev.GrammarMasked, request=request.id, state=look.state, allowed=look.allowed, top=look.top,
                forbidden=len(look.forbade), forbade=look.forbade, position=at + i, target=look.target,
                seconds=0.0 if self._executor.virtual else look.seconds,
            )  # fmt: skip
        jumped = max(len(new) - 1, 0)
        if row.drafted:
            draft, accepted = row.draft, agreed(row.draft, new)
            self._emit(
                ev.GrammarVerified, request=request.id, drafted=row.drafted, accepted=accepted, draft=draft,
                run=self.jumps.spelling.text(draft).decode(errors="replace"),
            )  # fmt: skip
            pages = self._holdings.shrink(request, self._holdings.pool.pages_for(request.kv))
            if accepted < row.drafted:
                self._emit(ev.GrammarRolledBack, request=request.id, tokens=draft[accepted:], pages=pages)
        for i, look in enumerate(looks):
            source = "jumped" if i < jumped else "forced" if look.allowed == 1 else "sampled"
            if source != "sampled" or sampled.top is not None or request.params.logprobs is not None:
                self._emit(
                    ev.TokenEmitted, request=request.id, position=at + i, token=look.token, source=source,
                    logprob=look.logprob, top=look.top,
                )  # fmt: skip

    def count(self, row: Row, looks: list[Look], new: list[int]) -> tuple[int, int]:
        """Jumped and forced tokens of a pass; notes them and the rolled back ones on the request."""
        request = row.request
        jumped = max(len(new) - 1, 0)
        forced = int(bool(new) and looks[len(new) - 1].allowed == 1) if looks else 0
        request.jumped += jumped
        request.forced += forced
        request.rolled_back += row.drafted - agreed(row.draft, new)
        return jumped, forced


def place(where: int | str | None) -> str:
    """Where in a grammar, as it follows the field's name."""
    if where is None or where == "":
        return ""
    return f" (character {where})" if isinstance(where, int) else f" ({where})"

