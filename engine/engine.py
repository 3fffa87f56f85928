"""Engine: submit, step, run, stream, abort, snapshot.

One thread owns an engine. Everything it decides is told to its trace; nothing it decides reads a clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from engine import events as ev
from engine.answers import Answers
from engine.arrivals import Arrivals
from engine.asking import SubmitError, check_content, check_facts, check_ids, check_says, check_times, namespace_of
from engine.cache import make_cache
from engine.clock import VirtualClock, WallClock
from engine.config import ConfigError, EngineConfig, config_from, describe
from engine.constrained import Constrained
from engine.executor import make_executor
from engine.executor.base import Executor, Row, Sampled, StepResult
from engine.executor.puppet import WrongSlot
from engine.grammar.jump import Jumps
from engine.grammar.syntax import GrammarError
from engine.header import header_for
from engine.pool import Pool
from engine.request import Request, SamplingParams, Status
from engine.scheduler.scheduler import Plan, Scheduler
from engine.snapshot import Breach, Checker, snapshot
from engine.totals import Totals

COMPILING = 0.005
"""Seconds for which an engine that only waits for grammars sleeps."""
CONTENTS = 2047
"""Different contents that one engine can tell apart."""


class InvariantError(RuntimeError):
    """The tree walk found a breach; the trace's `invariant.broken` events say what."""


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


class Engine:
    """A complete serving engine around one executor.

    `Engine(pages=4096)` serves the embedded model; `Engine(config=..., executor=...)` takes both as they
    are; `loaded` is a model loaded before, to be served by a fresh engine. `check` walks tree and pool after every step and raises InvariantError at the first breach.
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
        **knobs: Any,
    ) -> None:
        if config is not None and knobs:
            raise ConfigError(f"{', '.join(knobs)}: given beside config, which holds every knob; set it there")
        if config is None:
            config = config_from({"executor": "model", "model": model, "pages": 4096, **knobs})
        self.config = config
        self.executor = executor or make_executor(config, loaded)
        self.tokenizer = self.executor.tokenizer
        self.trace = ev.Trace() if trace is None else trace
        header_for(self.trace.header, config, self.executor)
        self.clock = VirtualClock() if self.executor.virtual else WallClock()
        self.pool = Pool(config.pages, config.page_size)
        self.totals = Totals()
        self.cache = make_cache(config, self.trace, self.executor, self.totals)
        self.scheduler = Scheduler(config, self.pool, self.cache, self.trace, self.totals)
        self.step_number = 1
        self._contents: dict[str, int] = {}
        self._started = False
        self._arrivals = Arrivals()
        self._aborts: dict[str, int] = {}
        self._ids: set[str] = set()
        self._live: dict[str, Request] = {}
        self._answers = Answers(self.executor)
        self._checker = Checker(self.pool, self.cache) if check else None
        self._emit = self.trace.emit
        jumps = Jumps(config, self.executor, self.scheduler.holdings, self.totals, self._emit, self._answers)
        self.constrained = Constrained(config, self.executor, self.scheduler.holdings, jumps, self._emit)
        self._emit(ev.RunStarted, pages=config.pages, page_size=config.page_size)
        self.trace.commit()

    # --- asking --------------------------------------------------------------------------------

    def submit(
        self,
        prompt: str | Sequence[int] | None = None,
        *,
        messages: Sequence[dict[str, str]] | None = None,
        id: str | None = None,
        at: float | None = None,
        at_step: int | None = None,
        after: str | None = None,
        think: float = 0.0,
        abort_at_step: int | None = None,
        fail_at_step: int | None = None,
        namespace: ev.Namespace | None = None,
        content_at: int = 0,
        priority: int = 0,
        store: bool = True,
        pin: int = 0,
        label: str | None = None,
        says: list[Any] | None = None,
        **params: Any,
    ) -> str:
        """Ask for a continuation of a text, of token ids or of chat messages; returns the request's id.

        Without `at` (seconds), `at_step` or `after` (another request's id) it arrives now. The content of its
        namespace stands for all of it, or for the tokens from `content_at` on: a picture after a text. `params`
        are SamplingParams fields. Raises SubmitError naming the field that is wrong.
        """
        name = id if id is not None else self._fresh_id()
        if not isinstance(name, str) or not name or name in self._ids:
            raise SubmitError(f"id: must be a new, non-empty string; got {name!r}")
        try:
            sampling = SamplingParams.model_validate(params)
        except ValidationError as error:
            raise SubmitError(describe(error)) from None
        check_times(at, at_step, after, think, abort_at_step, fail_at_step)
        if after is not None and after not in self._ids:
            raise SubmitError(f"after: {after!r} is no request of this run")
        namespace = namespace_of(namespace)
        check_facts(priority, store, label, pin)
        check_says(says, self.executor.vocab_size)
        ids = self._prompt_ids(prompt, messages)
        check_content(content_at, namespace, len(ids))
        content, number = None, 0
        if namespace is not None and content_at:
            content = namespace[2]
            namespace = namespace_of((*namespace[:2], None))
            number = self._content_number(str(content))
        request = Request(
            id=name, prompt=ids, params=sampling, arrived=0.0, index=0, namespace=namespace, priority=priority,
            content=content, content_at=content_at, content_number=number, store=store, pin=pin, label=label, says=says, fail_at_step=fail_at_step,
        )  # fmt: skip
        if sampling.stop and self.tokenizer is None:
            raise SubmitError("stop: needs a tokenizer, and this executor has none")
        self.constrained.check(sampling)
        self._foresee(request)
        self._ids.add(name)
        if abort_at_step is not None:
            self._aborts[name] = abort_at_step
        if after is not None and after not in self._live and not self._arrivals.expects(after):
            at, after = self.clock.now() + think, None  # it has ended already
        if at is None and at_step is None and after is None:
            self._arrive(request, self.clock.now())
        else:
            self._arrivals.add(request, at, at_step, after, think)
        return name

    def _content_number(self, content: str) -> int:
        number = self._contents.setdefault(content, len(self._contents) + 1)
        if number > CONTENTS:
            raise SubmitError(f"content: more than {CONTENTS} different contents in one run")
        return number

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

    def _fresh_id(self) -> str:
        number = len(self._ids) + 1
        while f"R{number}" in self._ids:
            number += 1
        return f"R{number}"

    def _prompt_ids(
        self, prompt: str | Sequence[int] | None, messages: Sequence[dict[str, str]] | None
    ) -> list[int]:
        if (prompt is None) == (messages is None):
            raise SubmitError("prompt: give either prompt (a text or token ids) or messages")
        if prompt is None or isinstance(prompt, str):
            if self.tokenizer is None:
                raise SubmitError("prompt: this executor has no tokenizer; give token ids")
            try:
                ids = self.tokenizer.chat(messages or []) if prompt is None else self.tokenizer.encode(prompt)
            except ValueError as error:
                raise SubmitError(f"{'messages' if prompt is None else 'prompt'}: {error}") from None
            return check_ids(ids, self.executor.vocab_size)
        return check_ids(prompt, self.executor.vocab_size)

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
        text = self._end(live, Status.ABORTED, "abort")
        self._emit(ev.RequestAborted, request=request, was=was, text=text)
        self.trace.commit()
        return True

    # --- running -------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether anything is waiting, running or still to come."""
        return bool(self._live or len(self._arrivals))

    def step(self) -> list[Progress] | None:
        """Plan and run one step; None when nothing is left to do.

        On a wall clock an engine that only waits for arrivals sleeps briefly and returns [].
        """
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
            if self._live:
                self.constrained.wait(COMPILING)
                return []
            if not len(self._arrivals):
                return None
            if not self._jump():
                return []
        self.cache.unpin(self.step_number)
        plan = self.scheduler.plan()
        progress = self._out_of_room(plan)
        if plan is not None:
            progress += [self._jumped_to_the_end(request) for request in self.constrained.jumps.extend(plan)]
        if plan is not None and plan.rows:
            self._tell_plan(plan)
            self.trace.commit()
            progress += self._run(plan)
        self._cap_cache()
        self.trace.commit()
        self.step_number += 1
        if self._checker:
            self._check()
        return progress

    def run(self) -> Iterator[list[Progress]]:
        """Step until nothing is left; yields each step's progress."""
        while (progress := self.step()) is not None:
            yield progress
        self.finish()

    def finish(self, stopped: bool = False) -> None:
        """End the run: aborts what is left when `stopped`, then tells `run.ended`."""
        if stopped:
            for request in list(self._live):
                self.abort(request)
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
            regex=request.params.regex, json_schema=self.constrained.schema(request.params),
        )  # fmt: skip
        refusal = self.scheduler.refusal(request, self.executor.max_positions)
        if refusal:
            reason, needed, available = refusal
            self._end(request, Status.REFUSED, reason)
            self._emit(ev.RequestRefused, request=request.id, reason=reason, needed=needed, available=available)
        else:
            self._live[request.id] = request
            self._answers.begin(request)
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
        self._end(request, Status.REFUSED, "grammar")
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
        )  # fmt: skip

    def _run(self, plan: Plan) -> list[Progress]:
        planned = self.clock.now()
        plan_seconds = round(planned - self.trace.t, 6)
        self._emit(ev.StepStarted)
        self.totals.forward_passes += 1
        try:
            for row in plan.rows:
                fail = row.request.fail_at_step
                if fail is not None and fail <= self.step_number:
                    raise RuntimeError(f"{row.request.id} was told to fail at step {fail}")
            result = self.executor.execute(plan.rows)
        except Exception as error:  # noqa: BLE001 - whatever the executor raises, its rows fail and the engine goes on
            return self._failed(plan, error)
        if self.clock.kind == "virtual":
            plan_seconds = self.config.clock.plan
        self.clock.spend(self.config.clock.plan + plan.load_seconds + result.forward_seconds)
        self.trace.t = self.clock.now()
        self.totals.steps += 1
        fresh = self._append(plan, result)
        self._emit(
            ev.StepFinished, emitted=[len(f) for f in fresh], ids=[i for f in fresh for i in f],
            plan_seconds=plan_seconds, forward_seconds=round(result.forward_seconds, 9), sample_seconds=result.sample_seconds,
        )  # fmt: skip
        results = {row.request.id: (row, new, got) for row, new, got in zip(plan.rows, fresh, result.rows, strict=True)}
        admitted = [r.id for r in self.scheduler.running if r.id in results]  # in the order of admission
        return [self._after(*results[name]) for name in admitted]

    def _append(self, plan: Plan, result: StepResult) -> list[list[int]]:
        """Move each row on by what it forwarded and sampled; returns its new ids."""
        fresh: list[list[int]] = []
        for row, sampled in zip(plan.rows, result.rows, strict=True):
            request = row.request
            request.kv += len(row.tokens) - row.drafted
            if request.status is Status.PREFILL and request.kv >= request.target:
                request.status = Status.DECODE
            new = self._answers.take(request, sampled.tokens) if sampled is not None else []
            request.kv += max(len(new) - 1, 0)
            self.totals.output_tokens += len(new)
            if sampled is not None and sampled.looks:
                self.constrained.keep(request, sampled.looks, len(new))
                jumped, forced = self.constrained.count(row, sampled.looks, new)
                self.totals.jumped_tokens += jumped
                self.totals.forced_tokens += forced
            fresh.append(new)
        return fresh

    def _after(self, row: Row, new: list[int], sampled: Sampled | None) -> Progress:
        """What follows from a step for one row: first token, text, storing, its end."""
        request = row.request
        if sampled is not None and sampled.error is not None:
            return self._fail(request, sampled.error)
        if new and request.first_token is None:
            request.first_token = self.trace.t
            self._emit(ev.RequestFirstToken, request=request.id, ttft=round(self.trace.t - request.arrived, 9))
        if sampled is not None and request.walk is not None:
            self.constrained.tell(row, sampled, new)
        elif new and sampled is not None and sampled.top is not None:
            self._emit(
                ev.TokenEmitted, request=request.id, position=len(request.output) - 1, token=new[0],
                logprob=sampled.logprob, top=sampled.top,
            )  # fmt: skip
        progress = self._progress(request, new)
        reason, matched = self._reason(request, new, sampled)
        if reason is not None:
            self._finish(request, reason, matched)
            progress.text, progress.reason = progress.text + (request.tail or ""), reason
        elif row.start + len(row.tokens) - row.drafted <= request.target:
            self.scheduler.holdings.share(request)
        return progress

    def _progress(self, request: Request, new: list[int]) -> Progress:
        """New ids and text, those of a jump before them."""
        jumped = self.constrained.jumps.jumped.pop(request.id, None)
        text = self._answers.fresh(request)
        if jumped is None:
            return Progress(request.id, new, text)
        return Progress(request.id, jumped.ids + new, text, replaced=jumped.replaced)

    def _jumped_to_the_end(self, request: Request) -> Progress:
        """A forced run that was appended without a pass has ended its request."""
        progress = self._progress(request, [])
        reason, matched = self._reason(request, progress.ids, None)
        assert reason is not None
        self._finish(request, reason, matched)
        progress.text, progress.reason = progress.text + (request.tail or ""), request.reason
        return progress

    def _reason(
        self, request: Request, new: list[int], sampled: Sampled | None
    ) -> tuple[str | None, str | int | None]:
        """Why a request ends now, if it does, and the stop string or id that ended it."""
        if request.status is not Status.DECODE:
            return None, None
        ended = self._answers.ended_by(request, new[-1] if new else None)
        if ended is not None and ended[0] == "stop":
            return ended
        if self.constrained.closed(request):
            return "stop", None  # also at the cap: the document is whole
        if ended is not None:
            return ended
        if sampled is not None and sampled.last:
            return "stop", None
        if request.size >= self.executor.max_positions:
            return "capacity", None
        return None, None

    def _finish(self, request: Request, reason: str, matched: str | int | None = None) -> None:
        """End a request that ran: store what it computed, give everything back."""
        self.scheduler.remove(request)
        self.scheduler.holdings.finish(request)
        text = self._end(request, Status.FINISHED, reason)
        incomplete, needed = self.constrained.missing(request)
        self._emit(
            ev.RequestFinished, request=request.id, reason=reason, outputs=len(request.output), text=text, matched_stop=matched,
            incomplete=incomplete, still_needed=needed,
        )  # fmt: skip

    def _end(self, request: Request, status: Status, reason: str) -> str | None:
        """Bookkeeping of every end; returns the request's whole text (None without a tokenizer)."""
        text = self._answers.finish(request)
        request.status, request.reason, request.finished = status, reason, self.trace.t
        setattr(self.totals, str(status), getattr(self.totals, str(status)) + 1)
        self.cache.ended(request)
        if request.pin and request.cached is not None:
            prompt = request.packed(len(request.prompt))
            self.cache.pin(prompt, request.namespace, self.step_number + request.pin, request)
        self._live.pop(request.id, None)
        self._aborts.pop(request.id, None)
        self._arrivals.ended(request.id, self.trace.t)
        self.executor.end(request)
        return text

    def _out_of_room(self, plan: Plan | None) -> list[Progress]:
        """End those for whom no page can be had, with the text they have so far.

        Not while a pin can give way: they are looked at again in the next step.
        """
        progress = []
        for request in plan.out_of_room if plan else []:
            if self.cache.give_way(request):
                continue
            self._finish(request, "capacity")
            progress.append(Progress(request.id, [], request.tail, "capacity"))
        return progress

    def _failed(self, plan: Plan, error: Exception) -> list[Progress]:
        """A forward raised: its rows end with an error, store nothing, and everything comes back."""
        self.trace.t = self.clock.now()
        message = f"{type(error).__name__}: {error}"
        if self._checker and isinstance(error, WrongSlot):
            self._checker.seen.append(Breach(message))
        self._emit(ev.ExecutorFailed, members=[r.request.id for r in plan.rows], error=message)
        return [self._fail(row.request, message) for row in plan.rows]

    def _fail(self, request: Request, message: str) -> Progress:
        """End one request with an error: nothing of it is stored, everything comes back."""
        request.error = message
        self.scheduler.remove(request)
        self.scheduler.holdings.drop(request)
        text = self._end(request, Status.FAILED, "error")
        self._emit(
            ev.RequestFinished, request=request.id, reason="error", outputs=len(request.output), text=text, error=message
        )
        progress = self._progress(request, [])
        progress.text, progress.reason = progress.text + request.tail, "error"
        return progress

    def _cap_cache(self) -> None:
        cap = self.config.cache_pages
        if cap is not None and self.cache.evictable > cap:
            self.scheduler.holdings.evict(self.cache.evictable - cap)

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
