"""Fleet: several engines on one virtual clock behind a router, with the face of one engine.

Whatever happens next on any of them happens next: an arrival is routed at its time, a step is looked at when its
forward ends, and the replica plans its next one then. So the trace's times never go back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from engine import events as ev
from engine.arrivals import Arrivals
from engine.asking import SubmitError
from engine.config import EngineConfig
from engine.engine import Engine
from engine.executor import make_executor
from engine.fleet.handover import GOES_ON, Handover
from engine.fleet.router import Choice, Router
from engine.fleet.voice import Voice
from engine.outcomes import Progress
from engine.plugs import NOTHING, Plugs
from engine.request import Request


def open_engine(
    config: EngineConfig, *, loaded: Any = None, trace: ev.Trace | None = None, check: bool = False, plugs: Plugs = NOTHING
) -> Engine | Fleet:
    """What a configuration asks for: one engine, or a fleet of them. Only one engine takes `plugs`."""
    plugs.check(config)
    if config.replicas > 1:
        return Fleet(config, loaded=loaded, trace=trace, check=check)
    return Engine(config=config, loaded=loaded, trace=trace, check=check, plugs=plugs)


class Fleet:
    """`config.replicas` engines of `config.pages` pages each. `engines[i]` is replica i."""

    def __init__(self, config: EngineConfig, *, loaded: Any = None, trace: ev.Trace | None = None, check: bool = False) -> None:
        self.config = config
        self.trace = ev.Trace() if trace is None else trace
        self._voices = [Voice(self.trace, replica) for replica in range(config.replicas)]
        self.engines: list[Engine] = []
        for voice in self._voices:
            desk = self.engines[0].desk if self.engines else None
            executor = make_executor(config, loaded)
            self.engines.append(Engine(config=config, executor=executor, trace=voice, check=check, desk=desk))
        self.executor = self.engines[0].executor
        self.tokenizer = self.engines[0].tokenizer
        self.router = Router(config, self.trace.header.seed)
        self.t = 0.0
        """Simulated seconds since the start."""
        self._arrivals = Arrivals()
        self._aborts: dict[str, int] = {}
        self._home: dict[str, int] = {}
        """Replica by request, for those that were routed and have not ended."""
        self._handover: Handover | None = None
        if config.prefill_replicas:
            rates = self.executor.rates
            self._handover = Handover(rates["kv_bytes"] / rates["host_bandwidth"])
        for engine in self.engines:
            engine.on_end = self._ended

    # --- asking --------------------------------------------------------------------------------

    def submit(self, prompt: str | Sequence[int] | None = None, **asked: Any) -> str:
        """As `Engine.submit`; it is routed when it arrives. Raises SubmitError: also for `at_step`, as replicas count their own steps."""
        if asked.get("at_step") is not None:
            raise SubmitError("at_step: replicas count their steps each for itself; give at (seconds) or after")
        request, when = self.engines[0].make(prompt, **asked)
        if when.abort_at_step is not None:
            self._aborts[request.id] = when.abort_at_step
        at, after = when.at, when.after
        if after is not None and after not in self._home and not self._arrivals.expects(after):
            at, after = self.t + when.think, None
        if at is None and after is None:
            at = self.t
        self._arrivals.add(request, at, None, after, when.think)
        return request.id

    def abort(self, request: str) -> bool:
        """Take a request back, in whatever state it is, and whichever half of it. False (and no harm) when there is none such."""
        for half in (request, request + GOES_ON):
            home = self._home.get(half)
            if home is not None:
                return self.engines[home].abort(half)
            coming = self._arrivals.forget(half)
            if coming is not None:
                self._over(coming)
                return True
        return False

    # --- running -------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether anything is waiting, running or still to come."""
        return bool(self._home or len(self._arrivals) or any(e.flight is not None for e in self.engines))

    def step(self) -> list[Progress] | None:
        """Go on to what happens next, on whichever replica; None when nothing is left to do."""
        flying = [(e.flight.ends, replica) for replica, e in enumerate(self.engines) if e.flight is not None]
        _, arrives = self._arrivals.next()
        if not flying and arrives is None:
            return None
        if arrives is None or (flying and min(flying)[0] < arrives):
            self.t, replica = min(flying)
            return self.engines[replica].land() + self._go_on(replica)
        self.t = max(self.t, arrives)
        replicas = [self._route(request, due) for request, due in self._arrivals.due(0, self.t)]
        return [p for replica in dict.fromkeys(replicas) if self.engines[replica].flight is None for p in self._go_on(replica)]

    def run(self) -> Iterator[list[Progress]]:
        """Step until nothing is left; yields each step's progress."""
        while (progress := self.step()) is not None:
            yield progress
        self.finish()

    def finish(self, stopped: bool = False) -> None:
        """End the run on every replica; what is left is aborted when `stopped`."""
        if stopped:
            for engine in self.engines:
                engine.clock.reach(self.t)
                engine.abort_all()
            for engine in sorted((e for e in self.engines if e.flight is not None), key=lambda e: e.flight.ends):  # type: ignore[union-attr]
                engine.land()
                self.t = max(self.t, engine.clock.now())
        for engine in self.engines:
            engine.clock.reach(self.t)
            engine.finish(stopped)

    def snapshots(self) -> list[dict[str, Any]]:
        """Each replica's state (see `Engine.snapshot`)."""
        return [engine.snapshot() for engine in self.engines]

    # --- inside --------------------------------------------------------------------------------

    def _route(self, request: Request, due: float) -> int:
        loads = [engine.outstanding for engine in self.engines]
        transfer = self._handover.coming(request) if self._handover is not None else None
        if transfer is None:
            choice = self.router.choose(request, loads[: self.router.replicas])
        else:
            behind = loads[self.router.replicas :]
            choice = Choice(self.router.replicas + behind.index(min(behind)), "least loaded of those that decode", loads)
        if self._handover is not None and transfer is None:
            self._handover.first_half(request)
        self._home[request.id] = choice.chosen
        voice = self._voices[choice.chosen]
        voice.t, voice.step = self.t, self.engines[choice.chosen].step_number
        voice.emit(
            ev.RequestRouted, request=request.id, chosen=choice.chosen, reason=choice.reason, loads=choice.loads,
            matches=choice.matches, **(transfer.told if transfer is not None else {}),
        )  # fmt: skip
        # Not committed: a step may be in flight there, whose grammars are ahead of what was told of them.
        self.engines[choice.chosen].expect(request, due, self._aborts.pop(request.id, None))
        return choice.chosen

    def _go_on(self, replica: int) -> list[Progress]:
        """Let an engine plan until a step is in flight or nothing is left for it to do."""
        engine = self.engines[replica]
        engine.clock.reach(self.t)
        out: list[Progress] = []
        while engine.flight is None and (progress := engine.begin()) is not None:
            out += progress
        return out

    def _over(self, request: Request) -> None:
        """Nothing more comes of a request: those that waited for it may arrive."""
        self._arrivals.ended(request.id.removesuffix(GOES_ON) if request.received else request.id, self.t)

    def _ended(self, request: Request) -> None:
        home = self._home.pop(request.id, None)
        rest = self._handover.second_half(request, home) if self._handover is not None and home is not None else None
        if rest is None:
            self._over(request)
            return
        transfer = self._handover.coming(rest)  # type: ignore[union-attr]
        assert transfer is not None
        self.engines[0].desk.ids.add(rest.id)
        self._arrivals.add(rest, self.t + transfer.seconds, None, None, 0.0)
