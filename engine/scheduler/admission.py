"""Admission: who leaves the queue in this step, and which limit stops the others.

Requests are looked at in the policy's order. The first that pages, budget, running cap or chunk refuse ends
the look; one whose prefix is in flight, or for which the leaders' room is used up, is passed over.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from engine import events as ev
from engine.cache.base import Match, PrefixCache
from engine.config import EngineConfig
from engine.executor.base import Row
from engine.plugs import NOTHING, PlugError, Plugs, Running
from engine.pool import Pool
from engine.request import Request, Status
from engine.scheduler.barrier import Barrier
from engine.scheduler.fairness import Fairness
from engine.scheduler.holdings import Holdings
from engine.scheduler.loading import Choice, Loading
from engine.scheduler.overtaking import Overtaking
from engine.scheduler.policy import Policy, seen
from engine.scheduler.preempt import victims
from engine.scheduler.queue import Queue
from engine.scheduler.reserve import Reserve
from engine.scheduler.telling import HEAD, Telling
from engine.totals import Totals


def cut(start: int, stop: int, chunk: int | None, page_size: int, first: bool) -> int:
    """How many of the tokens [start, stop) a step takes: whole pages unless the prompt ends."""
    if chunk is None or stop - start <= chunk:
        return stop - start
    count = (start + max(chunk, 0)) // page_size * page_size - start
    if count <= 0 and first:
        count = min(stop, (start // page_size + 1) * page_size) - start
    return max(count, 0)


@dataclass(slots=True)
class Step:
    """What a step has and has not yet given away; `rows` are its prefills so far."""

    rows: list[Row]
    out_of_room: list[Request]
    chunk: int | None
    budget: int | None


class Admission:
    """Moves requests from the queue to the running set."""

    def __init__(
        self, config: EngineConfig, queue: Queue, running: list[Request], policy: Policy, pool: Pool,
        cache: PrefixCache, holdings: Holdings, reserve: Reserve, overtaking: Overtaking, totals: Totals,
        trace: ev.Trace, telling: Telling, loading: Loading, plugs: Plugs = NOTHING,
    ) -> None:  # fmt: skip
        self.config = config
        self.queue = queue
        self.running = running
        self.policy = policy
        self.pool = pool
        self.cache = cache
        self.holdings = holdings
        self.reserve = reserve
        self.overtaking = overtaking
        self.totals = totals
        self.trace = trace
        self.telling = telling
        self.loading = loading
        self.rule = plugs.admit
        self.barrier = Barrier(config)
        self.fairness = Fairness(config.fair_bound if config.policy == "lpm-fair" else None)

    def admit(self, step: Step, row: Callable[[Request, int], Row]) -> None:
        """Admit into `step` until a limit refuses one; `row` makes a request's prefill of so many tokens.

        A retracted request that no longer fits even alone joins `out_of_room`: it has reached the capacity.
        """
        self.policy.arrange()
        self._tell_order()
        self.barrier.begin()
        with closing(self.policy.requests()) as requests:
            for request in requests:
                while (first := self.fairness.before(request, self.queue, self._to_compute)) is not None:
                    self._tell_bound(first, request)
                    if not self._consider(first, step, row, spared=True) or first in self.queue:
                        return
                if request in self.queue and not self._consider(request, step, row, spared=False):
                    return

    def displaced(self) -> tuple[str | None, list[Request]]:
        """The most important waiting request and whom it displaces (`policy: priority`); nobody where it fits."""
        if self.config.policy != "priority" or not len(self.queue) or not self.running:
            return None, []
        self.policy.arrange()
        head = self.policy.head(1)[0][0]
        match = self._match(head)
        needed, available = self._room(head, match)
        over_cap = len(self.running) >= self.config.max_running
        if needed <= available and not over_cap:
            return None, []
        return head.id, victims(head, match, self.running, needed - available, over_cap, self.config)

    # --- one request ---------------------------------------------------------------------------

    def _consider(self, request: Request, step: Step, row: Callable[[Request, int], Row], spared: bool) -> bool:
        """Admit one, or tell why not; False ends the look. `spared`: barrier and leader room do not hold it."""
        size = self.config.page_size
        if len(self.running) >= self.config.max_running:
            return self._pass_over(request, "running cap", len(self.running) + 1, self.config.max_running)
        match = self._match(request)
        choice = self.loading.choose(match)
        known = match.length + choice.tokens
        if not spared and self._held(request, known):
            return True
        count = cut(known, request.size, step.chunk, size, first=not step.rows)
        if not count:
            return self._pass_over(request, "chunk", min(request.size - known, size), max(step.chunk or 0, 0))
        if step.rows and step.budget is not None and count > step.budget:
            return self._pass_over(request, "budget", count, max(step.budget, 0))
        needed, available = self._room(request, match)
        if needed > available or not self._may_enter(request, match, needed, available):
            if self.running:
                return self._pass_over(request, "pages", needed, available)
            step.out_of_room.append(request)
            return True
        self.barrier.admitted(request, known)
        self._start(request, match, choice, needed, available)
        step.rows.append(row(request, count))
        step.chunk = None if step.chunk is None else step.chunk - count
        step.budget = None if step.budget is None else step.budget - count
        return True

    def _match(self, request: Request) -> Match:
        return self.cache.match(request.packed_but_last(), request.namespace)

    def _to_compute(self, request: Request) -> int:
        """Prompt tokens that admitting it now would compute for the first time."""
        if request.cached is not None:
            return 0
        match = self._match(request)
        return len(request.prompt) - match.length - self.loading.choose(match).tokens

    def _room(self, request: Request, match: Match) -> tuple[int, int]:
        """Pages that it needs, whether their tokens are computed or loaded, and pages that can be had for it."""
        size = self.config.page_size
        # Alone it needs a slot for its first output token; one that has output already goes on until
        # the pool is full, retracted or not.
        alone = not self.running or self.rule is not None
        future = (0 if request.output else 1) if alone else self.reserve.tokens(request)
        needed = math.ceil((request.size - match.length + future) / size)
        kept = 0 if alone else self.reserve.pages(self.running, size)
        return needed, self.holdings.obtainable - self.cache.to_lock(match) - kept

    def _may_enter(self, request: Request, match: Match, needed: int, available: int) -> bool:
        """What the rule that was brought says, where there is one; the first of an empty engine always may."""
        if self.rule is None or not self.running:
            return True
        held = [Running(r.id, r.kv, r.params.max_new_tokens - len(r.output)) for r in self.running]
        said = self.rule(seen(request, match.length, None, needed, available), held)
        if not isinstance(said, bool):
            raise PlugError(f"admit: {said!r} is no answer; return True or False")
        return said

    def _held(self, request: Request, known: int) -> bool:
        """Whether the barrier passes it over; `known` tokens it would not compute."""
        if not self.barrier.on:
            return False
        leader = self.barrier.in_flight(request, known, self.running)
        if leader is not None:
            reach = known + self.config.page_size
            limit, needed, available, behind = "prefix in flight", reach, known, leader.id
        elif self.barrier.held(request, known):
            limit, needed, available, behind = "leader room", self.barrier.new_pages(request, known), self.barrier.room, None
        else:
            return False
        for one in [request, *(self.policy.fellows(request) if self.telling.on else ())]:
            self.telling.passed_over(one, limit, needed, available, self.overtaking.of(one.index), behind)
        return True

    def _start(self, request: Request, match: Match, choice: Choice, needed: int, available: int) -> None:
        """Move one request from the queue to the running set, with its match locked and its pages taken."""
        first = request.cached is None
        if self.telling.on:
            self.telling.matched(request, match, self.running)
        if choice.tokens:
            match = self.holdings.load(request, match, self.loading.per_token)
            self.loading.started(choice)
        self.holdings.adopt(request, match)
        self.queue.remove(request)
        self.running.append(request)
        self.telling.forget(request)
        request.status = Status.PREFILL
        request.target = request.size
        recovered = recomputed = 0
        if first:
            request.cached, request.computed = request.kv, len(request.prompt) - request.kv
            self.fairness.admitted(request, request.computed)
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
            reserve=round(self.reserve.value, 6), overtaken=self.overtaking.of(request.index), host=choice.held,
            loaded=choice.tokens, load_seconds=choice.load_seconds, recompute_seconds=choice.recompute_seconds,
        )  # fmt: skip

    # --- telling -------------------------------------------------------------------------------

    def _pass_over(self, request: Request, limit: str, needed: int, available: int) -> bool:
        self.telling.passed_over(request, limit, needed, available, self.overtaking.of(request.index))
        return False

    def _tell_order(self) -> None:
        if self.telling.on and len(self.queue) > 1:
            head, keys = self.policy.head(HEAD)
            why = self.policy.fell_back
            self.telling.order(len(self.queue), head, keys, fell_back=why is not None, why=why)

    def _tell_bound(self, first: Request, request: Request) -> None:
        """`first` goes before `request`, whose turn it was."""
        if self.telling.on:
            why = f"{first.id} goes first: overtaken by {self.fairness.overtaken(first)} prompt tokens, the bound is {self.fairness.bound}"
            ranked = [first, request, *(r for r in self.policy.head(HEAD)[0] if r not in (first, request))][:HEAD]
            self.telling.order(len(self.queue), ranked, [-self._match(r).known for r in ranked], why=why)
