"""The app's own HTTP routes beside Gradio's: the player, recorded runs, and live events as SSE."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator, Callable
from importlib import resources

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse

from engine import events as ev
from workbench.ui import player
from workbench.ui.runs import Run
from workbench.ui.worker import Worker

TICK = 0.05
"""Seconds between two looks at a run: 20 batches a second at most."""
BEAT = 15.0
"""Seconds of silence after which a comment keeps the connection alive."""
BATCH = 4000
"""Events in one message at most."""


GONE = "no such run; it may have been forgotten"


def _packed(text: bytes, media_type: str, save_as: str | None = None) -> Response:
    """A compressed answer; every browser that can run the player reads gzip."""
    headers = {"Content-Encoding": "gzip", "Cache-Control": "no-cache"}
    if save_as:
        headers["Content-Disposition"] = f'attachment; filename="{save_as}"'
    return Response(gzip.compress(text, 6), media_type=media_type, headers=headers)


def _file_name(run: Run) -> str:
    name = run.scenario.name if run.scenario else run.id
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:80] or "run"


def add_routes(app: FastAPI, worker: Worker, to_html: Callable[[ev.Trace, str, str | None], str]) -> None:
    """Register the routes on `app`; `to_html` makes a trace one page that plays offline."""

    @app.get("/player.js")
    def script() -> Response:
        beside = resources.files(__package__).joinpath("comparison.js").read_text(encoding="utf-8")
        return _packed((player.sources() + beside).encode(), "text/javascript")

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
    def exported(id: str) -> Response:
        run = worker.runs.get(id)
        if run is None or not run.header:
            return PlainTextResponse(GONE, 404)
        trace = run.trace()
        page = to_html(trace, trace.header.scenario or "run", trace.header.note)
        return _packed(page.encode(), "text/html; charset=utf-8", f"{_file_name(run)}.html")

    @app.get("/runs/{id}/why")
    def why(id: str, seq: int, node: int | None = None, request: str | None = None, page: int | None = None) -> Response:
        run = worker.runs.get(id)
        if run is None or not run.header:
            return PlainTextResponse(GONE, 404)
        asked = {k: v for k, v in (("node", node), ("request", request), ("page", page)) if v is not None}
        try:
            return Response(msgspec.json.encode(run.why(seq, asked)), media_type="application/json")
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
        start = int(last) if last.isdigit() else max(since, 0)
        return StreamingResponse(
            _stream(run, start, request), media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )


async def _stream(run: Run, since: int, request: Request) -> AsyncIterator[bytes]:
    """The header, then batches of events from `since` on, then `end`.

    Texts are told from the first on also when resuming: they are few, and a viewer may be a new one.
    """
    named = 0
    quiet = 0.0
    header_sent = False
    while True:
        ended = run.ended
        if run.header and not header_sent:
            header_sent = True
            yield b"event: header\ndata: " + run.header + b"\n\n"
        upto = min(len(run.lines), since + BATCH)
        if upto > since:
            texts = run.texts[named:]
            named += len(texts)
            yield (
                b"id: %d\ndata: " % upto
                + b'{"from":%d,"texts":' % since
                + json.dumps({str(i): t for i, t in texts}).encode()
                + b',"events":['
                + b",".join(run.lines[since:upto])
                + b"]}\n\n"
            )
            since, quiet = upto, 0.0
        if ended and since >= len(run.lines):
            yield b"event: end\ndata: " + json.dumps({"status": run.status, "error": run.error}).encode() + b"\n\n"
            return
        if upto - since < BATCH:
            await asyncio.sleep(TICK)
            quiet += TICK
        if quiet >= BEAT:
            quiet = 0.0
            yield b": waiting\n\n"
        if await request.is_disconnected():
            return
