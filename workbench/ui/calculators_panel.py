"""The calculators on the Experiments page: a form, one sentence, the numbers and a figure each."""

from __future__ import annotations

import html
from functools import partial
from typing import Any

import gradio as gr
import plotly.graph_objects as go

from workbench.calculation import CALCULATORS, OWN, Calculator, shape
from workbench.calculators import MODELS
from workbench.experiments.words import amount
from workbench.figures.experiment import draw
from workbench.ui import text

QUIET: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private", "trigger_mode": "always_last"}
OPENS_WITH_MODEL = "llama-3.1-8b"


class CalculatorsPanel:
    """One form a calculator; the page shows one of them at a time."""

    def __init__(self) -> None:
        self.forms: dict[str, gr.Column] = {}

    def build(self) -> None:
        """Lay out every form inside the current Blocks."""
        for name, calculator in CALCULATORS.items():
            with gr.Column(elem_id=f"calculate-{name}", elem_classes="rw-calculator", visible=False) as form:
                self._build_form(calculator)
            self.forms[name] = form

    def _build_form(self, calculator: Calculator) -> None:
        name = calculator.name
        gr.HTML(f'<h2 class="rw-question">{html.escape(calculator.title)}</h2><p class="rw-note">{html.escape(calculator.about)}</p>', apply_default_css=False)
        with gr.Row(elem_classes="rw-fields", equal_height=False):
            model = None
            if calculator.shapes:
                choices = [(m.name, key) for key, m in MODELS.items()]
                model = gr.Dropdown([*choices, (OWN.capitalize(), OWN)], value=OPENS_WITH_MODEL, label="Model's shape", elem_id=f"{name}-model", min_width=170)
            boxes = [gr.Number(f.default, label=f.label, elem_id=f"{name}-{f.key}", precision=0 if f.whole else None, min_width=130) for f in calculator.fields]
        said = gr.HTML(told(calculator, {}), elem_id=f"{name}-answer", elem_classes="rw-answer", apply_default_css=False)
        plot = gr.Plot(draw(calculator.answer({}).chart), show_label=False, elem_id=f"{name}-figure", elem_classes="rw-figure")
        if model is not None:
            shaped = [box for box, f in zip(boxes, calculator.fields, strict=True) if f.key in shape(OPENS_WITH_MODEL)]
            model.input(self.fill, [model], shaped, **QUIET)
            gr.on([box.input for box in shaped], lambda: OWN, None, model, **QUIET)
        gr.on([box.change for box in boxes], partial(self.work, calculator), boxes, [said, plot], **QUIET)

    def fill(self, model: str) -> list[Any]:
        """A published model's numbers in the form."""
        return [gr.skip()] * 4 if model == OWN else list(shape(model).values())

    def work(self, calculator: Calculator, *numbers: float | None) -> tuple[str, Any]:
        """What comes out of the numbers in the form, or which of them cannot be taken."""
        given = {f.key: number for f, number in zip(calculator.fields, numbers, strict=True)}
        empty = next((f for f in calculator.fields if given[f.key] is None), None)
        if empty is not None:
            return text.message(f"{empty.label}: write a number from {empty.low:,} to {empty.high:,}.", "error"), gr.skip()
        try:
            return told(calculator, given), figure(calculator, given)
        except ValueError as error:
            return text.message(str(error), "error"), gr.skip()


def figure(calculator: Calculator, given: dict[str, Any]) -> go.Figure:
    """The calculator's chart. Raises ValueError naming a field."""
    return draw(calculator.answer(given).chart)


def told(calculator: Calculator, given: dict[str, Any]) -> str:
    """The sentence and the numbers. Raises ValueError naming a field."""
    answer = calculator.answer(given)
    rows = "".join(f"<tr><th scope='row'>{html.escape(f.label)}</th><td>{html.escape(amount(f.value, f.unit))}</td></tr>" for f in answer.figures)
    shown = {f.key: given.get(f.key, f.default) for f in calculator.fields}
    command = " ".join([f"python -m workbench calculate {calculator.name}", *(f"--{key} {value:g}" for key, value in shown.items())])
    return (
        f'<p class="rw-lead">{html.escape(answer.words)}</p><table class="rw-table"><tbody>{rows}</tbody></table>'
        f'<p class="rw-fine">Arithmetic, not a measurement. The same from the command line: <code>{html.escape(command)}</code></p>'
    )
