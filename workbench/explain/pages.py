"""Who holds a page, since when, and who held it before."""

from __future__ import annotations

from engine import events as ev
from workbench.explain.answer import Answer, ExplainError, Link
from workbench.explain.moment import Moment, to_event, to_node, to_request, unique
from workbench.explain.words import capital, node_name, request_name, span, tokens

BEFORE = 5
"""Earlier owners told."""


def owner_after(event: ev.Event, page: int) -> ev.Owner:
    """Who holds a page after an event that gave it another owner."""
    if isinstance(event, ev.PageAllocated):
        at = event.pages.index(page)
        for owner, count in zip(event.owners, event.counts, strict=True):
            if at < count:
                return owner
            at -= count
    if isinstance(event, ev.NodeCreated | ev.NodeGrown | ev.NodeRestored):
        return event.node
    if isinstance(event, ev.NodeSplit):
        return event.front
    return None


def explain(moment: Moment, page: int) -> Answer:
    """One page. Raises ExplainError where the pool has none such."""
    if not 0 <= page < moment.state.pages:
        raise ExplainError(f"page: must be 0 to {moment.state.pages - 1}; got {page}")
    owner = moment.state.owners[page]
    changes = moment.index.page_changes(page, moment.seq, BEFORE + 1)
    if not changes:
        return Answer(headline=f"Page {page} is free and was never used.")
    owners = [owner_after(moment.events[seq], page) for seq in changes]
    detail = _content(moment, page, owner)
    stops = [None, *changes]
    for i in range(1, len(changes)):
        held = "It was free" if owners[i] is None else f"{capital(_name(moment, owners[i]))} held it"
        detail.append(f"{held} from event {changes[i]} to event {stops[i]}.")
    following = moment.index.page_next(page, moment.seq)
    if following is not None:
        detail.append(f"At event {following} it goes to {_name(moment, owner_after(moment.events[following], page))}.")
    held = "is free" if owner is None else f"is held by {_name(moment, owner)}"
    links = [_to_owner(o) for o in owners if o is not None]
    return Answer(
        headline=f"Page {page} {held} since event {changes[0]} (step {moment.events[changes[0]].step}).",
        detail=detail,
        links=unique([to_event(changes[0], moment.events[changes[0]].__struct_config__.tag), *links]),  # type: ignore[arg-type]
    )


def _name(moment: Moment, owner: ev.Owner) -> str:
    if isinstance(owner, int):
        return node_name(moment.state, owner, {})
    return "the free list" if owner is None else request_name(moment.state, owner)


def _to_owner(owner: str | int) -> Link:
    return to_node(owner) if isinstance(owner, int) else to_request(owner)


def _content(moment: Moment, page: int, owner: ev.Owner) -> list[str]:
    """The tokens in it, where it holds some."""
    state, size = moment.state, moment.state.page_size
    if isinstance(owner, int):
        node = state.nodes.get(owner)
        if node is None or page not in node.pages:
            return ["It is being given back: eviction has taken it from the node."]
        at = node.pages.index(page)
        ids = state.tokens(node)[at * size : (at + 1) * size]
        return [f"It holds {span(node.depth + at * size, node.depth + at * size + len(ids))} of the path: {tokens(ids, moment.texts)}"]
    if owner is None:
        return []
    r = state.requests[owner]
    if page not in r.pages:
        return ["It is being given back."]
    shared = sum(len(state.nodes[n].pages) for n in state.path(r.node))
    start = (shared + r.pages.index(page)) * size
    ids = state.sequence(owner, start, min(start + size, r.kv)) if start < r.kv else []
    if not ids:
        return ["Nothing is written into it yet."]
    return [f"It holds {span(start, start + len(ids))} of {owner}, private so far: {tokens(ids, moment.texts)}"]
