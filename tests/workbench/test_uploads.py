"""Bad uploads and pasted texts: one clear sentence, soon, without being read or unfolded into memory."""

from __future__ import annotations

import gzip
import json
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.browser.serving import Served
from workbench import scenario as scenarios
from workbench.scenario import ScenarioError
from workbench.ui import asking

GOLDEN = Path(__file__).parents[1] / "golden" / "walkthrough.jsonl"
BIG = 500_000_000

Lines = list[dict[str, Any]]


def told(change: Callable[[Lines], Any]) -> bytes:
    """The golden trace, changed."""
    lines = [json.loads(line) for line in GOLDEN.read_bytes().splitlines()]
    change(lines)
    return b"\n".join(json.dumps(line).encode() for line in lines) + b"\n"


def nested(lines: bytes, depth: int) -> bytes:
    return b'{"schema_version":1,"config":{"a":' + b"[" * depth + b"]" * depth + b"}}\n" + lines.partition(b"\n")[2]


BAD_TRACES: dict[str, tuple[Callable[[], bytes], str]] = {
    "compressed": (lambda: gzip.compress(GOLDEN.read_bytes()), "line 1"),
    "UTF-16": (lambda: GOLDEN.read_bytes().decode().encode("utf-16"), "line 1"),
    "bytes": (lambda: bytes(range(256)) * 100, "line 1"),
    "a JSON array": (lambda: b"[" + GOLDEN.read_bytes().replace(b"\n", b",")[:-1] + b"]", "line 1"),
    "cut off within a line": (lambda: GOLDEN.read_bytes()[:-20], "line 71"),
    "a line is missing": (lambda: told(lambda x: x.pop(9)), "line 10: seq is 9, expected 8"),
    "two traces": (lambda: GOLDEN.read_bytes() * 2, "line 72"),
    "schema version 0": (lambda: told(lambda x: x[0].update(schema_version=0)), "schema_version is 0"),
    "schema version 2": (lambda: told(lambda x: x[0].update(schema_version=2)), "this version reads 1 to 1"),
    "schema version a text": (lambda: told(lambda x: x[0].update(schema_version="1")), "schema_version"),
    "no schema version": (lambda: told(lambda x: x[0].pop("schema_version")), "schema_version is missing"),
    "pages beyond measure": (lambda: told(lambda x: x[1].update(pages=10**12)), "line 2: pages is 1,000,000,000,000"),
    "no pages": (lambda: told(lambda x: x[1].update(pages=0)), "line 2: pages is 0"),
    "page size 0": (lambda: told(lambda x: x[1].update(page_size=0)), "line 2: page_size is 0"),
    "two shapes": (lambda: told(lambda x: x[0].update(pages=10**12)), "line 1: pages and page_size"),
    "a page that is not": (lambda: told(lambda x: x[4].update(pages=[10**9])), "does not fit"),
    "a replica that is not": (lambda: told(lambda x: x[5].update(replica=1)), "line 6: replica is 1; the header tells of 1"),
    "replicas beyond measure": (lambda: told(lambda x: x[0]["config"].update(replicas=10**9)), "config.replicas is 1000000000; 1 to 64"),
    "nested": (lambda: nested(GOLDEN.read_bytes(), 100_000), "nested too deeply"),
}


@pytest.mark.parametrize("name", BAD_TRACES)
def test_a_bad_trace_is_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    make, says = BAD_TRACES[name]
    path = tmp_path / "bad.jsonl"
    path.write_bytes(make())
    with pytest.raises(ScenarioError) as refused:
        asking.read_trace(path)
    said = str(refused.value)
    assert says in said and "\n" not in said and len(said) < 300


def test_a_trace_cut_off_between_lines_is_shown_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "part.jsonl"
    path.write_bytes(b"".join(GOLDEN.read_bytes().splitlines(keepends=True)[:30]))
    assert len(asking.read_trace(path)) == 29


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
REQUESTS = "\nrequests: [{tokens: A4}]"

BAD_TEXTS: dict[str, tuple[str, str]] = {
    "aliases that stand for billions of values": (BOMB + "note: *a11" + REQUESTS, "aliases repeat it"),
    "aliases as requests": (BOMB + "requests: *a11", "aliases repeat it"),
    "contains itself": ("requests: &a [*a]", "contains itself"),
    "is its own mapping": ("&a {requests: *a}", "contains itself"),
    "nested without an end": ("requests: " + "[" * 500_000, "nest"),
    "nested": ("requests: " + "[" * 300 + "]" * 300, "nested more than 50 deep"),
    "a Python object": ('requests: !!python/object/apply:os.system ["true"]', "constructor"),
    "thousands of digits": ("engine: {pages: " + "9" * 5000 + "}" + REQUESTS, "digits"),
    "thousands of hexadecimal digits": ("engine: {pages: 0x" + "f" * 5000 + "}" + REQUESTS, "digits"),
    "a day that is not": ("note: 2026-02-31" + REQUESTS, "not readable as YAML"),
    "half a character": ('name: "\\ud800"' + REQUESTS, "Unicode"),
    "tokens beyond measure": ("requests: [{tokens: A999999999}]", "token name"),
    "a long text in a wrong place": ("engine: {pages: " + "x" * 5000 + "}" + REQUESTS, "engine.pages"),
}


@pytest.mark.parametrize("name", BAD_TEXTS)
def test_a_bad_scenario_is_refused_in_one_sentence(name: str) -> None:
    text, says = BAD_TEXTS[name]
    with pytest.raises(ScenarioError) as refused:
        scenarios.parse_text(text)
    said = str(refused.value)
    assert says in said and "\n" not in said and len(said) < 300


def test_aliases_within_reason_are_taken() -> None:
    text = "requests:\n- &first {tokens: A8, max_new_tokens: 2}\n- *first\n- <<: *first\n  at: 3\n"
    parsed = scenarios.parse_text(text)
    assert [r.tokens for r in parsed.requests] == [parsed.requests[0].tokens] * 3


# --- a file of 500 MB ------------------------------------------------------------------------------


def resident() -> float:
    """This process's memory, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


@pytest.fixture
def big(tmp_path: Path) -> Path:
    """500 MB that take no room on the disk."""
    path = tmp_path / "big.jsonl"
    with path.open("wb") as file:
        file.write(b'{"schema_version":1}\n')
        file.truncate(BIG)
    return path


def test_500_mb_are_refused_by_their_size_unread(big: Path) -> None:
    before = resident() if Path("/proc/self/statm").exists() else 0.0
    with pytest.raises(ScenarioError, match="the file has 500 MB; at most 50 MB are taken here"):
        asking.read_trace(big)
    with pytest.raises(ScenarioError, match=r"the file has 500.0 MB; a scenario has at most 1 MB"):
        asking.read_scenario(big)
    if before:
        assert resident() - before < 50


def kept(uploads: Path) -> list[Path]:
    return [p for p in uploads.rglob("*") if p.is_file()]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path]]:
    """The app on a free port, and where its uploads go."""
    uploads = tmp_path / "uploads"
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(uploads))
    app = Served(str(tmp_path / "no-such-model"))
    yield app.url.rstrip("/"), uploads
    app.close()
    assert kept(uploads) == []


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc to see the memory")
def test_500_mb_sent_past_the_page_are_refused_and_leave_nothing(server: tuple[str, Path]) -> None:
    """The page itself refuses such a file unsent (tests/browser); this is for those who send it all the same."""
    url, uploads = server
    part = b"x" * 1_000_000

    def body() -> Iterator[bytes]:
        yield b'--cut\r\nContent-Disposition: form-data; name="files"; filename="big.jsonl"\r\n\r\n'
        for _ in range(BIG // len(part)):
            yield part
        yield b"\r\n--cut--\r\n"

    headers = {"Content-Type": "multipart/form-data; boundary=cut"}
    before = resident()
    try:
        said = httpx.post(f"{url}/gradio_api/upload", content=body(), headers=headers, timeout=60)
    except httpx.HTTPError:
        said = None  # it hung up in the middle, which says it too
    assert said is None or (said.status_code == 413 and "maximum allowed size" in said.text)
    assert resident() - before < 100
    assert kept(uploads) == []
    assert httpx.get(url, timeout=60).status_code == 200


def test_an_upload_is_gone_when_the_server_is(server: tuple[str, Path]) -> None:
    url, uploads = server
    answer = httpx.post(f"{url}/gradio_api/upload", files={"files": ("a.jsonl", b"{}")}, timeout=60)
    assert answer.status_code == 200 and len(kept(uploads)) == 1
