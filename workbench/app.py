"""The app: one process on this machine that serves the page, the player and the live runs."""

from __future__ import annotations

import logging
import os
import socket
import sys
import warnings

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import gradio as gr
import uvicorn
from fastapi import FastAPI

from workbench.export import to_html
from workbench.ui import decode_facts, experimented, head, lesson_routes, theme
from workbench.ui.lab import Lab
from workbench.ui.routes import add_routes
from workbench.ui.runs import Runs
from workbench.ui.worker import Worker

HOST = "127.0.0.1"
FIRST_PORT = 7860
TRIES = 20
SESSIONS = 300
"""Pages opened that Gradio remembers; each costs some 130 KB."""
LOOK = 0.02
"""Seconds between two looks at Gradio's queue of events."""
UPLOADS = (600, 3600)
"""Every so many seconds, uploaded files older than so many seconds are deleted; all of them when the server ends."""


def build(worker: Worker) -> FastAPI:
    """The ASGI app around one worker (started by the caller)."""
    app = FastAPI(openapi_url=None)
    add_routes(app, worker, to_html)
    head.add_mark(app, worker)
    decode_facts.add_routes(app, worker)
    lesson_routes.add_routes(app, worker)
    lab = Lab(worker)
    experimented.add_routes(app, lab.experiments.kept, worker.runs)
    page = lab.build()
    page.state_session_capacity = SESSIONS
    page.delete_cache = UPLOADS
    page.queue()
    # Gradio would look at its empty queue a thousand times a second, beside the engine: 8 % of a core.
    page._queue.sleep_when_free = LOOK
    # Gradio warns that it turns server-side rendering off, which is what is asked for.
    warnings.filterwarnings("ignore", message="SSR mode is not supported", category=UserWarning)
    served = gr.mount_gradio_app(
        app, page, path="/", server_name=HOST, theme=theme.theme(), css=theme.css(), head=theme.HEAD,
        footer_links=[], run_history=False, ssr_mode=False, show_error=True, max_file_size="50mb",
    )  # fmt: skip
    # Gradio would hold one of a browser's six connections for every open tab, to learn when it closes; nothing here needs to know.
    page.config["connect_heartbeat"] = False
    return served


def free_port(port: int | None) -> int:
    """`port` if it is free, or the first free one from 7860. Raises OSError when there is none."""
    for candidate in [port] if port is not None else range(FIRST_PORT, FIRST_PORT + TRIES):
        with socket.socket() as probe:
            # As uvicorn binds: a port that only lingers after a stop is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, candidate))
                return candidate
            except OSError:
                continue
    if port is not None:
        raise OSError(f"port {port} is in use; choose another with --port, or leave it out")
    raise OSError(f"ports {FIRST_PORT} to {FIRST_PORT + TRIES - 1} are all in use; choose one with --port")


def serve(port: int | None, model: str, device: str, dtype: str) -> int:
    """Serve until interrupted; returns the exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("workbench").setLevel(logging.INFO)
    chosen = free_port(port)
    worker = Worker(Runs(), model, device, dtype)
    app = build(worker)
    worker.start()
    print(f"Radix Workbench is open at http://{HOST}:{chosen}", file=sys.stderr, flush=True)
    uvicorn.run(app, host=HOST, port=chosen, log_level="warning", timeout_graceful_shutdown=2)
    worker.close()
    return 0
