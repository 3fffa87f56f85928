"""The head of every page: it follows the model that all pages of the server share."""

from __future__ import annotations

from importlib import resources

import gradio as gr
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

from workbench.ui import text
from workbench.ui.worker import Worker


def mark(worker: Worker) -> str:
    """A few words that change whenever the head, or what is told about models, has to be drawn anew."""
    parts = []
    for state in (worker.model, worker.coming):
        if state is not None:
            parts.append(f"{state.serial} {state.status} {state.progress}")
    return "; ".join(parts)


def words(worker: Worker, page: str) -> str:
    """The head as HTML."""
    return text.header(worker.model, worker.coming, page, mark(worker))


def build(worker: Worker, page: str) -> gr.HTML:
    """The head as a component. Its event `tick` says that there is something new to tell."""
    return gr.HTML(
        words(worker, page), elem_id="head", apply_default_css=False,
        js_on_load=resources.files(__package__).joinpath("head.js").read_text(encoding="utf-8"),
    )  # fmt: skip


def add_mark(app: FastAPI, worker: Worker) -> None:
    """The route that pages look at every second or two: a few bytes, no session, nothing computed."""

    @app.get("/model")
    async def model() -> PlainTextResponse:
        return PlainTextResponse(mark(worker), headers={"Cache-Control": "no-store"})
