"""What follows from a step for its requests: their tokens, what is stored, and how they end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine import events as ev
from engine.answers import Answers
from engine.arrivals import Arrivals
from engine.constrained import Constrained
from engine.executor.base import Executor, Row, Sampled, StepResult
from engine.executor.puppet import WrongSlot
from engine.request import Request, Status
from engine.scheduler.scheduler import Plan, Scheduler
from engine.speculate import Drafts
from engine.totals import Totals


@dataclass(slots=True)
class Progress:
    """What one step did for one request: its new ids, their text, and how it ended (`reason`), if it did.

    `replaced`: so many of its earlier ids have given way, as an unverified jump spelt them anew.
    """

    request: str
    ids: list[int]
    text: str = ""
    reason: str | None = None
    replaced: int = 0


@dataclass(slots=True)
class Taken:
    """What one row of a step brought: the tokens that its request took."""

    row: Row
    new: list[int]
    sampled: Sampled | None


class Outcomes:
    """Moves an engine's requests on by what its executor returns, and ends them.

    `live` are those that have arrived and not ended. `breached` is told of a page that held what it should not,
    `ended` of every request that ends.
    """

    def __init__(
        self, executor: Executor, scheduler: Scheduler, arrivals: Arrivals, constrained: Constrained, drafts: Drafts, answers: Answers,
        trace: ev.Trace, totals: Totals, breached: Callable[[str], None], ended: Callable[[Request], None],
    ) -> None:  # fmt: skip
        self._executor = executor
        self._scheduler = scheduler
        self._arrivals = arrivals
        self._constrained = constrained
        self._drafts = drafts
        self._answers = answers
        self._trace = trace
        self._emit = trace.emit
        self._totals = totals
        self._breached = breached
        self._ended = ended
        self.live: dict[str, Request] = {}
        self.aborts: dict[str, int] = {}

    # --- a step that came back -----------------------------------------------------------------

    def take(self, plan: Plan, result: StepResult) -> list[Taken]:
        """Move each row on by what it forwarded and sampled. A request that has ended meanwhile takes nothing."""
        return [self._take(row, sampled) for row, sampled in zip(plan.rows, result.rows, strict=True)]

    def _take(self, row: Row, sampled: Sampled | None) -> Taken:
        request = row.request
        if request.done:
            return Taken(row, [], None)
        request.kv += len(row.tokens) - row.drafted
        if request.status is Status.PREFILL and request.kv >= request.target:
            request.status = Status.DECODE
        if sampled is not None and sampled.scores:
            request.take_scores(row.scored.start, sampled.scores)
        new = self._answers.take(request, sampled.tokens) if sampled is not None else []
        request.kv += max(len(new) - 1, 0)
        self._totals.output_tokens += len(new)
        if sampled is not None and sampled.looks:
            self._constrained.keep(request, sampled.looks, len(new))
            jumped, forced = self._constrained.count(row, sampled.looks, new)
            self._totals.jumped_tokens += jumped
            self._totals.forced_tokens += forced
        return Taken(row, new, sampled)

    def follow(self, taken: list[Taken]) -> list[Progress]:
        """What follows from a step, request by request in the order of their admission."""
        by_name = {t.row.request.id: t for t in taken if not t.row.request.done}
        admitted = [r.id for r in self._scheduler.running if r.id in by_name]
        return [self._after(by_name[name]) for name in admitted]

    def _after(self, taken: Taken) -> Progress:
        """What follows for one row: first token, text, storing, its end."""
        row, new, sampled = taken.row, taken.new, taken.sampled
        request, trace = row.request, self._trace
        if sampled is not None and sampled.error is not None:
            return self._fail(request, sampled.error)
        if new and request.first_token is None:
            request.first_token = trace.t
            self._emit(ev.RequestFirstToken, request=request.id, ttft=round(trace.t - request.arrived, 9))
        if sampled is not None and request.walk is not None:
            self._constrained.tell(row, sampled, new)
        elif sampled is not None and row.drafted:
            self._drafts.tell(row, sampled, new)
        elif new and sampled is not None and sampled.top is not None:
            self._emit(
                ev.TokenEmitted, request=request.id, position=len(request.output) - 1, token=new[0],
                logprob=sampled.logprob, top=sampled.top,
            )  # fmt: skip
        progress = self._progress(request, new)
        reason, matched = self._reason(request, new, sampled)
        if request.scores and request.status is Status.DECODE:
            self._emit(ev.TokensScored, request=request.id, start=request.params.score_from, logprobs=request.scores)
        if reason is not None:
            self._finish(request, reason, matched)
            progress.text, progress.reason = progress.text + (request.tail or ""), reason
        elif row.start + len(row.tokens) - row.drafted <= request.target:
            self._scheduler.holdings.share(request)
        return progress

    def _progress(self, request: Request, new: list[int]) -> Progress:
        """New ids and text, those of a jump before them."""
        jumped = self._constrained.jumps.jumped.pop(request.id, None)
        text = self._answers.fresh(request)
        if jumped is None:
            return Progress(request.id, new, text)
        return Progress(request.id, jumped.ids + new, text, replaced=jumped.replaced)

    def jumped_to_the_end(self, request: Request) -> Progress:
        """A forced run that was appended without a pass has ended its request."""
        progress = self._progress(request, [])
        reason, matched = self._reason(request, progress.ids, None)
        assert reason is not None
        self._finish(request, reason, matched)
        progress.text, progress.reason = progress.text + (request.tail or ""), request.reason
        return progress

    # --- ends ----------------------------------------------------------------------------------

    def _reason(
        self, request: Request, new: list[int], sampled: Sampled | None
    ) -> tuple[str | None, str | int | None]:
        """Why a request ends now, if it does, and the stop string or id that ended it."""
        if request.status is not Status.DECODE:
            return None, None
        ended = self._answers.ended_by(request, new[-1] if new else None)
        if ended is not None and ended[0] == "stop":
            return ended
        if self._constrained.closed(request):
            return "stop", None  # also at the cap: the document is whole
        if ended is not None:
            return ended
        if sampled is not None and sampled.last:
            return "stop", None
        if request.size >= self._executor.max_positions:
            return "capacity", None
        return None, None

    def _finish(self, request: Request, reason: str, matched: str | int | None = None) -> None:
        """End a request that ran: store what it computed, give everything back."""
        self._scheduler.remove(request)
        self._scheduler.holdings.finish(request)
        text = self.end(request, Status.FINISHED, reason)
        incomplete, needed = self._constrained.missing(request)
        self._emit(
            ev.RequestFinished, request=request.id, reason=reason, outputs=len(request.output), text=text, matched_stop=matched,
            incomplete=incomplete, still_needed=needed,
        )  # fmt: skip

    def end(self, request: Request, status: Status, reason: str) -> str | None:
        """Bookkeeping of every end; returns the request's whole text (None without a tokenizer)."""
        text = self._answers.finish(request)
        request.status, request.reason, request.finished = status, reason, self._trace.t
        setattr(self._totals, str(status), getattr(self._totals, str(status)) + 1)
        cache = self._scheduler.cache
        cache.ended(request)
        if request.pin and request.cached is not None:
            prompt = request.packed(len(request.prompt))
            cache.pin(prompt, request.namespace, self._trace.step + request.pin, request)
        self.live.pop(request.id, None)
        self.aborts.pop(request.id, None)
        self._arrivals.ended(request.id, self._trace.t)
        self._drafts.end(request)
        self._executor.end(request)
        self._ended(request)
        return text

    def out_of_room(self, requests: list[Request]) -> list[Progress]:
        """End those for whom no page can be had, with the text they have so far.

        Not while a pin can give way: they are looked at again in the next step.
        """
        progress = []
        for request in requests:
            if self._scheduler.cache.give_way(request):
                continue
            self._finish(request, "capacity")
            progress.append(Progress(request.id, [], request.tail, "capacity"))
        return progress

    def failed(self, plan: Plan, error: Exception) -> list[Progress]:
        """A forward raised: its rows end with an error, store nothing, and everything comes back."""
        message = f"{type(error).__name__}: {error}"
        if isinstance(error, WrongSlot):
            self._breached(message)
        members = [r.request for r in plan.rows if not r.request.done]
        self._emit(ev.ExecutorFailed, members=[r.id for r in members], error=message)
        return [self._fail(request, message) for request in members]

    def _fail(self, request: Request, message: str) -> Progress:
        """End one request with an error: nothing of it is stored, everything comes back."""
        request.error = message
        self._scheduler.remove(request)
        self._scheduler.holdings.drop(request)
        text = self.end(request, Status.FAILED, "error")
        self._emit(
            ev.RequestFinished, request=request.id, reason="error", outputs=len(request.output), text=text, error=message
        )
        progress = self._progress(request, [])
        progress.text, progress.reason = progress.text + request.tail, "error"
        return progress
