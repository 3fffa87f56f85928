"""The scheduler: who runs in the next step. Queue, admission, chunks, decode room, retraction.

It decides from counts alone (no clock, no randomness), so the same arrivals give the same plans.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine import events as ev
from engine.cache.base import PrefixCache
from engine.config import EngineConfig
from engine.executor.base import AWAITED, Row
from engine.plugs import NOTHING, OWN, Plugs
from engine.pool import Pool
from engine.request import Request, Status
from engine.scheduler.admission import Admission, Step, cut
from engine.scheduler.holdings import Holdings
from engine.scheduler.loading import Loading
from engine.scheduler.overtaking import Overtaking
from engine.scheduler.policy import VICTIMS, make_policy
from engine.scheduler.queue import Queue
from engine.scheduler.reserve import Reserve
from engine.scheduler.telling import Telling
from engine.totals import Totals


class _NotAheadError(Exception):
    """A running request would have to give way, and what the step in flight brings it is not known yet."""


@dataclass(slots=True)
class Plan:
    """One step: its rows, the first `prefills` of which prefill; requests out of room end with `capacity`."""

    rows: list[Row]
    prefills: int
    out_of_room: list[Request]
    load_seconds: float = 0.0
    """What its loads from the host tier take, before the forward."""

    @property
    def mode(self) -> str:
        """`prefill`, `decode` or `mixed`."""
        if self.prefills == len(self.rows):
            return "prefill"
        return "mixed" if self.prefills else "decode"


class Scheduler:
    """Owns the queue and the running set, and plans one step at a time."""

    def __init__(
        self, config: EngineConfig, pool: Pool, cache: PrefixCache, trace: ev.Trace, totals: Totals, max_positions: int,
        plugs: Plugs = NOTHING,
    ) -> None:  # fmt: skip
        self.config = config
        self.pool = pool
        self.cache = cache
        self.trace = trace
        self.totals = totals
        self.holdings = Holdings(pool, cache, trace, totals)
        self.reserve = Reserve(config)
        self.waiting = Queue()
        self.running: list[Request] = []
        self.overtaking = Overtaking()
        self.max_positions = max_positions
        self.telling = Telling(OWN if plugs.order else config.policy, trace)
        self.loading = Loading(config, trace.header.rates)
        self.policy = make_policy(config, self.waiting, cache, trace.header.seed, plugs.order)
        self.admission = Admission(
            config, self.waiting, self.running, self.policy, pool, cache, self.holdings, self.reserve,
            self.overtaking, totals, trace, self.telling, self.loading, plugs,
        )  # fmt: skip

    # --- coming and going ----------------------------------------------------------------------

    def refusal(self, request: Request) -> tuple[str, int, int] | None:
        """Why a request can never run: (unit, needed, available), or None."""
        size = len(request.prompt) + 1
        if size > self.max_positions:
            return "positions", size, self.max_positions
        needed = self.pool.pages_for(size)
        return ("pages", needed, self.pool.pages) if needed > self.pool.pages else None

    def add(self, request: Request) -> None:
        """Join the back of the queue."""
        self.waiting.join(request)

    def remove(self, request: Request) -> None:
        """Leave the queue or the running set; pages are the caller's business."""
        (self.waiting if request.status is Status.WAITING else self.running).remove(request)
        self.telling.forget(request)

    # --- one step ------------------------------------------------------------------------------

    def plan(self, ahead: bool = False) -> Plan | None:
        """The next step, or None when nothing can run.

        `ahead`: the step before is still in flight. Then whoever would have to be retracted or displaced waits until
        it is back: None.
        """
        if not self.running:
            self.reserve.idle()
        try:
            return self._plan(ahead)
        except _NotAheadError:
            return None

    def _plan(self, ahead: bool) -> Plan | None:
        self._preempt(ahead)
        self.loading.begin()
        out: list[Request] = []
        decodes: list[Row] = []
        if self.config.mixed:
            decodes, retracted = self._decode_rows(out, ahead)
            rows = self._prefill_rows(out, len(decodes), admit=not retracted)
        else:
            rows = self._prefill_rows(out, 0, admit=True)
            if not rows:
                decodes, _ = self._decode_rows(out, ahead)
        prefills = len(rows)
        rows += decodes
        if not rows and not out:
            return None
        return Plan(rows, prefills, out, self.loading.seconds)

    def _prefill_rows(self, out: list[Request], decodes: int, admit: bool) -> list[Row]:
        """Prompts that go on, then prompts that are admitted, within chunk and budget."""
        chunk = None if self.config.chunk is None else self.config.chunk - decodes
        rows: list[Row] = []
        for request in [r for r in self.running if r.prefilling]:
            count = cut(request.reach, request.target, chunk, self.config.page_size, first=not rows)
            if not count:
                return rows
            rows.append(self._prefill(request, count))
            chunk = None if chunk is None else chunk - count
        if admit and self.waiting:
            budget = self.config.prefill_budget
            left = None if budget is None else budget - sum(len(r.tokens) for r in rows)
            self.admission.admit(Step(rows, out, chunk, left), self._prefill)
        return rows

    def _prefill(self, request: Request, count: int) -> Row:
        """A row of prefill; counts its first-time prompt tokens as computed."""
        start, stop = request.reach, request.reach + count
        fresh = min(stop, len(request.prompt)) - max(start, request.reached)
        if fresh > 0:
            self.overtaking.computed(request.index, fresh)
        sample = stop == request.target and request.params.max_new_tokens > 0
        return Row(request, request.tokens[start:stop], start, request.pages, sample)

    # --- decoding ------------------------------------------------------------------------------

    def _decode_rows(self, out: list[Request], ahead: bool) -> tuple[list[Row], bool]:
        """Rows of one token each, every one with a slot, and whether anybody was retracted for it.

        One that runs alone and still finds no slot joins `out`.
        """
        size = self.config.page_size
        retracted = False
        while True:
            decoding = [r for r in self.running if r.decoding(self.max_positions) and r not in out]
            short = [r for r in decoding if r.reach >= len(r.pages) * size]
            if len(short) <= self.holdings.obtainable:
                break
            if ahead:
                raise _NotAheadError
            victim = self._victim(out)
            if victim is None:
                out += short
                continue
            self._retract(victim)
            retracted = True
        self.holdings.take([(r, 1) for r in short])
        if decoding and not retracted:
            self.reserve.decoded()
        return [Row(r, [AWAITED if r.awaited else r.tokens_at(r.reach)], r.reach, r.pages, True) for r in decoding], retracted

    def _victim(self, out: list[Request]) -> Request | None:
        """Whom to retract, by the policy's key; never the last one running.

        A request at its bound was admitted with room for all it may produce; it is spared.
        """
        running = [r for r in self.running if r not in out]
        if len(running) < 2:
            return None
        spare = [r for r in running if r.retractions < self.config.retract_max] or running
        return min(spare, key=VICTIMS[self.config.retract_victim])

    def _preempt(self, ahead: bool) -> None:
        """Take the place of running requests for the most important one that waits (`policy: priority`)."""
        head, victims = self.admission.displaced()
        if victims and ahead:
            raise _NotAheadError
        for victim in victims:
            self._retract(victim, by=head)

    def _retract(self, request: Request, by: str | None = None) -> None:
        """Take a running request's pages; what was stored stays, its output stays, it waits again."""
        request.reached = max(request.reached, request.kv)
        freed = self.holdings.drop(request)
        self.running.remove(request)
        request.status = Status.WAITING
        request.retractions += 1
        self.totals.retractions += 1
        if by is None:
            self.reserve.retracted(self.running)
        self.waiting.join(request, front=self.config.retract_to == "front")
        self.trace.emit(
            ev.RequestRetracted, request=request.id, outputs=len(request.output), freed=freed,
            reserve=round(self.reserve.value, 6), to=self.config.retract_to, times=request.retractions, by=by,
        )  # fmt: skip
