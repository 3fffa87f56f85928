"""Sentences about the tree and what leaves it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine import events as ev
from workbench.explain.words import (
    Texts,
    capital,
    count,
    eviction_name,
    namespace,
    node_name,
    number,
    request_name,
    seconds,
)
from workbench.replay import State


def _path(s: State, node: int, texts: Texts) -> tuple[str, bool]:
    """A node and what is above it, and whether that is more than one."""
    name = capital(node_name(s, node, texts))
    above = len(s.path(node)) - 1 if node in s.nodes else 0
    if not above:
        return name, False
    return f"{name} and the {'node' if above == 1 else count(above, 'node')} above it", True


def _created(e: ev.NodeCreated, s: State, texts: Texts) -> str:
    space = f", in {namespace(e.namespace)}" if e.namespace else ""
    return (
        f"{capital(node_name(s, e.node, texts))} is new below {node_name(s, e.parent, {})}: it keeps "
        f"{count(e.stop - e.start, 'token')} of {request_name(s, e.request)} in {count(len(e.pages), 'page')}{space}."
    )


def _split(e: ev.NodeSplit, s: State, texts: Texts) -> str:
    return (
        f"Node #{e.node} is split after {count(e.at, 'token')}: the front becomes {node_name(s, e.front, texts)}, "
        f"the rest stays {node_name(s, e.node, texts)}."
    )


def _grown(e: ev.NodeGrown, s: State, texts: Texts) -> str:
    return (
        f"{capital(node_name(s, e.node, texts))} grows by {count(e.stop - e.start, 'token')} "
        f"as {request_name(s, e.request)} is computed."
    )


def _touched(e: ev.NodeTouched, s: State, texts: Texts) -> str:
    path, several = _path(s, e.node, texts)
    hit = f"{'count a hit each' if several else 'counts a hit'} and " if e.hit else ""
    return f"{path} {hit}{'are' if several else 'is'} dated tick {number(e.tick)}."


def _locked(e: ev.NodeLocked, s: State, texts: Texts) -> str:
    whom = f" for {request_name(s, e.request)}" if e.request is not None else ""
    path, several = _path(s, e.node, texts)
    return f"{path} {'get' if several else 'gets'} one more lock{' each' if several else ''}{whom} and cannot be evicted."


def _unlocked(e: ev.NodeUnlocked, s: State, texts: Texts) -> str:
    whom = f", that of {request_name(s, e.request)}" if e.request is not None else ""
    path, several = _path(s, e.node, texts)
    node = s.nodes.get(e.node)
    left = "" if node is None else f"; {count(node.locks, 'lock') if node.locks else 'no lock'} left on node #{e.node}"
    return f"{path} {'lose' if several else 'loses'} one lock{' each' if several else ''}{whom}{left}."


def _trimmed(e: ev.NodeTrimmed, s: State, texts: Texts) -> str:
    left = f" and keeps {number(s.nodes[e.node].count)}" if e.node in s.nodes else ""
    return f"{capital(node_name(s, e.node, texts))} loses its last {count(e.tokens, 'token')}{left}: {count(len(e.pages), 'page')} evicted."


def _evicted(e: ev.NodeEvicted, s: State, texts: Texts) -> str:
    if not e.pages:
        return f"{capital(node_name(s, e.node, texts))} leaves the host too: its {count(e.tokens, 'token')} are gone."
    said = f"{capital(node_name(s, e.node, texts))} is evicted: its {count(e.tokens, 'token')} are gone, {count(len(e.pages), 'page')} free"
    lost = len(s.below(e.node)) if e.node in s.gone and s.gone[e.node][1].children else 0
    return f"{said}; {count(lost, 'node')} below it can no longer be found." if lost else f"{said}."


def _demoted(e: ev.NodeDemoted, s: State, texts: Texts) -> str:
    who, pages = capital(node_name(s, e.node, texts)), count(len(e.host_pages), "host page")
    if e.kept:
        return f"{who} is copied to {pages}; its device pages stay."
    return f"{who} leaves the device and lies on the host only, in {pages}."


def _restored(e: ev.NodeRestored, s: State, texts: Texts) -> str:
    if e.request is not None:
        return (
            f"{request_name(s, e.request)} has computed {node_name(s, e.node, texts)} again, which lay on the host only: "
            f"it takes over {count(len(e.pages), 'page')}."
        )
    return (
        f"{capital(node_name(s, e.node, texts))} comes back from the host: {count(len(e.pages), 'page')} in {seconds(e.seconds)}, "
        f"where computing takes {seconds(e.recompute_seconds)}."
    )


def _pinned(e: ev.NodePinned, s: State, texts: Texts) -> str:
    over = f"{count(e.refused, 'page')} refused, the pin budget is used up"
    whose = f" of {request_name(s, e.request)}" if e.request is not None else ""
    if e.node == ev.ROOT:
        return f"Nothing{whose} is pinned: {over}."
    path, several = _path(s, e.node, texts)
    if e.until:
        whom = f" for {request_name(s, e.request)}" if e.request is not None else ""
        return f"{path} {'are' if several else 'is'} pinned{whom} up to step {number(e.until)}{f'; {over}' if e.refused else ''}."
    early = f", before its time: {request_name(s, e.request)} could not be served otherwise" if e.request is not None else ""
    return f"The pin on {node_name(s, e.node, texts)} is over{early}."


def _eviction(e: ev.Eviction, s: State, texts: Texts) -> str:
    whom = f"{request_name(s, e.request)} needs" if e.request is not None else "Needed:"
    first = ""
    if e.ranking:
        r = e.ranking[0]
        first = f"; first {node_name(s, r.node, texts)}, idle for {count(r.age, 'tick')}, {count(r.hits, 'hit')}"
    return f"{whom} {count(e.asked, 'page')}: {eviction_name(e.policy)} frees {number(e.freed)} of {number(e.evictable)} evictable{first}."


NODES: dict[type[ev.Event], Callable[[Any, State, Texts], str]] = {
    ev.NodeCreated: _created,
    ev.NodeSplit: _split,
    ev.NodeGrown: _grown,
    ev.NodeTouched: _touched,
    ev.NodeLocked: _locked,
    ev.NodeUnlocked: _unlocked,
    ev.NodeTrimmed: _trimmed,
    ev.NodeEvicted: _evicted,
    ev.NodeDemoted: _demoted,
    ev.NodeRestored: _restored,
    ev.NodePinned: _pinned,
    ev.Eviction: _eviction,
}
