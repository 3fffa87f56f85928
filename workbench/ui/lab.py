"""The first page: choose a preset, run it on the real engine, scrub through it, compare with the cache off."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from importlib import resources
from typing import Any

import gradio as gr

from workbench import presets
from workbench import scenario as scenarios
from workbench.compare import lay_side_by_side
from workbench.estimate import estimate
from workbench.figures.ttft import ttft_pairs
from workbench.ui import text
from workbench.ui.compare_page import ComparePage
from workbench.ui.runs import BusyError, Run
from workbench.ui.worker import Worker

OPENS_WITH = "handbook"
POLL = 0.15
"""Seconds between two looks at a run that the page waits for."""

TEMPLATE = '<div class="rw-stage"><div class="rw-player"></div><section class="rw-compare" aria-label="First token, cache on against off"></section></div>'


class Lab:
    """The page's controls and what they do. State lives in the runs; the page holds run ids only."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.titles = presets.titles()

    def build(self) -> gr.Blocks:
        """The Gradio page."""
        with gr.Blocks(title="Radix Workbench", analytics_enabled=False, fill_width=True) as page:
            gr.Navbar(visible=False)
            head = gr.HTML(text.header(self.worker.model, "lab"), elem_id="head", apply_default_css=False)
            base = gr.State(None)
            with gr.Row(elem_id="controls", equal_height=False):
                names = list(self.titles)
                opens = next(t for t, n in self.titles.items() if n == OPENS_WITH)
                preset = gr.Dropdown(names, value=opens, label="What happens when…", elem_id="preset", scale=5, min_width=280)
                cache = gr.Radio(["radix", "off"], value="radix", label="Cache", elem_id="cache", scale=1, min_width=150)
                policy = gr.Radio(["fcfs", "lpm"], value="fcfs", label="Policy", elem_id="policy", scale=1, min_width=150)
                pages = gr.Number(2048, label="Pool, tokens", elem_id="pages", precision=0, scale=1, min_width=110)
                run = gr.Button("Run", variant="primary", elem_id="run", scale=1, min_width=90)
                stop = gr.Button("Stop", elem_id="stop", interactive=False, scale=1, min_width=80)
                off = gr.Button("Same traffic, cache off", elem_id="compare", interactive=False, scale=2, min_width=190)
            note = gr.HTML(elem_id="note", apply_default_css=False)
            said = gr.HTML(text.message(""), elem_id="said", apply_default_css=False)
            player = gr.HTML(
                self._recorded(OPENS_WITH), elem_id="player", html_template=TEMPLATE,
                js_on_load=resources.files(__package__).joinpath("host.js").read_text(encoding="utf-8"),
                apply_default_css=False,
            )  # fmt: skip
            timer = gr.Timer(0.7)

            knobs = [preset, cache, policy, pages]
            page.load(self.describe, knobs, [note], queue=False, show_progress="hidden")
            timer.tick(self.watch_model, knobs, [head, note, said, timer], queue=False, show_progress="hidden")
            preset.input(self.choose, [preset], [cache, policy, pages, note, said, player, off, base], queue=False, show_progress="hidden")
            for knob in (cache, policy, pages):
                knob.change(self.describe, knobs, [note], queue=False, show_progress="hidden")
            gr.on(
                [run.click], self.run, knobs, [player, said, run, stop, off, base],
                concurrency_limit=None, concurrency_id="run", show_progress="hidden",
            )  # fmt: skip
            stop.click(self.stop, [base], [said], queue=False, show_progress="hidden")
            off.click(
                self.compare, [base], [player, said, run, stop, off, base],
                concurrency_limit=None, concurrency_id="compare", show_progress="hidden",
            )  # fmt: skip
        with page.route("Compare", "/compare", show_in_navbar=False):
            gr.Navbar(visible=False)
            ComparePage(self.worker).build()
        return page

    # --- what the controls do ------------------------------------------------------------------

    def scenario(self, title: str, cache: str, policy: str, pages: float | None) -> scenarios.Scenario:
        """The preset with the page's knobs set. Raises ScenarioError for values that cannot be."""
        name = self.titles.get(title)
        if name is None:
            raise scenarios.ScenarioError("preset: choose one from the list")
        if pages is None:
            raise scenarios.ScenarioError("pool: give a number of tokens, 1 or more")
        return scenarios.load(name, {"engine.cache": cache, "engine.policy": policy, "engine.pages": int(pages)})

    def describe(self, *knobs: Any) -> str:
        """The preset's note and what a run will take, or what is wrong with the knobs."""
        try:
            scenario = self.scenario(*knobs)
            model = self.worker.model
            return text.note(scenario, estimate(scenario, model.loaded, model.rates), model)
        except ValueError as error:
            return text.message(str(error), "error")

    def watch_model(self, *knobs: Any) -> tuple[Any, ...]:
        """Tell how far the model is; stop asking once that is settled."""
        model = self.worker.model
        settled = model.status != "loading"
        said = text.failure(model) if model.status == "failed" else gr.skip()
        return text.header(model, "lab"), self.describe(*knobs) if settled else gr.skip(), said, gr.Timer(active=not settled)

    def choose(self, title: str) -> tuple[Any, ...]:
        """Another preset: its own knobs, and its recorded run where there is one."""
        name = self.titles[title]
        engine = scenarios.load(name).engine
        knobs = (title, engine.cache, engine.policy, engine.pages)
        shown = self._recorded(name) if presets.recorded_path(name) else gr.skip()
        return (
            engine.cache, engine.policy, engine.pages, self.describe(*knobs), text.message(""), shown,
            gr.Button(interactive=False), None,
        )  # fmt: skip

    async def run(self, *knobs: Any) -> AsyncIterator[tuple[Any, ...]]:
        """Run the preset; the player follows by itself, this waits for the end."""
        running = (gr.Button(interactive=False), gr.Button(interactive=True), gr.Button(interactive=False))
        idle = (gr.Button(interactive=True), gr.Button(interactive=False))
        try:
            run = Run(self.scenario(*knobs))
            self.worker.offer(run)
        except (ValueError, BusyError) as error:
            yield (gr.skip(), text.message(str(error), "error"), *idle, gr.Button(interactive=False), None)
            return
        yield (_live(run), text.message(_waiting(run), "busy"), *running, run.id)
        async for said in self._wait(run):
            yield (gr.skip(), said, *[gr.skip()] * 4)
        comparable = run.status == "done" and run.scenario.engine.cache != "off"
        yield (gr.skip(), _ended(run), *idle, gr.Button(interactive=comparable), run.id)

    async def compare(self, base: str | None) -> AsyncIterator[tuple[Any, ...]]:
        """The same traffic with the cache off, on a fresh engine, laid beside the run that is shown."""
        idle = (gr.Button(interactive=True), gr.Button(interactive=False), gr.Button(interactive=True))
        first = self.worker.runs.get(base or "")
        if first is None or first.finished is None:
            yield (gr.skip(), text.message("Run the preset first; then its traffic can be repeated with the cache off.", "error"), *idle, base)
            return
        try:
            engine = first.scenario.engine.model_copy(update={"cache": "off"})
            second = Run(first.scenario.model_copy(update={"engine": engine}))
            self.worker.offer(second)
        except (ValueError, BusyError) as error:
            yield (gr.skip(), text.message(str(error), "error"), *idle, base)
            return
        yield (
            gr.skip(), text.message("Running the same traffic with the cache off…", "busy"),
            gr.Button(interactive=False), gr.Button(interactive=True), gr.Button(interactive=False), second.id,
        )  # fmt: skip
        async for said in self._wait(second, "cache off: "):
            yield (gr.skip(), said, *[gr.skip()] * 4)
        if second.status != "done" or second.finished is None:
            yield (gr.skip(), _ended(second), *idle, first.id)
            return
        result = lay_side_by_side(
            first.scenario, [("cache on", {}), ("cache off", {"engine.cache": "off"})], [[first.finished], [second.finished]],
            order=[["cache on", "cache off"]], warm_up="measured speed once, before the arms",
        )  # fmt: skip
        yield (_live(first, ttft_pairs(result)), text.message("Both arms are done: the same token ids, a fresh engine each."), *idle, first.id)

    def stop(self, id: str | None) -> str:
        """Stop the run that this page waits for."""
        run = self.worker.runs.get(id or "")
        if run is None or run.ended:
            return text.message("Nothing is running.")
        run.stop.set()
        return text.message("Stopping after this step…", "busy")

    # --- inside --------------------------------------------------------------------------------

    async def _wait(self, run: Run, prefix: str = "") -> AsyncIterator[str]:
        """Say something new whenever there is something new to say, until the run has ended."""
        last = ""
        while not run.ended:
            now = prefix + _waiting(run)
            if now != last:
                last = now
                yield text.message(now, "busy")
            await asyncio.sleep(POLL)

    def _recorded(self, name: str) -> str:
        if presets.recorded_path(name) is None:
            return json.dumps({"kind": "empty"})
        return json.dumps({"kind": "recorded", "run": f"recorded-{name}", "url": f"/recorded/{name}"})


def _live(run: Run, compare: dict[str, Any] | None = None) -> str:
    return json.dumps({"kind": "live", "run": run.id, "url": f"/runs/{run.id}/events", "compare": compare})


def _waiting(run: Run) -> str:
    if run.status == "queued":
        return "Waiting for the engine…"
    return f"Running: {len(run.lines):,} events so far"


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
