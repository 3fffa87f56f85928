"""What a browser may ask for: scenarios within bounds, on the model that is loaded, and uploaded files within reason."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine import events as ev
from workbench import scenario as scenarios
from workbench.replay import ReplayError, fold
from workbench.replicas import count, split
from workbench.scenario import Scenario, ScenarioError
from workbench.ui.serving import ModelState, Offer, check_model
from workbench.workloads import Uploads

REQUESTS, TOKENS, OUTPUTS, SLOTS = 256, 262_144, 16_384, 262_144
"""Most requests, prompt tokens, output tokens and KV slots of one run from a browser."""
CHARACTERS = 1_000_000
"""Longest scenario text."""
UPLOAD = 50_000_000
"""Largest upload, in bytes."""
PAGES = 4_194_304
"""Most pages of an uploaded trace: each is a cell of the picture."""
REPLICAS = 64
"""Most replicas of an uploaded trace."""

OWN_PREFIX = "You are the keeper of a small observatory. Answer in one short sentence.\n\nThe dome opens at dusk, unless it rains. Visitors bring warm coats; the telescope stands in the cold. Children may look first. The moon is best seen when it is half full."
OWN_QUESTIONS = "When does the dome open?\nWhat should I wear?\nWho may look first?"


def scenario_from_text(text: str, model: ModelState, offers: Sequence[Offer], uploads: Uploads | None = None) -> Scenario:
    """A scenario typed or pasted into the page. Raises ScenarioError."""
    if len(text) > CHARACTERS:
        raise ScenarioError(f"the scenario has {len(text):,} characters; at most {CHARACTERS:,} are taken here")
    scenario = scenarios.parse_text(text, uploads=uploads)
    check_model(scenario, model, offers)
    check_size(scenario)
    return scenario


def check_size(scenario: Scenario) -> None:
    """Hold a scenario to what one page may ask of the shared engine. Raises ScenarioError."""
    engine = scenario.engine
    for what, has, most in (
        ("requests", len(scenario.requests), REQUESTS),
        ("prompt tokens (a character counts as one before the text is tokenised)", sum(_size(r) for r in scenario.requests), TOKENS * 4),
        ("output tokens (sum of max_new_tokens)", sum(r.max_new_tokens for r in scenario.requests), OUTPUTS),
        ("pages x page_size", engine.pages * engine.page_size, SLOTS),
    ):
        if has > most:
            raise ScenarioError(f"the scenario asks for {has:,} {what}; at most {most:,} are served here")


def _size(request: scenarios.RequestSpec) -> int:
    if request.tokens is not None:
        return len(request.tokens) * 4
    if request.prompt is not None:
        return len(request.prompt)
    return sum(len(m.get("content", "")) for m in request.messages or [])


def own_scenario(prefix: str, questions: str) -> dict[str, Any]:
    """A shared prefix and one question a line, as a scenario's data. Raises ScenarioError when there is no question."""
    lines = [q.strip() for q in questions.splitlines() if q.strip()]
    if not lines:
        raise ScenarioError("questions: write at least one, one a line")
    requests = []
    for i, question in enumerate(lines):
        messages = [{"role": "system", "content": prefix}] if prefix.strip() else []
        requests.append(
            {
                "id": f"R{i + 1}", "label": question[:60], "max_new_tokens": 16,
                "messages": [*messages, {"role": "user", "content": question}],
                **({"after": f"R{i}"} if i else {"at": 0}),
            }
        )  # fmt: skip
    return {
        "name": "my-own", "note": "Your own prefix and questions, one after the other.",
        "engine": {"executor": "model", "pages": 2048}, "requests": requests,
    }  # fmt: skip


def read_trace(path: str | Path) -> ev.Trace:
    """An uploaded trace, whole and consistent. Raises ScenarioError with one sentence saying what is wrong."""
    size = Path(path).stat().st_size
    if size > UPLOAD:
        raise ScenarioError(f"the file has {size / 1e6:.0f} MB; at most {UPLOAD / 1e6:.0f} MB are taken here")
    try:
        trace = ev.Trace.read(path)
        _check_shape(trace)
        for part in split(trace.events, count(trace.header)):
            fold(part)
    except (ev.TraceError, ReplayError) as error:
        raise ScenarioError(f"this is not a trace that can be shown: {error}") from None
    except RecursionError:
        raise ScenarioError("this is not a trace that can be shown: a line is nested too deeply") from None
    return trace


def _check_shape(trace: ev.Trace) -> None:
    """Before anything is laid out by them: pages and page size are possible, and said once."""
    header, began = trace.header, trace.events[0]
    replicas = header.config.get("replicas", 1)
    if not isinstance(replicas, int) or not 1 <= replicas <= REPLICAS:
        raise ev.TraceError(f"line 1: config.replicas is {replicas!r}; 1 to {REPLICAS} can be shown")
    for line, event in enumerate(trace.events, 2):
        if not 0 <= event.replica < replicas:
            raise ev.TraceError(f"line {line}: replica is {event.replica}; the header tells of {replicas}, counted from 0")
    assert isinstance(began, ev.RunStarted)
    if not 1 <= began.pages <= PAGES:
        raise ev.TraceError(f"line 2: pages is {began.pages:,}; 1 to {PAGES:,} can be shown")
    if not 1 <= began.page_size <= PAGES:
        raise ev.TraceError(f"line 2: page_size is {began.page_size:,}; 1 to {PAGES:,} can be shown")
    if header.pages and (header.pages, header.page_size) != (began.pages, began.page_size):
        raise ev.TraceError("line 1: pages and page_size are not those of run.started in line 2")


def read_scenario(path: str | Path) -> str:
    """An uploaded scenario's text. Raises ScenarioError."""
    size = Path(path).stat().st_size
    if size > CHARACTERS:
        raise ScenarioError(f"the file has {size / 1e6:.1f} MB; a scenario has at most {CHARACTERS / 1e6:.0f} MB")
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ScenarioError("the file is not UTF-8 text") from None
