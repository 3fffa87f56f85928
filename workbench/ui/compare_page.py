"""The Compare page: the same traffic under two to four configurations, laid side by side when all have run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from importlib import resources
from typing import Any

import gradio as gr

from workbench import presets
from workbench import scenario as scenarios
from workbench.compare import arms_of, lay_side_by_side, parse_arm, warm_up_of
from workbench.figures import paired
from workbench.runner import Run as Finished
from workbench.ui import head, text
from workbench.ui.compared import KEPT, Asked, Compared, Kept, table_of, words_of
from workbench.ui.runs import BusyError, Run
from workbench.ui.worker import Worker

OWN = "Arms of my own"
QUESTIONS = {
    "Cache on against off": "on:engine.cache=radix\noff:engine.cache=off",
    "First come, first served against longest prefix first": "fcfs:engine.policy=fcfs\nlpm:engine.policy=lpm",
    "Pages of 1, 4 and 16 tokens": "page 1:engine.page_size=1\npage 4:engine.page_size=4\npage 16:engine.page_size=16",
    "A tree to the token against hashed blocks of 16": "tree:engine.cache=radix,engine.page_size=1\nblocks:engine.cache=blocks,engine.page_size=16",
    "Blocks evicted from a prompt's end against from its beginning": "end first:engine.cache=blocks,engine.block_order=tail-first\nbeginning first:engine.cache=blocks,engine.block_order=head-first",
    "Prompts whole against in chunks of 64": "whole:engine.chunk=null\nchunks:engine.chunk=64",
    "Three replicas: the cache-aware router against one that takes them in turn": "aware:engine.replicas=3,engine.router=cache-aware\nin turn:engine.replicas=3,engine.router=round-robin",
    OWN: "",
}
POLL = 0.15
MOST_ARMS, MOST_REPEATS = 4, 5


class ComparePage:
    """Controls above, one sentence, three charts and a table below."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.titles = presets.titles()
        self.kept = Kept()

    def build(self) -> None:
        """Lay out the page inside the current Blocks."""
        top = head.build(self.worker, "compare")
        top.tick(lambda: head.words(self.worker, "compare"), None, top, queue=False, show_progress="hidden", api_visibility="private")
        with gr.Row(elem_id="controls", equal_height=False):
            preset = gr.Dropdown(list(self.titles), value=next(t for t, n in self.titles.items() if n == "passages"),
                                 label="Traffic", elem_id="preset", scale=4, min_width=280)  # fmt: skip
            question = gr.Dropdown(list(QUESTIONS), value=next(iter(QUESTIONS)), label="What differs", elem_id="question", scale=4, min_width=280)
            repeats = gr.Number(1, label="Repeats, order alternated", elem_id="repeats", precision=0, scale=1, min_width=150)
            go = gr.Button("Compare", variant="primary", elem_id="go", scale=1, min_width=110)
            stop = gr.Button("Stop", elem_id="stop", interactive=False, scale=1, min_width=80)
        arms = gr.Textbox(
            QUESTIONS[next(iter(QUESTIONS))], label="Arms, one a line: name:key=value,key=value (engine.* keys; page size keeps the number of pages)",
            lines=2, max_lines=4, elem_id="arms",
        )  # fmt: skip
        said = gr.HTML(text.message("Choose what differs and press Compare: each arm gets a fresh engine and the same token ids."), elem_id="said", apply_default_css=False)
        with gr.Column(visible=False, elem_id="results") as results:
            words = gr.HTML(elem_id="words", apply_default_css=False)
            with gr.Row():
                with gr.Column(min_width=320):
                    gr.HTML("<h2 class='rw-h2'>Time to first token, the same request in every arm</h2>", apply_default_css=False)
                    dots = gr.Plot(show_label=False, elem_id="dots")
                with gr.Column(min_width=320):
                    gr.HTML("<h2 class='rw-h2'>How many had their first token by then</h2>", apply_default_css=False)
                    shares = gr.Plot(show_label=False, elem_id="shares")
                    gr.HTML("<h2 class='rw-h2'>What each arm computed</h2>", apply_default_css=False)
                    bars = gr.Plot(show_label=False, elem_id="bars")
            table = gr.HTML(elem_id="pairs", apply_default_css=False)
        # Outside of what is hidden at first: its script runs as soon as the page is there.
        address = gr.HTML(
            "", elem_id="address", html_template="", apply_default_css=False,
            js_on_load=resources.files(__package__).joinpath("compared.js").read_text(encoding="utf-8"),
        )  # fmt: skip
        running = gr.State(None)
        shown = [said, results, words, dots, shares, bars, table, address]

        address.opened(self.reopen, None, [*shown, preset, question, arms, repeats], queue=False, show_progress="hidden", api_visibility="private")
        arms.input(lambda: OWN, None, question, queue=False, show_progress="hidden", api_visibility="private")
        question.input(lambda q: QUESTIONS[q] or gr.skip(), question, arms, queue=False, show_progress="hidden", api_visibility="private")
        go.click(
            self.compare, [preset, question, arms, repeats], [*shown, go, stop, running],
            concurrency_limit=None, concurrency_id="compare-page", show_progress="hidden", api_visibility="private",
        )  # fmt: skip
        stop.click(self.stop, [running], [said], queue=False, show_progress="hidden", api_visibility="private")

    async def compare(self, title: str, question: str, lines: str, repeats: float | None) -> AsyncIterator[tuple[Any, ...]]:
        """Run every arm, repeat by repeat, and show what came out."""
        keep = [gr.skip()] * 7
        try:
            scenario, arms, rounds = self._asked(title, lines, repeats)
            each = arms_of(scenario, arms)
        except ValueError as error:
            yield (text.message(str(error), "error"), *keep, gr.Button(interactive=True), gr.Button(interactive=False), None)
            return
        names = [n for n, _ in arms]
        finished: list[list[Finished]] = [[] for _ in arms]
        latest: dict[int, tuple[str, int]] = {}
        order: list[list[str]] = []
        warm = None
        jobs: list[tuple[int | None, scenarios.Scenario, str]] = []
        if scenario.engine.executor == "model":
            warm = "one unmeasured request before the arms"
            jobs.append((None, warm_up_of(each[0]), "warming up (not measured)"))
        for repeat in range(rounds):
            ranks = list(range(len(arms)))[:: -1 if repeat % 2 else 1]
            order.append([names[i] for i in ranks])
            jobs += [(i, each[i], f"arm {names[i]}, run {repeat + 1} of {rounds}") for i in ranks]
        first: Run | None = None
        for arm, job, what in jobs:
            run = Run(job)
            try:
                self.worker.offer(run, beside=first)
            except (ValueError, BusyError) as error:
                yield (text.message(str(error), "error"), *keep, gr.Button(interactive=True), gr.Button(interactive=False), None)
                return
            yield (text.message(f"Running: {what}", "busy"), *keep, gr.Button(interactive=False), gr.Button(interactive=True), run.id)
            while not run.ended:
                await asyncio.sleep(POLL)
            if run.finished is None or run.status != "done":
                why = "Stopped; nothing is compared." if run.status == "stopped" else f"{what} failed: {run.error}"
                yield (text.message(why, "info" if run.status == "stopped" else "error"), *keep, gr.Button(interactive=True), gr.Button(interactive=False), None)
                return
            first = first or run
            if arm is not None:
                finished[arm].append(run.finished)
                latest[arm] = (run.id, len(run.lines) - 1)
        result = lay_side_by_side(scenario, arms, finished, order, warm)
        compared = Compared(Asked(title, question, lines, rounds), result, [latest[i] for i in range(len(arms))])
        self.kept.add(compared)
        said = f"Done: {len(arms)} arms, {rounds} run{'s' if rounds > 1 else ''} each, a fresh engine each, the same token ids."
        yield (text.message(said), *_shown(compared), gr.Button(interactive=True), gr.Button(interactive=False), None)

    def reopen(self, event: gr.EventData) -> tuple[Any, ...]:
        """Show the comparison that the page's address names, or say that it is gone."""
        compared = self.kept.get(str(event.id))
        if compared is None:
            gone = f"The comparison of this address is gone: the server keeps the last {KEPT}, as long as it runs. Press Compare to make one."
            return (text.message(gone, "error"), *[gr.skip()] * 11)
        asked = compared.asked
        return (text.message("The comparison of this address, as it was made."), *_shown(compared), asked.traffic, asked.question, asked.arms, asked.repeats)

    def stop(self, id: str | None) -> str:
        """Stop the arm that is running, and with it the comparison."""
        run = self.worker.runs.get(id or "")
        if run is None or run.ended:
            return text.message("Nothing is running.")
        run.stop.set()
        return text.message("Stopping after this step…", "busy")

    def _asked(self, title: str, lines: str, repeats: float | None) -> tuple[scenarios.Scenario, list[tuple[str, dict[str, Any]]], int]:
        if title not in self.titles:
            raise scenarios.ScenarioError("traffic: choose one from the list")
        arms = [parse_arm(line.strip()) for line in lines.splitlines() if line.strip()]
        if not 2 <= len(arms) <= MOST_ARMS:
            raise scenarios.ScenarioError(f"arms: write 2 to {MOST_ARMS}, one a line; got {len(arms)}")
        if repeats is None or not 1 <= int(repeats) <= MOST_REPEATS:
            raise scenarios.ScenarioError(f"repeats: must be 1 to {MOST_REPEATS}; got {repeats}")
        for _, change in arms:
            if "engine.model" in change or "engine.executor" in change:
                raise scenarios.ScenarioError("arms: model and executor are the page's own; change another key")
        return scenarios.load(self.titles[title]), arms, int(repeats)


def _shown(compared: Compared) -> tuple[Any, ...]:
    """Words, charts, table and address of a comparison."""
    result = compared.result
    charts = paired.paired_dots(result), paired.distributions(result), paired.computed(result)
    return (gr.Column(visible=True), words_of(result), *charts, table_of(result), compared.address())
