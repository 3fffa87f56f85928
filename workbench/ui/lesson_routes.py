"""The Lessons page's routes: how far the notebooks have come, a notebook as a file, a lesson's run made ready for the Lab."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, Response

from workbench.course import moments, notebook, progress
from workbench.course.cards import Card, CourseError, card, cards
from workbench.course.runs import scenario
from workbench.ui.lessons_page import content
from workbench.ui.runs import BusyError, Run
from workbench.ui.worker import Worker

POLL, LONGEST = 0.03, 300.0
"""Seconds between two looks at a run, and after which nobody waits for it any more."""


def add_routes(app: FastAPI, worker: Worker) -> None:
    """Register the routes on `app`."""
    made: dict[tuple[str, str], str] = {}

    @app.get("/lessons/content")
    def parts() -> Response:
        return HTMLResponse(content(), headers={"Cache-Control": "no-cache"})

    @app.get("/lessons/progress")
    def how_far() -> Response:
        return JSONResponse({name: progress.lesson(name) for name in cards()}, headers={"Cache-Control": "no-store"})

    @app.get("/lessons/{lesson}/notebook")
    def student(lesson: str) -> Response:
        try:
            path = notebook.path_of(lesson, solution=False)
        except CourseError as error:
            return PlainTextResponse(str(error), 404)
        return FileResponse(path, media_type="application/x-ipynb+json", filename=path.name)

    @app.post("/lessons/{lesson}/runs/{name}/{moment}")
    async def run(lesson: str, name: str, moment: int) -> Response:
        try:
            about = card(lesson)
            ready = await _ready(worker, about, name, made)
            return JSONResponse({"url": address(ready, about, name, moment)})
        except CourseError as error:
            return JSONResponse({"error": str(error)}, 404)
        except (ValueError, BusyError, RuntimeError) as error:
            return JSONResponse({"error": str(error)})  # an answer, which the page shows: no fault for the browser to report


async def _ready(worker: Worker, about: Card, name: str, made: dict[tuple[str, str], str]) -> Run:
    """The lesson's run, made once as long as the server remembers it."""
    known = worker.runs.get(made.get((about.id, name), ""))
    if known is not None and known.status == "done":
        return known
    run = Run(scenario(about, name))
    worker.offer(run)
    waited = 0.0
    while not run.ended:
        await asyncio.sleep(POLL)
        waited += POLL
        if waited > LONGEST:
            run.halt()
            raise RuntimeError(f"{about.id}, {name}: it has run for {LONGEST:.0f} s; it is stopped")
    if run.status != "done":
        raise RuntimeError(run.error or f"{about.id}, {name}: the run was stopped")
    made[about.id, name] = run.id
    return run


def address(run: Run, about: Card, name: str, number: int) -> str:
    """Where the Lab shows a run at one of its moments; -1: at its end. Raises CourseError for a moment that the card does not have."""
    at: dict[str, Any] = {"run": run.id}
    there = about.runs[name].moments
    if number >= len(there):
        raise CourseError(f"moment: {about.id}, {name} has moments 0 to {len(there) - 1}; got {number}")
    if number >= 0:
        moment = there[number]
        at["seq"] = moments.find(run.trace().events, moment)
        at |= {"request": moment.request} if moment.request else {"node": moment.node} if moment.node is not None else {}
    return f"/#{urlencode(at)}"
