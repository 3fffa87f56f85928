"""The app's own HTTP routes beside Gradio's: the player, recorded runs, and live events as SSE."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from importlib import resources

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse

from engine import events as ev
from workbench.explain import ExplainError
from workbench.explain.saved import Opening
from workbench.ui import player
from workbench.ui.runs import Run
from workbench.ui.worker import Worker

GONE = "no such run; it may have been forgotten"
BESIDE = ("comparison.js", "turns.js")
"""Scripts of the page beside the player's own."""


def _packed(text: bytes, media_type: str, save_as: str | None = None) -> Response:
    """A compressed answer; every browser that can run the player reads gzip."""
    headers = {"Content-Encoding": "gzip", "Cache-Control": "no-cache"}
    if save_as:
        headers["Content-Disposition"] = f'attachment; filename="{save_as}"'
    return Response(gzip.compress(text, 6), media_type=media_type, headers=headers)


def _file_name(run: Run) -> str:
    """What was run and which run it was, as `handbook-recorded` or `burst-x3A_9kQ`."""
    scenario = (ev.decode_header(run.header).scenario if run.header else None) or "run"
    which = "recorded" if run.kind == "recorded" else run.id
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', scenario)[:80].strip('-') or 'run'}-{which}"


def add_routes(app: FastAPI, worker: Worker, to_html: Callable[[ev.Trace, str, str | None, Opening], str]) -> None:
    """Register the routes on `app`; `to_html` makes a trace one page that plays offline."""

    @app.get("/player.js")
    def script() -> Response:
        beside = [resources.files(__package__).joinpath(name).read_text(encoding="utf-8") for name in BESIDE]
        return _packed("\n".join([player.sources(), *beside]).encode(), "text/javascript")

    @app.get("/player.css")
    def style() -> Response:
        return _packed(player.styles().encode(), "text/css")

    @app.get("/runs/{id}.jsonl")
    def trace(id: str) -> Response:
        run = worker.runs.get(id)
        if run is None or not run.header:
            return PlainTextResponse(GONE, 404)
        header = run.header
        if run.texts:
            header = json.dumps(json.loads(header) | {"texts": {str(i): t for i, t in run.texts}}).encode()
        return _packed(b"\n".join([header, *run.lines]) + b"\n", "application/x-ndjson", f"{_file_name(run)}.jsonl")

    @app.get("/runs/{id}.html")
    def exported(id: str, seq: int | None = None, node: int | None = None, request: str | None = None, replica: int = 0) -> Response:
        run = worker.runs.get(id)
        if run is None or not run.header:
            return PlainTextResponse(GONE, 404)
        trace = run.trace()
        try:
            page = to_html(trace, trace.header.scenario or "run", trace.header.note, Opening(seq, node, request, replica))
        except ExplainError as error:
            return PlainTextResponse(str(error), 400)
        return _packed(page.encode(), "text/html; charset=utf-8", f"{_file_name(run)}.html")

    @app.get("/runs/{id}")
    def state(id: str) -> Response:
        run = worker.runs.get(id)
        if run is None:
            return PlainTextResponse(GONE, 404)
        return JSONResponse({"status": run.status, "ended": run.ended, "events": len(run.lines)})

    @app.get("/runs/{id}/why")
    def why(id: str, seq: int, node: int | None = None, request: str | None = None, page: int | None = None, replica: int | None = None) -> Response:
        run = worker.runs.get(id)
        if run is None or not run.header:
            return PlainTextResponse(GONE, 404)
        asked = {k: v for k, v in (("node", node), ("request", request), ("page", page)) if v is not None}
        try:
            return Response(msgspec.json.encode(run.why(seq, asked, replica)), media_type="application/json")
        except ValueError as error:
            return PlainTextResponse(str(error), 400)

    @app.get("/status")
    def status() -> Response:
        m = worker.model
        return JSONResponse(
            {"model": m.name, "status": m.status, "stage": m.stage, "fraction": m.fraction, "error": m.error}
        )

    @app.get("/runs/{id}/events")
    async def events(id: str, request: Request, since: int = 0) -> Response:
        run = worker.runs.get(id)
        if run is None:
            return PlainTextResponse(GONE, 404)
        last = request.headers.get("last-event-id", "")
        start = int(last) if re.fullmatch(r"[0-9]{1,12}", last) else max(since, 0)
        return StreamingResponse(
            run.feed.watch(start), media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
