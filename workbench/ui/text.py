"""Small pieces of HTML for the page. Everything that comes from outside is escaped here."""

from __future__ import annotations

import html

from workbench.estimate import Estimate
from workbench.scenario import Scenario
from workbench.times import measured
from workbench.ui.serving import ModelState

PAGES = (("lab", "Lab", "/"), ("compare", "Compare", "/compare"), ("decode", "Decode", "/decode"), ("experiments", "Experiments", "/experiments"), ("lessons", "Lessons", "/lessons"))


def header(model: ModelState, coming: ModelState | None, page: str, mark: str) -> str:
    """The page's head: name, the other pages, and which model on which device, or how far it is; `mark` names what it tells."""
    links = "".join(
        f'<a href="{where}"{" aria-current=page" if name == page else ""}>{words}</a>' for name, words, where in PAGES
    )
    return (
        f'<header class="rw-head" data-mark="{html.escape(mark)}"><svg width="22" height="22" viewBox="0 0 22 22" aria-hidden="true">'
        '<path d="M11 2v6M11 8 5 14M11 8l6 6M5 14v5M17 14l-3 5M17 14l3 5" stroke="currentColor" '
        'stroke-width="2.2" fill="none" stroke-linecap="round"/></svg><h1>Radix Workbench</h1>'
        f'<nav aria-label="Pages">{links}</nav><span class="rw-grow"></span>{next_chip(coming)}{chip(model)}</header>'
        + (failure(model) if model.status == "failed" else "")
    )


def chip(state: ModelState) -> str:
    """One line about the model in use."""
    if state.status == "ready":
        words = f"{state.shown} · {state.runs_on} · {state.runs_in}"
        return f'<span class="rw-chip" id="model-chip" data-status="ready">{html.escape(words)}</span>'
    if state.status == "failed":
        return '<span class="rw-chip rw-bad" id="model-chip" data-status="failed">no model: recorded and scripted runs only</span>'
    return f'<span class="rw-chip" id="model-chip" data-status="loading" role="status">model: {html.escape(state.progress)}</span>'


def next_chip(coming: ModelState | None) -> str:
    """One line about a model that will take over."""
    if coming is None or coming.status != "loading":
        return ""
    return f'<span class="rw-chip" id="next-chip" role="status">next: {html.escape(coming.progress)}</span>'


def note(scenario: Scenario, guess: Estimate, state: ModelState) -> str:
    """What to watch in a preset, and what a run will take."""
    cost = []
    if scenario.engine.executor == "model":
        if guess.seconds is not None:
            cost.append(f"about {max(1, round(guess.seconds))} s an arm if nothing is reused (estimated from this machine's measured speed)")
        else:
            cost.append("time known once the model is loaded")
        if guess.kv_bytes is not None:
            cost.append(f"{guess.kv_bytes / 1e6:.0f} MB of KV cache")
    elif scenario.engine.executor == "cost":
        cost.append(f"no model; a roofline says what each step takes, {_machine(scenario)}; simulated time")
    else:
        cost.append("scripted model, simulated time, a second or less")
    if guess.prompt_tokens:
        cost.append(f"{guess.prompt_tokens:,} prompt tokens, {guess.output_tokens} to answer at most")
    told = "".join(f'<p class="rw-cost rw-told">Workload: {html.escape(line)}.</p>' for line in scenario.told)
    return (
        f'<p class="rw-note">{html.escape(scenario.note or "")}</p>{told}'
        f'<p class="rw-cost" id="estimate">One run: {html.escape(", ".join(cost))}.</p>'
    )


def _machine(scenario: Scenario) -> str:
    """The machine that a scenario simulates."""
    if measured(scenario.engine):
        return "calibrated on this machine (once, under a minute)"
    return f"of {scenario.engine.hardware}"


def message(text: str, kind: str = "info", id: str = "message") -> str:
    """A line for the status place; `kind` is info, busy or error."""
    role = "alert" if kind == "error" else "status"
    return f'<p class="rw-message rw-{kind}" id="{id}" data-kind="{kind}" role="{role}">{html.escape(text)}</p>'


def failure(state: ModelState) -> str:
    """Why there is no model."""
    return message(f"The model could not be loaded: {state.error}. Recorded runs and scripted presets work without it.", "error", "model-failure")
