"""Runs: what the app has run, is running or will run. Many viewers may watch one.

Events are encoded once, by the worker's thread, and appended; readers only ever read up to a length that
they have seen, so no lock is needed between the two.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from engine import Engine
from engine import events as ev
from workbench.explain import Answer, RunExplainer
from workbench.report import Report
from workbench.runner import Run as Finished
from workbench.runner import token_ids
from workbench.scenario import Scenario
from workbench.ui.feed import Feed

KEPT = 40
"""Runs remembered; the oldest ended ones are forgotten."""
HELD = 64_000_000
"""Bytes of events remembered, as JSON (memory is some four times that); beyond it the oldest ended runs are forgotten too."""
QUEUED = 6
"""Runs that may wait for the engine."""
PATIENCE = 120.0
"""Seconds that a run in single steps waits for the next one before it is stopped: others want the engine too."""


class BusyError(RuntimeError):
    """Too many runs are waiting."""


class Gate:
    """Lets a run go on: freely, or one step at a time."""

    def __init__(self, stepping: bool) -> None:
        self._change = threading.Condition()
        self._permits = 0
        self._open = not stepping

    def step(self) -> None:
        """Let one more step through."""
        with self._change:
            self._permits += 1
            self._change.notify_all()

    def open(self) -> None:
        """Let everything through from now on."""
        with self._change:
            self._open = True
            self._change.notify_all()

    @property
    def stepping(self) -> bool:
        """Whether every step has to be asked for."""
        return not self._open

    def wait(self) -> bool:
        """Wait for leave to go on; False when nobody asked for a step in time."""
        with self._change:
            if not self._change.wait_for(lambda: self._open or self._permits > 0, PATIENCE):
                return False
            if not self._open:
                self._permits -= 1
            return True


@dataclass(eq=False)
class Run:
    """One run of a scenario and all that a viewer needs: header, event lines, token texts, how it ended."""

    scenario: Scenario | None
    """None for an uploaded or recorded trace."""
    id: str = field(default_factory=lambda: secrets.token_urlsafe(8))
    status: str = "queued"
    """`queued`, `running`, `done`, `stopped` or `failed`."""
    error: str | None = None
    header: bytes = b""
    lines: list[bytes] = field(default_factory=list)
    size: int = 0
    """Bytes of all lines."""
    texts: list[tuple[int, str]] = field(default_factory=list)
    finished: Finished | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    gate: Gate = field(default_factory=lambda: Gate(False))
    few: int = 2
    """The model's top few that are told of each token."""
    kind: str = "live"
    """`live`, `recorded` or `uploaded`."""
    feed: Feed = field(init=False)
    _engine: Any = None
    _explainer: RunExplainer | None = None
    _asking: threading.Lock = field(default_factory=threading.Lock)
    _known: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.feed = Feed(self)

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self.status in ("done", "stopped", "failed")

    @property
    def reached(self) -> str:
        """How far it has come, counted as the scrubber does: the number of its newest event; the first is 0."""
        return f"event {len(self.lines) - 1:,}" if self.lines else "nothing yet"

    @property
    def report(self) -> Report | None:
        """The report, once it is there."""
        return self.finished.report if self.finished else None

    @classmethod
    def of_trace(cls, trace: ev.Trace, kind: str, id: str | None = None) -> Run:
        """A run that is over: a recorded or uploaded trace."""
        run = cls(None, kind=kind, status="done", **({"id": id} if id else {}))
        run.header = ev.encode(trace.header)
        run.texts = [(int(i), t) for i, t in trace.header.texts.items() if i.isdecimal()]
        run.lines = [ev.encode(e) for e in trace.events]
        run.size = sum(map(len, run.lines))
        return run

    def halted(self) -> bool:
        """Asked by the engine's thread after each step: stop now? Waits here for leave in single steps."""
        if not self.stop.is_set() and not self.gate.wait():
            self.stop.set()
        return self.stop.is_set()

    def halt(self) -> None:
        """Stop after the present step."""
        self.stop.set()
        self.gate.open()

    def trace(self) -> ev.Trace:
        """Header and events so far, with the token texts, as a trace."""
        lines = list(self.lines)
        trace = ev.Trace.parse([self.header, *lines])
        trace.header.texts = {str(i): t for i, t in self.texts}
        return trace

    def why(self, seq: int, selection: dict[str, Any], replica: int | None = None) -> Answer:
        """Why: an answer for a selection (node, request or page) or the event at `seq`; see `RunExplainer.ask`. Raises ExplainError."""
        with self._asking:
            if self._explainer is None:
                self._explainer = RunExplainer(ev.decode_header(self.header))
            known = len(self._explainer)
            if known < len(self.lines):
                self._explainer.extend([ev.decode(line) for line in self.lines[known:]])
            self._explainer.header.texts.update({str(i): t for i, t in self.texts})
            return self._explainer.ask(seq, selection, replica)

    def started(self, engine: Engine) -> None:
        """The engine is ready: its header is known from here on."""
        self._engine = engine
        self.header = ev.encode(engine.trace.header)
        self.status = "running"
        self.feed.more()

    def sink(self, batch: list[ev.Event]) -> None:
        """Take in the events of one commit; token texts go first, so that no viewer meets a nameless id."""
        tokenizer = self._engine.tokenizer if self._engine is not None else None
        if tokenizer is not None:
            fresh = {i for event in batch for i in token_ids(event)} - self._known
            if fresh:
                self._known |= fresh
                self.texts += [(int(i), text) for i, text in tokenizer.texts(sorted(fresh)).items()]
        lines = [ev.encode(event) for event in batch]
        self.lines += lines
        self.size += sum(map(len, lines))
        self.feed.more()

    def end(self, finished: Finished | None, status: str, error: str | None = None) -> None:
        """The worker is through with it."""
        self.finished, self.error, self._engine = finished, error or self.error, None
        self.status = status
        self.feed.more()


class Runs:
    """All runs by id, a bounded number of them."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, run: Run) -> None:
        """Remember a run. Raises BusyError when too many are waiting already."""
        with self._lock:
            if run.status == "queued" and sum(r.status == "queued" for r in self._runs.values()) >= QUEUED:
                raise BusyError(f"{QUEUED} runs are waiting already; stop one or wait for the engine")
            self._runs[run.id] = run
            for old in [r for r in self._runs.values() if r.ended and r.kind != "recorded" and r is not run]:
                if len(self._runs) <= KEPT and sum(r.size for r in self._runs.values()) <= HELD:
                    break
                del self._runs[old.id]

    def drop(self, id: str) -> None:
        """Forget a run that nobody will look at again."""
        with self._lock:
            self._runs.pop(id, None)

    def get(self, id: str) -> Run | None:
        """A run by id, or None."""
        return self._runs.get(id)
