"""Where a waiting request stands in the queue, by which key, and who is before it."""

from __future__ import annotations

from collections.abc import Callable

from engine import events as ev
from workbench.explain.moment import Moment
from workbench.explain.words import count, number
from workbench.replay import RequestState, State


def _found(key: float) -> str:
    """The key of longest prefix first: minus what was found; in_batch sort puts 1 for those that go behind."""
    return "behind one that computes the same start" if key > 0 else f"{count(int(-key), 'token')} found"


POLICIES: dict[str, tuple[str, Callable[[float], str]]] = {
    "fcfs": ("first come, first served", number),
    "lpm": ("longest prefix first", _found),
    "lpm-as-shipped": ("longest prefix first while at most 128 wait", _found),
    "lpm-fair": ("longest prefix first within the bound", _found),
    "dfs-weight": ("the branch that most wait for first", lambda key: f"number {number(key + 1)} in the walk"),
    "random": ("random order", lambda key: f"lot {number(key)}"),
    "lof": ("longest output first", lambda key: f"up to {count(int(-key), 'output token')}"),
    "priority": ("highest priority first", lambda key: f"priority {number(-key)}"),
}
"""Policy -> its name in words, and how one of its keys is told; of others the name and the key stand as they are."""

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
CARDINALS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NAMED = 3
"""Requests told by name."""


def policy_words(policy: str) -> tuple[str, Callable[[float], str]]:
    """A policy's name in words, and how one of its keys is told."""
    return POLICIES.get(policy, (policy, lambda key: f"key {number(key)}"))


def in_order(moment: Moment) -> list[str]:
    """All who wait, next first: as last ordered, then whoever came or came back since, as they stand in the queue."""
    head = _head(moment, _last_order(moment))
    return head + [r for r in moment.state.queue if r not in head]


def standing(moment: Moment, r: RequestState) -> str:
    """Its place among those who wait, and by what key."""
    queue = in_order(moment)
    event = _last_order(moment)
    place = f"It is {_ordinal(queue.index(r.id) + 1)} of {_cardinal(len(queue))} in the queue"
    name, tell = policy_words(event.policy if event is not None else moment.config("policy") or "policy unknown")
    if event is None:
        return f"{place}: {name}."
    if event.fell_back or not event.keys:
        return f"{place}: {name} keeps the queue's own order{f', because {event.why}' if event.why else ''}."
    told = dict(zip(event.head, event.keys, strict=False))  # a foreign trace may tell fewer keys than names
    head = [id for id in _head(moment, event) if id in told]
    if r.id not in head:
        return f"{place}; {name}: {_unranked(moment, r, event)}."
    keys = {id: told[id] for id in head}
    own, ahead = tell(keys[r.id]), head[: head.index(r.id)]
    before = [other for other in ahead if keys[other] != keys[r.id]]
    equal = [other for other in ahead if keys[other] == keys[r.id]]
    tied = f"; {_named(equal)} {'has the same and stands' if len(equal) == 1 else 'have the same and stand'} before it" if equal else ""
    if event.why:
        return f"{place}: {name}, {own}; {event.why}."
    if not before:
        return f"{place}: {name}, {own}{tied}."
    if len(before) > 1 and len({keys[other] for other in before}) == 1:
        first = f"{_named(before)} ({tell(keys[before[0]])} each)"
    else:
        first = _named([f"{other} ({tell(keys[other])})" for other in before])
    return f"{place}: {name} puts {first} before it ({own}){tied}."


def promised(state: State, e: ev.RequestPassedOver) -> str:
    """What becomes of the pages that are there when a request finds too few. `state` is the one at the event."""
    free = state.owners.count(None)
    evictable = sum(len(n.pages) for n in state.nodes.values() if not n.locks and not n.pins)
    kept = free + evictable - e.available
    there = f"{count(free, 'page')} {'is' if free == 1 else 'are'} free and {number(evictable)} can be evicted"
    if kept <= 0:
        return f"{there}."
    return f"{there}, but {number(kept)} of them {'is' if kept == 1 else 'are'} promised to what those that run may still produce, or part of what it would reuse."


def _last_order(moment: Moment) -> ev.QueueOrdered | None:
    seq = moment.index.ordered(moment.seq)
    event = None if seq is None else moment.events[seq]
    return event if isinstance(event, ev.QueueOrdered) else None


def _head(moment: Moment, event: ev.QueueOrdered | None) -> list[str]:
    """Those of an order's head who have been waiting ever since, in that order."""
    if event is None:
        return []
    waiting = set(moment.state.queue)
    return [id for id in event.head if id in waiting and (moment.index.last(id, ev.RequestRetracted, moment.seq) or 0) < event.seq]


def _unranked(moment: Moment, r: RequestState, event: ev.QueueOrdered) -> str:
    joined = moment.index.last(r.id, ev.RequestRetracted, moment.seq) or moment.index.requests[r.id][ev.RequestArrived][0]
    return "it joined after the queue was last put in order" if joined > event.seq else f"the trace tells the first {min(len(event.head), len(event.keys))} only"


def _named(requests: list[str]) -> str:
    """`R4`, `R4 and R7`, `R4, R7, R8 and 2 more`."""
    if len(requests) > NAMED:
        return f"{', '.join(requests[:NAMED])} and {number(len(requests) - NAMED)} more"
    return requests[0] if len(requests) == 1 else f"{', '.join(requests[:-1])} and {requests[-1]}"


def _ordinal(n: int) -> str:
    return ORDINALS[n - 1] if n <= len(ORDINALS) else f"number {number(n)}"


def _cardinal(n: int) -> str:
    return CARDINALS[n - 1] if n <= len(CARDINALS) else number(n)
