"""The Compare page: the same traffic under two to four configurations, laid side by side when all have run."""

from __future__ import annotations

import asyncio
import html
from collections.abc import AsyncIterator
from typing import Any

import gradio as gr

from workbench import presets
from workbench import scenario as scenarios
from workbench.compare import Comparison, arms_of, lay_side_by_side, parse_arm, warm_up_of
from workbench.figures import paired
from workbench.figures.ttft import sentence
from workbench.runner import Run as Finished
from workbench.ui import head, text
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
    OWN: "",
}
POLL = 0.15
MOST_ARMS, MOST_REPEATS = 4, 5


class ComparePage:
    """Controls above, one sentence, three charts and a table below."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.titles = presets.titles()

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
        running = gr.State(None)

        arms.input(lambda: OWN, None, question, queue=False, show_progress="hidden", api_visibility="private")
        question.input(lambda q: QUESTIONS[q] or gr.skip(), question, arms, queue=False, show_progress="hidden", api_visibility="private")
        go.click(
            self.compare, [preset, arms, repeats], [said, results, words, dots, shares, bars, table, go, stop, running],
            concurrency_limit=None, concurrency_id="compare-page", show_progress="hidden", api_visibility="private",
        )  # fmt: skip
        stop.click(self.stop, [running], [said], queue=False, show_progress="hidden", api_visibility="private")

    async def compare(self, title: str, lines: str, repeats: float | None) -> AsyncIterator[tuple[Any, ...]]:
        """Run every arm, repeat by repeat, and show what came out."""
        keep = [gr.skip()] * 6
        try:
            scenario, arms, rounds = self._asked(title, lines, repeats)
            each = arms_of(scenario, arms)
        except ValueError as error:
            yield (text.message(str(error), "error"), *keep, gr.Button(interactive=True), gr.Button(interactive=False), None)
            return
        names = [n for n, _ in arms]
        finished: list[list[Finished]] = [[] for _ in arms]
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
        result = lay_side_by_side(scenario, arms, finished, order, warm)
        yield (
            text.message(f"Done: {len(arms)} arms, {rounds} run{'s' if rounds > 1 else ''} each, a fresh engine each, the same token ids."),
            gr.Column(visible=True), words_of(result), paired.paired_dots(result), paired.distributions(result), paired.computed(result),
            table_of(result), gr.Button(interactive=True), gr.Button(interactive=False), None,
        )  # fmt: skip

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


def words_of(result: Comparison) -> str:
    """The honest sentences: what was saved, whether outputs agree, where the arms part first."""
    lines = []
    off = len(result.arms) == 2 and result.arms[1].report.header.config.get("cache") == "off"
    lines.append(sentence(result) if off else _soonest(result))
    for arm in result.arms:
        t = arm.report.totals
        rate = "unknown" if t.hit_rate is None else f"{t.hit_rate:.0%}"
        middle = "unknown" if t.ttft.p50 is None else f"{t.ttft.p50:.3f} s"
        lines.append(f"{arm.name}: {t.cached_tokens:,} of {t.prompt_tokens:,} prompt tokens reused ({rate}), median TTFT {middle}, {t.evictions} evictions, {t.duration:.2f} s in all.")
    lines.append("The answers are identical in all arms, token for token." if result.outputs_equal else _parting(result))
    if result.first_decision:
        lines.append(f"First decision that differs: {result.first_decision.why}.")
    if result.warm_up:
        lines.append(f"Warm-up: {result.warm_up}. Order: {'; '.join(', '.join(o) for o in result.order)}.")
    return "".join(f'<p class="{"rw-lead" if i == 0 else "rw-fine"}">{html.escape(line)}</p>' for i, line in enumerate(lines))


def _soonest(result: Comparison) -> str:
    """Which arm had its first tokens soonest, by the medians."""
    medians = sorted((a.report.totals.ttft.p50, a.name) for a in result.arms if a.report.totals.ttft.p50 is not None)
    if not medians:
        return "No request had a first token."
    simulated = " (medians, simulated)" if result.arms[0].report.header.clock == "virtual" else " (medians)"
    (best, name), (worst, last) = medians[0], medians[-1]
    if not best or worst / best < 1.01:
        return f"The first token came at the same time in every arm: after {best:.3f} s{simulated}."
    return f"With {name} the first token came {worst / best:.1f} times sooner than with {last}: after {best:.3f} s against {worst:.3f} s{simulated}."


def _parting(result: Comparison) -> str:
    d = result.first_difference
    if d is None:
        return "The answers differ."
    gap = "unknown" if d.gap is None else f"{d.gap:.4f}"
    return f"The answers differ first in {d.request}, at output token {d.position + 1}; the gap between the first arm's two best tokens there was {gap} (log-probability)."


def table_of(result: Comparison) -> str:
    """Every request in every arm: TTFT and its share of the whole request."""
    head = "".join(f"<th scope='col'>{html.escape(a.name)}: TTFT</th><th scope='col'>of its whole time</th>" for a in result.arms)
    rows = []
    for pair in result.paired:
        cells = "".join(
            f"<td>{'-' if t is None else f'{t:.3f} s'}</td><td>{'-' if s is None else f'{s:.0%}'}</td>"
            for t, s in zip(pair.ttft, pair.share_of_total, strict=True)
        )
        rows.append(f"<tr><th scope='row'>{html.escape(pair.id)}</th>{cells}</tr>")
    return f"<div class='rw-scroll'><table class='rw-table'><thead><tr><th scope='col'>request</th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
