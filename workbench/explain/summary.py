"""What a run came to: how much was reused, request by request and why no more, and what evictions cost."""

from __future__ import annotations

from typing import Any

from engine import events as ev
from workbench.explain import misses
from workbench.explain.answer import Answer, Table
from workbench.explain.moment import Moment, to_request
from workbench.explain.words import count, number, seconds
from workbench.replay import RequestState

ROWS = 24
"""Requests told one by one; each costs a look-up in the past."""


def explain(moment: Moment, e: ev.RunEnded, answer: Answer) -> None:
    """Put into an answer what the run came to."""
    totals = moment.state.totals
    asked, cached = totals["prompt_tokens"], totals["cached_tokens"]
    if not asked:
        return
    ends = "The run was stopped" if e.stopped else "The run is over"
    here = " here" if (moment.config("replicas") or 1) > 1 else ""
    answer.headline = f"{ends}: {number(cached)} of {number(asked)} prompt tokens came from the cache{here} ({100 * cached / asked:.0f} %)."
    transferred = sum(event.transferred for event in moment.events if isinstance(event, ev.RequestRouted))
    if transferred:
        answer.detail.append(f"The KV of {count(transferred, 'token')} came here from where they were prefilled: found, but not spared.")
    if totals["evictions"]:
        answer.detail.append(_evictions(moment, totals["evictions"]))
    if moment.config("host_pages") and moment.config("cache") == "radix":
        answer.detail.append(
            f"{count(totals['demoted_tokens'], 'token')} left the device for the host, {number(totals['loaded_tokens'])} were loaded back."
        )
    requests = [r for r in moment.state.requests.values() if r.cached is not None]
    simulated = ", simulated" if moment.header.clock == "virtual" else ""
    answer.table = Table(
        title=f"What each request found, and why no more{f' (the first {ROWS})' if len(requests) > ROWS else ''}",
        columns=["request", "prompt, tokens", "found", "why no more", f"first token{simulated}"],
        rows=[_row(moment, r) for r in requests[:ROWS]],
        taken=[False] * len(requests[:ROWS]),
        links=[to_request(r.id) for r in requests[:ROWS]],
    )


def _row(moment: Moment, r: RequestState) -> list[Any]:
    first = None if r.first_token is None else seconds(r.first_token - r.arrived)
    return [r.id, len(r.prompt), r.cached, _reason(moment, r.id), first]


def _reason(moment: Moment, request: str) -> str | None:
    """The reason of the look-up with which it was first admitted, in a word."""
    admitted = moment.index.requests[request][ev.RequestAdmitted][0]
    seq = moment.index.last(request, ev.RequestMatched, admitted)
    event = None if seq is None else moment.events[seq]
    return misses.why(moment, event).code if isinstance(event, ev.RequestMatched) else None


def _evictions(moment: Moment, evictions: int) -> str:
    wanted = {moment.index.eviction_of[w.removed] for many in moment.index.wanted.values() for w in many if w.removed in moment.index.eviction_of}
    if not wanted:
        return f"{count(evictions, 'eviction')}; nobody wanted again what they took."
    return f"{count(evictions, 'eviction')}; {number(len(wanted))} of them took what was wanted again (regretted)."
