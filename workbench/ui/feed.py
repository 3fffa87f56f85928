"""A run told to all who watch it: each flush is encoded once, for every viewer who has kept up.

The engine's thread only says that there is more, and only when somebody waits for it. News after a pause goes out at
once; what follows within `TICK` goes out together: 20 flushes a second at most.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Protocol

TICK = 0.05
"""Least seconds between two flushes."""
BEAT = 15.0
"""Seconds of silence after which a comment keeps the connections alive."""
BATCH = 4000
"""Events in one message at most."""


class Told(Protocol):
    """What a run has to tell. Both lists only grow; a token's text is there before the event that brings it."""

    status: str
    error: str | None
    header: bytes
    lines: list[bytes]
    texts: list[tuple[int, str]]

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""


class Feed:
    """Hands one run's events to its viewers, who all live in the server's event loop."""

    def __init__(self, run: Told) -> None:
        self.viewers = 0
        self._run = run
        self._stop = 0
        self._over = False
        self._news = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listening = False
        self._due = 0.0
        self._beat: asyncio.TimerHandle | None = None
        self._last: tuple[tuple[int, int, int], bytes, int] = ((0, 0, 0), b"", 0)

    def more(self) -> None:
        """Something is new. Called by the engine's thread, and free while nobody watches."""
        if self._listening and self._loop is not None:
            self._listening = False
            with contextlib.suppress(RuntimeError):  # the server has stopped
                self._loop.call_soon_threadsafe(self._soon)

    async def watch(self, since: int) -> AsyncIterator[bytes]:
        """The header, then batches of events from `since` on, then `end`, as server-sent events.

        A viewer's first batch brings all texts so far, also when it resumes: it may be a new one.
        """
        self._enter()
        try:
            named, greeted = 0, False
            while True:
                news, quiet = self._news, True
                if self._run.header and not greeted:
                    greeted, quiet = True, False
                    yield b"event: header\ndata: " + self._run.header + b"\n\n"
                while since < self._stop:
                    message, since, named = self._message(since, named)
                    quiet = False
                    yield message
                    await asyncio.sleep(0)  # a send need not wait; the others get their turn
                if self._over:
                    yield b"event: end\ndata: " + json.dumps({"status": self._run.status, "error": self._run.error}).encode() + b"\n\n"
                    return
                if quiet:
                    yield b": waiting\n\n"
                await news.wait()
        finally:
            self._leave()

    def _message(self, since: int, named: int) -> tuple[bytes, int, int]:
        """One batch from `since` on, and where the next one begins; kept for whoever stands at the same place."""
        stop = min(since + BATCH, self._stop)
        if self._last[0] != (since, stop, named):
            texts = self._run.texts[named:]
            message = (
                b"id: %d\ndata: " % stop
                + b'{"from":%d,"texts":' % since
                + json.dumps({str(i): t for i, t in texts}).encode()
                + b',"events":['
                + b",".join(self._run.lines[since:stop])
                + b"]}\n\n"
            )
            self._last = (since, stop, named), message, named + len(texts)
        return self._last[1], stop, self._last[2]

    # --- in the event loop ---------------------------------------------------------------------

    def _enter(self) -> None:
        self.viewers += 1
        if self.viewers == 1:
            self._loop, self._news = asyncio.get_running_loop(), asyncio.Event()
            self._look()

    def _leave(self) -> None:
        self.viewers -= 1
        if self.viewers == 0:
            self._listening = False
            self._last = ((0, 0, 0), b"", 0)
            if self._beat:
                self._beat.cancel()

    def _look(self) -> None:
        """See how far the run is. Listening begins first: what comes during the look is told of."""
        assert self._loop is not None
        self._listening = self.viewers > 0
        self._over = self._run.ended
        self._stop = len(self._run.lines)
        if self._beat:
            self._beat.cancel()
        self._beat = self._loop.call_later(BEAT, self._flush) if self._listening else None

    def _soon(self) -> None:
        """From due to due, not from flush to flush: one that was late does not put off those after it."""
        assert self._loop is not None
        self._due = max(self._due + TICK, self._loop.time())
        self._loop.call_at(self._due, self._flush)

    def _flush(self) -> None:
        """Wake all viewers: with news, or after a long silence without."""
        self._look()
        news, self._news = self._news, asyncio.Event()
        news.set()
