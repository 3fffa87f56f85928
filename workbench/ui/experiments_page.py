"""The Experiments page: choose a published experiment, read its question, run it here, see ours beside the published figures."""

from __future__ import annotations

import asyncio
import html
import threading
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import gradio as gr

from engine import Engine, ModelError
from engine import events as ev
from workbench import experiments
from workbench.experiments import Bench, Experiment, StoppedError
from workbench.experiments.bench import Started
from workbench.experiments.words import amount, verdict
from workbench.figures.experiment import draw
from workbench.runner import Run as Finished
from workbench.scenario import Scenario
from workbench.ui import head, text
from workbench.ui.runs import BusyError, Run
from workbench.ui.worker import Worker, needs_model

QUICK, FULL = "Quick", "Full"
POLL = 0.15
WATCH = 0.02
"""Seconds between two looks: at an experiment, and at one of its runs."""
OPENS_WITH = "schedule"


class Unwatched(Run):
    """One of an experiment's runs: nobody looks at its events, so they are not kept."""

    def __init__(self, scenario: Scenario, hook: Started | None) -> None:
        super().__init__(scenario)
        self._hook = hook

    def started(self, engine: Engine) -> None:
        """The engine is ready; the experiment may put its stopwatch on it."""
        super().started(engine)
        if self._hook is not None:
            self._hook(engine)

    def sink(self, batch: list[ev.Event]) -> None:
        """Keep nothing."""


class ExperimentsPage:
    """Controls above, the question and set-up, then the rows and the figure."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self._going: dict[str, threading.Event] = {}

    def build(self) -> None:
        """Lay out the page inside the current Blocks."""
        top = head.build(self.worker, "experiments")
        top.tick(lambda: head.words(self.worker, "experiments"), None, top, queue=False, show_progress="hidden", api_visibility="private")
        with gr.Row(elem_id="controls", equal_height=False):
            choices = [(plan.question, name) for name, plan in experiments.PLANS.items()]
            name = gr.Dropdown(choices, value=OPENS_WITH, label="Published experiment", elem_id="experiment", scale=8, min_width=280)
            size = gr.Radio([QUICK, FULL], value=QUICK, label="Size", elem_id="size", scale=0, min_width=210)
            go = gr.Button("Run", variant="primary", elem_id="go", scale=0, min_width=90)
            stop = gr.Button("Stop", elem_id="stop", interactive=False, scale=0, min_width=80)
        about = gr.HTML(self.describe(OPENS_WITH), elem_id="note", apply_default_css=False)
        said = gr.HTML(text.message("Press Run: every figure below will come from runs made here."), elem_id="said", apply_default_css=False)
        with gr.Column(visible=False, elem_id="results") as results:
            words = gr.HTML(elem_id="words", apply_default_css=False)
            title = gr.HTML(elem_id="figure-title", apply_default_css=False)
            figure = gr.Plot(show_label=False, elem_id="figure", visible=False)
            table = gr.HTML(elem_id="rows", apply_default_css=False)
        running = gr.State(None)

        name.input(self.choose, [name], [about, results], queue=False, show_progress="hidden", api_visibility="private")
        go.click(
            self.run, [name, size], [said, results, words, title, figure, table, go, stop, running],
            concurrency_limit=None, concurrency_id="experiments-page", show_progress="hidden", api_visibility="private",
        )  # fmt: skip
        stop.click(self.stop, [running], [said], queue=False, show_progress="hidden", api_visibility="private")

    def describe(self, name: str) -> str:
        """The question, what kind of figures answer it, and how long that takes."""
        plan = experiments.find(name)
        cost = f"Kind of figures: {plan.kind}. Quick: {plan.quick}; full: {plan.full}."
        return f'<p class="rw-note">{html.escape(plan.question)}</p><p class="rw-cost">{html.escape(cost)}</p>'

    def choose(self, name: str) -> tuple[str, gr.Column]:
        """Another experiment: its question; the results of the one before go."""
        return self.describe(name), gr.Column(visible=False)

    async def run(self, name: str, size: str) -> AsyncIterator[tuple[Any, ...]]:
        """Carry it out, run by run on the engine's thread, and show what came out."""
        keep = [gr.skip()] * 5
        idle = (gr.Button(interactive=True), gr.Button(interactive=False), None)
        told = ["Starting…"]
        stop, key = threading.Event(), f"{time.monotonic_ns()}"
        self._going[key] = stop
        bench = Bench(
            quick=size != FULL, progress=told.append, stop=stop.is_set, model_name=self.worker.model.name,
            perform=partial(self._perform, stop, []),
        )  # fmt: skip
        task = asyncio.create_task(asyncio.to_thread(experiments.find(name).carry_out, bench))
        try:
            shown = 0
            while not task.done():
                if shown < len(told):
                    shown = len(told)
                    yield (text.message(f"Running: {told[-1]}", "busy"), *keep, gr.Button(interactive=False), gr.Button(interactive=True), key)
                await asyncio.sleep(POLL)
            result = task.result()
        except StoppedError:
            yield (text.message("Stopped; nothing is shown."), *keep, *idle)
            return
        except (ValueError, BusyError, ModelError, RuntimeError) as error:
            yield (text.message(str(error), "error"), *keep, *idle)
            return
        finally:
            stop.set()  # also when the page went away meanwhile
            self._going.pop(key, None)
        chart = result.charts[0] if result.charts else None
        plot = gr.Plot(value=draw(chart) if chart else None, visible=chart is not None)
        title = f'<h2 class="rw-h2">{html.escape(chart.title)}</h2>' if chart else ""
        yield (text.message(f"Done in {result.seconds:.1f} s."), gr.Column(visible=True), words_of(result), title, plot, table_of(result), *idle)

    def stop(self, key: str | None) -> str:
        """Stop the experiment that this page waits for."""
        going = self._going.get(key or "")
        if going is None:
            return text.message("Nothing is running.")
        going.set()
        return text.message("Stopping after this step…", "busy")

    def _perform(self, stop: threading.Event, before: list[Run], scenario: Scenario, started: Started | None) -> Finished:
        """One run in the worker's queue, waited for; called on a thread of its own.

        `before` remembers the experiment's first run with the model: the same model has to serve all of them.
        """
        run = Unwatched(scenario, started)
        modelled = needs_model(run)
        self.worker.offer(run, beside=before[0] if modelled and before else None)
        if modelled and not before:
            before.append(run)
        while not run.ended:
            if stop.wait(WATCH):
                run.halt()
                time.sleep(WATCH)
        self.worker.runs.drop(run.id)
        if run.status == "failed":
            raise RuntimeError(run.error or "the run failed")
        if run.finished is None or run.status != "done":
            raise StoppedError
        return run.finished


def words_of(result: Experiment) -> str:
    """The set-up, and why ours may differ."""
    lines = [result.setup, *([result.differs_because] if result.differs_because else [])]
    return "".join(f'<p class="rw-fine">{html.escape(line)}</p>' for line in lines)


def table_of(result: Experiment) -> str:
    """Every row, ours beside the published figure, with its source."""
    rows = "".join(
        f"<tr><th scope='row'>{html.escape(r.label)}</th><td>{html.escape(amount(r.ours, r.unit))}</td>"
        f"<td>{html.escape(amount(r.published, r.unit))}</td><td>{html.escape(verdict(r))}</td><td>{r.kind}</td></tr>"
        for r in result.rows
    )
    sources = list(dict.fromkeys(r.source for r in result.rows if r.source))
    below = f'<p class="rw-fine">Published in: {html.escape("; ".join(sources))}.</p>' if sources else ""
    heads = "".join(f"<th scope='col'>{words}</th>" for words in ("", "ours", "published", "agrees", "kind"))
    return f"<div class='rw-scroll'><table class='rw-table'><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>{below}"
