"""The bench that experiments run on: it makes runs on the real engine, tells how far it is, and can be stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine import Engine, ModelError
from engine.config import config_from
from workbench import scenario as scenarios
from workbench.experiments.result import Chart, Experiment, Kind, Row
from workbench.runner import Run, run
from workbench.scenario import Scenario


class StoppedError(RuntimeError):
    """Somebody asked the experiment to stop."""


KEPT, KEPT_EVENTS = 12, 60_000
"""Most runs that one experiment keeps, and most events of all of them together; its main run may have"""
MAIN_EVENTS = 200_000
"""so many by itself."""

Started = Callable[[Engine], None]
"""Called with an engine that has not run yet."""


def outside_data() -> Path | None:
    """The folder of public data sets that $RADIX_DATA names; None where it is unset or not there."""
    named = os.environ.get("RADIX_DATA")
    folder = Path(named).expanduser() if named else None
    return folder if folder is not None and folder.is_dir() else None


@dataclass
class Bench:
    """What an experiment may use. `quick`: the small version, in seconds.

    `model` loads the model when one is needed; `perform` makes a run elsewhere, on a thread that owns the engine.
    `keeps`: remember the runs (`kept`, by what they were), as far as they are few and small, so that they can be opened afterwards.
    `file`: what the experiment is to run on instead of its own traffic; `data`: where public data sets lie.
    """

    quick: bool = False
    progress: Callable[[str], None] = lambda text: None
    stop: Callable[[], bool] = lambda: False
    model: Callable[[], Any] | None = None
    model_name: str = "embedded"
    perform: Callable[[Scenario, Started | None, int | None], Run] | None = None
    file: Path | None = None
    data: Path | None = field(default_factory=outside_data)
    keeps: bool = False
    kept: dict[str, Run] = field(default_factory=dict)

    def traffic_file(self, public: str, own: str) -> tuple[str, str]:
        """The file to run on, and what it is in words: the one named, else (full version) the public one, else our own set."""
        if self.file is not None:
            return str(self.file), f"the file {self.file.name}"
        if not self.quick and self.data is not None and (self.data / public).exists():
            return str(self.data / public), f"{public} of $RADIX_DATA"
        return own, f"the project's own small set {own}" + ("" if self.quick else ", as $RADIX_DATA holds no other")

    def run(
        self, data: dict[str, Any], what: str, started: Started | None = None, logprobs: int | None = None, **engine: Any
    ) -> Run:
        """One run of a scenario, with some of its engine's keys changed. Raises StoppedError when asked to stop.

        `logprobs`: how many of a token's best are told with it.
        """
        settings = {f"engine.{key}": value for key, value in engine.items()}
        if data["engine"].get("executor") == "model":
            settings["engine.model"] = self.model_name
        return self.perform_one(scenarios.parse(data, settings, files=True), what, started, logprobs)

    def again(self, scenario: Scenario, what: str, **engine: Any) -> Run:
        """A run of the same requests, with some of the engine's keys changed."""
        config = config_from(scenario.engine.model_dump() | engine)
        return self.perform_one(scenario.model_copy(update={"engine": config}), what)

    def perform_one(
        self, scenario: Scenario, what: str, started: Started | None = None, logprobs: int | None = None
    ) -> Run:
        """One run of a scenario as it is. Raises StoppedError when asked to stop."""
        if self.stop():
            raise StoppedError
        self.progress(what)
        done = (self.perform or self._here)(scenario, started, logprobs)
        if self.stop():
            raise StoppedError
        self._keep(what, done)
        return done

    def _keep(self, what: str, done: Run) -> None:
        events = sum(len(run.trace) for run in self.kept.values()) + len(done.trace)
        if self.keeps and len(self.kept) < KEPT and events <= KEPT_EVENTS and "warming up" not in what:
            self.kept[what] = done

    def _here(self, scenario: Scenario, started: Started | None, logprobs: int | None) -> Run:
        loaded = None
        if scenario.engine.executor == "model":
            if self.model is None:
                raise ModelError("this experiment runs a model, and none was given")
            loaded = self.model()
        return run(scenario, loaded=loaded, stop=self.stop, check=self.quick, started=started, logprobs=logprobs)


@dataclass
class Findings:
    """What one module found; `main` is the run that can be opened elsewhere, None where the engine did not run."""

    setup: str
    rows: list[Row]
    main: Run | None = None
    differs_because: str | None = None
    charts: list[Chart] = field(default_factory=list)


@dataclass(frozen=True)
class Plan:
    """One experiment: its name, the question it answers, the kind of its figures, and rough durations."""

    name: str
    question: str
    kind: Kind
    quick: str
    full: str
    find: Callable[[Bench], Findings]
    takes: str | None = None
    """What kind of file it can run on; None: it makes its own traffic."""

    def carry_out(self, bench: Bench) -> Experiment:
        """Run it. Raises StoppedError, or what a run raises."""
        if bench.file is not None and self.takes is None:
            raise ValueError(f"--file: {self.name} makes its own traffic and takes no file")
        start = time.perf_counter()
        found = self.find(bench)
        if bench.keeps and found.main is not None and all(run is not found.main for run in bench.kept.values()) and len(found.main.trace) <= MAIN_EVENTS:
            bench.kept = {found.main.scenario.name: found.main} | bench.kept
        return Experiment(
            name=self.name, question=self.question, setup=found.setup, quick=bench.quick, rows=found.rows,
            differs_because=found.differs_because, seconds=round(time.perf_counter() - start, 3),
            scenario=scenarios.dump(found.main.scenario) if found.main else None, charts=found.charts,
            run=found.main.report if found.main else None,
        )  # fmt: skip
