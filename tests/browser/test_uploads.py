"""Hostile files on the page: too large a one is refused unsent, and no string of a trace or scenario becomes markup."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine import events as ev
from tests.browser.serving import SCRIPTED, Served, choose, opened, run
from workbench import runner
from workbench import scenario as scenarios

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser-2")]

EVIL = "</script></style><img src=x onerror=\"window.evil='{}'\"><script>window.evil='{}'</script>'\"&amp;`${{window.evil=1}}"


def evil(where: str) -> str:
    return EVIL.format(where, where)


def hostile() -> bytes:
    """A trace of the real engine in which every string that can be chosen is markup."""
    requests = [
        {
            "id": evil(f"id {i}"), "label": evil(f"label {i}"), "tokens": f"A6+{c}5", "at_step": 4 * i, "max_new_tokens": 5,
            **({"salt": evil("salt")} if i == 4 else {}), **({"fail_at_step": 14} if i == 3 else {}),
        }
        for i, c in enumerate("BCDEF")
    ]  # fmt: skip
    data = {"name": evil("name"), "note": evil("note"), "engine": {"executor": "puppet", "pages": 24}, "requests": requests}
    trace = runner.run(scenarios.parse(data)).trace
    header = trace.header
    header.model, header.device, header.dtype = evil("model"), evil("device"), evil("dtype")
    header.config[evil("key")] = header.versions[evil("version")] = evil("value")
    ids = {i for e in trace for i in runner.token_ids(e)}
    header.texts = {str(i): evil("text") for i in ids} | {"__proto__": evil("proto"), evil("token"): "x"}
    lines = [json.loads(ev.encode(e)) for e in [header, *trace.events]]
    for line in lines[1:]:
        if line["kind"] == "request.finished":
            line["text"] = evil("answer")
            line["matched_stop"] = evil("stop")
    return b"\n".join(json.dumps(line).encode() for line in lines)


def upload(page: Any, path: Path) -> None:
    if not page.is_visible("#upload"):
        page.click("#folded > button")
    with page.expect_file_chooser() as chooser:
        page.click("#upload")
    chooser.value.set_files(str(path))


def harmless(page: Any) -> None:
    """Nothing ran, and nothing of it stands in the page as an element."""
    assert page.evaluate("[window.evil ?? null, document.querySelectorAll('img[src=x]').length, 'polluted' in {}]") == [None, 0, False]


def test_500_mb_are_refused_before_they_are_sent(served: Served, open_page: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "big.jsonl"
    with path.open("wb") as file:
        file.truncate(500_000_000)
    watched = open_page()
    page = opened(watched, served.url)
    upload(page, path)
    page.wait_for_function("document.body.innerText.includes('maximum allowed size of 50.0 Mb')")
    assert not [u for u in watched.requests if "/upload" in u]
    choose(page, SCRIPTED)
    run(page)


def test_no_string_of_an_uploaded_trace_becomes_markup(served: Served, open_page: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "evil.jsonl"
    path.write_bytes(hostile())
    events = path.read_bytes().count(b"\n")
    page = opened(open_page(), served.url)
    upload(page, path)
    page.wait_for_selector(f".radix-player[data-events='{events}']")
    assert "window.evil='name'" in page.inner_text("#shown")
    for button in page.locator(".radix-player button.rp-twin:visible:text-is('table')").all():
        button.click()
    page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
    for seq in range(0, events, 7):
        page.evaluate("seq => { location.hash = location.hash.replace(/&seq=.*|$/, `&seq=${seq}`); }", seq)
        page.wait_for_selector(f".radix-player[data-seq='{seq}']")
    page.evaluate("id => { const at = new URLSearchParams(location.hash.slice(1)); at.set('request', id); location.hash = `#${at}`; }", evil("id 3"))
    page.wait_for_function("document.querySelector('.rp-why')?.innerText.includes(\"window.evil='id 3'\")")
    page.mouse.move(300, 400)
    harmless(page)
    saved = page.request.get(page.get_attribute("#shown a >> nth=1", "href") and f"{served.url.rstrip('/')}{page.get_attribute('#shown a >> nth=1', 'href')}")
    name = saved.headers["content-disposition"]
    assert "<" not in name and '"' not in name.removeprefix('attachment; filename="')[:-1]
    offline = tmp_path / "saved.html"
    offline.write_bytes(saved.body())
    page.goto(offline.as_uri())
    page.wait_for_selector(".radix-player[data-ready=true]")
    page.keyboard.press("End")
    harmless(page)


def test_no_string_of_a_scenario_becomes_markup(served: Served, open_page: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "evil.yaml"
    data = {"name": evil("name"), "note": evil("note"), "engine": {"executor": "puppet", "pages": 40},
            "requests": [{"id": evil("id"), "label": evil("label"), "tokens": "A8", "max_new_tokens": 3}]}  # fmt: skip
    path.write_text(json.dumps(data))
    page = opened(open_page(), served.url)
    upload(page, path)
    page.wait_for_function("document.querySelector('#note')?.innerText.includes(\"window.evil='note'\")")
    run(page)
    page.keyboard.press("End")
    harmless(page)
    path.write_text(json.dumps(data | {evil("key"): 1}))
    upload(page, path)
    page.wait_for_selector("#message[data-kind=error]")
    assert "window.evil='key'" in page.inner_text("#message")
    harmless(page)


def test_an_uploaded_workload_runs_says_what_it_left_out_and_a_bad_one_loses_nothing(served: Served, open_page: Callable[..., Any], tmp_path: Path) -> None:
    path, bad = tmp_path / "mine.jsonl", tmp_path / "bad.jsonl"
    line = {"timestamp": 0, "input_length": 1024, "output_length": 32, "hash_ids": [1, 2]}
    records = [line, line, line | {evil("key"): 1, "input_length": evil("length")}, line | {"hash_ids": [1, 3]}]
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    page = opened(open_page(), served.url)
    upload(page, path)
    page.wait_for_function("document.querySelector('#yaml textarea')?.value.startsWith('name: mine\\n')")
    assert "  kind: mooncake\n  file: uploaded:" in page.input_value("#yaml textarea")
    assert "3 requests" in page.inner_text("#message")
    page.wait_for_function("document.querySelector('#note')?.innerText.includes('1 of 4 records could not be used: line 3: input_length')")
    run(page)
    # Two blocks a prompt, of 16 tokens each; the last token is always computed, so a page of 16 with it.
    assert "of 96 prompt tokens were reused" in page.inner_text("#message")
    text = page.input_value("#yaml textarea")
    bad.write_text(json.dumps({evil("key"): 1}))
    upload(page, bad)
    page.wait_for_selector("#message[data-kind=error]")
    assert "neither a scenario, a trace nor a workload" in page.inner_text("#message")
    assert page.input_value("#yaml textarea") == text
    harmless(page)
    run(page)
    other = opened(open_page(), served.url)
    other.click("#folded > button")
    other.fill("#yaml textarea", text.replace("uploaded:", "uploaded:0"))
    other.wait_for_function("document.querySelector('#note')?.innerText.includes('no upload is held here')")
