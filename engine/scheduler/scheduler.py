"""The scheduler: who runs in the next step. Queue, admission, chunks, decode room, retraction.

It decides from counts alone (no clock, no randomness), so the same arrivals give the same plans.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine import events as ev
from engine.cache.base import WIDTH, Match, PrefixCache
from engine.config import EngineConfig
from engine.executor.base import Row
from engine.pool import Pool
from engine.request import Request, Status
from engine.scheduler.holdings import Holdings
from engine.scheduler.overtaking import Overtaking
from engine.scheduler.policy import VICTIMS, order
from engine.scheduler.reserve import Reserve
from engine.totals import Totals

HEAD = 16
"""How much of the queue's order an event shows."""


@dataclass(slots=True)
class Plan:
    """One step: its rows, the first `prefills` of which prefill; requests out of room end with `capacity`."""

    rows: list[Row]
    prefills: int
    out_of_room: list[Request]

    @property
    def mode(self) -> str:
        """`prefill`, `decode` or `mixed`."""
        if self.prefills == len(self.rows):
            return "prefill"
        return "mixed" if self.prefills else "decode"


class Scheduler:
    """Owns the queue and the running set, and plans one step at a time."""

    def __init__(self, config: EngineConfig, pool: Pool, cache: PrefixCache, trace: ev.Trace, totals: Totals) -> None:
        self.config = config
        self.pool = pool
        self.cache = cache
        self.trace = trace
        self.totals = totals
        self.holdings = Holdings(pool, cache, trace, totals)
        self.reserve = Reserve(config)
        self.waiting: list[Request] = []
        self.running: list[Request] = []
        self.overtaking = Overtaking()
        self._told_order: tuple[list[str], list[int]] = ([], [])
        self._told_over: dict[str, tuple[str, int]] = {}

    # --- coming and going ----------------------------------------------------------------------

    def refusal(self, request: Request, max_positions: int) -> tuple[str, int, int] | None:
        """Why a request can never run: (unit, needed, available), or None."""
        size = len(request.prompt) + 1
        if size > max_positions:
            return "positions", size, max_positions
        needed = self.pool.pages_for(size)
        return ("pages", needed, self.pool.pages) if needed > self.pool.pages else None

    def add(self, request: Request) -> None:
        """Join the back of the queue."""
        self.waiting.append(request)

    def remove(self, request: Request) -> None:
        """Leave the queue or the running set; pages are the caller's business."""
        (self.waiting if request.status is Status.WAITING else self.running).remove(request)
        self._told_over.pop(request.id, None)

    # --- one step ------------------------------------------------------------------------------

    def plan(self) -> Plan | None:
        """The next step, or None when nothing can run."""
        if not self.running:
            self.reserve.idle()
        out: list[Request] = []
        decodes: list[Row] = []
        if self.config.mixed:
            decodes, retracted = self._decode_rows(out)
            rows = self._prefill_rows(out, len(decodes), admit=not retracted)
        else:
            rows = self._prefill_rows(out, 0, admit=True)
            if not rows:
                decodes, _ = self._decode_rows(out)
        prefills = len(rows)
        rows += decodes
        if not rows and not out:
            return None
        return Plan(rows, prefills, out)

    def _prefill_rows(self, out: list[Request], decodes: int, admit: bool) -> list[Row]:
        """Prompts that go on, then prompts that are admitted, within chunk and budget."""
        chunk = None if self.config.chunk is None else self.config.chunk - decodes
        rows: list[Row] = []
        for request in [r for r in self.running if r.status is Status.PREFILL]:
            count = self._cut(request.kv, request.target, chunk, first=not rows)
            if not count:
                return rows
            rows.append(self._prefill(request, count))
            chunk = None if chunk is None else chunk - count
        if admit and self.waiting:
            self._admit(rows, out, chunk)
        return rows

    def _cut(self, start: int, stop: int, chunk: int | None, first: bool) -> int:
        """How many of the tokens [start, stop) this step takes: whole pages unless the prompt ends."""
        size = self.config.page_size
        if chunk is None or stop - start <= chunk:
            return stop - start
        count = (start + max(chunk, 0)) // size * size - start
        if count <= 0 and first:
            count = min(stop, (start // size + 1) * size) - start
        return max(count, 0)

    def _prefill(self, request: Request, count: int) -> Row:
        """A row of prefill; counts its first-time prompt tokens as computed."""
        start, stop = request.kv, request.kv + count
        fresh = min(stop, len(request.prompt)) - max(start, request.reached)
        if fresh > 0:
            self.overtaking.computed(request.index, fresh)
        sample = stop == request.target and request.params.max_new_tokens > 0
        return Row(request, request.tokens[start:stop], start, request.pages, sample)

    def _admit(self, rows: list[Row], out: list[Request], chunk: int | None) -> None:
        """Admit in the policy's order until a limit refuses one.

        A retracted request that no longer fits even alone joins `out`: it has reached the capacity.
        """
        config = self.config
        queue, keys = order(self.waiting, config.policy, self.cache)
        self._tell_order(queue, keys)
        budget = None if config.prefill_budget is None else config.prefill_budget - sum(len(r.tokens) for r in rows)
        for request in tuple(queue):
            if len(self.running) >= config.max_running:
                self._pass_over(request, "running cap", len(self.running) + 1, config.max_running)
                return
            match = self.cache.match(request.packed_but_last(), request.namespace)
            count = self._cut(match.length, request.size, chunk, first=not rows)
            if not count:
                self._pass_over(request, "chunk", min(request.size - match.length, config.page_size), max(chunk or 0, 0))
                return
            if rows and budget is not None and count > budget:
                self._pass_over(request, "budget", count, max(budget, 0))
                return
            uncached = request.size - match.length
            alone = not self.running
            # Alone it needs a slot for its first output token; one that has output already goes on until
            # the pool is full, retracted or not.
            future = (0 if request.output else 1) if alone else self.reserve.tokens(request)
            needed = math.ceil((uncached + future) / config.page_size)
            available = (
                self.holdings.obtainable
                - self.cache.to_lock(match)
                - self.reserve.pages(self.running, config.page_size)
            )
            if needed > available and alone:
                out.append(request)
                continue
            if needed > available:
                self._pass_over(request, "pages", needed, available)
                return
            self._start(request, match, needed, available)
            rows.append(self._prefill(request, count))
            chunk = None if chunk is None else chunk - count
            budget = None if budget is None else budget - count

    def _start(self, request: Request, match: Match, needed: int, available: int) -> None:
        """Move one request from the queue to the running set, with its match locked and its pages taken."""
        first = request.cached is None
        if self.trace.on:
            self._tell_match(request, match)
        self.holdings.adopt(request, match)
        self.waiting.remove(request)
        self.running.append(request)
        self._told_over.pop(request.id, None)
        request.status = Status.PREFILL
        request.target = request.size
        recovered = recomputed = 0
        if first:
            request.cached, request.computed = request.kv, len(request.prompt) - request.kv
            self.totals.prompt_tokens += len(request.prompt)
            self.totals.cached_tokens += request.cached
            self.totals.computed_tokens += request.computed
        else:
            recovered, recomputed = request.kv, max(0, request.reached - request.kv)
            request.recovered += recovered
            request.recomputed += recomputed
            self.totals.recovered_tokens += recovered
            self.totals.recomputed_tokens += recomputed
        self.holdings.take([(request, self.pool.pages_for(request.target) - request.shared)])
        self.trace.emit(
            ev.RequestAdmitted, request=request.id, node=request.node.id if request.node else ev.ROOT,
            length=request.kv, first=first, cached=request.cached, computed=request.computed,
            recovered=recovered, recomputed=recomputed, needed=needed, available=available,
            reserve=round(self.reserve.value, 6), overtaken=self.overtaking.of(request.index),
        )  # fmt: skip

    # --- decoding ------------------------------------------------------------------------------

    def _decode_rows(self, out: list[Request]) -> tuple[list[Row], bool]:
        """Rows of one token each, every one with a slot, and whether anybody was retracted for it.

        One that runs alone and still finds no slot joins `out`.
        """
        size = self.config.page_size
        retracted = False
        while True:
            decoding = [r for r in self.running if r.status is Status.DECODE and r not in out]
            short = [r for r in decoding if r.kv >= len(r.pages) * size]
            if len(short) <= self.holdings.obtainable:
                break
            victim = self._victim(out)
            if victim is None:
                out += short
                continue
            self._retract(victim)
            retracted = True
        self.holdings.take([(r, 1) for r in short])
        if decoding and not retracted:
            self.reserve.decoded()
        return [Row(r, [r.tokens_at(r.kv)], r.kv, r.pages, True) for r in decoding], retracted

    def _victim(self, out: list[Request]) -> Request | None:
        """Whom to retract, by the policy's key; never the last one running.

        A request at its bound was admitted with room for all it may produce; it is spared.
        """
        running = [r for r in self.running if r not in out]
        if len(running) < 2:
            return None
        spare = [r for r in running if r.retractions < self.config.retract_max] or running
        return min(spare, key=VICTIMS[self.config.retract_victim])

    def _retract(self, request: Request) -> None:
        """Take a running request's pages; what was stored stays, its output stays, it waits again."""
        request.reached = max(request.reached, request.kv)
        freed = self.holdings.drop(request)
        self.running.remove(request)
        request.status = Status.WAITING
        request.retractions += 1
        self.totals.retractions += 1
        self.reserve.retracted(self.running)
        self.waiting.insert(0 if self.config.retract_to == "front" else len(self.waiting), request)
        self.trace.emit(
            ev.RequestRetracted, request=request.id, outputs=len(request.output), freed=freed,
            reserve=round(self.reserve.value, 6), to=self.config.retract_to, times=request.retractions,
        )  # fmt: skip

    # --- telling -------------------------------------------------------------------------------

    def _tell_match(self, request: Request, match: Match) -> None:
        stop = match.stop
        kind, writer = stop.kind, None
        if kind in ("no child", "parted", "page", "end"):
            writer = self._writer(request, stop.raw_length)
            kind = "not written yet" if writer else kind
        self.trace.emit(
            ev.RequestMatched, request=request.id, length=match.length, raw_length=stop.raw_length,
            path=[n.id for n in match.path], stop=kind, host_length=match.host_length, at_node=stop.at_node,
            offset=stop.offset, stored=stop.stored, wanted=stop.wanted, writer=writer,
        )  # fmt: skip

    def _writer(self, request: Request, known: int) -> str | None:
        """A running request that is computing the tokens where this one's match ended."""
        want = request.packed_but_last()[: (known + 1) * WIDTH]
        if len(want) < (known + 1) * WIDTH:
            return None
        for other in self.running:
            if other.namespace == request.namespace and other.store and other.packed(other.size).startswith(want):
                return other.id
        return None

    def _tell_order(self, queue: list[Request], keys: list[int]) -> None:
        if not keys or not self.trace.on:
            return
        head = [r.id for r in queue[:HEAD]]
        told = (head, keys[:HEAD])
        if told != self._told_order:
            self._told_order = told
            self.trace.emit(
                ev.QueueOrdered, policy=self.config.policy, waiting=len(queue), head=head, keys=keys[:HEAD]
            )

    def _pass_over(self, request: Request, limit: str, needed: int, available: int) -> None:
        overtaken = self.overtaking.of(request.index)
        if self._told_over.get(request.id) != (limit, overtaken):
            self._told_over[request.id] = (limit, overtaken)
            self.trace.emit(
                ev.RequestPassedOver, request=request.id, limit=limit, needed=needed, available=available, overtaken=overtaken
            )
