"""The worker: one model in use, another that takes over between two runs, and what is said meanwhile."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import engine
from engine import ModelError
from tests.engine.tiny_files import tiny_files
from workbench import scenario as scenarios
from workbench.estimate import Rates
from workbench.scenario import ScenarioError
from workbench.ui import head
from workbench.ui import worker as workers
from workbench.ui.experiments_page import ExperimentsPage
from workbench.ui.model_picker import ModelPicker
from workbench.ui.runs import BusyError, Gate, Run, Runs
from workbench.ui.serving import OFFERED, ModelState, Offer, check_model, offer_of
from workbench.ui.worker import Worker

SHORT: dict[str, Any] = {"engine": {"executor": "model", "pages": 64}, "requests": [{"prompt": "to be", "max_new_tokens": 8, "ignore_eos": True}]}
SCRIPTED: dict[str, Any] = {"engine": {"pages": 64}, "requests": [{"tokens": "A8", "max_new_tokens": 2}]}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two tiny models of this machine."""
    base = tmp_path_factory.mktemp("models")
    return {name: tiny_files(base / name, seed) for seed, name in enumerate(("tiny-a", "tiny-b"))}


@pytest.fixture
def make(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Worker]]:
    """`make()` starts a worker on tiny-a that also offers tiny-b; speeds are made up."""
    speeds = iter(range(1, 100))
    monkeypatch.setattr(workers, "measure", lambda loaded: Rates(next(speeds), 1.0))
    started: list[Worker] = []

    def make() -> Worker:
        worker = Worker(Runs(), str(folders["tiny-a"]), offered=[*OFFERED, Offer(str(folders["tiny-b"]), "tiny-b")])
        started.append(worker)
        worker.start()
        until(lambda: worker.model.status != "loading")
        assert worker.model.status == "ready", worker.model.error
        return worker

    yield make
    for worker in started:
        worker.close()


class Held:
    """A `load_model` that waits for leave before it loads, or fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go, self.reached, self.error = threading.Event(), threading.Event(), None
        load = engine.load_model

        def held(name: str, **options: Any) -> Any:
            options["progress"](f"loading {Path(name).name}", 0.5)
            self.reached.set()
            assert self.go.wait(20)
            if self.error is not None:
                raise self.error
            return load(name, **options)

        monkeypatch.setattr(engine, "load_model", held, raising=False)


@pytest.fixture
def held(make: Callable[[], Worker], monkeypatch: pytest.MonkeyPatch) -> tuple[Worker, Held]:
    """A worker on tiny-a, and the next loading in our hands."""
    worker = make()
    return worker, Held(monkeypatch)


def until(true: Callable[[], Any]) -> None:
    """Wait for something that another thread does."""
    for _ in range(4000):
        if true():
            return
        time.sleep(0.005)
    raise AssertionError("it did not happen within 20 s")


def offer(worker: Worker, label: str) -> Offer:
    return next(o for o in worker.offers if o.label == label)


def run_of(data: dict[str, Any], **options: Any) -> Run:
    return Run(scenarios.parse(data), **options)


def served_by(run: Run) -> str | None:
    assert run.finished is not None, run.error
    return run.finished.trace.header.model


def test_another_model_takes_over_and_the_old_ones_memory_is_given_back(make: Callable[[], Worker]) -> None:
    worker = make()
    before, speed = weakref.ref(worker.model.loaded.model), worker.model.rates
    first = run_of(SHORT)
    worker.offer(first)
    until(lambda: first.ended)
    worker.choose(offer(worker, "tiny-b"), "cpu", "bfloat16")
    until(lambda: worker.model.shown == "tiny-b")
    assert (worker.model.runs_on, worker.model.runs_in) == ("cpu", "bfloat16")
    assert worker.model.rates != speed
    assert worker.on_its_way is None and worker.coming is None
    second = run_of(SHORT)
    worker.offer(second)
    until(lambda: second.ended)
    assert (served_by(first), served_by(second)) == ("tiny-a", "tiny-b")
    until(lambda: before() is None)


def test_a_run_in_progress_ends_on_the_old_model_and_the_next_says_what_it_waits_for(held: tuple[Worker, Held]) -> None:
    worker, loading = held
    going, waiting, scripted = run_of(SHORT, gate=Gate(True)), run_of(SHORT), run_of(SCRIPTED)
    worker.offer(going)
    until(lambda: going.status == "running")
    worker.choose(offer(worker, "tiny-b"), "auto", "auto")
    until(lambda: worker.coming is not None and worker.coming.stage == "waiting for the run in progress")
    assert not loading.reached.is_set()
    worker.offer(waiting)
    going.gate.open()
    assert loading.reached.wait(20)
    until(lambda: "loading tiny-b" in worker.waits_for(waiting))
    assert worker.waits_for(waiting) == "Waiting for tiny-b, which takes over first: loading tiny-b 50%"
    worker.offer(scripted)
    until(lambda: scripted.ended)
    assert worker.waits_for(scripted) == "Waiting for the engine…"
    assert (waiting.status, served_by(going), worker.model.shown) == ("queued", "tiny-a", "tiny-a")
    loading.go.set()
    until(lambda: waiting.ended)
    assert served_by(waiting) == "tiny-b"


def test_a_waiting_run_can_be_stopped(held: tuple[Worker, Held]) -> None:
    worker, loading = held
    worker.choose(offer(worker, "tiny-b"), "auto", "auto")
    assert loading.reached.wait(20)
    waiting = run_of(SHORT)
    worker.offer(waiting)
    waiting.halt()
    until(lambda: waiting.status == "stopped")
    loading.go.set()


def test_when_loading_fails_the_old_model_stays_in_use(held: tuple[Worker, Held], caplog: pytest.LogCaptureFixture) -> None:
    worker, loading = held
    loading.error = ModelError("out of memory while loading tiny-b")
    loading.go.set()
    worker.choose(offer(worker, "tiny-b"), "auto", "auto")
    until(lambda: worker.coming is not None and worker.coming.status == "failed")
    words = ModelPicker(worker).tell()[0]
    assert "tiny-b was not loaded: out of memory while loading tiny-b. tiny-a stays in use." in words
    run = run_of(SHORT)
    worker.offer(run)
    until(lambda: run.ended)
    assert served_by(run) == "tiny-a"
    loading.error = None
    worker.choose(offer(worker, "tiny-b"), "auto", "auto")
    until(lambda: worker.model.shown == "tiny-b")
    assert ModelPicker(worker).tell()[0] == ""


def test_only_one_model_may_be_on_its_way(held: tuple[Worker, Held]) -> None:
    worker, loading = held
    worker.choose(offer(worker, "tiny-b"), "auto", "auto")
    assert loading.reached.wait(20)
    with pytest.raises(BusyError, match=r"^tiny-b is on its way \(loading tiny-b 50%\); wait until it is there$"):
        worker.choose(offer(worker, "tiny-a"), "auto", "auto")
    loading.go.set()
    until(lambda: worker.model.shown == "tiny-b")


def test_a_download_can_be_stopped_while_the_old_model_serves(
    make: Callable[[], Worker], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fetch(name: str, progress: Callable[[str, float | None], None]) -> None:
        for step in range(4000):
            progress("downloading tiny-b (988 MB)", step / 4000)
            time.sleep(0.005)

    worker = make()
    monkeypatch.setattr(engine, "fetch_model", fetch, raising=False)
    worker.choose(offer(worker, "tiny-b"), "auto", "auto")
    until(lambda: worker.coming is not None and worker.coming.stage.startswith("downloading"))
    run = run_of(SHORT)
    worker.offer(run)
    until(lambda: run.ended)
    assert served_by(run) == "tiny-a"
    mark = head.mark(worker)
    until(lambda: head.mark(worker) != mark)
    with caplog.at_level(logging.WARNING):
        worker.stop_loading()
        until(lambda: worker.on_its_way is None)
    assert worker.coming is not None and worker.coming.error == "the download of tiny-b was stopped"
    assert caplog.records == []


def test_arms_that_two_models_would_serve_are_not_compared(make: Callable[[], Worker]) -> None:
    worker = make()
    first, scripted = run_of(SHORT), run_of(SCRIPTED)
    for run in (first, scripted):
        worker.offer(run)
        until(lambda run=run: run.ended)
    worker.choose(offer(worker, "tiny-b"), "auto", "auto")
    until(lambda: worker.model.shown == "tiny-b")
    with pytest.raises(ScenarioError, match=r"^the model was changed to tiny-b since; run both again, so that one model serves both$"):
        worker.offer(run_of(SHORT), beside=first)
    worker.offer(run_of(SCRIPTED), beside=scripted)


def test_one_experiment_is_served_by_one_model(make: Callable[[], Worker]) -> None:
    worker = make()
    page, stop, before = ExperimentsPage(worker), threading.Event(), list[Run]()
    scenario, scripted = scenarios.parse(SHORT), scenarios.parse(SCRIPTED)
    page._perform(stop, before, scripted, None, None)
    page._perform(stop, before, scenario, None, None)
    page._perform(stop, before, scenario, None, None)
    worker.choose(offer(worker, "tiny-b"), "auto", "auto")
    until(lambda: worker.model.shown == "tiny-b")
    with pytest.raises(ScenarioError, match="the model was changed to tiny-b since"):
        page._perform(stop, before, scenario, None, None)
    page._perform(stop, before, scripted, None, None)
    page._perform(stop, [], scenario, None, None)


def test_an_arm_that_waits_while_the_model_changes_is_not_run(held: tuple[Worker, Held]) -> None:
    worker, loading = held
    first, second = run_of(SHORT), run_of(SHORT)
    worker.offer(first)
    until(lambda: first.ended)
    worker.choose(offer(worker, "tiny-b"), "auto", "auto")
    assert loading.reached.wait(20)
    worker.offer(second, beside=first)
    loading.go.set()
    until(lambda: second.ended)
    assert second.status == "failed" and "the model was changed to tiny-b since" in (second.error or "")


def test_a_first_model_that_does_not_come_can_be_followed_by_another(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "measure", lambda loaded: Rates(1.0, 1.0))
    worker = Worker(Runs(), str(folders["tiny-a"].with_name("nowhere")), offered=[Offer(str(folders["tiny-b"]), "tiny-b")])
    worker.start()
    until(lambda: worker.model.status == "failed")
    assert (worker.model.error or "").endswith("nowhere: no such folder")
    worker.choose(worker.offers[0], "auto", "auto")
    until(lambda: worker.model.status == "ready")
    assert worker.model.shown == "tiny-b"
    worker.close()


# --- what may be named ----------------------------------------------------------------------------


def state(**changed: Any) -> ModelState:
    model = ModelState(OFFERED[0], status="ready", shown="SmolLM2", runs_on="cpu", runs_in="float32")
    return ModelState(**(vars(model) | changed))


@pytest.mark.parametrize(
    ("asked", "model", "says"),
    [
        ({}, state(offer=OFFERED[2]), None),
        ({"model": "embedded"}, state(), None),
        ({"model": "Qwen2.5-0.5B-Instruct"}, state(offer=OFFERED[2]), None),
        ({"model": "Qwen/Qwen2.5-0.5B-Instruct"}, state(),
         "engine.model: the scenario names Qwen/Qwen2.5-0.5B-Instruct, and this page serves SmolLM2-135M-Instruct (embedded) now; "
         "load it under Model, or leave the key out to run on the one in use"),
        ({"model": "embedded"}, state(offer=OFFERED[2]), "load it under Model, or leave the key out"),
        ({"model": "/etc"}, state(), "engine.model: '/etc' is not offered here; choose one under Model and leave the key out, or start the app with --model"),
        ({"device": "cuda"}, state(), "engine.device: the scenario asks for cuda, and the model in use runs on cpu; load it on cuda under Model"),
        ({"device": "auto", "dtype": "float32"}, state(), None),
        ({"dtype": "bfloat16"}, state(), "engine.dtype: the scenario asks for bfloat16, and the model in use runs in float32; load it in bfloat16"),
        ({"model": "/etc", "executor": "puppet"}, state(), None),
    ],
)  # fmt: skip
def test_a_scenario_that_names_another_model_is_told_what_to_do(asked: dict[str, str], model: ModelState, says: str | None) -> None:
    scenario = scenarios.parse({"engine": {"executor": "model", **asked}, "requests": [{"tokens": "A8"}]})
    if says is None:
        check_model(scenario, model, OFFERED)
        return
    with pytest.raises(ScenarioError) as told:
        check_model(scenario, model, OFFERED)
    assert says in str(told.value) and "\n" not in str(told.value)


def test_the_folder_that_the_app_was_started_with_is_offered_by_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert offer_of(str(tmp_path / "mine")).label == "mine"
    assert offer_of(str(tmp_path / "gone")).label == "gone"
    assert offer_of("owner/model").label == "owner/model"
    assert offer_of("embedded") is OFFERED[0]


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        (("/etc", "cpu", "auto"), "model: choose one of the list"),
        (("Qwen/Qwen2.5-0.5B-Instruct", "cpu", "auto"), "model: choose one of the list"),
        (("Qwen2.5-0.5B-Instruct", "tpu", "auto"), "device: this machine has "),
        (("Qwen2.5-0.5B-Instruct", "cpu", "int8"), "dtype: must be one of auto, float32"),
    ],
)
def test_the_page_takes_only_what_it_offers(choice: tuple[str, str, str], says: str) -> None:
    worker = Worker(Runs(), "embedded")
    assert says in ModelPicker(worker).choose(*choice)
    assert worker.coming is None
