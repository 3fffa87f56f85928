"""The Experiments page: choose an experiment, say what to expect, run it here, see ours beside the published figures."""

from __future__ import annotations

import asyncio
import html
import json
import sys
import threading
import time
from collections.abc import AsyncIterator
from functools import partial
from importlib import resources
from types import SimpleNamespace
from typing import Any

import gradio as gr

from engine import Engine, ModelError
from engine import events as ev
from workbench import experiments
from workbench.calculation import CALCULATORS
from workbench.experiments import Bench, StoppedError
from workbench.experiments.bench import Started
from workbench.experiments.guessing import GUESSES, Guess, afterwards, grade
from workbench.experiments.themes import grouped
from workbench.figures.experiment import draw
from workbench.runner import Run as Finished
from workbench.scenario import Scenario
from workbench.ui import head, text
from workbench.ui.calculators_panel import CalculatorsPanel
from workbench.ui.experimented import KEPT, Kept, Made, table_of, words_of
from workbench.ui.runs import BusyError, Run
from workbench.ui.worker import Worker, needs_model

QUICK, FULL = "Quick", "Full"
POLL = 0.15
WATCH = 0.02
"""Seconds between two looks: at an experiment, and at one of its runs."""
OPENS_WITH = "schedule"
FIGURES = 4
"""Most figures of one experiment."""
SKIPPED = "skipped"
CALCULATE = "calculate "
QUIET: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
LATER = "You will be asked what you expect once it has run, before it shows what came out."
Update = dict[Any, Any]


class Unwatched(Run):
    """One of an experiment's runs: nobody looks at its events, so they are not kept."""

    def __init__(self, scenario: Scenario, hook: Started | None, few: int | None) -> None:
        super().__init__(scenario, **({} if few is None else {"few": few}))
        self._hook = hook

    def started(self, engine: Engine) -> None:
        """The engine is ready; the experiment may put its stopwatch on it."""
        super().started(engine)
        if self._hook is not None:
            self._hook(engine)

    def sink(self, batch: list[ev.Event]) -> None:
        """Keep nothing."""


class ExperimentsPage:
    """The list at the left; question, guess, controls and result beside it; the calculators take the same place."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.kept = Kept()
        self.calculators = CalculatorsPanel()
        self._going: dict[str, threading.Event] = {}

    def build(self) -> None:
        """Lay out the page inside the current Blocks."""
        c = self.c = SimpleNamespace()
        top = head.build(self.worker, "experiments")
        top.tick(lambda: head.words(self.worker, "experiments"), None, top, **QUIET)
        with gr.Row(elem_id="study", equal_height=False):
            c.list = gr.HTML(
                "", elem_id="experiments", html_template=listed(), apply_default_css=False,
                js_on_load=resources.files(__package__).joinpath("experiments.js").read_text(encoding="utf-8"),
            )  # fmt: skip
            with gr.Column(elem_id="chosen", scale=5, min_width=320) as c.study:
                self._build_study()
            with gr.Column(elem_id="calculators", scale=5, min_width=320, visible=False) as c.sums:
                self.calculators.build()
        c.name, c.held, c.guess, c.running = gr.State(OPENS_WITH), gr.State(None), gr.State(None), gr.State(None)
        c.waiting = gr.State({})  # experiment -> a result that came while another one was looked at
        self._connect()

    def _build_study(self) -> None:
        c = self.c
        c.about = gr.HTML(describe(OPENS_WITH), elem_id="about", apply_default_css=False)
        with gr.Column(elem_id="predict"):
            guess = GUESSES.get(OPENS_WITH)
            c.ask = gr.HTML(asked(guess), elem_id="ask", apply_default_css=False)
            c.number = gr.Number(None, label="Your guess", elem_id="guess-number", visible=False, min_width=160)
            c.choice = gr.Radio(list(guess.options) if guess else [], label="Your guess", elem_id="guess-choice")
            with gr.Row(elem_id="guess-buttons"):
                c.say = gr.Button("That is my guess", elem_id="say", scale=0, min_width=140)
                c.skip = gr.Button("Skip the guess", elem_id="skip", scale=0, min_width=120)
        with gr.Row(elem_id="controls", equal_height=False):
            c.size = gr.Radio([QUICK, FULL], value=QUICK, label="Size", elem_id="size", scale=0, min_width=210)
            c.go = gr.Button("Run", variant="primary", elem_id="go", scale=0, min_width=90)
            c.stop = gr.Button("Stop", elem_id="stop", interactive=False, scale=0, min_width=80)
        c.said = gr.HTML(text.message(EMPTY), elem_id="said", apply_default_css=False)
        with gr.Column(visible=False, elem_id="results") as c.results:
            c.words = gr.HTML(elem_id="words", apply_default_css=False)
            c.figures = []
            for i in range(FIGURES):
                title = gr.HTML(elem_id=f"figure-title-{i + 1}", apply_default_css=False)
                c.figures.append((title, gr.Plot(show_label=False, elem_id=f"figure-{i + 1}", elem_classes="rw-figure", visible=False)))
            c.table = gr.HTML(elem_id="rows", apply_default_css=False)

    def _connect(self) -> None:
        c = self.c
        shown = [c.results, c.words, c.table, *[part for pair in c.figures for part in pair], c.list]
        asks = [c.ask, c.number, c.choice, c.say, c.skip]
        turned = [c.about, *asks, c.said, *shown, c.name, c.held, c.guess, c.size, c.study, c.sums, *self.calculators.forms.values()]
        c.list.chosen(self.choose, [c.waiting], turned, show_progress="hidden", api_visibility="private", concurrency_limit=None)
        c.go.click(
            self.run, [c.name, c.size], [*shown, c.said, c.go, c.stop, c.running, c.held],
            concurrency_limit=None, concurrency_id="experiments-page", show_progress="hidden", api_visibility="private",
        ).then(self.finish, [c.name, c.held, c.guess, c.waiting], [*shown, *asks, c.said, c.held, c.waiting], show_progress="hidden", api_visibility="private", concurrency_limit=None)  # fmt: skip
        c.stop.click(self.stop, [c.running], [c.said], **QUIET)
        answered = {"outputs": [*shown, *asks, c.said, c.guess], "show_progress": "hidden", "api_visibility": "private", "concurrency_limit": None}
        c.say.click(self.say, [c.name, c.held, c.number, c.choice], **answered)
        c.skip.click(self.skip, [c.held], **answered)

    # --- choosing ------------------------------------------------------------------------------

    def choose(self, waiting: dict[str, str], event: gr.EventData) -> Update:
        """Another experiment or calculator, or the result that the page's address names, or that waits to be looked at."""
        c, wanted = self.c, str(event.name)
        if wanted.startswith(CALCULATE) and wanted.removeprefix(CALCULATE) in CALCULATORS:
            forms = {form: gr.Column(visible=CALCULATE + name == wanted) for name, form in self.calculators.forms.items()}
            return {c.study: gr.Column(visible=False), c.sums: gr.Column(visible=True), **forms}
        name = wanted if wanted in experiments.PLANS else OPENS_WITH
        id = str(getattr(event, "result", "") or "")
        made = self.kept.get(id)
        base = {
            c.about: describe(name), c.name: name, c.held: None, c.guess: None, c.study: gr.Column(visible=True), c.sums: gr.Column(visible=False),
            c.said: text.message(EMPTY), c.size: made.size if made else QUICK, **self._ask(GUESSES.get(name)), **self._hidden(),
        }  # fmt: skip
        if made is not None and made.result.name == name:
            return base | {c.held: id, c.guess: SKIPPED, c.said: text.message("The result of this address, as it was made.")} | self._settled() | self._show(made)
        if id:
            gone = f"The result of this address is gone: the server keeps the last {KEPT}, as long as it runs. Press Run to make one."
            return base | {c.said: text.message(gone, "error")}
        ready = self.kept.get(waiting.get(name))
        if ready is not None:
            return base | {c.held: ready.id, c.size: ready.size} | self._gated(ready)
        return base

    def _gated(self, made: Made) -> Update:
        """It has run, and nobody has said yet what they expect."""
        late = {} if made.result.name in GUESSES else self._ask(afterwards(made.result))
        done = f"Done in {made.result.seconds:.1f} s. Say above what you expect, or skip the guess, to see what came out."
        return late | {self.c.said: text.message(done)}

    def _ask(self, guess: Guess | None) -> Update:
        """The question about what is to be expected, and where to answer it."""
        c = self.c
        number = guess is not None and not guess.options
        return {
            c.ask: asked(guess), c.number: gr.Number(None, label=f"Your guess, {guess.unit}" if guess and guess.unit else "Your guess", visible=number),
            c.choice: gr.Radio(list(guess.options) if guess else [], value=None, visible=bool(guess and guess.options)),
            c.say: gr.Button(visible=guess is not None), c.skip: gr.Button(visible=True),
        }  # fmt: skip

    # --- guessing ------------------------------------------------------------------------------

    def say(self, name: str, held: str | None, number: float | None, choice: str | None) -> Update:
        """Take a guess; where the result is there already, show it."""
        c, made = self.c, self.kept.get(held)
        guess = GUESSES.get(name) or (afterwards(made.result) if made else None)
        answer: float | str | None = choice if guess and guess.options else number
        if answer is None:
            what = "choose one of the answers" if guess and guess.options else "write a number"
            return {c.said: text.message(f"Your guess: {what}, or skip it.", "error")}
        if made is None:
            told = answer if isinstance(answer, str) else f"{answer:g} {guess.unit if guess else ''}".strip()
            return {c.guess: answer, c.ask: asked(guess, f"Your guess: {told}."), c.said: text.message("Now press Run: the run that is made then says how near that is.")}
        made.answer = answer
        return {c.guess: answer, c.said: text.message("This is what came out.")} | self._settled() | self._show(made)

    def skip(self, held: str | None) -> Update:
        """No guess this time."""
        c, made = self.c, self.kept.get(held)
        if made is None:
            return {c.guess: SKIPPED, c.said: text.message("Skipped. Press Run: every figure will come from runs made here.")}
        return {c.guess: SKIPPED, c.said: text.message("This is what came out.")} | self._settled() | self._show(made)

    def _settled(self) -> Update:
        c = self.c
        return {c.ask: "", c.number: gr.Number(visible=False), c.choice: gr.Radio(visible=False), c.say: gr.Button(visible=False), c.skip: gr.Button(visible=False)}

    # --- running -------------------------------------------------------------------------------

    async def run(self, name: str, size: str) -> AsyncIterator[Update]:
        """Carry it out, run by run on the engine's thread; `finish` shows what came out."""
        c = self.c
        idle = {c.go: gr.Button(interactive=True), c.stop: gr.Button(interactive=False), c.running: None}
        told = ["starting"]
        stop, key, began = threading.Event(), f"{time.monotonic_ns()}", time.monotonic()
        self._going[key] = stop
        bench = Bench(
            quick=size != FULL, progress=told.append, stop=stop.is_set, model_name=self.worker.model.name,
            perform=partial(self._perform, stop, []), keeps=True,
        )  # fmt: skip
        task = asyncio.create_task(asyncio.to_thread(experiments.find(name).carry_out, bench))
        try:
            yield {**self._hidden(), c.held: None, c.go: gr.Button(interactive=False), c.stop: gr.Button(interactive=True), c.running: key}
            last = ""
            while not task.done():
                now = f"Running: {told[-1]}, {time.monotonic() - began:.0f} s so far"
                if now != last:
                    last = now
                    yield {c.said: text.message(now, "busy")}
                await asyncio.sleep(POLL)
            result = task.result()
        except StoppedError:
            yield {c.said: text.message("Stopped; nothing is shown."), **idle}
            return
        except (ValueError, BusyError, ModelError, RuntimeError) as error:
            yield {c.said: text.message(str(error), "error"), **idle}
            return
        finally:
            stop.set()  # also when the page went away meanwhile
            self._going.pop(key, None)
        made = Made(result, size, bench.kept)
        self.kept.add(made)
        yield {c.said: text.message(f"Done in {result.seconds:.1f} s."), c.held: made.id, **idle}

    def finish(self, name: str, held: str | None, guess: float | str | None, waiting: dict[str, str]) -> Update:
        """It has run: show what came out where a guess was made or skipped, else ask first."""
        c, made = self.c, self.kept.get(held)
        if made is None:
            return {c.list: gr.skip()}
        if made.result.name != name:
            said = f"“{made.result.question}” is done: choose it in the list to see what came out."
            return {c.held: None, c.waiting: waiting | {made.result.name: made.id}, c.said: text.message(said)}
        if guess is None:
            return self._gated(made)
        made.answer = None if guess == SKIPPED else guess
        return {c.said: text.message(f"Done in {made.result.seconds:.1f} s.")} | self._settled() | self._show(made)

    def stop(self, key: str | None) -> str:
        """Stop the experiment that this page waits for."""
        going = self._going.get(key or "")
        if going is None:
            return text.message("Nothing is running.")
        going.set()
        return text.message("Stopping after this step…", "busy")

    def _perform(self, stop: threading.Event, before: list[Run], scenario: Scenario, started: Started | None, logprobs: int | None) -> Finished:
        """One run in the worker's queue, waited for; called on a thread of its own.

        `before` remembers the experiment's first run with the model: the same model has to serve all of them.
        """
        run = Unwatched(scenario, started, logprobs)
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

    # --- showing -------------------------------------------------------------------------------

    def _show(self, made: Made) -> Update:
        """What came out: words, figures, rows, and an address that leads here again."""
        c, result = self.c, made.result
        guess = GUESSES.get(result.name) or afterwards(result)
        graded = grade(guess, made.answer, result) if guess and made.answer is not None else None
        out: Update = {
            c.results: gr.Column(visible=True), c.words: words_of(made, graded), c.table: table_of(result, graded.row if graded else None),
            c.list: json.dumps({"name": result.name, "result": made.id}),
        }  # fmt: skip
        for i, (title, plot) in enumerate(c.figures):
            chart = result.charts[i] if i < len(result.charts) else None
            out[title] = f'<h2 class="rw-h2">{html.escape(chart.title)}</h2>' if chart else ""
            out[plot] = gr.Plot(value=draw(chart) if chart else None, visible=chart is not None)
        return out

    def _hidden(self) -> Update:
        c = self.c
        return {c.results: gr.Column(visible=False), c.words: "", c.table: ""}


EMPTY = "Nothing has run yet. Say what you expect, or skip it, and press Run: every figure will come from runs made here."


def listed() -> str:
    """The list: experiments by what they teach, then the calculators."""
    parts = []
    for theme, names in grouped(experiments.PLANS).items():
        items = "".join(_item(name, experiments.PLANS[name].question) for name in names)
        parts.append(f"<section><h2>{html.escape(theme)}</h2><ul>{items}</ul></section>")
    sums = "".join(_item(CALCULATE + name, calculator.title) for name, calculator in CALCULATORS.items())
    parts.append(f"<section><h2>Calculators</h2><ul>{sums}</ul></section>")
    return f'<details class="rw-list" open><summary>Experiments and calculators</summary><nav aria-label="Experiments and calculators">{"".join(parts)}</nav></details>'


def _item(name: str, words: str) -> str:
    current = " aria-current=true" if name == OPENS_WITH else ""
    return f'<li><button type="button" data-name="{html.escape(name)}"{current}>{html.escape(words)}</button></li>'


def describe(name: str) -> str:
    """The question, what is set up, what kind of figures answer it, and how long that takes."""
    plan = experiments.find(name)
    about = (sys.modules[plan.find.__module__].__doc__ or "").strip().splitlines()
    lead = f'<p class="rw-note">{html.escape(about[0])}</p>' if about else ""
    own = f" It can run on {plan.takes} of your own, from the command line: <code>python -m workbench experiment {plan.name} --file FILE</code>." if plan.takes else ""
    return (
        f'<h2 class="rw-question" id="question">{html.escape(plan.question)}</h2>{lead}'
        f'<p class="rw-cost">Kind of figures: {plan.kind}. Quick: {html.escape(plan.quick)}; full: {html.escape(plan.full)}.{own}</p>'
    )


def asked(guess: Guess | None, said: str = "") -> str:
    """What is asked before a run may show what came out."""
    words = guess.ask if guess else LATER
    told = f'<p class="rw-fine" role="status">{html.escape(said)}</p>' if said else ""
    return f'<h3 class="rw-h2">What do you expect?</h3><p class="rw-note">{html.escape(words)}</p>{told}'
