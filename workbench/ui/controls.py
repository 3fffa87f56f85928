"""The Lab's scenario: preset, knobs, one's own questions, the text. What Run takes is resolved from all of them.

A page's events can be under way when the next one is made. So what somebody has set counts from the moment of
the click: Run is handed the boxes themselves and the names of the knobs that were turned since the text last
changed by hand (`TURNED`, kept in the browser), not what the server made of them in between.
"""

from __future__ import annotations

import json
from typing import Any

import gradio as gr

from engine.config import EVICTIONS, POLICIES, EngineConfig
from workbench import presets
from workbench import scenario as scenarios
from workbench.estimate import estimate
from workbench.explain.words import eviction_name
from workbench.ui import asking, opening, text
from workbench.ui.runs import Run
from workbench.ui.uploads import Uploads
from workbench.ui.worker import Worker

OPENS_WITH = "handbook"
OWN = "What about my own prefix and questions?"
EDITED = "What does my own scenario do (as typed or opened)?"
KNOBS = ("cache", "policy", "eviction", "pages", "page_size")
# "blocks" alone is a word that Gradio would translate, and complains about.
CACHES = [("radix", "radix"), ("hashed", "blocks"), ("off", "off")]

SAVE = """(text) => { const link = document.createElement('a'); link.href = URL.createObjectURL(new Blob([text], { type: 'text/yaml' }));
const name = /^name: *['"]?([\\w-]+)/m.exec(text); link.download = `${name ? name[1] : 'scenario'}.yaml`; link.click(); URL.revokeObjectURL(link.href); }"""
TURNED = "(...a) => {{ (globalThis.rwTurned ??= new Set()).add('{knob}'); a[a.length - 1] = JSON.stringify([...globalThis.rwTurned]); return a; }}"
HANDED = "(...a) => { a[a.length - 1] = JSON.stringify([...(globalThis.rwTurned ?? [])]); return a; }"
FORGOTTEN = "(...a) => { globalThis.rwTurned = new Set(); return a; }"
# Whoever pastes is not heard by Gradio's `input`; where the cursor stands tells a hand from a knob that changed the text.
BY_HAND = """(...a) => { const hand = Boolean(document.activeElement?.closest('#yaml')); if (hand) globalThis.rwTurned = new Set();
a[a.length - 1] = hand ? 'hand' : ''; return a; }"""
_INERT = "document.querySelectorAll('#cache, #policy, #eviction, #pages, #page-size, #run, #step').forEach((e) => { e.inert = %s; });"
CHOOSING = "(...a) => { globalThis.rwTurned = new Set(); %s return a; }" % (_INERT % "true")
CHOSEN = "() => { %s }" % (_INERT % "false")

# Private: the page inlines a description of every public endpoint, a megabyte of it.
QUIET: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
# Gradio drops what is typed while the event before is under way, unless the last one waits for its turn.
TYPED = QUIET | {"trigger_mode": "always_last"}


class Controls:
    """The controls above the picture, and the scenario that they come to."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.titles = presets.titles()
        self.uploads = Uploads()

    # --- laying out ----------------------------------------------------------------------------

    def build_knobs(self) -> None:
        """Preset and knobs, inside the current row."""
        opening = scenarios.load(OPENS_WITH).engine
        opens = next(t for t, n in self.titles.items() if n == OPENS_WITH)
        self.preset = gr.Dropdown([*self.titles, OWN, EDITED], value=opens, label="What happens when…", elem_id="preset", scale=5, min_width=270)
        self.cache = gr.Radio(CACHES, value="radix", label="Cache", elem_id="cache", scale=0, min_width=176)
        self.policy = gr.Dropdown(list(POLICIES), value=opening.policy, label="Policy", elem_id="policy", scale=0, min_width=132, filterable=False)
        self.eviction = gr.Dropdown([(eviction_name(e), e) for e in EVICTIONS], value=opening.eviction, label="Eviction", elem_id="eviction", scale=0, min_width=104, filterable=False)
        self.pages = gr.Number(opening.pages, label="Pool, pages", elem_id="pages", precision=0, scale=0, min_width=86)
        self.size = gr.Number(opening.page_size, label="Page, tokens", elem_id="page-size", precision=0, scale=0, min_width=86)
        self.knobs = [self.cache, self.policy, self.eviction, self.pages, self.size]
        self.turned = gr.Textbox("[]", visible=False)

    def build_own(self) -> None:
        """The boxes for one's own prefix and questions."""
        with gr.Row(visible=False, elem_id="own") as self.own_row:
            self.prefix = gr.Textbox(asking.OWN_PREFIX, label="Shared prefix", lines=4, max_lines=8, elem_id="prefix", scale=3)
            self.questions = gr.Textbox(asking.OWN_QUESTIONS, label="Questions, one a line", lines=4, max_lines=8, elem_id="questions", scale=2)

    def build_text(self) -> None:
        """The scenario's text, folded away."""
        with gr.Accordion("Scenario: see, edit, paste, save or open one", open=False, elem_id="folded"):
            self.yaml = gr.Textbox(scenarios.dump(scenarios.load(OPENS_WITH)), show_label=False, lines=12, max_lines=24, elem_id="yaml", container=False)
            with gr.Row():
                self.upload = gr.UploadButton("Open a scenario, a trace or a workload", file_types=[".yaml", ".yml", ".jsonl", ".json", ".txt"], elem_id="upload", scale=0, min_width=280)
                self.save = gr.Button("Save the scenario", elem_id="save", scale=0, min_width=160)

    @property
    def asked(self) -> list[Any]:
        """What Run is handed, to be resolved by `scenario_text`."""
        return [self.preset, self.prefix, self.questions, self.yaml, *self.knobs, self.turned]

    def connect(self, note: gr.HTML, after: list[Any]) -> None:
        """Say what each control does; `note` tells about the scenario, `after` are the picture and the buttons."""
        self.preset.input(self.choose, [self.preset, self.prefix, self.questions, self.yaml], [self.own_row, self.yaml, *self.knobs, note, *after], js=CHOOSING, **QUIET).then(None, js=CHOSEN)
        for box in (self.prefix, self.questions):  # `change` and not `input`: a paste is no input to Gradio
            box.change(self.retold, self.asked, [self.yaml, note], **TYPED)
        for knob, name in zip(self.knobs, KNOBS, strict=True):
            knob.input(self.retold, self.asked, [self.yaml, note], js=TURNED.format(knob=name), **TYPED)
        self.yaml.change(self.retyped, [self.yaml, self.turned], [self.preset, self.own_row, note, *self.knobs], js=BY_HAND, **TYPED)
        self.upload.upload(self.open_file, [self.upload], [self.preset, self.own_row, self.yaml, note, *self.knobs, *after], js=FORGOTTEN, **QUIET)
        self.save.click(None, [self.yaml], None, js=SAVE, api_visibility="private")

    # --- the scenario --------------------------------------------------------------------------

    def scenario_text(self, title: str, prefix: str, questions: str, yaml: str, *rest: Any) -> str:
        """The text that all controls together come to. Raises ScenarioError for the first that cannot be."""
        *values, turned = rest
        if title == OWN:
            yaml = self._own(prefix, questions, yaml)
        elif title != EDITED and self._name(yaml) not in (None, self.titles[title]):
            yaml = scenarios.dump(scenarios.load(self.titles[title]))  # the choice has not reached the text yet
        names = set(json.loads(turned or "[]"))
        changed = {k: _whole(k, v) if k in ("pages", "page_size") else v for k, v in zip(KNOBS, values, strict=True) if k in names}
        return scenarios.retuned(yaml, changed, self.uploads.get) if changed else yaml

    def read(self, yaml: str) -> scenarios.Scenario:
        """The scenario of a text, within what a page may ask for. Raises ScenarioError."""
        return asking.scenario_from_text(yaml, self.worker.model, self.worker.offers, self.uploads.get)

    def describe(self, yaml: str) -> str:
        """The scenario's note and what a run will take, or what is wrong with it."""
        try:
            scenario, model = self.read(yaml), self.worker.model
            return text.note(scenario, estimate(scenario, model.loaded, model.rates), model)
        except ValueError as error:
            return _wrong(error)

    def retold(self, *asked: Any) -> tuple[Any, Any]:
        """A knob was turned or a question typed: the text follows; what cannot be is said and kept out of it."""
        if asked[0] != OWN and json.loads(asked[-1] or "[]") == []:
            return gr.skip(), gr.skip()
        try:
            yaml = self.scenario_text(*asked)
        except ValueError as error:
            return gr.skip(), _wrong(error)
        return yaml, self.describe(yaml)

    def retyped(self, yaml: str, by: str) -> tuple[Any, ...]:
        """The text has changed. By hand: it is somebody's own, and the knobs follow where it can be read.

        Otherwise preset, knobs or questions changed it, and stand as they should: one may be turned again by now.
        """
        still = [gr.skip()] * len(KNOBS)
        if by != "hand":
            return (gr.skip(), gr.skip(), self.describe(yaml), *still)
        try:
            engine = self.read(yaml).engine
        except ValueError:
            return (*_edited(), self.describe(yaml), *still)
        return (*_edited(), self.describe(yaml), *_knobs(engine))

    def choose(self, title: str, prefix: str, questions: str, yaml: str) -> tuple[Any, ...]:
        """Another preset: its own text and knobs, and its recorded run where there is one."""
        name = self.titles.get(title)
        note: Any
        try:
            if title == OWN:
                yaml = self._own(prefix, questions, "")
            elif name is not None:
                yaml = scenarios.dump(scenarios.load(name))
            note, knobs = self.describe(yaml), _knobs(self._parsed(yaml).engine)
        except ValueError as error:
            note, knobs = _wrong(error), [gr.skip()] * len(KNOBS)
        recorded = self.worker.recorded(name) if name else None
        shown = shown_run(recorded) if recorded else gr.skip()
        return (gr.Row(visible=title == OWN), yaml, *knobs, note, shown, text.message(""), *buttons("idle"), None)

    def open_file(self, path: str) -> tuple[Any, ...]:
        """An uploaded scenario goes into the text, and so does one made of an uploaded workload; an uploaded trace is shown."""
        keep = [gr.skip()] * (4 + len(KNOBS))
        try:
            kind = opening.kind_of(path)
            if kind == "trace":
                run = Run.of_trace(asking.read_trace(path), "uploaded")
                self.worker.runs.add(run)
                said = "Opened the trace; it is shown as it was recorded. Run still runs the scenario above."
                return (*keep, shown_run(run), text.message(said), *buttons("idle"), None)
            if kind == "scenario":
                yaml, said = asking.read_scenario(path), "Opened the scenario; press Run."
            else:
                yaml, said = opening.workload(path, kind, self.uploads)
            engine = self.read(yaml).engine
        except (ValueError, OSError) as error:
            return (*keep, gr.skip(), text.message(str(error), "error"), *[gr.skip()] * 5)
        return (*_edited(), yaml, self.describe(yaml), *_knobs(engine), gr.skip(), text.message(said), *buttons("idle"), None)

    def _own(self, prefix: str, questions: str, yaml: str) -> str:
        """A prefix and questions of one's own, on the engine that the present text configures."""
        data = asking.own_scenario(prefix, questions)
        own = scenarios.parse(data)
        if self._name(yaml) == own.name:
            own = own.model_copy(update={"engine": self._parsed(yaml).engine})
        return scenarios.dump(own)

    def _parsed(self, yaml: str) -> scenarios.Scenario:
        """The scenario of a text, as large as it is. Raises ScenarioError."""
        return scenarios.parse_text(yaml, uploads=self.uploads.get)

    def _name(self, yaml: str) -> str | None:
        """The name of the scenario that a text describes; None where it cannot be read."""
        try:
            return self._parsed(yaml).name
        except ValueError:
            return None


def _edited() -> tuple[gr.Dropdown, gr.Row]:
    """The text is somebody's own from now on."""
    return gr.Dropdown(value=EDITED), gr.Row(visible=False)


def _wrong(error: ValueError) -> str:
    return text.message(str(error), "error", "wrong")


def _whole(key: str, value: float | None) -> int:
    if value is None or value != int(value):
        raise scenarios.ScenarioError(f"engine.{key}: must be a whole number, 1 or more")
    return int(value)


def _knobs(engine: EngineConfig) -> list[Any]:
    return [getattr(engine, key) for key in KNOBS]


def buttons(state: str) -> list[gr.Button]:
    """Run, Step, Stop and cache-off, each live or not: `idle`, `busy`, `stepping` or `done` (can be compared)."""
    live = {"idle": (1, 1, 0, 0), "busy": (0, 0, 1, 0), "stepping": (1, 1, 1, 0), "done": (1, 1, 0, 1)}[state]
    return [gr.Button(interactive=bool(on)) for on in live]


def shown_run(run: Run, compare: dict[str, Any] | None = None) -> str:
    """What the player is told about the run that it shows, as JSON."""
    return json.dumps({"kind": run.kind, "run": run.id, "url": f"/runs/{run.id}", "compare": compare})
