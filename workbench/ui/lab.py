"""The Lab: choose a preset, run or step it on the real engine, scrub through it, compare with the cache off."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from importlib import resources
from typing import Any

import gradio as gr

from workbench.compare import lay_side_by_side
from workbench.figures.ttft import pool_fill, ttft_pairs
from workbench.report import Report
from workbench.times import simulated
from workbench.ui import head, text
from workbench.ui.compare_page import ComparePage
from workbench.ui.controls import HANDED, OPENS_WITH, QUIET, Controls, buttons, shown_run
from workbench.ui.decode_page import DecodePage
from workbench.ui.experiments_page import ExperimentsPage
from workbench.ui.lessons_page import LessonsPage
from workbench.ui.model_picker import ModelPicker
from workbench.ui.runs import BusyError, Gate, Run
from workbench.ui.worker import Worker

POLL = 0.15
"""Seconds between two looks at a run that the page waits for."""

TEMPLATE = '<div class="rw-stage"><div class="rw-player"></div><section class="rw-compare" aria-label="First token, cache on against off"></section></div>'
WAITS = {"concurrency_limit": None, "show_progress": "hidden", "api_visibility": "private"}


class Lab:
    """The page's controls and what they do. State lives in the runs; the page holds run ids only."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.controls = Controls(worker)
        self.picker = ModelPicker(worker)
        self.experiments = ExperimentsPage(worker)

    def build(self) -> gr.Blocks:
        """The Gradio page, and the pages beside it."""
        controls = self.controls
        with gr.Blocks(title="Radix Workbench", analytics_enabled=False, fill_width=True) as page:
            gr.Navbar(visible=False)
            top = head.build(self.worker, "lab")
            base = gr.State(None)
            settled = gr.State("")
            with gr.Row(elem_id="controls", equal_height=False):
                controls.build_knobs()
                run = gr.Button("Run", variant="primary", elem_id="run", scale=0, min_width=76)
                step = gr.Button("Step", elem_id="step", scale=0, min_width=70)
                stop = gr.Button("Stop", elem_id="stop", interactive=False, scale=0, min_width=70)
                off = gr.Button("Same traffic, cache off", elem_id="compare", interactive=False, scale=0, min_width=180)
            controls.build_own()
            note = gr.HTML(elem_id="note", apply_default_css=False)
            with gr.Row(elem_id="folds", equal_height=False):
                controls.build_text()
                self.picker.build()
            said = gr.HTML(text.message(""), elem_id="said", apply_default_css=False)
            player = gr.HTML(
                self._recorded(OPENS_WITH), elem_id="player", html_template=TEMPLATE,
                js_on_load=resources.files(__package__).joinpath("host.js").read_text(encoding="utf-8"),
                apply_default_css=False,
            )  # fmt: skip

            after = [player, said, run, step, stop, off, base]
            page.load(controls.describe, [controls.yaml], [note], **QUIET)
            # Through the queue: without it Gradio does not tell the page that a state has changed.
            top.tick(self.watch_model, None, [top, settled, *self.picker.told], concurrency_id="watch", **WAITS)
            # The text is read anew here: a tick that was under way may have been overtaken by an edit. And once more
            # after that: an edit that was answered meanwhile would be covered by what was said of the text before.
            settled.change(controls.describe, [controls.yaml], [note], **QUIET).then(controls.describe, [controls.yaml], [note], **QUIET)
            self.picker.follow(settled)
            controls.connect(note, after)
            run.click(self.run, [base, *controls.asked], after, js=HANDED, concurrency_id="run", **WAITS)
            step.click(self.step, [base, *controls.asked], after, js=HANDED, concurrency_id="step", **WAITS)
            stop.click(self.stop, [base], [said], **QUIET)
            off.click(self.compare, [base], after, concurrency_id="compare", **WAITS)
        with page.route("Compare", "/compare", show_in_navbar=False):
            gr.Navbar(visible=False)
            ComparePage(self.worker).build()
        with page.route("Decode", "/decode", show_in_navbar=False):
            gr.Navbar(visible=False)
            DecodePage(self.worker).build()
        with page.route("Experiments", "/experiments", show_in_navbar=False):
            gr.Navbar(visible=False)
            self.experiments.build()
        with page.route("Lessons", "/lessons", show_in_navbar=False):
            gr.Navbar(visible=False)
            LessonsPage(self.worker).build()
        return page

    # --- running -------------------------------------------------------------------------------

    async def run(self, base: str | None, *asked: Any) -> AsyncIterator[tuple[Any, ...]]:
        """Run the scenario, or let a run in single steps go on by itself; the player follows."""
        going = self._stepping(base)
        if going is not None:
            going.gate.open()
            yield (gr.skip(), text.message(self._waiting(going), "busy"), *buttons("busy"), going.id)
        else:
            try:
                going = self._start(asked, stepping=False)
            except (ValueError, BusyError) as error:
                yield (gr.skip(), text.message(str(error), "error"), *buttons("idle"), None)
                return
            yield (shown_run(going), text.message(self._waiting(going), "busy"), *buttons("busy"), going.id)
        async for said in self._wait(going):
            yield (gr.skip(), said, *[gr.skip()] * 5)
        yield (gr.skip(), _ended(going), *buttons(_after(going)), going.id)

    async def step(self, base: str | None, *asked: Any) -> AsyncIterator[tuple[Any, ...]]:
        """Run one step: of the run that is being stepped, or the first of a new one."""
        going = self._stepping(base)
        fresh = going is None
        try:
            going = going or self._start(asked, stepping=True)
        except (ValueError, BusyError) as error:
            yield (gr.skip(), text.message(str(error), "error"), *buttons("idle"), None)
            return
        before = len(going.lines)
        if not fresh:
            going.gate.step()
        yield (shown_run(going) if fresh else gr.skip(), gr.skip(), *buttons("stepping"), going.id)
        while not going.ended and (len(going.lines) == before or going.status == "queued"):
            await asyncio.sleep(POLL / 3)
        await asyncio.sleep(POLL)
        if going.ended:
            yield (gr.skip(), _ended(going), *buttons(_after(going)), going.id)
        else:
            words = f"Step by step: {going.reached} so far. Step again, or Run to let it go on."
            yield (gr.skip(), text.message(words), *buttons("stepping"), going.id)

    async def compare(self, base: str | None) -> AsyncIterator[tuple[Any, ...]]:
        """The same traffic with the cache off, on a fresh engine, laid beside the run that is shown."""
        first = self.worker.runs.get(base or "")
        if first is None or first.finished is None or first.scenario is None:
            yield (gr.skip(), text.message("Run the preset first; then its traffic can be repeated with the cache off.", "error"), *buttons("idle"), base)
            return
        try:
            engine = first.scenario.engine.model_copy(update={"cache": "off"})
            second = Run(first.scenario.model_copy(update={"engine": engine}))
            self.worker.offer(second, beside=first)
        except (ValueError, BusyError) as error:
            yield (gr.skip(), text.message(str(error), "error"), *buttons("done"), base)
            return
        yield (gr.skip(), text.message("Running the same traffic with the cache off…", "busy"), *buttons("busy"), second.id)
        async for said in self._wait(second, "cache off: "):
            yield (gr.skip(), said, *[gr.skip()] * 5)
        if second.status != "done" or second.finished is None:
            yield (gr.skip(), _ended(second), *buttons("done"), first.id)
            return
        result = lay_side_by_side(
            first.scenario, [("cache on", {}), ("cache off", {"engine.cache": "off"})], [[first.finished], [second.finished]],
            order=[["cache on", "cache off"]], warm_up="measured speed once, before the arms",
        )  # fmt: skip
        whose = " of all replicas" if first.scenario.engine.replicas > 1 else ""
        ghost = {"label": f"cache off: pages in use{whose}", "points": pool_fill(second.finished.trace)}
        facts = ttft_pairs(result) | {"ghost": ghost}
        yield (shown_run(first, facts), text.message("Both arms are done: the same token ids, a fresh engine each."), *buttons("done"), first.id)

    def stop(self, id: str | None) -> str:
        """Stop the run that this page waits for."""
        run = self.worker.runs.get(id or "")
        if run is None or run.ended:
            return text.message("Nothing is running.")
        run.halt()
        return text.message("Stopping after this step…", "busy")

    # --- inside --------------------------------------------------------------------------------

    def _start(self, asked: tuple[Any, ...], stepping: bool) -> Run:
        run = Run(self.controls.read(self.controls.scenario_text(*asked)), gate=Gate(stepping))
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
        return self.worker.waits_for(run) if run.status == "queued" else f"Running: {run.reached} so far"

    def watch_model(self) -> tuple[Any, ...]:
        """Tell how far the model is, and another that is on its way."""
        model = self.worker.model
        return head.words(self.worker, "lab"), f"{model.serial} {model.status}", *self.picker.tell()

    def _recorded(self, name: str) -> str:
        run = self.worker.recorded(name)
        return shown_run(run) if run else json.dumps({"kind": "empty"})


def _after(run: Run) -> str:
    comparable = run.status == "done" and run.scenario is not None and run.scenario.engine.cache != "off"
    return "done" if comparable else "idle"


def _ended(run: Run) -> str:
    if run.status == "failed":
        return text.message(f"The run failed: {run.error}", "error")
    if run.status == "stopped":
        return text.message(f"Stopped{f': {run.error}' if run.error else '.'} What had happened until then is shown.")
    if run.report is None:
        return text.message("Done.")
    totals, refused = run.report.totals, _refused(run.report)
    if totals.hit_rate is None:
        return text.message(f"Done. {refused}".strip(), "error" if refused else "")
    told = simulated(run.report.header)
    how = f" {told}" if told else ""
    return text.message(
        f"Done: {totals.cached_tokens:,} of {totals.prompt_tokens:,} prompt tokens were reused ({totals.hit_rate:.0%}{totals.transfer}), "
        f"{totals.evictions} evictions, {totals.duration:.1f} s{how}. {refused}".strip()
    )


def _refused(report: Report) -> str:
    """Who was never served, and what the first of them would have needed."""
    names = [r for r in report.requests if r.status == "refused"]
    if not names:
        return ""
    first = names[0].refusal
    why = f": {names[0].id} needs {first.needed:,} {first.reason}, there are {first.available:,}" if first else ""
    return f"{len(names)} of {len(report.requests)} requests {'was' if len(names) == 1 else 'were'} refused{why}."
