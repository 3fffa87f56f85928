"""A Hugging Face hub of our own, on this machine: enough of its API for sizes, listings and downloads."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(BaseHTTPRequestHandler):
    """Serves the folders of `models` by id; bytes of weights come slowly where `pause` says so."""

    models: dict[str, Path]
    pause: float
    asked: list[str]
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = urlsplit(self.path).path.lstrip("/")
        self.asked.append(f"{self.command} {path}")
        for name, folder in self.models.items():
            if path == f"api/models/{name}" or path.startswith(f"api/models/{name}/revision/"):
                return self._json(self._info(name, folder))
            if path.startswith(f"api/models/{name}/tree/"):
                return self._json(
                    [{"type": "file", "path": p.name, "size": p.stat().st_size, "oid": _tag(p)} for p in _files(folder)]
                )
            if path.startswith(f"{name}/resolve/"):
                file = folder / path.rpartition("/")[2]
                if file.is_file():
                    return self._file(file)
        self.send_response(404)
        self.send_header("X-Error-Code", "EntryNotFound" if "/resolve/" in path else "RepoNotFound")
        self.send_header("Content-Length", "0")
        self.end_headers()
        return None

    def _info(self, name: str, folder: Path) -> dict[str, Any]:
        files = [{"rfilename": p.name, "size": p.stat().st_size, "blobId": _tag(p)} for p in _files(folder)]
        return {
            "id": name,
            "sha": COMMIT,
            "siblings": files,
            "safetensors": {"parameters": {"BF16": 494032768}, "total": 494032768},
        }

    def _json(self, data: Any) -> None:
        body = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def _file(self, file: Path) -> None:
        body = file.read_bytes()
        self.send_response(200)
        self.send_header("ETag", f'"{_tag(file)}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        for start in range(0, len(body), 1 << 16):
            self.wfile.write(body[start : start + (1 << 16)])
            self.wfile.flush()
            if file.suffix == ".safetensors":
                time.sleep(self.pause)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def serving(models: dict[str, Path], pause: float = 0.0) -> Iterator[tuple[str, list[str]]]:
    """Serve; gives the address and the list of what was asked for."""
    asked: list[str] = []
    handler = type("Serving", (Hub,), {"models": models, "pause": pause, "asked": asked})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_file())


def _tag(file: Path) -> str:
    return hashlib.sha1(file.read_bytes()).hexdigest()
