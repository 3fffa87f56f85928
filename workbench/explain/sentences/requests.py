"""Sentences about requests and the queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine import events as ev
from workbench.explain import words
from workbench.explain.words import Texts, count, listed, number, quoted, request_name, seconds, token
from workbench.replay import State

SCORED = "what follows is to be scored, and so must run"
WAS = {"waiting": "waiting", "prefill": "in prefill", "decode": "in decode"}


def _arrived(e: ev.RequestArrived, s: State, texts: Texts) -> str:
    asks = f"may answer with up to {count(e.max_new_tokens, 'token')}" if e.max_new_tokens else "asks for no answer"
    if e.score_from is not None:
        scores = len(e.prompt) - e.score_from
        asks = "asks how likely the last of them is" if scores == 1 else f"asks how likely the last {number(scores)} of them are"
    space = f", in {words.namespace(e.namespace)}" if e.namespace else ""
    keep = "" if e.store else ", and leaves nothing in the cache"
    shape = ", as JSON by a schema" if e.json_schema is not None else f", to match {quoted(e.regex)}" if e.regex is not None else ""
    note = f" Note: {e.note}." if e.note else ""
    return f"{request_name(s, e.request)} arrives with {count(len(e.prompt), 'prompt token')} and {asks}{shape}{space}{keep}.{note}"


def _refused(e: ev.RequestRefused, s: State, texts: Texts) -> str:
    who = request_name(s, e.request)
    if e.reason == "pages":
        return f"{who} is refused: it needs {count(e.needed, 'page')} and the pool has {number(e.available)} in all."
    if e.reason == "grammar":
        return f"{who} is refused: its grammar cannot be used ({e.error})."
    return f"{who} is refused: it needs {count(e.needed, 'token')} and the model has {count(e.available, 'position')}."


def _routed(e: ev.RequestRouted, s: State, texts: Texts) -> str:
    loads = f"; loads: {', '.join(map(number, e.loads))} requests" if e.loads else ""
    matches = f"; matches: {', '.join(map(number, e.matches))} tokens" if e.matches else ""
    return f"{request_name(s, e.request)} goes to replica {e.chosen} ({e.reason}){loads}{matches}.{transferred(e)}"


def transferred(e: ev.RequestRouted) -> str:
    """Whose KV came with a request from where it was prefilled; empty where none did."""
    if not e.transferred:
        return ""
    return f" The KV of its first {count(e.transferred, 'token')} came from replica {e.source}, in {seconds(e.seconds)} over the link."


def stopped(e: ev.RequestMatched, page_size: int, texts: Texts) -> str:
    """Why a match ended where it did."""
    if e.stop == "off":
        return "the cache is off"
    if e.stop == "brought":
        return "so says the look-up that was brought; the tree's own would end elsewhere"
    if e.stop == "last token" and e.raw_length > e.length + e.host_length:
        return f"{rounded(e, page_size)} and the last token must run"
    if e.stop == "last token":
        return "the last token must run"
    if e.stop == "not written yet":
        return f"{e.writer or 'another request'} is computing the next tokens right now"
    if e.raw_length > e.length + e.host_length:
        return rounded(e, page_size)
    if e.raw_length == 0:
        return "nothing in the tree begins like it"
    if e.stored is None or e.wanted is None:
        return "the tree holds nothing that goes on from there"
    stored, wanted = words.two_tokens(e.stored, e.wanted, texts)
    return f"it parts after {count(e.raw_length, 'token')}, where the tree has {stored} and it has {wanted}"


def rounded(e: ev.RequestMatched, page_size: int) -> str:
    """What a match lost because only whole pages are shared."""
    return f"{number(e.raw_length)} matched, {number(e.length + e.host_length)} reusable because page = {page_size}"


def _matched(e: ev.RequestMatched, s: State, texts: Texts) -> str:
    r = s.requests[e.request]
    all_of_it = len(r.prompt) + len(r.output)
    size = f"{number(all_of_it)} {'' if r.output else 'prompt '}tokens"
    host = f", {number(e.host_length)} more on the host" if e.host_length else ""
    why = SCORED if scored(e, all_of_it) else stopped(e, s.page_size, texts)
    return f"{request_name(s, e.request)} finds {number(e.length)} of its {size} in the cache{host}: {why}."


def decided(e: ev.RequestAdmitted) -> str:
    """Load or compute what the host holds, and by which two figures; empty where there was nothing to decide."""
    if not e.host:
        return ""
    load = "an unknown time" if e.load_seconds is None else seconds(e.load_seconds)
    compute = "an unknown time" if e.recompute_seconds is None else seconds(e.recompute_seconds)
    if e.loaded:
        return f"{count(e.loaded, 'token')} of it loaded from the host: {load}, where computing takes {compute}"
    return f"the host's {count(e.host, 'token')} are computed again: {compute}, where loading takes {load}"


def scored(e: ev.RequestMatched, size: int) -> bool:
    """Whether a match among `size` tokens ended where it did because what follows is to be scored."""
    return e.stop == "last token" and e.raw_length < size - 1


def _admitted(e: ev.RequestAdmitted, s: State, texts: Texts) -> str:
    who = request_name(s, e.request)
    room = f"; it needs {count(e.needed, 'page')} and {number(e.available)} can be had" if e.needed else ""
    host = decided(e)
    room += f"; {host}" if host else ""
    if e.first:
        return f"{who} is admitted: {count(e.cached, 'token')} from the cache, {number(e.computed)} to compute{room}."
    return f"{who} is admitted again: {count(e.recovered, 'token')} recovered, {number(e.recomputed)} to recompute{room}."


def _first_token(e: ev.RequestFirstToken, s: State, texts: Texts) -> str:
    r = s.requests.get(e.request)
    what = f" ({token(r.output[0], texts)})" if r is not None and r.output else ""
    return f"{request_name(s, e.request)} has its first token{what}, {seconds(e.ttft)} after it arrived."


def _remapped(e: ev.RequestRemapped, s: State, texts: Texts) -> str:
    return (
        f"{request_name(s, e.request)} gives up {count(len(e.old), 'page')} from token {number(e.start)} on: "
        "the tree holds the same tokens already, so it goes on with the tree's pages."
    )


def _retracted(e: ev.RequestRetracted, s: State, texts: Texts) -> str:
    times = "" if e.times == 1 else f", for the {number(e.times)}th time" if e.times > 3 else f", for the {('second', 'third')[e.times - 2]} time"
    why = "decode ran out of pages" if e.by is None else f"the more important {request_name(s, e.by)} takes its place"
    return (
        f"{request_name(s, e.request)} goes back to the {e.to} of the queue{times}: {why}. "
        f"It gives back {count(e.freed, 'private page')} and keeps its {count(e.outputs, 'output token')}; the reserve is now {number(round(e.reserve, 3))}."
    )


def _aborted(e: ev.RequestAborted, s: State, texts: Texts) -> str:
    return f"{request_name(s, e.request)} is taken back by its sender; it was {WAS.get(e.was, e.was)}."


def finish_reason(e: ev.RequestFinished, texts: Texts) -> str:
    """Why a request ended."""
    if e.reason == "length":
        return "that was its limit"
    if e.reason == "capacity":
        return "there is no room for one token more"
    if e.reason == "error":
        return f"its forward pass failed ({e.error})"
    if isinstance(e.matched_stop, str):
        return f"its stop text {quoted(e.matched_stop)} came"
    if e.matched_stop is not None:
        return f"the end token {token(e.matched_stop, texts)} came"
    return "it had said all"


def _finished(e: ev.RequestFinished, s: State, texts: Texts) -> str:
    missing = ""
    if e.incomplete:
        needed = f"; at least {count(e.still_needed, 'token')} more would have made it whole" if e.still_needed is not None else ""
        missing = f" Its document is not whole{needed}."
    return f"{request_name(s, e.request)} ends after {count(e.outputs, 'output token')}: {finish_reason(e, texts)}.{missing}"


def _ordered(e: ev.QueueOrdered, s: State, texts: Texts) -> str:
    first = listed(e.head)
    fell = f" It fell back: {e.why}." if e.fell_back and e.why else f" {e.why}." if e.why else ""
    return f"The queue is ordered by {e.policy}: {first}; {count(e.waiting, 'request')} {'waits' if e.waiting == 1 else 'wait'}.{fell}"


def limit(e: ev.RequestPassedOver) -> str:
    """What kept a request in the queue, with numbers."""
    if e.limit == "pages":
        promised = f" (the running ones are promised {count(-e.available, 'page')} more than there are)" if e.available < 0 else ""
        return f"it needs {count(e.needed, 'page')} and {number(max(0, e.available))} can be had{promised}"
    if e.limit == "budget":
        return f"it needs {count(e.needed, 'token')} and the step's budget has {number(e.available)} left"
    if e.limit == "chunk":
        return f"it needs {count(e.needed, 'token')} and the step's chunk has {number(e.available)} left"
    if e.limit == "running cap":
        return f"at most {count(e.available, 'request')} may run at a time"
    if e.limit == "prefix in flight":
        return f"{e.behind or 'another request'} is computing the start they share"
    if e.limit == "leader room":
        return f"its new prefix needs {count(e.needed, 'page')} and the tree has room for {number(e.available)}"
    return e.limit


def _passed_over(e: ev.RequestPassedOver, s: State, texts: Texts) -> str:
    over = f"; later arrivals have computed {count(e.overtaken, 'prompt token')} meanwhile" if e.overtaken else ""
    return f"{request_name(s, e.request)} waits: {limit(e)}{over}."


REQUESTS: dict[type[ev.Event], Callable[[Any, State, Texts], str]] = {
    ev.RequestArrived: _arrived,
    ev.RequestRefused: _refused,
    ev.RequestRouted: _routed,
    ev.RequestMatched: _matched,
    ev.RequestAdmitted: _admitted,
    ev.RequestFirstToken: _first_token,
    ev.RequestRemapped: _remapped,
    ev.RequestRetracted: _retracted,
    ev.RequestAborted: _aborted,
    ev.RequestFinished: _finished,
    ev.QueueOrdered: _ordered,
    ev.RequestPassedOver: _passed_over,
}
