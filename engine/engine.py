"""Engine: submit, step, run, stream, abort, snapshot.

One thread owns an engine. Everything it decides is told to its trace; nothing it decides reads a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from engine import events as ev
from engine.answers import Answers
from engine.arrivals import Arrivals
from engine.asking import SubmitError
from engine.cache import make_cache
from engine.clock import VirtualClock, WallClock
from engine.config import ConfigError, EngineConfig, config_from
from engine.constrained import Constrained
from engine.desk import Desk, When
from engine.executor import make_executor
from engine.executor.base import Executor
from engine.flight import Flight, Runway
from engine.grammar.jump import Jumps
from engine.grammar.syntax import GrammarError
from engine.header import header_for
from engine.outcomes import Outcomes, Progress, Taken
from engine.plugs import NOTHING, Plugs
from engine.pool import Pool
from engine.request import Request, Status
from engine.scheduler.scheduler import Plan, Scheduler
from engine.snapshot import Breach, Checker, snapshot
from engine.speculate import Drafts
from engine.totals import Totals

COMPILING = 0.005
"""Seconds for which an engine that only waits for grammars sleeps."""


class InvariantError(RuntimeError):
    """The tree walk found a breach; the trace's `invariant.broken` events say what."""


class Engine:
    """A complete serving engine around one executor.

    `Engine(pages=4096)` serves the embedded model; `Engine(config=..., executor=...)` takes both as they
    are; `loaded` is a model loaded before, to be served by a fresh engine; replicas share a `desk`; `plugs` are parts that the
    caller brings. `check` walks tree and pool after every step and raises InvariantError at the first breach.
    """

    def __init__(
        self,
        model: str = "embedded",
        *,
        config: EngineConfig | None = None,
        executor: Executor | None = None,
        loaded: Any = None,
        trace: ev.Trace | None = None,
        check: bool = False,
        desk: Desk | None = None,
        plugs: Plugs = NOTHING,
        **knobs: Any,
    ) -> None:
        if config is not None and knobs:
            raise ConfigError(f"{', '.join(knobs)}: given beside config, which holds every knob; set it there")
        if config is None:
            config = config_from({"executor": "model", "model": model, "pages": 4096, **knobs})
        plugs.check(config)
        self.config = config
        self.executor = executor or make_executor(config, loaded)
        self.tokenizer = self.executor.tokenizer
        self.trace = ev.Trace() if trace is None else trace
        header_for(self.trace.header, config, self.executor, plugs)
        self.clock = VirtualClock() if self.executor.virtual else WallClock()
        self.pool = Pool(config.pages, config.page_size)
        self.totals = Totals()
        self.cache = make_cache(config, self.trace, self.executor, self.totals, plugs)
        self.scheduler = Scheduler(config, self.pool, self.cache, self.trace, self.totals, self.executor.max_positions, plugs)
        self.step_number = 1
        self.desk = Desk(self.executor) if desk is None else desk
        self._started = False
        self._arrivals = Arrivals()
        self._answers = Answers(self.executor)
        self._checker = Checker(self.pool, self.cache) if check else None
        self._emit = self.trace.emit
        jumps = Jumps(config, self.executor, self.scheduler.holdings, self.totals, self._emit, self._answers)
        self.constrained = Constrained(config, self.executor, self.scheduler.holdings, jumps, self._emit)
        self._drafts = Drafts(config, self.executor, self.scheduler.holdings, self.totals, self._emit)
        self._outcomes = Outcomes(
            self.executor, self.scheduler, self._arrivals, self.constrained, self._drafts, self._answers, self.trace,
            self.totals, self._breached, lambda request: self.on_end(request),
        )  # fmt: skip
        self._live, self._aborts = self._outcomes.live, self._outcomes.aborts
        self._runway = Runway(self.executor, beside=config.overlap and not self.executor.virtual)
        self.flight: Flight | None = None
        self.on_end: Callable[[Request], None] = lambda request: None
        """Told of every request that ends, in whatever way."""
        self._emit(ev.RunStarted, pages=config.pages, page_size=config.page_size)
        self.trace.commit()

    # --- asking --------------------------------------------------------------------------------

    def submit(self, prompt: str | Sequence[int] | None = None, **asked: Any) -> str:
        """Ask for a continuation of a text, of token ids or of chat messages; returns the request's id.

        Without `at` (seconds), `at_step` or `after` (another request's id) it arrives now. What may be asked is what
        `Desk.make` takes. Raises SubmitError naming the field that is wrong.
        """
        request, when = self.make(prompt, **asked)
        self.enter(request, when)
        return request.id

    def enter(self, request: Request, when: When) -> None:
        """A request that is made arrives: now, or when it is due."""
        if when.abort_at_step is not None:
            self._aborts[request.id] = when.abort_at_step
        if when.after is not None and when.after not in self._live and not self._arrivals.expects(when.after):
            when = When(at=self.clock.now() + when.think)  # it has ended already
        if when.now:
            self._arrive(request, self.clock.now())
        else:
            self._arrivals.add(request, when.at, when.at_step, when.after, when.think)

    def make(self, prompt: str | Sequence[int] | None = None, **asked: Any) -> tuple[Request, When]:
        """A request that has not arrived, and when it does; its id is taken. Raises SubmitError."""
        request, when = self.desk.make(prompt, **asked)
        self.constrained.check(request.params)
        self._foresee(request)
        self.desk.ids.add(request.id)
        return request, when

    def expect(self, request: Request, at: float, abort_at_step: int | None = None) -> None:
        """A request that is made arrives at `at` seconds."""
        if abort_at_step is not None:
            self._aborts[request.id] = abort_at_step
        self._arrivals.add(request, at, None, None, 0.0)

    @property
    def outstanding(self) -> int:
        """Requests that it was given and that have not ended."""
        return len(self._live) + len(self._arrivals)

    def _foresee(self, request: Request) -> None:
        """Let an eviction policy that looks ahead know of a request that is to come."""
        if self.config.eviction != "belady":
            return
        if self._started:
            raise SubmitError(
                "eviction: belady (farthest next use) has to know all traffic before the first step; "
                "submit every request first, or choose another eviction"
            )
        self.cache.expect(request, request.packed_but_last(), request.namespace)

    def abort(self, request: str) -> bool:
        """Take a request back, in whatever state it is. False (and no harm) when there is none such."""
        live = self._live.get(request)
        if live is None:
            coming = self._arrivals.forget(request)
            if coming is None:
                return False
            self.cache.ended(coming)
            self._aborts.pop(request, None)
            self._arrivals.ended(request, self.clock.now())
            return True
        was = str(live.status)
        self.trace.step, self.trace.t = self.step_number, self.clock.now()
        if self.constrained.held.pop(request, None) is None:
            self.scheduler.remove(live)
            self.scheduler.holdings.finish(live)
        text = self._outcomes.end(live, Status.ABORTED, "abort")
        self._emit(ev.RequestAborted, request=request, was=was, text=text)
        self.trace.commit()
        return True

    def abort_all(self) -> None:
        """Take back all that have arrived and not ended."""
        for request in list(self._live):
            self.abort(request)

    # --- running -------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether anything is waiting, running or still to come."""
        return bool(self._live or len(self._arrivals))

    def step(self) -> list[Progress] | None:
        """Plan and run one step; None when nothing is left to do.

        On a wall clock an engine that only waits for arrivals sleeps briefly and returns []. With `overlap` the step
        that was planned is handed over and the one before it looked at; what is returned is that one's progress.
        """
        progress = self.begin()
        if progress is None or self.config.overlap or self.flight is None:
            return progress
        return progress + self.land()

    def begin(self) -> list[Progress] | None:
        """The first half of a step: what has come is let in, the step is planned and handed to the executor (`flight`)."""
        self._started = True
        while True:
            self.trace.step, self.trace.t = self.step_number, self.clock.now()
            due = self._arrivals.due(self.step_number, self.trace.t)
            for request, when in due:
                self._arrive(request, when)
            if self._abort_due() or due or self._compiled():
                continue  # an end, also by refusal, may have brought the next arrival
            if len(self._live) > len(self.constrained.held):
                break
            if self.flight is not None:
                return self.land()
            if self._live:
                self.constrained.wait(COMPILING)
                return []
            if not len(self._arrivals):
                return None
            if not self._jump():
                return []
        self.cache.unpin(self.step_number)
        plan = self.scheduler.plan(ahead=self.flight is not None)
        if plan is None and self.flight is not None:
            return self.land()
        progress = self._outcomes.out_of_room(plan.out_of_room if plan else [])
        if plan is not None:
            progress += [self._outcomes.jumped_to_the_end(request) for request in self.constrained.jumps.extend(plan)]
        if plan is not None and plan.rows:
            self._drafts.extend(plan.rows)
            self._tell_plan(plan)
            self.trace.commit()
            progress += self._run(plan)
        if self.config.overlap or self.flight is None:
            self._close_step()
        return progress

    def land(self) -> list[Progress]:
        """The second half: wait for the step in flight and look at what it brings. With `overlap` nothing else is handed over."""
        progress = self._come_in()
        self._close_step()
        return progress

    def run(self) -> Iterator[list[Progress]]:
        """Step until nothing is left; yields each step's progress."""
        while (progress := self.step()) is not None:
            yield progress
        self.finish()

    def finish(self, stopped: bool = False) -> None:
        """End the run: aborts what is left when `stopped`, then tells `run.ended`."""
        if stopped:
            self.abort_all()
        if self.flight is not None:
            self.land()
        self.trace.step, self.trace.t = self.step_number, self.clock.now()
        self._emit(ev.RunEnded, stopped=stopped)
        self.trace.commit()

    def stream(self, prompt: str | Sequence[int] | None = None, **asked: Any) -> Iterator[str]:
        """Submit one request and yield its text as it comes. Closing the iterator aborts it."""
        name = self.submit(prompt, **asked)
        try:
            while name in self._live or self._arrivals.expects(name):
                for progress in self.step() or []:
                    if progress.request == name and progress.text:
                        yield progress.text
        finally:
            self.abort(name)

    def snapshots(self) -> list[dict[str, Any]]:
        """The state of each replica; an engine is one."""
        return [self.snapshot()]

    def snapshot(self) -> dict[str, Any]:
        """The state by walking it (see `engine.snapshot`)."""
        held = [h.request for h in self.constrained.held.values()]
        return snapshot(self.pool, self.cache, self.scheduler.waiting, self.scheduler.running, self.totals, held)

    # --- inside --------------------------------------------------------------------------------

    def _arrive(self, request: Request, due: float) -> None:
        self.trace.step, self.trace.t = self.step_number, self.clock.now()
        request.arrived = due
        request.index = self.scheduler.overtaking.arrive()
        self.totals.arrived += 1
        self._emit(
            ev.RequestArrived, request=request.id, prompt=request.prompt,
            max_new_tokens=request.params.max_new_tokens, arrived=due, namespace=request.namespace,
            priority=request.priority, label=request.label, store=request.store, pin=request.pin,
            content=request.content, content_at=request.content_at,
            note=self._remark(request),
            regex=request.params.regex, json_schema=self.constrained.schema(request.params), score_from=request.params.score_from,
        )  # fmt: skip
        refusal = self.scheduler.refusal(request)
        if refusal:
            reason, needed, available = refusal
            self._outcomes.end(request, Status.REFUSED, reason)
            self._emit(ev.RequestRefused, request=request.id, reason=reason, needed=needed, available=available)
        else:
            self._live[request.id] = request
            self._answers.begin(request)
            if request.received:
                self.scheduler.holdings.receive(request)
            if not request.params.constrained:
                self.scheduler.add(request)
            else:
                self._ask_for_grammar(request)
        self.trace.commit()

    def _remark(self, request: Request) -> str | None:
        """What looks wrong with a prompt that is served all the same."""
        said = [self.tokenizer.remark(request.prompt) if self.tokenizer is not None else None, self.constrained.remark(request)]
        return "; ".join(s for s in said if s is not None) or None

    def _ask_for_grammar(self, request: Request) -> None:
        try:
            if self.constrained.ask(request):
                self.scheduler.add(request)
        except GrammarError as error:
            self._refuse_grammar(request, error)

    def _refuse_grammar(self, request: Request, error: GrammarError) -> None:
        request.error = str(error)
        self._outcomes.end(request, Status.REFUSED, "grammar")
        self._emit(ev.RequestRefused, request=request.id, reason="grammar", needed=1, available=0, error=str(error))

    def _compiled(self) -> bool:
        """Queue those whose grammar has come; refuse those that nothing can satisfy."""
        ready = self.constrained.ready()
        for request, error in ready:
            if error is None:
                self.scheduler.add(request)
            else:
                self._refuse_grammar(request, error)
        if ready:
            self.trace.commit()
        return bool(ready)

    def _abort_due(self) -> bool:
        due = [name for name, step in self._aborts.items() if step <= self.step_number and name in self._live]
        for name in due:
            self.abort(name)
        return bool(due)

    def _jump(self) -> bool:
        """Idle: go on to the next arrival. False when a wall clock has to wait longer."""
        step, t = self._arrivals.next()
        if step is not None:
            before, self.step_number = self.step_number, max(step, self.step_number)
            now = self.clock.now()
            self._emit(ev.ClockJumped, from_step=before, to_step=self.step_number, from_t=now, to_t=now)
        elif t is not None:
            before_t = self.clock.now()
            self.clock.jump(t)
            if self.clock.now() < t:
                return False
            self._emit(
                ev.ClockJumped, from_step=self.step_number, to_step=self.step_number, from_t=before_t, to_t=self.clock.now()
            )
        self.trace.commit()
        return step is not None or t is not None

    def _tell_plan(self, plan: Plan) -> None:
        self._emit(
            ev.StepPlanned, mode=plan.mode, members=[r.request.id for r in plan.rows],
            tokens=[len(r.tokens) for r in plan.rows], prefills=plan.prefills, budget=self.config.prefill_budget,
            drafted=[r.drafted for r in plan.rows] if any(r.drafted for r in plan.rows) else [],
            waiting=len(self.scheduler.waiting), free=self.pool.free, reserve=round(self.scheduler.reserve.value, 6),
            ahead=self.flight is not None,
        )  # fmt: skip

    def _run(self, plan: Plan) -> list[Progress]:
        """Hand a plan to the executor and look at what came back from the step before it (`overlap`)."""
        virtual = self.clock.kind == "virtual"
        plan_seconds = self.config.clock.plan if virtual else round(self.clock.now() - self.trace.t, 6)
        self.clock.spend(self.config.clock.plan)
        before, self.flight = self.flight, None
        progress, taken = self._land(before) if before is not None else ([], [])
        self._launch(plan, plan_seconds, ahead=before is not None)
        progress += self._outcomes.follow(taken)
        if self.config.overlap and self.flight is not None and any(row.request.walk is not None for row in plan.rows):
            progress += self._come_in()  # what its grammar allows next depends on the token that is coming
        return progress

    def _launch(self, plan: Plan, plan_seconds: float, ahead: bool) -> None:
        """Hand a plan over, with the tokens that its rows waited for; what has ended or got none stays behind."""
        dropped = [row for row in plan.rows if row.request.done or not row.fill()]
        if dropped:
            plan.rows = [row for row in plan.rows if row not in dropped]
        if not plan.rows:
            return
        if self.config.overlap:
            self.trace.t = self.clock.now()  # planning lies further back than the step before's end
        self._emit(ev.StepStarted, dropped=[row.request.id for row in dropped])
        self.totals.forward_passes += 1
        coming = self._runway.launch(plan, self.step_number)
        self.flight = Flight(self.step_number, plan, plan_seconds, self.clock.now(), ahead, coming)
        if self.config.overlap:
            for row in plan.rows:
                row.request.flying, row.request.awaited = len(row.tokens), row.sample

    def _land(self, flight: Flight) -> tuple[list[Progress], list[Taken]]:
        """Wait for a step and take what it brings; where it failed its requests have ended, and nothing is left to follow."""
        error = flight.coming.exception()
        for row in flight.plan.rows:
            row.request.flying, row.request.awaited = 0, False
        here, self.trace.step = self.trace.step, flight.step
        if error is not None:
            self.trace.t = self.clock.now()
            if not isinstance(error, Exception):
                raise error
            progress = self._outcomes.failed(flight.plan, error)
            self.trace.step = here
            return progress, []
        result = flight.coming.result()
        self.clock.reach(flight.ends)
        self.trace.t = self.clock.now()
        self.totals.steps += 1
        late = [row.request.id for row in flight.plan.rows if row.request.done]
        taken = self._outcomes.take(flight.plan, result)
        self._emit(
            ev.StepFinished, emitted=[len(t.new) for t in taken], ids=[i for t in taken for i in t.new],
            plan_seconds=flight.plan_seconds, forward_seconds=round(result.forward_seconds, 9),
            sample_seconds=result.sample_seconds, late=late, ahead=flight.ahead,
        )  # fmt: skip
        self.trace.step = here
        return [], taken

    def _come_in(self) -> list[Progress]:
        """Look at the step in flight before anything else is planned."""
        assert self.flight is not None
        flight, self.flight = self.flight, None
        progress, taken = self._land(flight)
        return progress + self._outcomes.follow(taken)

    def _close_step(self) -> None:
        self._cap_cache()
        self.trace.commit()
        self.step_number += 1
        if self._checker:
            self._check()

    def _cap_cache(self) -> None:
        cap = self.config.cache_pages
        if cap is not None and self.cache.evictable > cap:
            self.scheduler.holdings.evict(self.cache.evictable - cap)

    def _breached(self, what: str) -> None:
        if self._checker:
            self._checker.seen.append(Breach(what))

    def _check(self) -> None:
        assert self._checker is not None
        breaches = self._checker.check(self.scheduler.running, idle=not self._live)
        for breach in breaches:
            self._emit(
                ev.InvariantBroken, what=breach.what, page=breach.page, owners=breach.owners or [],
                last_owners=breach.last_owners or [],
            )  # fmt: skip
        self.trace.commit()
        if breaches:
            raise InvariantError("; ".join(b.what for b in breaches[:3]))
