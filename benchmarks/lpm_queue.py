"""What longest prefix first costs a step, by how many wait: the index against sorting by fresh matches.

    python benchmarks/lpm_queue.py [--waiting 128 1000 10000 100000] [--rounds 2000] [--drain 100000]

A round is what a step does for one admission: find the longest match, take that request out of the queue,
store its prompt, evict what is over the cap. Traffic: passages of 256 tokens with 16 questions of 32, in random
order, a tree that holds 32 passages, so that groups form and prefixes come and go. Both arms run the same
rounds in one process; the plain sort runs fewer of them where one takes long. Times are the thread's CPU time, so
that other work on the machine does not count; Python's own garbage collection does. Then the whole queue is drained
and the index's key updates are counted and held under 4 N log2 N.
"""

from __future__ import annotations

import argparse
import gc
import math
import random
import statistics
import time
from collections.abc import Callable

from engine.cache.radix import RadixCache
from engine.events import Trace
from engine.request import Request, SamplingParams
from engine.scheduler.longest import LongestPrefix
from engine.scheduler.policy import longest_match
from engine.scheduler.queue import Queue

PREFIX, QUESTION, EACH = 256, 32, 16
ROOM = 32 * PREFIX


class Arm:
    """A queue over a cache, filled with `waiting` requests."""

    def __init__(self, waiting: int, indexed: bool) -> None:
        draw = random.Random(0)
        self.cache = RadixCache(1, trace=Trace(keep=False))
        self.queue = Queue()
        self.index = LongestPrefix(self.cache, 1, self.queue) if indexed else None
        self.queue.watcher = self.index
        passages = [[draw.randrange(50_000) for _ in range(PREFIX)] for _ in range(-(-waiting // EACH))]
        order = draw.sample(range(waiting), waiting)
        params = SamplingParams()
        for number, i in enumerate(order):
            prompt = passages[i // EACH] + [draw.randrange(50_000) for _ in range(QUESTION)]
            self.queue.join(Request(f"R{number}", prompt, params, 0.0, number))

    def best(self) -> Request:
        """The request with the longest match, ties in queue order."""
        if self.index is not None:
            requests = self.index.requests()
            request = next(requests)
            self.queue.remove(request)
            requests.close()
            return request
        waiting = list(self.queue)
        keys = longest_match(waiting, self.cache)
        request = waiting[min(range(len(keys)), key=keys.__getitem__)]
        self.queue.remove(request)
        return request

    def round(self) -> str:
        """One admission."""
        request = self.best()
        self.cache.insert(request.packed(len(request.prompt)), range(len(request.prompt)), None, request)
        if self.cache.evictable > ROOM:
            self.cache.evict(self.cache.evictable - ROOM)
        return request.id


def timed(rounds: int, one: Callable[[], str]) -> tuple[list[float], list[str]]:
    """CPU milliseconds of each round, and whom it chose."""
    gc.collect()
    spent, chosen = [], []
    for _ in range(rounds):
        begin = time.thread_time()
        chosen.append(one())
        spent.append(1e3 * (time.thread_time() - begin))
    return spent, chosen


def line(name: str, spent: list[float]) -> str:
    """Median, 99th percentile and worst."""
    ranked = sorted(spent)
    p99 = ranked[math.ceil(0.99 * len(ranked)) - 1]
    return f"  {name:<6} median {statistics.median(spent):9.3f} ms   p99 {p99:9.3f} ms   worst {ranked[-1]:9.3f} ms   ({len(spent)} rounds)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--waiting", type=int, nargs="+", default=[128, 1_000, 10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=2_000)
    parser.add_argument("--drain", type=int, default=100_000)
    asked = parser.parse_args()
    for waiting in asked.waiting:
        begin = time.perf_counter()
        arm = Arm(waiting, indexed=True)
        filled = time.perf_counter() - begin
        plain = Arm(waiting, indexed=False)
        rounds = min(asked.rounds, waiting)
        print(f"{waiting:,} waiting (filled in {filled:.1f} s)")
        spent, chosen = timed(rounds, arm.round)
        print(line("index", spent))
        compared, same = timed(max(1, min(rounds, 400_000 // waiting)), plain.round)
        print(line("sort", compared))
        if same != chosen[: len(same)]:
            raise SystemExit("the index and the plain sort chose differently")
    arm = Arm(asked.drain, indexed=True)
    assert arm.index is not None
    begin = time.perf_counter()
    for _ in range(asked.drain):
        arm.round()
    bound = 4 * asked.drain * math.log2(asked.drain)
    print(
        f"a queue of {asked.drain:,} drained: {arm.index.updates:,} key updates "
        f"({arm.index.updates / asked.drain:.1f} a request; bound {bound:,.0f}), {time.perf_counter() - begin:.1f} s"
    )
    if arm.index.updates > bound:
        raise SystemExit("more key updates than 4 N log2 N")


if __name__ == "__main__":
    main()
