"""The one thread that owns the engine, and the one that loads models behind the open page."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from weakref import WeakKeyDictionary

from engine import ModelError
from engine import events as ev
from workbench import presets
from workbench.estimate import measure
from workbench.runner import run as run_scenario
from workbench.scenario import Scenario, ScenarioError
from workbench.times import uses_model
from workbench.ui.runs import BusyError, Run, Runs
from workbench.ui.serving import OFFERED, ModelState, Offer, check_model, offer_of

log = logging.getLogger("workbench")

UNWATCHED = 30.0
"""Seconds that a run may go on without a viewer while another one waits for the engine."""


class LoadStopped(ModelError):  # noqa: N818 - nothing went wrong
    """Somebody asked for a download to be stopped."""


class Worker:
    """Runs queued scenarios one after the other on fresh engines that share one loaded model.

    Another model may be asked for at any time. It is downloaded while the one in use goes on serving; then the run in
    progress ends, the new one is loaded beside the old and takes its place. Runs that need a model wait meanwhile,
    so that nothing else is going on while speeds are measured; scripted runs do not wait.
    """

    def __init__(
        self, runs: Runs, model: str, device: str = "auto", dtype: str = "auto", offered: Sequence[Offer] = OFFERED
    ) -> None:
        self.runs = runs
        first = offer_of(model)
        self.offers = [*offered, *([] if first in offered else [first])]
        self.model = ModelState(first, device, dtype)
        self.coming: ModelState | None = None
        """The model that is on its way, or did not come; None: nothing was asked for since the one in use."""
        self._turn = threading.Condition()
        self._jobs: list[Run] = []
        self._served: WeakKeyDictionary[Run, int] = WeakKeyDictionary()
        self._computing = self._loading = self._closed = False
        self.running: Run | None = None
        self._alone: tuple[Run | None, float] = (None, 0.0)
        self._serials = count(1)
        self._wanted: queue.Queue[ModelState] = queue.Queue()
        self._wanted.put(self.model)
        self._threads = [
            threading.Thread(target=self._load, name="model-loader", daemon=True),
            threading.Thread(target=self._work, name="engine", daemon=True),
        ]

    def start(self) -> None:
        """Start loading and serving."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Finish the current run and stop."""
        with self._turn:
            self._closed = True
            self._turn.notify_all()

    # --- runs ----------------------------------------------------------------------------------

    def offer(self, run: Run, beside: Run | None = None) -> None:
        """Queue a run; `beside`: a run that it will be compared with, so that the same model has to serve both.

        Raises BusyError when too many wait, ScenarioError when it needs a model that is not there.
        """
        assert run.scenario is not None
        model = self.model
        if needs_model(run) and model.status != "ready":
            why = model.error if model.status == "failed" else f"it is still loading ({model.stage})"
            raise ScenarioError(f"This run needs the model: {why}. Scripted runs go without it.")
        self._check(run, beside)
        self.runs.add(run)
        with self._turn:
            if beside is not None and beside in self._served:
                self._served[run] = self._served[beside]
            self._jobs.append(run)
            self._turn.notify_all()

    def waits_for(self, run: Run) -> str:
        """What a queued run waits for."""
        coming = self.coming
        if self._loading and coming is not None and needs_model(run):
            return f"Waiting for {coming.offer.label}, which takes over first: {coming.progress}"
        now = self.running
        if now is None or now.ended:
            return "Waiting for the engine…"
        if self._given_up(now):
            return "Waiting for the engine: a run that nobody watches any more is being stopped"
        name = now.scenario.name if now.scenario else "another run"
        return f"Waiting for the engine: it runs {name}, {now.reached} so far"

    def _given_up(self, run: Run) -> bool:
        """Whether the run in progress was left alone for so long that it makes way for those who wait."""
        now = time.monotonic()
        if run.feed.viewers or self._alone[0] is not run:
            self._alone = (run, now)
        elif now - self._alone[1] > UNWATCHED:
            run.error = f"nobody watched it for {UNWATCHED:.0f} s and another run was waiting."
            run.halt()
            return True
        return False

    def recorded(self, name: str) -> Run | None:
        """The recorded run of a preset, read once; None where none was recorded."""
        run = self.runs.get(f"recorded-{name}")
        path = presets.recorded_path(name)
        if run is None and path is not None:
            run = Run.of_trace(ev.Trace.read(path), "recorded", f"recorded-{name}")
            self.runs.add(run)
        return run

    def _check(self, run: Run, beside: Run | None = None) -> None:
        assert run.scenario is not None
        check_model(run.scenario, self.model, self.offers)
        if self._served.get(beside or run, self.model.serial) != self.model.serial:
            raise ScenarioError(f"the model was changed to {self.model.shown} since; run both again, so that one model serves both")

    def _next(self) -> Run | None:
        """The next run whose turn it is: the first of those that need not wait for a model."""
        with self._turn:
            while not self._closed:
                for run in self._jobs:
                    if run.stop.is_set() or not (self._loading and needs_model(run)):
                        self._jobs.remove(run)
                        self._computing = needs_model(run)
                        return run
                # A stopped run is not told to us: look again before long.
                self._turn.wait(0.2 if self._jobs else None)
            return None

    def _work(self) -> None:
        while (run := self._next()) is not None:
            if run.stop.is_set() or run.scenario is None:
                run.end(None, "stopped")
            else:
                self.running = run
                try:
                    self._run(run, run.scenario)
                except Exception as error:
                    if not isinstance(error, ScenarioError):
                        log.exception("run %s failed", run.id)
                    run.end(None, "failed", str(error) or type(error).__name__)
                self.running = None
            with self._turn:
                self._computing = False
                self._turn.notify_all()

    def _run(self, run: Run, scenario: Scenario) -> None:
        model = self.model if needs_model(run) else None
        if model is not None:
            self._check(run)  # the model may have changed while the run waited
            self._served[run] = model.serial
        finished = run_scenario(
            scenario, loaded=model.loaded if model else None,
            sinks=[run.sink], stop=run.halted, started=run.started, logprobs=run.few if model else None,
        )  # fmt: skip
        run.end(finished, "stopped" if run.stop.is_set() else "done")

    # --- the model -----------------------------------------------------------------------------

    def choose(self, offer: Offer, device: str, dtype: str) -> None:
        """Ask for another model, device or dtype. Raises BusyError while another is on its way."""
        with self._turn:
            going = self.on_its_way
            if going is not None:
                raise BusyError(f"{going.offer.label} is on its way ({going.progress}); wait until it is there")
            state = ModelState(offer, device, dtype, serial=next(self._serials))
            if self.model.status == "ready":
                self.coming = state
            else:
                self.model = state
            self._wanted.put(state)

    @property
    def on_its_way(self) -> ModelState | None:
        """The model that is being downloaded or loaded now."""
        latest = self.coming or self.model
        return latest if latest.status == "loading" else None

    def stop_loading(self) -> None:
        """Stop the download of a model; the one in use stays."""
        going = self.on_its_way
        if going is not None:
            going.stopped = True

    def _load(self) -> None:
        while not self._closed:
            state = self._wanted.get()
            try:
                self._bring(state)
            except Exception as error:  # noqa: BLE001 - the app stays open on what it has and says why
                state.error, state.status = str(error) or type(error).__name__, "failed"
                if not isinstance(error, LoadStopped):
                    log.warning("the model could not be loaded: %s", state.error)
            with suppress(ImportError):
                from engine import give_back

                give_back()

    def _bring(self, state: ModelState) -> None:
        def progress(stage: str, fraction: float | None) -> None:
            if state.stopped:
                raise LoadStopped(f"the download of {state.offer.label} was stopped")
            state.stage, state.fraction = stage, fraction

        from engine import fetch_model, load_model  # torch is imported here, behind the open page

        fetch_model(state.name, progress)
        with self._engine_at_rest(progress):
            loaded = load_model(state.name, device=state.device, dtype=state.dtype, progress=progress)
            progress("measuring how fast this machine is", None)
            state.ready(loaded, measure(loaded))
            old, self.model = self.model, state
            self.coming = None
            old.loaded = old.loaded if old is state else None
        log.info("the model is ready: %s", state.shown)

    @contextmanager
    def _engine_at_rest(self, progress: Callable[[str, float | None], None]) -> Iterator[None]:
        """Wait until no run computes, and let none begin."""
        try:
            with self._turn:
                self._loading = True
                if self._computing:
                    progress("waiting for the run in progress", None)
                self._turn.wait_for(lambda: not self._computing)
            yield
        finally:
            with self._turn:
                self._loading = False
                self._turn.notify_all()


def needs_model(run: Run) -> bool:
    """Whether a run computes with the model, or simulates this machine as it is with the model."""
    return run.scenario is not None and uses_model(run.scenario.engine)
