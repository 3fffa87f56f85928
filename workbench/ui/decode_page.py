"""The Decode page: one request under a grammar, with jump-forward and plain beside it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import gradio as gr

from engine import events as ev
from engine.config import EngineConfig
from workbench import presets
from workbench import scenario as scenarios
from workbench.compare import warm_up_of
from workbench.ui import decode, grammar_place, head, text
from workbench.ui.grammar_place import TypedError
from workbench.ui.runs import BusyError, Run
from workbench.ui.worker import Worker

PRESETS = ("decode-record", "decode-address", "decode-date", "decode-enum", "decode-array")
OPENS_WITH = PRESETS[0]
LINE = 88
"""Characters in which a part of a schema is still written in one line."""
OWN = "My own"
KINDS = [("JSON schema", "json_schema"), ("Regex", "regex")]
SPACINGS = [("compact", "compact"), ("one space", "one-space"), ("pretty", "pretty")]
JUMPS = [("verified", "verified"), ("unverified", "unverified")]
FEW = 5
"""The model's top few that are told of each token."""
PAGES = 2048
MOST_TOKENS = 1024
LONGEST = 20_000
"""Characters of a prompt or a grammar."""
POLL = 0.15
ORDER = "Measured on a fresh engine each, after an unmeasured warm-up request: jump-forward first, then plain decoding, which found the masks of all states that jump-forward had visited."
ABOUT = (
    "A grammar lets through only tokens that can still become what it describes. Where it leaves one way on, jump-forward puts the whole run into "
    "one pass. Verified: the model checks the run, and the answer is that of plain decoding. Unverified: nobody looks."
)
TEMPLATE = '<div class="rd-root"></div>'
QUIET: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
TYPED = QUIET | {"trigger_mode": "always_last"}


class DecodePage:
    """Controls, prompt and grammar above; the picture below."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        title_of = {name: title for title, name in presets.titles().items()}
        self.titles = {title_of[name]: name for name in PRESETS}

    def build(self) -> None:
        """Lay out the page inside the current Blocks."""
        opening = asked_of(OPENS_WITH)
        top = head.build(self.worker, "decode")
        top.tick(lambda: head.words(self.worker, "decode"), None, top, **QUIET)
        with gr.Row(elem_id="controls", equal_height=False):
            title = next(t for t, n in self.titles.items() if n == OPENS_WITH)
            preset = gr.Dropdown(
                [*self.titles, OWN],
                value=title,
                label="What to decode",
                elem_id="preset-decode",
                scale=5,
                min_width=230,
            )
            kind = gr.Radio(KINDS, value=opening["kind"], label="Grammar", elem_id="kind", scale=0, min_width=176)
            spacing = gr.Radio(
                SPACINGS, value=opening["spacing"], label="Spacing", elem_id="spacing", scale=0, min_width=176
            )
            jump = gr.Radio(JUMPS, value="verified", label="Jump-forward", elem_id="jump", scale=0, min_width=176)
            cap = gr.Number(opening["cap"], label="Token cap", elem_id="cap", precision=0, scale=0, min_width=90)
            go = gr.Button("Run", variant="primary", elem_id="go", scale=0, min_width=80)
            stop = gr.Button("Stop", elem_id="stop", interactive=False, scale=0, min_width=70)
        with gr.Row(elem_id="asked", equal_height=False):
            prompt = gr.Textbox(
                opening["prompt"], label="Prompt", lines=6, max_lines=6, elem_id="prompt", scale=2, min_width=280
            )
            with gr.Column(scale=3, min_width=280):
                grammar = gr.Textbox(
                    opening["grammar"],
                    label="The answer has to match",
                    lines=6,
                    max_lines=9,
                    elem_id="grammar",
                    max_length=LONGEST,
                )
                wrong = gr.HTML("", elem_id="wrong-grammar", apply_default_css=False)
        said = gr.HTML(text.message(ABOUT), elem_id="said", apply_default_css=False)
        picture = gr.HTML(
            self.recorded(), elem_id="decode", html_template=TEMPLATE, apply_default_css=False, js_on_load=decode.read("host.js")
        )  # fmt: skip
        running = gr.State(None)

        boxes = [kind, prompt, grammar, spacing, cap]
        preset.input(self.choose, [preset], [*boxes, wrong], **QUIET)
        kind.change(lambda k: gr.Radio(visible=k == "json_schema"), [kind], [spacing], **QUIET)
        # `change` and not `input`: a paste is no input to Gradio. One listener for all: answers come in the order of the changes.
        gr.on(
            [box.change for box in (prompt, grammar, kind, spacing)],
            self.check,
            [preset, *boxes],
            [preset, wrong],
            **TYPED,
        )
        go.click(
            self.run, [preset, kind, prompt, grammar, spacing, jump, cap], [picture, said, wrong, go, stop, running],
            concurrency_limit=None, concurrency_id="decode-page", show_progress="hidden", api_visibility="private",
        )  # fmt: skip
        stop.click(self.stop, [running], [said], **QUIET)

    def recorded(self) -> str:
        """The recorded runs that the page opens on; nothing where there are none."""
        ids = {}
        for key, path in (
            ("run", presets.assets() / "decoding" / "jump.jsonl"),
            ("plain", presets.assets() / "decoding" / "plain.jsonl"),
        ):
            if not path.is_file():
                return ""
            ids[key] = f"recorded-decode-{path.stem}"
            self.worker.runs.add(Run.of_trace(ev.Trace.read(path), "recorded", ids[key]))
        return json.dumps(ids)

    def choose(self, title: str) -> tuple[Any, ...]:
        """Another preset: its prompt and grammar; what is one's own stays as it is."""
        name = self.titles.get(title)
        if name is None:
            return (gr.skip(),) * 6
        asked = asked_of(name)
        return asked["kind"], asked["prompt"], asked["grammar"], asked["spacing"], asked["cap"], ""

    def check(
        self, title: str, kind: str, prompt: str, grammar: str, spacing: str, cap: float | None
    ) -> tuple[Any, str]:
        """Whose prompt and grammar it is by now; and what is wrong with the grammar, nothing where it can be used."""
        name = self.titles.get(title)
        preset = asked_of(name) if name is not None else {}
        own = any(
            preset and preset[key] != value for key, value in (("kind", kind), ("prompt", prompt), ("grammar", grammar))
        )
        try:
            _, notes = grammar_place.read(kind, grammar, EngineConfig(spacing=spacing))
        except TypedError as error:
            return OWN if own else gr.skip(), grammar_place.shown(error, grammar)
        return OWN if own else gr.skip(), grammar_place.narrowed(notes)

    async def run(
        self, title: str, kind: str, prompt: str, grammar: str, spacing: str, jump: str, cap: float | None
    ) -> AsyncIterator[tuple[Any, ...]]:
        """Run both arms, one after the other, and show them."""
        idle = (gr.Button(interactive=True), gr.Button(interactive=False), None)
        try:
            asked, notes = grammar_place.read(kind, grammar, EngineConfig(spacing=spacing))
        except TypedError as error:
            yield (
                gr.skip(),
                text.message("The grammar cannot be used; see the note beneath it.", "error"),
                grammar_place.shown(error, grammar),
                *idle,
            )
            return
        done: list[Run] = []
        try:
            base = scenario_of(self.titles.get(title), prompt, asked, spacing, cap)
            arms = [arm(base, jump), arm(base, "off")]
            warm = warm_up_of(arms[0]).model_copy(update={"name": "warm-up"})
            for job, what in (
                (warm, "warming up (not measured)"),
                (arms[0], "with jump-forward"),
                (arms[1], "plain, to compare"),
            ):
                run = Run(job, few=FEW)
                self.worker.offer(run, beside=done[0] if done else None)
                yield (
                    gr.skip(),
                    text.message(f"Running: {what}", "busy"),
                    grammar_place.narrowed(notes),
                    gr.Button(interactive=False),
                    gr.Button(interactive=True),
                    run.id,
                )
                while not run.ended:
                    await asyncio.sleep(POLL)
                if job is warm:
                    self.worker.runs.drop(run.id)
                failed = refusal(run)
                if failed:
                    yield (
                        gr.skip(),
                        text.message(failed, "info" if run.status == "stopped" else "error"),
                        gr.skip(),
                        *idle,
                    )
                    return
                if job is not warm:
                    done.append(run)
        except (ValueError, BusyError) as error:
            yield (gr.skip(), text.message(str(error), "error"), gr.skip(), *idle)
            return
        shown = json.dumps({"run": done[0].id, "plain": done[1].id})
        yield (
            shown,
            text.message("Done. Arrow keys step through the answer; a click looks at one token."),
            gr.skip(),
            *idle,
        )

    def stop(self, id: str | None) -> str:
        """Stop the arm that is running, and with it the rest."""
        run = self.worker.runs.get(id or "")
        if run is None or run.ended:
            return text.message("Nothing is running.")
        run.halt()
        return text.message("Stopping after this step…", "busy")


def asked_of(name: str) -> dict[str, Any]:
    """What a preset fills the boxes with."""
    scenario = scenarios.load(name)
    request = scenario.requests[0]
    kind = "regex" if request.regex is not None else "json_schema"
    grammar = request.regex if request.regex is not None else in_lines(request.json_schema)
    prompt = request.messages[-1]["content"] if request.messages else request.prompt
    return {
        "kind": kind,
        "prompt": prompt,
        "grammar": grammar,
        "spacing": scenario.engine.spacing,
        "cap": request.max_new_tokens,
    }


def in_lines(part: Any, indent: str = "") -> str:
    """A schema as JSON, what is short in one line."""
    flat = json.dumps(part, ensure_ascii=False)
    if not isinstance(part, dict) or len(flat) + len(indent) <= LINE:
        return flat
    inner = f"{indent}  "
    members = [f"{inner}{json.dumps(key, ensure_ascii=False)}: {in_lines(value, inner)}" for key, value in part.items()]
    return "{\n" + ",\n".join(members) + f"\n{indent}}}"


def scenario_of(
    name: str | None, prompt: str, asked: dict[str, Any], spacing: str, cap: float | None
) -> scenarios.Scenario:
    """One request as the page asks for it. Raises ScenarioError."""
    if not prompt.strip():
        raise scenarios.ScenarioError("prompt: write what the model is asked")
    if len(prompt) > LONGEST:
        raise scenarios.ScenarioError(f"prompt: {len(prompt):,} characters; at most {LONGEST:,} are taken here")
    if cap is None or not 1 <= cap <= MOST_TOKENS or cap != int(cap):
        raise scenarios.ScenarioError(f"token cap: must be a whole number from 1 to {MOST_TOKENS}; got {cap}")
    request = {"id": "R1", "messages": [{"role": "user", "content": prompt}], "max_new_tokens": int(cap), **asked}
    engine = {"executor": "model", "pages": PAGES, "spacing": spacing}
    return scenarios.parse({"name": name or "decode-own", "note": ORDER, "engine": engine, "requests": [request]})


def arm(base: scenarios.Scenario, jump: str) -> scenarios.Scenario:
    """The same request, the engine jumping in this way."""
    return base.model_copy(update={"engine": base.engine.model_copy(update={"jump": jump})})


def refusal(run: Run) -> str | None:
    """Why a run has nothing to show, if it has not."""
    if run.status == "stopped":
        return "Stopped; what was shown before still stands."
    if run.finished is None or run.status == "failed":
        return f"The run failed: {run.error}"
    report = run.finished.report.requests[0]
    if report.status == "refused" and report.refusal is not None:
        why = next((e.error for e in run.finished.trace.events if getattr(e, "error", None)), None)
        return (
            why
            or f"Refused: it needs {report.refusal.needed:,} {report.refusal.reason}, there are {report.refusal.available:,}."
        )
    return f"The run failed: {report.error}" if report.error else None
