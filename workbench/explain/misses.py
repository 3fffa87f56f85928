"""Why a request reused what it did and no more: one reason each.

At its look-up a request could have hit more for four reasons that lie outside the tree (the tokens are
being computed, were evicted, are in another namespace, were not kept); the one that cost most is the
reason. Where none did, the tree itself says why.
"""

from __future__ import annotations

import msgspec

from engine import events as ev
from workbench.explain.answer import Link, Parting
from workbench.explain.index import Past
from workbench.explain.moment import Moment, to_event, to_node, to_request, unique
from workbench.explain.parting import side_by_side, stored_by
from workbench.explain.remembered import Gone, shared
from workbench.explain.sentences.requests import SCORED, scored
from workbench.explain.words import (
    capital,
    count,
    listed,
    namespace,
    node_name,
    number,
    request_name,
    span,
    token,
    two_tokens,
)
from workbench.replay import State

REASONS = {
    "off": "the cache is off",
    "brought": "the look-up that was brought says so",
    "in flight": "another request is computing the same tokens",
    "evicted": "it had been stored and was evicted",
    "namespace": "it is stored in another namespace",
    "not kept": "another request had it and stored nothing",
    "short": "it is shorter than a page",
    "last token": "everything but the last token, which must run",
    "scored": "everything in front of what is to be scored",
    "page": "it ends or parts inside a page",
    "parted": "it parts from what is stored",
    "end": "what is stored ends there",
    "never seen": "nothing that begins like it was ever stored",
}
"""Every reason, in the words of a legend."""


class Reason(msgspec.Struct, kw_only=True):
    """Why a look-up ended where it did. `text` goes on after a colon."""

    code: str
    text: str
    detail: list[str] = []
    rows: list[Parting] = []
    links: list[Link] = []


class _Lookup:
    """One look-up and what it saw."""

    def __init__(self, moment: Moment, m: ev.RequestMatched) -> None:
        self.moment, self.m = moment, m
        self.state: State = moment.at(m.seq)
        self.past: Past = moment.index.past[m.seq]
        r = self.state.requests[m.request]
        self.request = r
        self.size = len(r.prompt) + len(r.output)
        self.usable = self.size - 1
        self.page = self.state.page_size

    def gain(self, known: int) -> int:
        """Tokens it would have reused more, had `known` of its tokens been there."""
        return min(known, self.usable) // self.page * self.page - self.reusable

    @property
    def reusable(self) -> int:
        """Tokens that either tier had."""
        return self.m.length + self.m.host_length

    def name(self, request: str) -> str:
        return request_name(self.state, request)

    def against(self, other: str | None, at: int) -> list[Parting]:
        """Both rows of tokens at a place, where the other's are known."""
        if other is None or other == self.m.request:
            return []
        return [side_by_side(self.state, self.m.request, other, at, self.moment.texts)]


def why(moment: Moment, m: ev.RequestMatched) -> Reason:
    """The reason of one look-up."""
    if m.stop == "off":
        return Reason(code="off", text="the cache is off, so nothing is looked up and nothing is kept")
    look = _Lookup(moment, m)
    if scored(m, look.size):
        return Reason(code="scored", text=SCORED)
    return _outside(look) or _inside(look)


def _outside(look: _Lookup) -> Reason | None:
    """What lies outside the tree and cost the most tokens, if anything did."""
    gains = {
        _in_flight: look.gain(_known_to(look, look.m.writer)) if look.m.writer else 0,
        _evicted: look.gain(look.past.stored) if look.past.gone else 0,
        _elsewhere: look.gain(look.past.seen) if _other(look) else 0,
    }
    say = max(gains, key=lambda f: gains[f])  # the first of equals
    return say(look, gains[say]) if gains[say] > 0 else None


def _other(look: _Lookup) -> bool:
    """Whether another request began like this one further than its namespace ever stored."""
    return look.past.seen_by not in (None, look.m.request) and look.past.seen > look.past.stored


def _known_to(look: _Lookup, other: str) -> int:
    """Tokens that two requests begin with alike."""
    state = look.state
    packed = look.moment.index.packed
    mine, theirs = (packed(state, r, len(state.requests[r].prompt) + len(state.requests[r].output)) for r in (look.m.request, other))
    return shared(mine, theirs)


def _in_flight(look: _Lookup, gain: int) -> Reason:
    writer = look.m.writer or ""
    return Reason(
        code="in flight",
        text=f"{look.name(writer)} is computing {count(gain, 'more token')} of it right now (in-batch)",
        detail=["Pages become findable when the step that writes them is done."],
        links=[to_request(writer)],
    )


def _evicted(look: _Lookup, gain: int) -> Reason:
    first = next(g for g in look.past.gone if g.stop > look.m.raw_length or g is look.past.gone[-1])
    detail = [_loss(look, g) for g in look.past.gone[:4]]
    if len(look.past.gone) > 4:
        detail.append(f"{number(len(look.past.gone) - 4)} more evictions took later tokens.")
    links = [link for g in look.past.gone[:4] for link in (to_event(g.seq, "evicted"), to_node(g.node))]
    went = "was" if gain == 1 else "were"
    if any(_left_behind(look, g) for g in look.past.gone):
        went = "could no longer be found once its beginning was"
    return Reason(
        code="evicted",
        text=f"{count(gain, 'more token')} of it had been stored and {went} evicted at event {first.seq}{_for_whom(look, first)}",
        detail=detail,
        rows=look.against(stored_by(look.state, look.m), look.m.raw_length) if look.m.raw_length else [],
        links=links,
    )


def _for_whom(look: _Lookup, gone: Gone) -> str:
    eviction = look.moment.eviction_of(gone.seq)
    return "" if eviction is None or eviction.request is None else f" for {eviction.request}"


def _left_behind(look: _Lookup, gone: Gone) -> bool:
    """Whether it was not taken itself, but became unreachable when what stood above it was."""
    return look.moment.index.lost.get(gone.node) == gone.seq


def _loss(look: _Lookup, gone: Gone) -> str:
    event = look.moment.events[gone.seq]
    steps = look.m.step - event.step
    how = "became unreachable" if _left_behind(look, gone) else "left"
    return (
        f"{capital(span(gone.start, gone.stop))} {how} with {node_name(look.state, gone.node, {})} at event {gone.seq} "
        f"(step {number(event.step)}, {count(steps, 'step')} before)."
    )


def _elsewhere(look: _Lookup, gain: int) -> Reason:
    other = look.past.seen_by or ""
    theirs = look.state.requests[other]
    links = [to_request(other)]
    if theirs.namespace != look.request.namespace:
        return Reason(
            code="namespace",
            text=f"{look.name(other)} has {count(gain, 'more token')} of it in {_space(theirs.namespace)}, and it asks in {_space(look.request.namespace)}",
            links=links,
        )
    return Reason(code="not kept", text=f"{look.name(other)} began with {count(gain, 'more token')} of it, but {_unkept(look, other)}", links=links)


def _space(space: ev.Namespace | None) -> str:
    return namespace(space) if space else "the common namespace"


def _unkept(look: _Lookup, other: str) -> str:
    index = look.moment.index
    arrived = look.moment.events[index.requests[other][ev.RequestArrived][0]]
    assert isinstance(arrived, ev.RequestArrived)
    if not arrived.store:
        return "was told to leave nothing in the cache"
    status = look.state.requests[other].status
    if status == "failed":
        return "its step failed and nothing of that was stored"
    if status == "aborted":
        return "was taken back before that was stored"
    if status in ("prefill", "decode"):
        return "has not stored it yet"
    return "that was not stored"


def _inside(look: _Lookup) -> Reason:
    """What the tree itself says."""
    m, page = look.m, look.page
    if m.stop == "brought":
        return Reason(code="brought", text="so says the look-up that was brought; the tree's own would end elsewhere")
    alike = max(m.raw_length, look.past.seen if _same_space(look) else 0)
    if m.raw_length == look.usable and look.size % page == 0:
        text = "everything is known, and the last token must run"
        if m.raw_length > look.reusable:
            text = f"{number(m.raw_length)} matched, {number(look.reusable)} reusable because page = {page} and the last token must run"
        return Reason(code="last token", text=text)
    if alike > look.reusable:
        return _cut(look, alike)
    if look.usable < page:
        return Reason(code="short", text=f"it is {_shortness(look)}")
    if m.raw_length == 0:
        return Reason(code="never seen", text="nothing that begins like it was stored (never seen)")
    other = stored_by(look.state, m)
    if other is None or m.stored is None or m.wanted is None:
        return _ended(look)
    stored, wanted = two_tokens(m.stored, m.wanted, look.moment.texts)
    rows = look.against(other, m.raw_length)
    detail = [_reencoded(rows[0])] if rows and rows[0].same_text else []
    if stored == wanted:
        text = f"it parts from {look.name(other)} after {count(m.raw_length, 'token')}, where the same token, {token(m.wanted, look.moment.texts)}, stands for other content{_contents(look, other)}"
        return Reason(code="parted", text=text, rows=rows, links=_where(look, other))
    text = f"it parts from {look.name(other)} after {count(m.raw_length, 'token')}, where {other} has {stored} and {m.request} has {wanted}"
    return Reason(code="parted", text=text, detail=detail, rows=rows, links=_where(look, other))


def _contents(look: _Lookup, other: str) -> str:
    mine, theirs = look.request.content, look.state.requests[other].content
    return f" ({theirs} there, {mine} here)" if mine is not None and theirs is not None else ""


def _reencoded(rows: Parting) -> str:
    return f"Both rows read the same from token {number(rows.start + rows.differs)} on: equal text, other ids. Sending the ids back would reuse them."


def _same_space(look: _Lookup) -> bool:
    other = look.past.seen_by
    return other not in (None, look.m.request) and look.state.requests[other or ""].namespace == look.request.namespace


def _cut(look: _Lookup, alike: int) -> Reason:
    m, page = look.m, look.page
    other = stored_by(look.state, m) if alike == m.raw_length else look.past.seen_by
    detail = [f"shared {number(alike)} < page {number(page)}"] if alike < page else []
    if look.usable < page:
        detail.append(f"It is {_shortness(look)}.")
    return Reason(
        code="page",
        text=f"{number(alike)} matched, {number(look.reusable)} reusable because page = {page}",
        detail=detail,
        rows=look.against(other, alike),
        links=_where(look, other),
    )


def _shortness(look: _Lookup) -> str:
    return f"shorter than a page: {count(look.size, 'token')} and the last must run, page = {number(look.page)}"


def _ended(look: _Lookup) -> Reason:
    node = look.state.nodes.get(look.m.at_node) if look.m.at_node is not None else None
    writers = list(dict.fromkeys(piece[0] for piece in node.pieces)) if node is not None else []
    whose = f" of {listed(look.name(w) for w in writers)}" if writers else ""
    return Reason(
        code="end",
        text=f"what was stored{whose} ends there, the rest is new",
        links=_where(look, writers[-1] if writers else None),
    )


def _where(look: _Lookup, other: str | None) -> list[Link]:
    links = [to_request(other)] if other is not None else []
    if look.m.at_node is not None:
        links.append(to_node(look.m.at_node))
    return unique(links)
