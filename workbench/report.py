"""Contract 3: the report of a run, worked out from its trace alone.

Counts in tokens, pages or requests; times in seconds from the run's start. What did not happen is None.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from engine import events as ev
from workbench.replay import GrammarState, RequestState, State, fold
from workbench.replicas import busy_seconds, count, shares, split


class Refusal(msgspec.Struct, frozen=True):
    """Why a request could never run."""

    reason: str
    needed: int
    available: int


class RequestReport(msgspec.Struct, kw_only=True):
    """One request."""

    id: str
    status: str
    finish_reason: str | None = None
    refusal: Refusal | None = None
    prompt_tokens: int
    cached_tokens: int | None = None
    computed_tokens: int | None = None
    loaded_tokens: int | None = None
    """Of the cached and the recovered ones, those that came back from the host tier."""
    recovered_tokens: int | None = None
    recomputed_tokens: int | None = None
    output_ids: list[int]
    output_text: str | None = None
    forced_tokens: int | None = None
    jumped_tokens: int | None = None
    rolled_back_tokens: int | None = None
    retractions: int | None = None
    overtaken_tokens: int | None = None
    arrived: float
    admitted: float | None = None
    first_token: float | None = None
    finished: float | None = None
    ttft: float | None = None
    queue_time: float | None = None
    prefill_time: float | None = None
    tpot: float | None = None
    wait_tokens: int | None = None
    error: str | None = None
    replica: int | None = None
    """Where it was served; None with a single engine."""
    note: str | None = None
    """What looks wrong with its prompt, which was served all the same."""


class Spread(msgspec.Struct, frozen=True):
    """A distribution: percentiles by nearest rank."""

    n: int
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    max: float | None = None


class Totals(msgspec.Struct, kw_only=True):
    """The run's sums."""

    prompt_tokens: int
    cached_tokens: int
    computed_tokens: int
    loaded_tokens: int = 0
    """Of the cached and the recovered ones, those that came back from the host tier."""
    recovered_tokens: int
    recomputed_tokens: int
    hit_rate: float | None
    output_tokens: int
    forced_tokens: int
    jumped_tokens: int
    forward_passes: int
    steps: int
    evictions: int
    evicted_tokens: int
    demoted_tokens: int
    retractions: int
    refused: int
    duration: float
    ttft: Spread
    tokens_per_second: float | None
    transferred_tokens: int = 0
    """Of the cached ones of second halves: their KV came from the replica that prefilled them. Nobody was spared computing these."""

    @property
    def transfer(self) -> str:
        """What to say beside the reuse where KV travelled; empty where none did."""
        if not self.transferred_tokens:
            return ""
        return f"; the KV of {self.transferred_tokens:,} came from where they were prefilled, which spared nobody computing them"


class PoolReport(msgspec.Struct, kw_only=True):
    """Pages at the end of the run."""

    pages: int
    free: int
    cached: int
    private: int
    locked: int
    evictable: int
    host: int | None = None
    """Pages of the host tier in use; None without one."""


class TreeNode(msgspec.Struct, kw_only=True):
    """One node of the tree at the end of the run; the root has id 0 and no tokens."""

    id: int
    tokens: int
    pages: int
    """Device pages; 0 where only the host holds it."""
    locks: int
    hits: int
    last_used: int
    tier: str = "device"
    reachable: bool = True
    """False: something above it has left, so that no look-up can find it; such nodes hang under the root."""
    children: list[TreeNode] = []


class ReplicaReport(msgspec.Struct, kw_only=True):
    """One of several replicas: what was sent to it, what it reused, how long it was at work.

    `share`: of all prompt tokens of the run. `busy`: of the run's duration, planning or running a step.
    `most_waiting`: the longest queue that a step left behind.
    """

    replica: int
    requests: int
    prompt_tokens: int
    cached_tokens: int
    computed_tokens: int
    hit_rate: float | None
    share: float | None
    output_tokens: int
    steps: int
    busy: float | None
    most_waiting: int
    evicted_tokens: int
    pool: PoolReport
    tree: TreeNode


class Report(msgspec.Struct, kw_only=True):
    """A whole run. `invariants` is `ok`, a list of breaches, or None where they were not checked."""

    scenario: str | None
    header: ev.Header
    invariants: str | list[str] | None
    requests: list[RequestReport]
    order: list[str]
    totals: Totals
    pool: PoolReport
    tree: TreeNode
    """With replicas: the trees of all of them under one root, and `pool` their sum."""
    replicas: list[ReplicaReport] | None = None


def spread(values: Sequence[float]) -> Spread:
    """n, mean and nearest-rank percentiles; all None for no values."""
    if not values:
        return Spread(0)
    ordered = sorted(values)

    def rank(p: float) -> float:
        return ordered[max(0, math.ceil(p * len(ordered)) - 1)]

    return Spread(
        len(ordered), _round(sum(ordered) / len(ordered)), rank(0.5), rank(0.9), rank(0.99), ordered[-1]
    )


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 9)


def _minus(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else _round(a - b)


def build(header: ev.Header, events: Iterable[ev.Event], checked: bool = False) -> Report:
    """The report of a trace; `checked` says whether the run's invariants were watched."""
    events = list(events)
    parts = [events] if count(header) == 1 else split(events, count(header))
    states = [fold(part) for part in parts]
    told = _tell(events)
    home = {r: replica for replica, state in enumerate(states) for r in state.requests}
    arrived = [e.request for e in events if isinstance(e, ev.RequestArrived)]
    requests = [_request(states[home[r]].requests[r], told.extra[r]) for r in arrived]
    replicas = None
    if len(states) > 1:
        for request in requests:
            request.replica = home[request.id]
        replicas = _replicas(header, states, parts, events[-1].t)
    return Report(
        scenario=header.scenario, header=header,
        invariants=told.breaches or ("ok" if checked else None),
        requests=requests, order=told.order, totals=_totals(_sums(states), requests, events),
        pool=_pool(states[0], header) if replicas is None else _pools(replicas),
        tree=_tree(states[0]) if replicas is None else _forest(replicas), replicas=replicas,
    )  # fmt: skip


@dataclass
class _Told:
    """What the events say beside the state: per request, the order of first admission, breaches."""

    extra: dict[str, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))
    order: list[str] = field(default_factory=list)
    breaches: list[str] = field(default_factory=list)


def _tell(events: list[ev.Event]) -> _Told:
    told = _Told()
    waited = 0
    for event in events:
        if isinstance(event, ev.RequestAdmitted):
            told.extra[event.request]["loaded"] = told.extra[event.request].get("loaded", 0) + event.loaded
        if isinstance(event, ev.RequestAdmitted) and event.first:
            told.order.append(event.request)
            waited += event.computed
            told.extra[event.request].update(wait=waited, overtaken=event.overtaken)
        elif isinstance(event, ev.RequestRefused):
            told.extra[event.request]["refusal"] = Refusal(event.reason, event.needed, event.available)
        elif isinstance(event, ev.RequestArrived) and event.note is not None:
            told.extra[event.request]["note"] = event.note
        elif isinstance(event, ev.RequestFinished) and event.error is not None:
            told.extra[event.request]["error"] = event.error
        elif isinstance(event, ev.InvariantBroken):
            told.breaches.append(event.what)
    return told


def _sums(states: list[State]) -> dict[str, int]:
    return {key: sum(state.totals[key] for state in states) for key in states[0].totals}


def _replicas(header: ev.Header, states: list[State], parts: list[list[ev.Event]], duration: float) -> list[ReplicaReport]:
    parted = shares([state.totals["prompt_tokens"] for state in states])
    out = []
    for replica, (state, part) in enumerate(zip(states, parts, strict=True)):
        t = state.totals
        out.append(ReplicaReport(
            replica=replica, requests=t["arrived"], prompt_tokens=t["prompt_tokens"], cached_tokens=t["cached_tokens"],
            computed_tokens=t["computed_tokens"],
            hit_rate=round(t["cached_tokens"] / t["prompt_tokens"], 6) if t["prompt_tokens"] else None,
            share=parted[replica], output_tokens=t["output_tokens"], steps=t["steps"],
            busy=round(busy_seconds(part) / duration, 6) if duration else None,
            most_waiting=max((e.waiting for e in part if isinstance(e, ev.StepPlanned)), default=0),
            evicted_tokens=t["evicted_tokens"], pool=_pool(state, header), tree=_tree(state),
        ))  # fmt: skip
    return out


def _pools(replicas: list[ReplicaReport]) -> PoolReport:
    counts = ("pages", "free", "cached", "private", "locked", "evictable")
    host = [r.pool.host for r in replicas if r.pool.host is not None]
    return PoolReport(**{key: sum(getattr(r.pool, key) for r in replicas) for key in counts}, host=sum(host) if host else None)


def _forest(replicas: list[ReplicaReport]) -> TreeNode:
    root = TreeNode(id=ev.ROOT, tokens=0, pages=0, locks=0, hits=0, last_used=0, children=[])
    root.children = [child for r in replicas for child in r.tree.children]
    return root


def _request(r: RequestState, extra: dict[str, Any]) -> RequestReport:
    ran = r.cached is not None
    outputs = len(r.output)
    first = r.first_token
    by_grammar = r.grammar or GrammarState(0)
    return RequestReport(
        id=r.id, status=r.status, finish_reason=r.reason if r.status != "refused" else None,
        refusal=extra.get("refusal"), prompt_tokens=len(r.prompt), cached_tokens=r.cached, computed_tokens=r.computed,
        loaded_tokens=extra.get("loaded"), recovered_tokens=r.recovered if ran else None, recomputed_tokens=r.recomputed if ran else None,
        output_ids=list(r.output), output_text=r.text, forced_tokens=by_grammar.forced if ran else None,
        jumped_tokens=by_grammar.jumped if ran else None, rolled_back_tokens=by_grammar.rolled_back if ran else None, retractions=r.retractions if ran else None,
        overtaken_tokens=extra.get("overtaken"), arrived=r.arrived, admitted=r.admitted, first_token=first,
        finished=r.ended, ttft=_minus(first, r.arrived), queue_time=_minus(r.admitted, r.arrived),
        prefill_time=_minus(first, r.admitted),
        tpot=_round((r.ended - first) / (outputs - 1)) if first is not None and r.ended is not None and outputs > 1 else None,
        wait_tokens=extra.get("wait"), error=extra.get("error"), note=extra.get("note"),
    )  # fmt: skip


def _totals(t: dict[str, int], requests: list[RequestReport], events: list[ev.Event]) -> Totals:
    duration = events[-1].t if events else 0.0
    return Totals(
        **{k: t[k] for k in (
            "prompt_tokens", "cached_tokens", "computed_tokens", "loaded_tokens", "recovered_tokens", "recomputed_tokens",
            "output_tokens", "forced_tokens", "jumped_tokens", "forward_passes", "steps", "evictions",
            "evicted_tokens", "demoted_tokens", "retractions", "refused",
        )},
        hit_rate=round(t["cached_tokens"] / t["prompt_tokens"], 6) if t["prompt_tokens"] else None,
        duration=duration,
        ttft=spread([r.ttft for r in requests if r.ttft is not None]),
        transferred_tokens=sum(e.transferred for e in events if isinstance(e, ev.RequestRouted)),
        tokens_per_second=round(t["output_tokens"] / duration, 3) if duration and t["output_tokens"] else None,
    )  # fmt: skip


def _pool(state: State, header: ev.Header) -> PoolReport:
    cached = sum(len(n.pages) for n in state.nodes.values())
    locked = sum(len(n.pages) for n in state.nodes.values() if n.locks)
    evictable = sum(len(n.pages) for n in state.nodes.values() if not (n.locks or n.pins))
    free = sum(o is None for o in state.owners)
    two_tiers = header.config.get("host_pages") and header.config.get("cache") == "radix"
    host = sum(len(n.host) for n in state.nodes.values()) if two_tiers else None
    return PoolReport(
        pages=state.pages, free=free, cached=cached, private=state.pages - free - cached, locked=locked, evictable=evictable, host=host
    )


def _tree(state: State) -> TreeNode:
    lost = state.unreachable()
    nodes = {
        n.id: TreeNode(
            id=n.id, tokens=n.count, pages=len(n.pages), locks=n.locks, hits=n.hits, last_used=n.last_used, tier=n.tier,
            reachable=n.id not in lost, children=[],
        )
        for n in state.nodes.values()
    }
    root = TreeNode(id=ev.ROOT, tokens=0, pages=0, locks=0, hits=0, last_used=0, children=[])
    for n in sorted(state.nodes.values(), key=lambda n: n.id):
        nodes.get(n.parent, root).children.append(nodes[n.id])
    return root
