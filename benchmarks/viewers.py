"""Thirty sessions that watch one run of the embedded model: how late events are, what they cost the engine, what stays in memory.

    python benchmarks/viewers.py [--viewers 30] [--minutes 1] [--requests 1] [--tokens 32] [--scripted]

One process as the app has it: page, routes and worker; the viewers, a process of their own, read `/runs/{id}/events`. The same
traffic runs again and again, with no viewer and with all of them in turn, until the time is over.

How late: for each chunk of each viewer, from the moment at which it was due (its first event was in the run, and a twentieth of a
second had gone by since that viewer's chunk before it was due) until the server had handed it to the viewer's connection. To reach: p95 <= 10 ms.
Engine: the median step of a run with viewers to that of its neighbour without; the median of these ratios. To reach: under 5 %.
Beside them, for a machine that others use too: the processor time of the server's thread, and how late a plain timer is there unwatched.
Memory: of the whole server, after each run; the slope is told for the second half, when as many runs are remembered as ever will be.
`--scripted` takes a scripted run, paced to 20 steps a second, in place of the model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

TICK = 0.05
QUESTIONS = ("When do you open?", "Who may borrow a map?", "Where are the atlases?", "What is closed on Monday?")


class Timed:
    """The app, with the moment noted at which each chunk had been handed to its connection."""

    loop: asyncio.AbstractEventLoop

    def __init__(self, app: Any) -> None:
        self.app = app
        self.sent: list[list[tuple[int, float]]] = []

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        """Serve; on an event stream, note each chunk's `id` and time."""
        self.loop = asyncio.get_running_loop()
        if not str(scope.get("path", "")).endswith("/events"):
            await self.app(scope, receive, send)
            return
        mine: list[tuple[int, float]] = []
        self.sent.append(mine)

        async def noting(message: Any) -> None:
            await send(message)
            body = message.get("body", b"")
            if body.startswith(b"id: "):
                mine.append((int(body[4 : body.index(b"\n")]), time.perf_counter()))

        await self.app(scope, receive, noting)


def lateness(sent: list[tuple[int, float]], known: list[tuple[int, float]]) -> list[float]:
    """Seconds from due to handed on, for each chunk of one viewer; `known` are (events in the run, when)."""
    late, told, before, at = [], 0, -1.0, 0
    for upto, written in sent:
        while known[at][0] <= told:
            at += 1
        due = max(known[at][1], before + TICK)
        late.append(written - due)
        told, before = upto, due
    return late


def percentile(values: list[float], q: float) -> float:
    """Nearest rank."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(q * len(ranked)))]


def spread(seconds: list[float]) -> str:
    """Median, 95th percentile and the worst, in milliseconds."""
    p50, p95 = percentile(seconds, 0.5) * 1e3, percentile(seconds, 0.95) * 1e3
    return f"p50 {p50:.2f} ms, p95 {p95:.2f} ms, worst {max(seconds) * 1e3:.1f} ms"


def memory() -> float:
    """This process's resident memory in MB; NaN where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6
    except OSError:
        return float("nan")


def slope(points: list[tuple[float, float]]) -> float:
    """Least squares: MB a minute."""
    return 60 * statistics.linear_regression([t for t, _ in points], [m for _, m in points]).slope


async def timer(late: list[float]) -> None:
    """How late a plain sleep of a twentieth of a second ends in this loop, again and again."""
    while True:
        due = time.perf_counter() + TICK
        await asyncio.sleep(TICK)
        late.append(time.perf_counter() - due)


async def watch(url: str, count: int) -> dict[str, int]:
    """`count` viewers of one run until it ends; chunks and events that came, and gaps between them."""
    where = urlsplit(url)
    seen = {"chunks": 0, "events": 0, "gaps": 0}

    async def one() -> None:
        reader, writer = await asyncio.open_connection(where.hostname, where.port, limit=1 << 24)
        writer.write(f"GET {where.path} HTTP/1.1\r\nHost: {where.netloc}\r\nAccept: text/event-stream\r\n\r\n".encode())
        told = 0
        while line := await reader.readline():
            if line.startswith(b"id: "):
                upto = int(line[4:])
                data = await reader.readline()
                seen["gaps"] += int(data[data.index(b":", 6) + 1 : data.index(b",")]) != told
                seen["chunks"] += 1
                told = upto
            elif line.startswith(b"event: end"):
                break
        seen["events"] += told
        writer.close()

    await asyncio.gather(*(one() for _ in range(count)))
    return seen


def viewers(count: int) -> None:
    """The other process: watch each run whose address comes in, tell what was seen."""
    for line in sys.stdin:
        print(json.dumps(asyncio.run(watch(line.strip(), count))), flush=True)


class Bench:
    """The app on a free port, its viewers, and what was noted of each run."""

    def __init__(self, count: int, requests: int, tokens: int, scripted: bool) -> None:
        import uvicorn

        from workbench import app, scenario
        from workbench.ui.runs import Run, Runs
        from workbench.ui.worker import Worker

        class Noted(Run):
            """A run that notes when its events came and what each step took, and keeps pace where it is asked to."""

            def sink(self, batch: list[Any]) -> None:
                now = time.perf_counter()  # before the server's thread may have been woken
                super().sink(batch)
                known.append((len(self.lines), now))

            def halted(self) -> bool:
                steps.append(time.perf_counter() - resumed[-1] if resumed else 0.0)
                if scripted:
                    time.sleep(TICK)
                resumed.append(time.perf_counter())
                return super().halted()

        self.chunks = 0
        self.late: list[float] = []
        self.timers: list[float] = []
        self.step: dict[bool, list[float]] = {False: [], True: []}
        self.busy, self.seconds = {False: 0.0, True: 0.0}, {False: 0.0, True: 0.0}
        known: list[tuple[int, float]] = []
        steps: list[float] = []
        resumed: list[float] = []
        self.known, self.steps, self.resumed = known, steps, resumed
        self.make = lambda: Noted(scenario.parse(traffic(requests, tokens, scripted)))
        self.worker = Worker(Runs(), "embedded")
        self.timed = Timed(app.build(self.worker))
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.server = uvicorn.Server(uvicorn.Config(self.timed, log_level="warning"))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listener]}, daemon=True)
        self.thread.start()
        self.worker.start()
        while not self.server.started or self.worker.model.status == "loading":
            time.sleep(0.05)
        if not scripted and self.worker.model.status != "ready":
            raise SystemExit(f"the model could not be loaded: {self.worker.model.error}")
        self.count = count
        self.child = subprocess.Popen([sys.executable, __file__, "--watch", str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, watched: bool) -> None:
        """One run; what was seen of it is added to the lists."""
        for noted in (self.known, self.steps, self.resumed, self.timed.sent):
            noted.clear()
        run = self.make()
        self.worker.runs.add(run)
        assert self.child.stdin and self.child.stdout and self.thread.ident
        ticking = None
        if watched:
            print(f"{self.url}/runs/{run.id}/events", file=self.child.stdin, flush=True)
            while len(self.timed.sent) < self.count:
                time.sleep(0.01)
        else:
            ticking = asyncio.run_coroutine_threadsafe(timer(self.timers), self.timed.loop)
        clock = time.pthread_getcpuclockid(self.thread.ident)
        start, busy = time.perf_counter(), time.clock_gettime(clock)
        self.worker.offer(run)
        while not run.ended:
            time.sleep(0.05)
        self.busy[watched] += time.clock_gettime(clock) - busy
        self.seconds[watched] += time.perf_counter() - start
        if ticking:
            ticking.cancel()
        if run.status != "done":
            raise SystemExit(f"a run ended as {run.status}: {run.error}")
        if watched:
            seen = json.loads(self.child.stdout.readline())
            if seen["gaps"] or seen["events"] != self.count * len(run.lines):
                raise SystemExit(f"viewers missed events: {seen} of {self.count} x {len(run.lines)}")
            self.chunks += seen["chunks"]
            self.late += [s for sent in self.timed.sent for s in lateness(sent, self.known)]
        self.step[watched].append(statistics.median(self.steps[1:]))

    def close(self) -> None:
        """End the viewers' process and the server."""
        assert self.child.stdin
        self.child.stdin.close()
        self.child.wait(10)
        self.worker.close()
        self.server.should_exit = True
        self.thread.join(5)


def traffic(requests: int, tokens: int, scripted: bool) -> dict[str, Any]:
    """Up to four requests at once, of equal length."""
    if scripted:
        asked = [{"tokens": f"A40+{'BCDE'[i]}8"} for i in range(requests)]
    else:
        shared = {"role": "system", "content": "You work in a library. Answer at length."}
        asked = [{"messages": [shared, {"role": "user", "content": question}]} for question in QUESTIONS[:requests]]
    return {
        "name": "watched", "engine": {"executor": "puppet" if scripted else "model", "pages": 2048},
        "requests": [{"id": f"R{i}", "at_step": 1, "max_new_tokens": tokens, "ignore_eos": True, **a} for i, a in enumerate(asked, 1)],
    }  # fmt: skip


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--viewers", type=int, default=30)
    parser.add_argument("--requests", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--scripted", action="store_true")
    parser.add_argument("--watch", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.watch:
        viewers(args.watch)
        return
    bench = Bench(args.viewers, args.requests, args.tokens, args.scripted)
    start = time.monotonic()
    held = [(0.0, memory())]
    while (pair := len(bench.step[True])) < 2 or time.monotonic() - start < 60 * args.minutes:
        for watched in (False, True) if pair % 2 else (True, False):
            bench.run(watched)
            held.append((time.monotonic() - start, memory()))
    bench.close()
    half = held[len(held) // 2 :]
    plain, ratios = bench.step[False], [a / b for a, b in zip(bench.step[True], bench.step[False], strict=True)]
    share = {watched: bench.busy[watched] / bench.seconds[watched] for watched in (False, True)}
    rows = [
        ("how late, from due to handed on", spread(bench.late)),
        ("  a plain timer there, unwatched", spread(bench.timers)),
        ("chunks a viewer and second", f"{bench.chunks / args.viewers / bench.seconds[True]:.1f}, none lost"),
        ("a step, unwatched", f"{statistics.median(plain) * 1e3:.2f} ms"),
        ("a step, watched / unwatched", f"{statistics.median(ratios):.4f} (median of {len(ratios)} pairs, {min(ratios):.3f} to {max(ratios):.3f})"),
        ("the server's thread", f"{share[True]:.2%} of a core watched, {share[False]:.2%} unwatched"),
        ("memory, MB", f"{held[0][1]:.0f} at the start, {half[0][1]:.0f} half way, {held[-1][1]:.0f} at the end"),
        ("  slope of the second half", f"{slope(half):+.2f} MB a minute"),
    ]
    print(f"{args.viewers} viewers, {held[-1][0] / 60:.1f} min, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name, value in rows:
        print(f"{name:<34} {value}")


if __name__ == "__main__":
    main()
