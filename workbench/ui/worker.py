"""The one thread that owns the engine, and the one that loads the model behind the open page."""

from __future__ import annotations

import logging
import queue
import threading
from dataclasses import dataclass
from typing import Any

from engine import events as ev
from workbench import presets
from workbench.estimate import Rates, measure
from workbench.runner import run as run_scenario
from workbench.scenario import Scenario, ScenarioError
from workbench.ui.runs import Run, Runs

log = logging.getLogger("workbench")


@dataclass
class ModelState:
    """How far the model is: `loading`, `ready` or `failed`."""

    name: str
    status: str = "loading"
    stage: str = "starting"
    fraction: float | None = None
    error: str | None = None
    loaded: Any = None
    rates: Rates | None = None


class Worker:
    """Runs queued scenarios one after the other on fresh engines that share one loaded model."""

    def __init__(self, runs: Runs, model: str, device: str = "auto", dtype: str = "auto") -> None:
        self.runs = runs
        self.model = ModelState(model)
        self._device, self._dtype = device, dtype
        self._jobs: queue.Queue[Run | None] = queue.Queue()
        self._threads = [
            threading.Thread(target=self._load, name="model-loader", daemon=True),
            threading.Thread(target=self._work, name="engine", daemon=True),
        ]

    def start(self) -> None:
        """Start loading and serving."""
        for thread in self._threads:
            thread.start()

    def offer(self, run: Run) -> None:
        """Queue a run. Raises BusyError when too many wait, ScenarioError when it needs a model that is not there."""
        model = self.model
        assert run.scenario is not None
        if run.scenario.engine.executor == "model" and model.status != "ready":
            why = model.error if model.status == "failed" else f"it is still loading ({model.stage})"
            raise ScenarioError(f"This preset needs the model: {why}. The scripted presets run without it.")
        self.runs.add(run)
        self._jobs.put(run)

    def recorded(self, name: str) -> Run | None:
        """The recorded run of a preset, read once; None where none was recorded."""
        run = self.runs.get(f"recorded-{name}")
        path = presets.recorded_path(name)
        if run is None and path is not None:
            run = Run.of_trace(ev.Trace.read(path), "recorded", f"recorded-{name}")
            self.runs.add(run)
        return run

    def close(self) -> None:
        """Finish the current run and stop."""
        self._jobs.put(None)

    def _load(self) -> None:
        state = self.model

        def progress(stage: str, fraction: float | None) -> None:
            state.stage, state.fraction = stage, fraction

        try:
            from engine import load_model  # torch is imported here, behind the open page

            loaded = load_model(state.name, device=self._device, dtype=self._dtype, progress=progress)
            progress("measuring how fast this machine is", None)
            state.rates = measure(loaded)
        except Exception as error:  # noqa: BLE001 - the app stays open on recorded runs and says why
            state.error, state.status = str(error) or type(error).__name__, "failed"
            log.warning("the model could not be loaded: %s", state.error)
            return
        state.loaded, state.status, state.stage = loaded, "ready", "ready"
        log.info("the model is ready: %s", state.name)

    def _work(self) -> None:
        while (run := self._jobs.get()) is not None:
            if run.stop.is_set() or run.scenario is None:
                run.end(None, "stopped")
                continue
            try:
                finished = run_scenario(
                    run.scenario, loaded=self.model.loaded if run.scenario.engine.executor == "model" else None,
                    sinks=[run.sink], stop=run.halted, started=run.started, logprobs=_logprobs(run.scenario),
                )  # fmt: skip
                run.end(finished, "stopped" if run.stop.is_set() else "done")
            except Exception as error:
                log.exception("run %s failed", run.id)
                run.end(None, "failed", str(error) or type(error).__name__)


def _logprobs(scenario: Scenario) -> int | None:
    """The top two of each token, so that a differing answer can be told from a near tie."""
    return 2 if scenario.engine.executor == "model" else None
