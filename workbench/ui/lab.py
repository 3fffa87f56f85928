"""The Lab: choose a preset, run or step it on the real engine, scrub through it, compare with the cache off."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from importlib import resources
from pathlib import Path
from typing import Any

import gradio as gr

from workbench import presets
from workbench import scenario as scenarios
from workbench.compare import lay_side_by_side
from workbench.estimate import estimate
from workbench.figures.ttft import pool_fill, ttft_pairs
from workbench.ui import asking, head, text
from workbench.ui.compare_page import ComparePage
from workbench.ui.experiments_page import ExperimentsPage
from workbench.ui.model_picker import ModelPicker
from workbench.ui.runs import BusyError, Gate, Run
from workbench.ui.worker import Worker

OPENS_WITH = "handbook"
OWN = "What about my own prefix and questions?"
POLL = 0.15
"""Seconds between two looks at a run that the page waits for."""

TEMPLATE = '<div class="rw-stage"><div class="rw-player"></div><section class="rw-compare" aria-label="First token, cache on against off"></section></div>'
SAVE = """(text) => { const link = document.createElement('a'); link.href = URL.createObjectURL(new Blob([text], { type: 'text/yaml' }));
link.download = 'scenario.yaml'; link.click(); URL.revokeObjectURL(link.href); }"""
# Private: the page inlines a description of every public endpoint, a megabyte of it.
QUIET = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
# Gradio drops what is typed while the event before is under way, unless the last one waits for its turn.
TYPED = QUIET | {"trigger_mode": "always_last"}
WAITS = {"concurrency_limit": None, "show_progress": "hidden", "api_visibility": "private"}


class Lab:
    """The page's controls and what they do. State lives in the runs; the page holds run ids only."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.titles = presets.titles()
        self.picker = ModelPicker(worker)

    def build(self) -> gr.Blocks:
        """The Gradio page, and the pages beside it."""
        opening = scenarios.load(OPENS_WITH)
        with gr.Blocks(title="Radix Workbench", analytics_enabled=False, fill_width=True) as page:
            gr.Navbar(visible=False)
            top = head.build(self.worker, "lab")
            base = gr.State(None)
            settled = gr.State("")
            with gr.Row(elem_id="controls", equal_height=False):
                opens = next(t for t, n in self.titles.items() if n == OPENS_WITH)
                preset = gr.Dropdown([*self.titles, OWN], value=opens, label="What happens when…", elem_id="preset", scale=5, min_width=270)
                cache = gr.Radio(["radix", ("hashed", "blocks"), "off"], value="radix", label="Cache", elem_id="cache", scale=0, min_width=170)
                policy = gr.Radio(["fcfs", "lpm"], value="fcfs", label="Policy", elem_id="policy", scale=0, min_width=112)
                pages = gr.Number(opening.engine.pages, label="Pool, pages", elem_id="pages", precision=0, scale=0, min_width=90)
                size = gr.Number(1, label="Page, tokens", elem_id="page-size", precision=0, scale=0, min_width=90)
                run = gr.Button("Run", variant="primary", elem_id="run", scale=0, min_width=76)
                step = gr.Button("Step", elem_id="step", scale=0, min_width=70)
                stop = gr.Button("Stop", elem_id="stop", interactive=False, scale=0, min_width=70)
                off = gr.Button("Same traffic, cache off", elem_id="compare", interactive=False, scale=0, min_width=180)
            with gr.Row(visible=False, elem_id="own") as own:
                prefix = gr.Textbox(asking.OWN_PREFIX, label="Shared prefix", lines=4, max_lines=8, elem_id="prefix", scale=3)
                questions = gr.Textbox(asking.OWN_QUESTIONS, label="Questions, one a line", lines=4, max_lines=8, elem_id="questions", scale=2)
            note = gr.HTML(elem_id="note", apply_default_css=False)
            with gr.Row(elem_id="folds", equal_height=False):
                with gr.Accordion("Scenario: see, edit, paste, save or open one", open=False, elem_id="folded"):
                    yaml = gr.Textbox(scenarios.dump(opening), show_label=False, lines=12, max_lines=24, elem_id="yaml", container=False)
                    with gr.Row():
                        upload = gr.UploadButton("Open a scenario or a recorded trace", file_types=[".yaml", ".yml", ".jsonl"], elem_id="upload", scale=0, min_width=260)
                        save = gr.Button("Save the scenario", elem_id="save", scale=0, min_width=160)
                self.picker.build()
            said = gr.HTML(text.message(""), elem_id="said", apply_default_css=False)
            player = gr.HTML(
                self._recorded(OPENS_WITH), elem_id="player", html_template=TEMPLATE,
                js_on_load=resources.files(__package__).joinpath("host.js").read_text(encoding="utf-8"),
                apply_default_css=False,
            )  # fmt: skip

            knobs = [cache, policy, pages, size]
            after = [player, said, run, step, stop, off, base]
            page.load(self.describe, [yaml], [note], **QUIET)
            # Through the queue: without it Gradio does not tell the page that a state has changed.
            top.tick(self.watch_model, None, [top, settled, *self.picker.told], concurrency_id="watch", **WAITS)
            # The text is read anew here: a tick that was under way may have been overtaken by an edit.
            settled.change(self.describe, [yaml], [note], **QUIET)
            self.picker.follow(settled)
            preset.input(self.choose, [preset, prefix, questions], [own, yaml, *knobs, note, *after], **QUIET)
            for box in (prefix, questions):
                box.input(self.own, [prefix, questions], [yaml, note], **TYPED)
            for knob in knobs:
                knob.input(self.turn, [yaml, *knobs], [yaml, note], **TYPED)
            yaml.change(self.retyped, [yaml], [note, *knobs], **QUIET)
            upload.upload(self.open_file, [upload], [yaml, note, *knobs, *after], **QUIET)
            save.click(None, [yaml], None, js=SAVE, api_visibility="private")
            run.click(self.run, [yaml, base], after, concurrency_id="run", **WAITS)
            step.click(self.step, [yaml, base], after, concurrency_id="step", **WAITS)
            stop.click(self.stop, [base], [said], **QUIET)
            off.click(self.compare, [base], after, concurrency_id="compare", **WAITS)
        with page.route("Compare", "/compare", show_in_navbar=False):
            gr.Navbar(visible=False)
            ComparePage(self.worker).build()
        with page.route("Experiments", "/experiments", show_in_navbar=False):
            gr.Navbar(visible=False)
            ExperimentsPage(self.worker).build()
        return page

    # --- the scenario --------------------------------------------------------------------------

    def describe(self, yaml: str) -> str:
        """The scenario's note and what a run will take, or what is wrong with it."""
        try:
            scenario, model = self._read(yaml), self.worker.model
            return text.note(scenario, estimate(scenario, model.loaded, model.rates), model)
        except ValueError as error:
            return text.message(str(error), "error", "wrong")

    def turn(self, yaml: str, cache: str, policy: str, pages: float | None, size: float | None) -> tuple[Any, ...]:
        """A knob was turned: the scenario's text follows; values that cannot be are said and kept out of a run."""
        try:
            changed = {"cache": cache, "policy": policy, "pages": _whole("pages", pages), "page_size": _whole("page_size", size)}
            again = scenarios.retuned(yaml, changed)
        except ValueError as error:
            return gr.skip(), text.message(str(error), "error", "wrong")
        return again, self.describe(again)

    def retyped(self, yaml: str) -> tuple[Any, ...]:
        """The text was edited: the knobs follow where it can be read."""
        try:
            engine = self._read(yaml).engine
        except ValueError:
            return (self.describe(yaml), *[gr.skip()] * 4)
        return self.describe(yaml), *_knobs(engine)

    def own(self, prefix: str, questions: str) -> tuple[Any, ...]:
        """A prefix and questions of one's own, as a scenario."""
        try:
            yaml = scenarios.dump(scenarios.parse(asking.own_scenario(prefix, questions)))
        except ValueError as error:
            return gr.skip(), text.message(str(error), "error", "wrong")
        return yaml, self.describe(yaml)

    def choose(self, title: str, prefix: str, questions: str) -> tuple[Any, ...]:
        """Another preset: its own text and knobs, and its recorded run where there is one."""
        if title == OWN:
            yaml, note = self.own(prefix, questions)
            name = None
        else:
            name = self.titles[title]
            yaml = scenarios.dump(scenarios.load(name))
            note = self.describe(yaml)
        knobs = _knobs(scenarios.parse_text(yaml).engine) if isinstance(yaml, str) else [gr.skip()] * 4
        shown = self._recorded(name) if name and self.worker.recorded(name) else gr.skip()
        return (gr.Row(visible=title == OWN), yaml, *knobs, note, shown, text.message(""), *_buttons("idle"), None)

    def open_file(self, path: str) -> tuple[Any, ...]:
        """An uploaded scenario goes into the text; an uploaded trace is shown."""
        keep = [gr.skip()] * 6
        try:
            if Path(path).suffix == ".jsonl":
                run = Run.of_trace(asking.read_trace(path), "uploaded")
                self.worker.runs.add(run)
                return (*keep, _shown(run), text.message("Opened the trace; it is shown as it was recorded."), *_buttons("idle"), None)
            yaml = asking.read_scenario(path)
            engine = self._read(yaml).engine
        except (ValueError, OSError) as error:
            return (*keep, gr.skip(), text.message(str(error), "error"), *[gr.skip()] * 5)
        return (yaml, self.describe(yaml), *_knobs(engine), gr.skip(), text.message("Opened the scenario; press Run."), *_buttons("idle"), None)

    # --- running -------------------------------------------------------------------------------

    async def run(self, yaml: str, base: str | None) -> AsyncIterator[tuple[Any, ...]]:
        """Run the scenario, or let a run in single steps go on by itself; the player follows."""
        going = self._stepping(base)
        if going is not None:
            going.gate.open()
            yield (gr.skip(), text.message(self._waiting(going), "busy"), *_buttons("busy"), going.id)
        else:
            try:
                going = self._start(yaml, stepping=False)
            except (ValueError, BusyError) as error:
                yield (gr.skip(), text.message(str(error), "error"), *_buttons("idle"), None)
                return
            yield (_shown(going), text.message(self._waiting(going), "busy"), *_buttons("busy"), going.id)
        async for said in self._wait(going):
            yield (gr.skip(), said, *[gr.skip()] * 5)
        yield (gr.skip(), _ended(going), *_buttons(_after(going)), going.id)

    async def step(self, yaml: str, base: str | None) -> AsyncIterator[tuple[Any, ...]]:
        """Run one step: of the run that is being stepped, or the first of a new one."""
        going = self._stepping(base)
        fresh = going is None
        try:
            going = going or self._start(yaml, stepping=True)
        except (ValueError, BusyError) as error:
            yield (gr.skip(), text.message(str(error), "error"), *_buttons("idle"), None)
            return
        before = len(going.lines)
        if not fresh:
            going.gate.step()
        yield (_shown(going) if fresh else gr.skip(), gr.skip(), *_buttons("stepping"), going.id)
        while not going.ended and (len(going.lines) == before or going.status == "queued"):
            await asyncio.sleep(POLL / 3)
        await asyncio.sleep(POLL)
        if going.ended:
            yield (gr.skip(), _ended(going), *_buttons(_after(going)), going.id)
        else:
            words = f"Step by step: {len(going.lines):,} events so far. Step again, or Run to let it go on."
            yield (gr.skip(), text.message(words), *_buttons("stepping"), going.id)

    async def compare(self, base: str | None) -> AsyncIterator[tuple[Any, ...]]:
        """The same traffic with the cache off, on a fresh engine, laid beside the run that is shown."""
        first = self.worker.runs.get(base or "")
        if first is None or first.finished is None or first.scenario is None:
            yield (gr.skip(), text.message("Run the preset first; then its traffic can be repeated with the cache off.", "error"), *_buttons("idle"), base)
            return
        try:
            engine = first.scenario.engine.model_copy(update={"cache": "off"})
            second = Run(first.scenario.model_copy(update={"engine": engine}))
            self.worker.offer(second, beside=first)
        except (ValueError, BusyError) as error:
            yield (gr.skip(), text.message(str(error), "error"), *_buttons("done"), base)
            return
        yield (gr.skip(), text.message("Running the same traffic with the cache off…", "busy"), *_buttons("busy"), second.id)
        async for said in self._wait(second, "cache off: "):
            yield (gr.skip(), said, *[gr.skip()] * 5)
        if second.status != "done" or second.finished is None:
            yield (gr.skip(), _ended(second), *_buttons("done"), first.id)
            return
        result = lay_side_by_side(
            first.scenario, [("cache on", {}), ("cache off", {"engine.cache": "off"})], [[first.finished], [second.finished]],
            order=[["cache on", "cache off"]], warm_up="measured speed once, before the arms",
        )  # fmt: skip
        ghost = {"label": "cache off: pages in use", "points": pool_fill(second.finished.trace)}
        facts = ttft_pairs(result) | {"ghost": ghost}
        yield (_shown(first, facts), text.message("Both arms are done: the same token ids, a fresh engine each."), *_buttons("done"), first.id)

    def stop(self, id: str | None) -> str:
        """Stop the run that this page waits for."""
        run = self.worker.runs.get(id or "")
        if run is None or run.ended:
            return text.message("Nothing is running.")
        run.halt()
        return text.message("Stopping after this step…", "busy")

    # --- inside --------------------------------------------------------------------------------

    def _start(self, yaml: str, stepping: bool) -> Run:
        run = Run(self._read(yaml), gate=Gate(stepping))
        self.worker.offer(run)
        return run

    def _stepping(self, id: str | None) -> Run | None:
        run = self.worker.runs.get(id or "")
        return run if run is not None and not run.ended and run.gate.stepping else None

    async def _wait(self, run: Run, prefix: str = "") -> AsyncIterator[str]:
        """Say something new whenever there is something new to say, until the run has ended."""
        last = ""
        while not run.ended:
            now = prefix + self._waiting(run)
            if now != last:
                last = now
                yield text.message(now, "busy")
            await asyncio.sleep(POLL)

    def _waiting(self, run: Run) -> str:
        return self.worker.waits_for(run) if run.status == "queued" else f"Running: {len(run.lines):,} events so far"

    def _read(self, yaml: str) -> scenarios.Scenario:
        return asking.scenario_from_text(yaml, self.worker.model, self.worker.offers)

    def watch_model(self) -> tuple[Any, ...]:
        """Tell how far the model is, and another that is on its way."""
        model = self.worker.model
        return head.words(self.worker, "lab"), f"{model.serial} {model.status}", *self.picker.tell()

    def _recorded(self, name: str) -> str:
        run = self.worker.recorded(name)
        return _shown(run) if run else json.dumps({"kind": "empty"})


def _whole(key: str, value: float | None) -> int:
    if value is None or value != int(value):
        raise scenarios.ScenarioError(f"engine.{key}: must be a whole number, 1 or more")
    return int(value)


def _knobs(engine: Any) -> list[Any]:
    return [engine.cache, engine.policy, engine.pages, engine.page_size]


def _buttons(state: str) -> list[gr.Button]:
    """Run, Step, Stop and cache-off, each live or not: `idle`, `busy`, `stepping` or `done` (can be compared)."""
    live = {"idle": (1, 1, 0, 0), "busy": (0, 0, 1, 0), "stepping": (1, 1, 1, 0), "done": (1, 1, 0, 1)}[state]
    return [gr.Button(interactive=bool(on)) for on in live]


def _after(run: Run) -> str:
    comparable = run.status == "done" and run.scenario is not None and run.scenario.engine.cache != "off"
    return "done" if comparable else "idle"


def _shown(run: Run, compare: dict[str, Any] | None = None) -> str:
    return json.dumps({"kind": run.kind, "run": run.id, "url": f"/runs/{run.id}", "compare": compare})


def _ended(run: Run) -> str:
    if run.status == "failed":
        return text.message(f"The run failed: {run.error}", "error")
    if run.status == "stopped":
        return text.message("Stopped. What had happened until then is shown.")
    totals = run.report.totals if run.report else None
    if totals is None or totals.hit_rate is None:
        return text.message("Done.")
    simulated = " simulated" if run.report and run.report.header.clock == "virtual" else ""
    return text.message(
        f"Done: {totals.cached_tokens:,} of {totals.prompt_tokens:,} prompt tokens were reused ({totals.hit_rate:.0%}), "
        f"{totals.evictions} evictions, {totals.duration:.1f} s{simulated}."
    )
