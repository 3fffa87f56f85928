"""Lesson 12's probe against a tiny server on this machine, its references against known values, its figure, and the recorded answers."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI, Response

from benchmarks import make_probe
from tests.lessons.rehearsal import perform
from workbench import probe
from workbench.course import notebook
from workbench.figures.staircase import staircase
from workbench.lessons.checks import l12

BLOCK = 8


def small_server() -> FastAPI:
    """OpenAI-compatible as far as the probe asks; it shares prompts in blocks of 8 words and a start token."""
    app, seen = FastAPI(), set()

    @app.get("/v1/models")
    def models() -> dict[str, Any]:
        return {"object": "list", "data": [{"id": "tiny", "object": "model"}]}

    @app.post("/v1/completions")
    def completions(asked: dict[str, Any]) -> dict[str, Any]:
        assert asked["model"] == "tiny" and asked["max_tokens"] == 1
        words = ["<s>", *asked["prompt"].split()]
        found = 0
        while found + BLOCK < len(words) and tuple(words[: found + BLOCK]) in seen:
            found += BLOCK
        seen.update(tuple(words[:end]) for end in range(BLOCK, len(words) + 1, BLOCK))
        return {"choices": [{"index": 0, "text": " and"}], "usage": {"prompt_tokens": len(words), "prompt_tokens_details": {"cached_tokens": found}}}

    @app.get("/broken/v1/models")
    def broken() -> Response:
        return Response("out of memory", status_code=503)

    @app.get("/page/v1/models")
    def page() -> Response:
        return Response("<html>hello</html>", media_type="text/html")

    @app.get("/other/v1/models")
    def other() -> dict[str, Any]:
        return {"models": []}

    @app.get("/list/v1/models")
    def listed() -> list[int]:
        return [1]

    @app.get("/slow/v1/models")
    def slow() -> dict[str, Any]:
        time.sleep(1.5)
        return {}

    return app


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(small_server(), host="127.0.0.1", port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(5)


def test_a_live_server_is_probed(url: str) -> None:
    for address in (url, f"{url}/", f"{url}/v1", f" {url}/v1/ "):
        server = probe.connect(address)
        assert (server.url, server.model) == (f"{url}/v1", "tiny")
    answers = server.grow(30, seed=5)
    assert [probe.prompt_tokens(a) for a in answers] == list(range(2, 32))
    assert [a["usage"]["prompt_tokens_details"]["cached_tokens"] for a in answers] == l12.grown(31, BLOCK)[1:]
    assert server.again(40, 3, seed=6)["usage"]["prompt_tokens_details"]["cached_tokens"] == 40
    once, twice = (server.grow(20)[-1]["usage"]["prompt_tokens_details"]["cached_tokens"] for _ in range(2))
    assert once == twice == 16, "fresh words each time: nothing but the growing prompt itself is found"


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("/broken", "refused with status 503: out of memory"), ("/page", "something that is not JSON"), ("/other", "names no model"), ("/list", "JSON of another kind"),
        ("/nothing", "refused with status 404"), ("/slow", "no answer within 0.3 s"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_server_is_one_sentence(url: str, where: str, said: str) -> None:
    with pytest.raises(probe.ProbeError, match=said) as told:
        probe.connect(url + where, seconds=0.3)
    assert "\n" not in str(told.value) and len(str(told.value)) < 300


@pytest.mark.parametrize(("address", "said"), [("", "No server is named"), ("http://127.0.0.1:9", "cannot be reached"), ("localhost:9", "cannot be reached"), ("http://[::1", "cannot be reached")])
def test_a_server_that_is_not_there_is_one_sentence(address: str, said: str) -> None:
    with pytest.raises(probe.ProbeError, match=said):
        probe.connect(address, seconds=2)


def test_the_notebooks_live_cell_probes_the_server_that_is_named(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("RADIX_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.setenv("RADIX_PROBE_URL", url)
    names: dict[str, Any] = {}
    for number, cell in enumerate(notebook.cells("L12")):
        if cell.kind == "code" and "lesson.questions" not in cell.text and "lesson.answer" not in cell.text:
            perform(cell.shown(True), names, f"cell {number}")
        if "probe.connect(url)" in cell.text:
            break
    assert f"it shares prompts in {BLOCK} tokens" in repr(names["shown"]) and names["came_back"] == 64
    monkeypatch.setenv("RADIX_PROBE_URL", "http://127.0.0.1:9")
    perform(cell.shown(True), names, "again, without a server")
    assert "cannot be reached" in repr(names["shown"])


def test_the_recorded_answers_say_what_they_are_and_are_as_counted() -> None:
    assert "Written for lesson 12" in probe.about() and "No real server was asked" in probe.about()
    rows = probe.recorded()
    two = [r.answer["usage"] for r in rows if r.server == "two" and r.fillers is None]
    assert [u["prompt_tokens_details"]["cached_tokens"] for u in two] == l12.grown(len(two) + 1, 16)[1:]
    again = {r.fillers: r.answer["usage"]["prompt_tokens_details"]["cached_tokens"] for r in rows if r.fillers is not None}
    assert again == {others: l12.left(others) for others in again} and again[4] == 64 and again[5] == 48 and again[6] == 0
    one = [r.answer["usage"] for r in rows if r.server == "one"]
    assert [u["prompt_tokens_details"] for u in one][:2] == [None, {"cached_tokens": 2}]
    assert all(u["total_tokens"] == u["prompt_tokens"] + u["completion_tokens"] for u in (r.answer["usage"] for r in rows))


def test_the_recorded_answers_are_what_their_script_writes(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = (probe.assets() / "probe" / "answers.jsonl").read_text(encoding="utf-8")
    monkeypatch.setattr(make_probe, "assets", lambda: tmp_path)
    make_probe.main()
    assert (tmp_path / "probe" / "answers.jsonl").read_text(encoding="utf-8") == kept
    assert all(json.loads(line) for line in kept.splitlines())


def test_what_is_unknown_is_no_step_of_the_staircase() -> None:
    figure = staircase({"a": [(1, None), (2, 0), (3, 2)], "b": [(1, None)]})
    lines = {trace.name: (list(trace.x or []), list(trace.y or [])) for trace in figure.data}
    assert lines["a"] == ([2, 3], [0, 2])
    assert lines["a, no count: unknown"][0] == [1] and all(y < 0 for y in lines["a, no count: unknown"][1])
    assert lines["b"] == ([], []) and lines["b, no count: unknown"][0] == [1]
    assert staircase({}) and "tokens" in str(figure.layout.yaxis.title.text)
