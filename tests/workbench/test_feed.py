"""A run told to its viewers: nothing is lost or doubled, whoever keeps up shares one message, nobody leaves a trace behind."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from engine import events as ev
from workbench.ui import feed as feeds
from workbench.ui import runs as module
from workbench.ui.feed import Feed
from workbench.ui.runs import Run, Runs


def told(going: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine in a thread of its own: a browser test before may have left a loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, going).result()


GOLDEN = Path(__file__).parents[1] / "golden" / "walkthrough.jsonl"


@dataclass
class Story:
    """What a run has to tell, without a run."""

    status: str = "queued"
    error: str | None = None
    header: bytes = b""
    lines: list[bytes] = field(default_factory=list)
    texts: list[tuple[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.feed = Feed(self)

    @property
    def ended(self) -> bool:
        return self.status in ("done", "stopped", "failed")

    def begin(self) -> None:
        self.header, self.status = b'{"schema_version":1}', "running"
        self.feed.more()

    def add(self, events: int, text: str | None = None) -> None:
        if text is not None:
            self.texts.append((len(self.texts), text))
        self.lines += [b'{"seq":%d}' % seq for seq in range(len(self.lines), len(self.lines) + events)]
        self.feed.more()

    def end(self) -> None:
        self.status = "done"
        self.feed.more()


class Viewer:
    """Reads a stream to its end, and holds it to what a viewer may expect."""

    def __init__(self, since: int = 0) -> None:
        self.since = since
        self.seqs: list[int] = []
        self.texts: dict[str, str] = {}
        self.messages: list[bytes] = []
        self.ended: dict[str, Any] | None = None

    async def watch(self, feed: Feed, leave_after: int | None = None) -> None:
        async with aclosing(feed.watch(self.since)) as stream:
            await self._read(stream, leave_after)

    async def _read(self, stream: AsyncIterator[bytes], leave_after: int | None) -> None:
        greeted, before = False, len(self.messages)
        async for message in stream:
            assert message.endswith(b"\n\n") and self.ended is None
            if message.startswith(b"event: header"):
                assert not greeted
                greeted = True
            elif message.startswith(b"event: end"):
                self.ended = json.loads(message.split(b"data: ")[1])
            elif message.startswith(b"id: "):
                assert greeted
                first, second = message[4:].split(b"\ndata: ")
                data = json.loads(second)
                assert data["from"] == self.since
                self.seqs += [e["seq"] for e in data["events"]]
                self.texts |= data["texts"]
                self.since = int(first)
                assert self.since == self.seqs[-1] + 1
                self.messages.append(message)
                if leave_after is not None and len(self.messages) - before >= leave_after:
                    return
            else:
                assert message == b": waiting\n\n"


async def settled(feed: Feed, viewers: int) -> None:
    while feed.viewers != viewers:
        await asyncio.sleep(0)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "TICK", 0.0)


def test_viewers_who_keep_up_share_one_message(quick: None) -> None:
    async def go() -> list[Viewer]:
        story, viewers = Story(), [Viewer() for _ in range(30)]
        tasks = [asyncio.create_task(v.watch(story.feed)) for v in viewers]
        await settled(story.feed, 30)
        story.begin()
        for i in range(20):
            story.add(3, f"text {i}")
            await asyncio.sleep(0.002)
        story.end()
        await asyncio.gather(*tasks)
        assert story.feed.viewers == 0
        return viewers

    viewers = told(go())
    for viewer in viewers:
        assert viewer.seqs == list(range(60))
        assert viewer.texts == {str(i): f"text {i}" for i in range(20)}
        assert viewer.ended == {"status": "done", "error": None}
        assert all(mine is first for mine, first in zip(viewer.messages, viewers[0].messages, strict=True))


def test_who_comes_late_gets_all_of_it_in_batches(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "BATCH", 7)

    async def go() -> Viewer:
        story, viewer = Story(), Viewer()
        story.begin()
        story.add(20, "a")
        task = asyncio.create_task(viewer.watch(story.feed))
        await settled(story.feed, 1)
        story.add(5, "b")
        story.end()
        await task
        return viewer

    viewer = told(go())
    assert viewer.seqs == list(range(25)) and viewer.texts == {"0": "a", "1": "b"}
    assert max(len(json.loads(m.split(b"data: ")[1])["events"]) for m in viewer.messages) == 7


@pytest.mark.parametrize("since", [0, 5, 20, 99])
def test_a_run_that_is_over_is_told_from_anywhere(since: int) -> None:
    async def go() -> Viewer:
        story, viewer = Story(), Viewer(since)
        story.begin()
        story.add(20, "a")
        story.end()
        await viewer.watch(story.feed)
        return viewer

    viewer = told(go())
    assert viewer.seqs == list(range(since, 20)) and viewer.ended is not None
    assert viewer.texts == ({"0": "a"} if since < 20 else {})


def test_a_run_that_never_began_ends_without_a_header() -> None:
    async def go() -> Viewer:
        story, viewer = Story(), Viewer()
        task = asyncio.create_task(viewer.watch(story.feed))
        await settled(story.feed, 1)
        story.status = "stopped"
        story.feed.more()
        await task
        return viewer

    viewer = told(go())
    assert viewer.ended == {"status": "stopped", "error": None} and viewer.seqs == []


def test_leaving_and_resuming_loses_nothing_while_a_thread_adds(quick: None) -> None:
    """Viewers come, go and resume where they were, while the engine's thread adds as fast as it can."""
    chance = random.Random(3)

    async def one(story: Story, viewer: Viewer) -> None:
        while viewer.ended is None:
            await viewer.watch(story.feed, leave_after=chance.randint(1, 4))
            await asyncio.sleep(chance.choice([0, 0, 0.001, 0.01]))

    async def go() -> list[Viewer]:
        story, viewers = Story(), [Viewer() for _ in range(8)]

        def engine() -> None:
            story.begin()
            for i in range(3000):
                story.add(chance.randint(1, 3), f"t{i}" if i % 10 == 0 else None)
                if i % 20 == 0:
                    time.sleep(0.0005)
            story.end()

        thread = threading.Thread(target=engine)
        tasks = [asyncio.create_task(one(story, v)) for v in viewers]
        thread.start()
        await asyncio.gather(*tasks)
        thread.join()
        assert story.feed.viewers == 0
        for viewer in viewers:
            assert viewer.seqs == list(range(len(story.lines)))
            assert viewer.texts == {str(i): t for i, t in story.texts}
        return viewers

    told(go())


def test_an_end_is_heard_by_everyone_however_it_falls(quick: None) -> None:
    """The last news may come at any moment of a viewer's round: nobody is left waiting."""

    async def go() -> None:
        for _ in range(200):
            story, viewer = Story(), Viewer()
            thread = threading.Thread(target=lambda story=story: (story.begin(), story.add(1), story.end()))
            thread.start()
            await asyncio.wait_for(viewer.watch(story.feed), 20)
            thread.join()
            assert viewer.seqs == [0]

    told(go())


def test_flushes_are_at_most_twenty_a_second() -> None:
    async def go() -> tuple[int, float]:
        loop = asyncio.get_running_loop()
        story, viewer = Story(), Viewer()
        task = asyncio.create_task(viewer.watch(story.feed))
        await settled(story.feed, 1)
        story.begin()
        start = loop.time()
        for _ in range(300):
            story.add(1)
            await asyncio.sleep(0.002)
        took = loop.time() - start
        story.end()
        await task
        assert viewer.seqs == list(range(300))
        return len(viewer.messages), took

    messages, took = told(go())
    assert 2 <= messages <= took / feeds.TICK + 2


def test_silence_is_broken_by_a_comment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "BEAT", 0.01)

    async def go() -> list[bytes]:
        story, heard = Story(), []
        story.begin()
        story.add(1)
        async with aclosing(story.feed.watch(0)) as stream:
            async for message in stream:
                heard.append(message)
                if len(heard) == 5:
                    break
        assert story.feed.viewers == 0
        return heard

    heard = told(go())
    assert heard[0].startswith(b"event: header") and heard[1].startswith(b"id: 1") and heard[2:] == [b": waiting\n\n"] * 3


def test_nobody_watching_costs_the_engine_nothing() -> None:
    story = Story()
    story.begin()
    story.add(1000)
    story.end()
    assert story.feed._loop is None


def test_the_event_log_of_all_runs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """By their number and by their bytes; what was asked for last, what still runs and what ships with the app stay."""
    trace = ev.Trace.read(GOLDEN)
    runs = Runs()
    recorded = Run.of_trace(trace, "recorded", "recorded-walkthrough")
    runs.add(recorded)
    going = Run(None, status="running")
    runs.add(going)
    uploads = [Run.of_trace(trace, "uploaded") for _ in range(100)]
    for run in uploads:
        runs.add(run)
    assert [runs.get(r.id) is r for r in uploads] == [False] * (100 - module.KEPT + 2) + [True] * (module.KEPT - 2)
    assert recorded.size == sum(len(ev.encode(e)) for e in trace)
    monkeypatch.setattr(module, "HELD", recorded.size * 5)
    for run in (last := [Run.of_trace(trace, "uploaded") for _ in range(10)]):
        runs.add(run)
    assert [runs.get(r.id) is r for r in last] == [False] * 6 + [True] * 4
    monkeypatch.setattr(module, "HELD", 1)
    runs.add(run := Run.of_trace(trace, "uploaded"))
    assert runs.get(run.id) is run and runs.get(going.id) is going and runs.get("recorded-walkthrough") is recorded
