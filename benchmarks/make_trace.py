"""Synthetic traces for the player's tests and benchmarks: seeded, and consistent under the fold.

A small mock of a serving engine: groups of requests share long prefixes, a tree of bounded size keeps
them, the least recently used leaves go first. It decides nothing cleverly; it only tells a story whose
events fit one another, of any length and with any number of live nodes.

    python benchmarks/make_trace.py 100000 3000 out.jsonl
"""

from __future__ import annotations

import argparse
import heapq
import random
from dataclasses import dataclass, field

from engine import events as ev

WORDS = ["the", "leave", "handbook", "says", "you", "may", "carry", "five", "days", "forward", "until", "spring", "if", "your", "manager", "agrees", "in", "writing", "before", "December", "parking", "is", "free", "on", "Fridays", "how", "much", "annual", "do", "I", "get", "when", "sick", "note", "due"]
FIRST_ID = 256
VOCABULARY = 1024


@dataclass
class Node:
    """One tree node; `key` of a child is its first page of ids."""

    id: int
    parent: Node | None
    ids: list[int]
    pages: list[int]
    children: dict[tuple[int, ...], Node] = field(default_factory=dict)
    locks: int = 0
    last: int = 0
    hits: int = 0


@dataclass
class Job:
    """One request on its way."""

    id: str
    prompt: list[int]
    want: int
    arrived: float
    output: list[int] = field(default_factory=list)
    node: Node | None = None
    pages: list[int] = field(default_factory=list)
    """All its pages in order of position: the tree's, then its own."""
    kv: int = 0
    times: int = 0
    admitted: bool = False
    shared: int = 0
    """How many of them were the tree's when it last looked."""
    grown: bool = False


class Mock:
    """The engine that is not one."""

    def __init__(self, events: int, live: int, *, seed: int = 0, page_size: int = 1, chunk: int = 48) -> None:
        self.random = random.Random(seed)
        self.size = page_size
        self.limit, self.live, self.chunk = events, live, chunk
        self.pages = max(64, (live * 24 + 800) // page_size)
        self.margin = 8 * (1 + 12 // page_size)
        texts = {str(FIRST_ID + i): f" {WORDS[i % len(WORDS)]}" for i in range(VOCABULARY)}
        self.trace = ev.Trace(
            ev.Header(
                scenario="mock", note="A made-up run for tests.", seed=seed, model="none", device="cpu",
                dtype="float32", pages=self.pages, page_size=page_size, texts=texts,
                config={"eviction": "lru", "policy": "fcfs"},
            )
        )  # fmt: skip
        self.root = Node(0, None, [], [])
        self.nodes: dict[int, Node] = {}
        self.heap: list[tuple[int, int]] = []
        self.free = list(range(self.pages))
        self.tick = self.next_node = self.arrivals = 0
        self.queue: list[Job] = []
        self.running: list[Job] = []
        groups = max(3, live // 60)
        self.prefixes = [self.ids(self.random.randint(20, 160)) for _ in range(groups)]
        self.system = self.ids(32)

    def ids(self, n: int) -> list[int]:
        return [FIRST_ID + self.random.randrange(VOCABULARY) for _ in range(n)]

    def run(self) -> ev.Trace:
        """Make events until there are enough; the last operation is completed."""
        t = self.trace
        t.emit(ev.RunStarted, pages=self.pages, page_size=self.size)
        t.commit()
        while len(t.events) < self.limit:
            if len(self.queue) < 6:
                for _ in range(self.random.randint(0, 3)):
                    self.arrive()
            if self.queue and self.random.random() < 0.02:
                self.abort()
            if self.plan():
                self.forward()
            t.step += 1
        t.emit(ev.RunEnded, stopped=True)
        t.commit()
        return t

    def arrive(self) -> None:
        self.arrivals += 1
        group = min(int(self.random.expovariate(4 / len(self.prefixes))), len(self.prefixes) - 1)
        if self.random.random() < 0.05:
            group = self.random.randrange(len(self.prefixes))
        prompt = self.system + self.prefixes[group] + self.ids(self.random.randint(3, 24))
        job = Job(f"R{self.arrivals}", prompt, self.random.randint(1, 12 if self.live < 1000 else 2), self.trace.t)
        self.queue.append(job)
        self.trace.emit(
            ev.RequestArrived, request=job.id, prompt=prompt, max_new_tokens=job.want, arrived=job.arrived,
            label=" ".join(self.random.choices(WORDS, k=4)) + "?",
        )  # fmt: skip
        self.trace.commit()

    def abort(self) -> None:
        job = self.queue.pop(self.random.randrange(len(self.queue)))
        self.trace.emit(ev.RequestAborted, request=job.id, was="waiting")
        self.trace.commit()

    # --- the tree

    def match(self, ids: list[int]) -> tuple[list[Node], int, int]:
        """Nodes on the way, whole-page tokens matched, and how far into the last node."""
        node, at, way = self.root, 0, []
        while True:
            child = node.children.get(tuple(ids[at : at + self.size]))
            if child is None or at + self.size > len(ids):
                return way, at, len(node.ids)
            k = 0
            while k + self.size <= len(child.ids) and ids[at + k : at + k + self.size] == child.ids[k : k + self.size]:
                k += self.size
            way.append(child)
            at += k
            if k < len(child.ids):
                return way, at, k
            node = child

    def split(self, node: Node, at: int) -> Node:
        self.next_node += 1
        k = at // self.size
        front = Node(self.next_node, node.parent, node.ids[:at], node.pages[:k], locks=node.locks, last=node.last, hits=node.hits)
        assert node.parent is not None
        node.parent.children[tuple(node.ids[: self.size])] = front
        node.parent, node.ids, node.pages = front, node.ids[at:], node.pages[k:]
        front.children[tuple(node.ids[: self.size])] = node
        self.nodes[front.id] = front
        self.trace.emit(ev.NodeSplit, node=node.id, front=front.id, at=at)
        return front

    def up(self, node: Node | None) -> list[Node]:
        out = []
        while node is not None and node.id:
            out.append(node)
            node = node.parent
        return out

    def touch(self, node: Node, hit: bool) -> None:
        self.tick += 1
        for n in self.up(node):
            n.last = self.tick
            n.hits += hit
            if not n.children:
                heapq.heappush(self.heap, (n.last, n.id))
        self.trace.emit(ev.NodeTouched, node=node.id, tick=self.tick, hit=hit)

    def lock(self, job: Job, node: Node) -> None:
        for n in self.up(node):
            n.locks += 1
        job.node = node
        self.trace.emit(ev.NodeLocked, node=node.id, request=job.id)

    def unlock(self, job: Job) -> None:
        if job.node is None:
            return
        for n in self.up(job.node):
            n.locks -= 1
            if not n.children:
                heapq.heappush(self.heap, (n.last, n.id))
        self.trace.emit(ev.NodeUnlocked, node=job.node.id, request=job.id)
        job.node = None

    def evict(self, pages: int, for_whom: str | None) -> None:
        asked, freed, told, ranking = pages, [], [], []
        while pages > 0 and self.heap:
            last, key = heapq.heappop(self.heap)
            node = self.nodes.get(key)
            if node is None or node.last != last or node.locks or node.children:
                continue
            take = min(pages, len(node.pages))
            pages -= take
            gone = node.pages[len(node.pages) - take :]
            freed.append((gone, node.id))
            ranking.append(
                ev.Ranked(node=key, key=[last], tokens=len(node.ids), age=self.tick - last, hits=node.hits, taken=take * self.size)
            )
            if take == len(node.pages):
                told.append((ev.NodeEvicted, node.id, len(node.ids), gone))
                self.drop(node)
            else:
                told.append((ev.NodeTrimmed, node.id, take * self.size, gone))
                node.ids, node.pages = node.ids[: -take * self.size], node.pages[:-take]
                heapq.heappush(self.heap, (last, key))
        self.trace.emit(
            ev.Eviction, asked=asked, freed=sum(len(g) for g, _ in freed), policy="lru", unit="page",
            ranking=ranking[:8], evictable=asked, request=for_whom,
        )  # fmt: skip
        for kind, key, tokens, gone in told:
            self.trace.emit(kind, node=key, tokens=tokens, pages=gone)
        for gone, key in freed:
            self.free += gone
            self.trace.emit(ev.PageFreed, pages=gone, owner=key)

    def drop(self, node: Node) -> None:
        parent = node.parent
        assert parent is not None
        del parent.children[tuple(node.ids[: self.size])]
        del self.nodes[node.id]
        if parent.id and not parent.children:
            heapq.heappush(self.heap, (parent.last, parent.id))

    def insert(self, job: Job, upto: int) -> None:
        """Store the whole pages of the first `upto` tokens; the job goes on under the new lock."""
        ids = (job.prompt + job.output)[: upto // self.size * self.size]
        way, at, k = self.match(ids)
        node = way[-1] if way else self.root
        if at < len(ids) or (way and k < len(node.ids)):
            if way and k < len(node.ids):
                node = self.split(node, k)
            start = at // self.size
            pages = job.pages[start : len(ids) // self.size]
            if pages and node is job.node and not node.children and node.id and job.grown:
                node.ids, node.pages = node.ids + ids[at:], node.pages + pages
                self.trace.emit(ev.NodeGrown, node=node.id, request=job.id, start=at, stop=len(ids), pages=pages)
            elif pages:
                self.next_node += 1
                child = Node(self.next_node, node, ids[at:], pages)
                node.children[tuple(child.ids[: self.size])] = self.nodes[child.id] = child
                self.trace.emit(
                    ev.NodeCreated, node=child.id, parent=node.id, request=job.id, start=at, stop=len(ids), pages=pages
                )
                node, job.grown = child, True
        if node.id:
            self.touch(node, False)

    def held(self, job: Job) -> list[int]:
        return [p for n in reversed(self.up(job.node)) for p in n.pages]

    def relock(self, job: Job, upto: int) -> None:
        """Lock what is stored of the job's tokens; pages the tree has twice go back."""
        ids = (job.prompt + job.output)[: upto // self.size * self.size]
        way, _, k = self.match(ids)
        if not way or k < len(way[-1].ids):
            return
        old = job.node
        known = job.shared
        self.lock(job, way[-1])
        if old is not None:
            job.node = old
            self.unlock(job)
            job.node = way[-1]
        tree = self.held(job)
        twice = [a for a, b in zip(job.pages[known:], tree[known:], strict=False) if a != b]
        if twice:
            fresh = [b for a, b in zip(job.pages[known:], tree[known:], strict=False) if a != b]
            self.trace.emit(ev.RequestRemapped, request=job.id, start=known * self.size, old=twice, new=fresh)
            self.trace.emit(ev.PageFreed, pages=twice, owner=job.id)
            self.free += twice
        job.pages[: len(tree)] = tree
        job.shared = len(tree)

    # --- steps

    def plan(self) -> bool:
        """Admit, allocate, tell the step; False when there is nothing to run."""
        t = self.trace
        members, tokens = [], []
        if self.queue and self.random.random() < 0.3:
            t.emit(ev.QueueOrdered, policy="lpm", waiting=len(self.queue), head=[j.id for j in self.queue[:4]], keys=[0])
        while self.queue and len(self.running) < 8:
            job = self.queue[0]
            ids = job.prompt + job.output
            way, at, k = self.match(ids[:-1])
            stop = "last token" if at >= len(ids) - self.size else "parted" if way and k < len(way[-1].ids) else "no child"
            t.emit(
                ev.RequestMatched, request=job.id, length=at, raw_length=at, path=[n.id for n in way], stop=stop,
                **({"at_node": way[-1].id, "offset": k, "stored": way[-1].ids[k], "wanted": ids[at]} if stop == "parted" else {}),
            )  # fmt: skip
            if way:
                node = self.split(way[-1], k) if k < len(way[-1].ids) else way[-1]
                self.touch(node, not job.admitted)
                self.lock(job, node)
            need = -(-len(ids) // self.size) - at // self.size + 1
            short = need - len(self.free) + self.margin
            over = len(self.nodes) - self.live
            if short > 0 or over > 0:
                self.evict(max(short, over * 12 // self.size), job.id)
            if need + self.margin > len(self.free):
                self.unlock(job)
                t.emit(ev.RequestPassedOver, request=job.id, limit="pages", needed=need, available=len(self.free))
                break
            self.queue.pop(0)
            job.pages, job.kv, job.grown = self.held(job), at, False
            job.shared = len(job.pages)
            counts = {"cached": at, "computed": len(job.prompt) - at}
            if job.admitted:
                counts |= {"recovered": at, "recomputed": len(ids) - at}
            t.emit(
                ev.RequestAdmitted, request=job.id, node=job.node.id if job.node else 0, length=at,
                first=not job.admitted, needed=need, available=len(self.free), **counts,
            )  # fmt: skip
            job.admitted = True
            self.running.append(job)
        prefill = [j for j in self.running if j.kv < len(j.prompt + j.output) - (1 if j.output else 0)]
        for job in prefill or self.running:
            end = len(job.prompt + job.output)
            members.append(job)
            tokens.append(min(end - job.kv, self.chunk))
        if not members:
            t.commit()
            return False
        owners, counts, given = [], [], []
        for job, n in zip(members, tokens, strict=True):
            need = -(-(job.kv + n) // self.size) - len(job.pages)
            if need > 0 and need > len(self.free):
                self.evict(need - len(self.free), job.id)
            if need > 0:
                pages = [self.free.pop() for _ in range(need)]
                job.pages += pages
                owners.append(job.id)
                counts.append(need)
                given += pages
        if given:
            t.emit(ev.PageAllocated, pages=given, owners=owners, counts=counts)
        self.members, self.tokens = members, tokens
        t.emit(
            ev.StepPlanned, mode="prefill" if prefill else "decode", members=[j.id for j in members], tokens=tokens,
            prefills=len(prefill), waiting=len(self.queue), free=len(self.free),
        )  # fmt: skip
        t.commit()
        return True

    def forward(self) -> None:
        t = self.trace
        t.emit(ev.StepStarted)
        seconds = 0.002 + 0.0005 * sum(self.tokens)
        t.t = round(t.t + seconds, 6)
        emitted, ids = [], []
        for job, n in zip(self.members, self.tokens, strict=True):
            job.kv += n
            done = job.kv >= len(job.prompt + job.output)
            emitted.append(int(done))
            if done:
                ids += self.ids(1)
                job.output.append(ids[-1])
        t.emit(ev.StepFinished, emitted=emitted, ids=ids, forward_seconds=seconds)
        for job, n in zip(self.members, emitted, strict=True):
            if job.kv < len(job.prompt) or len(job.output) == 1:
                self.insert(job, job.kv)
                self.relock(job, job.kv)
            if n and len(job.output) == 1:
                t.emit(ev.RequestFirstToken, request=job.id, ttft=t.t - job.arrived)
            if len(job.output) >= job.want:
                self.finish(job)
            elif n and self.random.random() < 0.01:
                self.retract(job)
        t.commit()

    def give_back(self, job: Job) -> int:
        """Private pages go to the free list, the lock is dropped."""
        own = job.pages[len(self.held(job)) :]
        self.unlock(job)
        if own:
            self.free += own
            self.trace.emit(ev.PageFreed, pages=own, owner=job.id)
        self.running.remove(job)
        return len(own)

    def finish(self, job: Job) -> None:
        self.insert(job, job.kv)
        self.relock(job, job.kv)
        self.give_back(job)
        self.trace.emit(ev.RequestFinished, request=job.id, reason="length", outputs=len(job.output))

    def retract(self, job: Job) -> None:
        job.times += 1
        freed = self.give_back(job)
        self.queue.append(job)
        self.trace.emit(
            ev.RequestRetracted, request=job.id, outputs=len(job.output), freed=freed, reserve=0.5, times=job.times
        )


def make(events: int, live: int = 60, *, seed: int = 0, page_size: int = 1) -> ev.Trace:
    """A trace of at least `events` events whose tree stays near `live` nodes."""
    return Mock(events, live, seed=seed, page_size=page_size).run()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("events", type=int)
    parser.add_argument("live", type=int)
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page-size", type=int, default=1)
    args = parser.parse_args()
    make(args.events, args.live, seed=args.seed, page_size=args.page_size).write(args.out)
