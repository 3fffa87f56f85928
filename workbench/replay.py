"""State = fold(events): the engine's state rebuilt from its trace alone, at any moment.

`State.canonical()` has the shape of `Engine.snapshot()`; at every event with `commit` they are equal.
`digest` hashes that shape the same way in Python and in the player (`ui/player/fold.js`).
"""

from __future__ import annotations

import json
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from engine import events as ev

LIVE = ("waiting", "prefill", "decode")
TOTALS = (
    "arrived", "finished", "refused", "aborted", "failed",
    "prompt_tokens", "cached_tokens", "computed_tokens", "loaded_tokens", "recovered_tokens", "recomputed_tokens",
    "output_tokens", "forced_tokens", "jumped_tokens", "drafted_tokens", "forward_passes", "steps",
    "evictions", "evicted_tokens", "demoted_tokens", "retractions",
)  # fmt: skip

Piece = tuple[str, int, int]
"""A token run by reference: request, start, stop into its prompt + output."""


@dataclass(slots=True)
class GrammarState:
    """A request under a grammar: the automaton's state, and its answer's tokens by where they came from."""

    state: int
    forced: int = 0
    jumped: int = 0
    rolled_back: int = 0


@dataclass(slots=True)
class RequestState:
    """One request as the trace tells it. `node` is the end of its locked path (0: none)."""

    id: str
    prompt: list[int]
    max_new_tokens: int
    arrived: float
    namespace: ev.Namespace | None = None
    priority: int = 0
    content: str | None = None
    content_at: int = 0
    label: str | None = None
    status: str = "waiting"
    cached: int | None = None
    computed: int | None = None
    recovered: int = 0
    recomputed: int = 0
    kv: int = 0
    target: int = 0
    output: list[int] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)
    node: int = 0
    retractions: int = 0
    grammar: GrammarState | None = None
    """Where it stands in its grammar; None without one, and until that is compiled."""
    held: bool = False
    """It waits for its grammar, outside the queue."""
    admitted: float | None = None
    first_token: float | None = None
    ended: float | None = None
    reason: str | None = None
    text: str | None = None

    def canonical(self) -> dict[str, Any]:
        """The part that the engine's snapshot holds too."""
        return {
            "status": self.status,
            "prompt": len(self.prompt),
            "cached": self.cached,
            "computed": self.computed,
            "recovered": self.recovered,
            "recomputed": self.recomputed,
            "kv": self.kv,
            "output": list(self.output),
            "pages": list(self.pages),
            "node": self.node,
            "retractions": self.retractions,
            "grammar": asdict(self.grammar) if self.grammar else None,
        }


@dataclass(slots=True)
class NodeState:
    """One tree node. Its tokens are named, not copied: `pieces` point into requests."""

    id: int
    parent: int
    namespace: ev.Namespace | None
    depth: int
    """Tokens above it."""
    count: int
    pieces: tuple[Piece, ...]
    pages: list[int]
    locks: int = 0
    hits: int = 0
    last_used: int = 0
    pins: int = 0
    priority: int = 0
    """The highest of the requests that stored it; for the order of eviction, no part of the canonical state."""
    host: list[int] = field(default_factory=list)
    """Host pages that hold a copy."""
    children: int = 0
    resident: int = 0
    """Children with device pages: while there are any, it is no leaf for eviction."""
    joined: int = 0
    """The event with which it last joined the free queue (blocks)."""

    @property
    def tier(self) -> str:
        """`device`, `host`, or `both`: copied, and still on the device."""
        return ("both" if self.pages else "host") if self.host else "device"


@dataclass(slots=True)
class State:
    """Everything that the trace says about the engine, up to one event."""

    pages: int = 0
    page_size: int = 1
    seq: int = -1
    t: float = 0.0
    step: int = 1
    queue: list[str] = field(default_factory=list)
    requests: dict[str, RequestState] = field(default_factory=dict)
    nodes: dict[int, NodeState] = field(default_factory=dict)
    gone: dict[int, tuple[int, NodeState]] = field(default_factory=dict)
    """Nodes that left the tree: id -> (seq, the node as it was)."""
    owners: list[ev.Owner] = field(default_factory=list)
    totals: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TOTALS, 0))
    planned: ev.StepPlanned | None = None
    """The step that was planned last."""
    members: list[str] = field(default_factory=list)
    """Of the step that was handed to the executor last."""
    member_tokens: list[int] = field(default_factory=list)
    member_drafted: list[int] = field(default_factory=list)

    def copy(self) -> State:
        """An independent copy; what ended long ago is shared where it can no longer change."""
        return replace(
            self,
            queue=list(self.queue),
            requests={
                k: replace(r, output=list(r.output), pages=list(r.pages), grammar=r.grammar and replace(r.grammar))
                if r.status in LIVE
                else r
                for k, r in self.requests.items()
            },
            nodes={k: replace(n, pages=list(n.pages), host=list(n.host)) for k, n in self.nodes.items()},
            gone=dict(self.gone),
            owners=list(self.owners),
            totals=dict(self.totals),
            members=list(self.members),
            member_tokens=list(self.member_tokens),
            member_drafted=list(self.member_drafted),
        )

    def path(self, node: int) -> list[int]:
        """Node ids from `node` up to the root, the root excluded; or up to where something is missing."""
        out = []
        while node and (node in self.nodes or not out):
            out.append(node)
            node = self.nodes[node].parent
        return out

    def reachable(self, node: int) -> bool:
        """Whether a look-up can come to this node: all that is above it is still there."""
        return self.nodes[self.path(node)[-1]].parent == ev.ROOT

    def below(self, node: int) -> list[int]:
        """Ids of all nodes under `node`, parents before children; also where it has left itself."""
        children: dict[int, list[int]] = {}
        for n in self.nodes.values():
            children.setdefault(n.parent, []).append(n.id)
        out = list(children.get(node, ()))
        for found in out:
            out += children.get(found, ())
        return out

    def unreachable(self) -> set[int]:
        """Ids of all nodes that no look-up can find, because something above them has left."""
        cut = [n.id for n in self.nodes.values() if n.parent and n.parent not in self.nodes]
        return {*cut, *(below for id in cut for below in self.below(id))}

    def tokens(self, node: NodeState) -> list[int]:
        """The token ids a node holds."""
        out: list[int] = []
        for request, start, stop in node.pieces:
            out += self.sequence(request, start, stop)
        return out

    def sequence(self, request: str, start: int, stop: int) -> list[int]:
        """Tokens [start, stop) of a request's prompt + output."""
        r = self.requests[request]
        n = len(r.prompt)
        if stop <= n:
            return r.prompt[start:stop]
        return r.prompt[start:] + r.output[max(0, start - n) : stop - n]

    def canonical(self) -> dict[str, Any]:
        """The state in the shape of `Engine.snapshot()`: no times, no tensors."""
        return {
            "queue": list(self.queue),
            "requests": {k: r.canonical() for k, r in self.requests.items() if r.status in LIVE},
            "nodes": {
                str(n.id): {
                    "parent": n.parent,
                    "namespace": list(n.namespace) if n.namespace else None,
                    "run": [n.depth, n.count, fnv1a(pack(self.tokens(n)))],
                    "pages": list(n.pages),
                    "host": list(n.host),
                    "locks": n.locks,
                    "hits": n.hits,
                    "last_used": n.last_used,
                    "pins": n.pins,
                    "tier": n.tier,
                }
                for n in self.nodes.values()
            },
            "owners": list(self.owners),
            "totals": dict(self.totals),
        }

    def apply(self, event: ev.Event) -> None:
        """Fold one event in. Raises ReplayError when the event does not fit the state."""
        self.seq, self.t, self.step = event.seq, event.t, event.step
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            try:
                handler(self, event)
            except (KeyError, IndexError, ValueError) as error:
                kind = event.__struct_config__.tag
                raise ReplayError(f"event {event.seq} ({kind}) does not fit what came before: {error!r}") from error


class ReplayError(ValueError):
    """A trace whose events contradict each other."""


def pack(tokens: Sequence[int]) -> bytes:
    """Token ids as little-endian 32-bit integers."""
    return struct.pack(f"<{len(tokens)}i", *tokens)


def fnv1a(data: bytes) -> str:
    """FNV-1a, 64 bits, as 16 hex digits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def digest(canonical: dict[str, Any]) -> str:
    """A hash of a canonical state: keys in code-point order, no spaces, UTF-8, FNV-1a 64."""
    text = json.dumps(canonical, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return fnv1a(text.encode())


# --- one small function an event kind ----------------------------------------------------------


def _run_started(s: State, e: ev.RunStarted) -> None:
    s.pages, s.page_size = e.pages, e.page_size
    s.owners = [None] * e.pages


def _arrived(s: State, e: ev.RequestArrived) -> None:
    s.requests[e.request] = RequestState(
        e.request, e.prompt, e.max_new_tokens, e.arrived, namespace=e.namespace, priority=e.priority,
        content=e.content, content_at=e.content_at, label=e.label,
    )  # fmt: skip
    s.queue.append(e.request)
    s.totals["arrived"] += 1


def _end(s: State, request: str, status: str, t: float, reason: str | None, text: str | None = None) -> None:
    r = s.requests[request]
    if r.status == "waiting" and not r.held:
        s.queue.remove(request)
    r.status, r.ended, r.reason, r.text, r.node = status, t, reason, text, 0
    s.totals[status] += 1


def _refused(s: State, e: ev.RequestRefused) -> None:
    _end(s, e.request, "refused", e.t, e.reason)


def _aborted(s: State, e: ev.RequestAborted) -> None:
    _end(s, e.request, "aborted", e.t, "abort", e.text)


def _finished(s: State, e: ev.RequestFinished) -> None:
    _end(s, e.request, "failed" if e.reason == "error" else "finished", e.t, e.reason, e.text)


def _admitted(s: State, e: ev.RequestAdmitted) -> None:
    r = s.requests[e.request]
    s.queue.remove(e.request)
    r.status, r.node, r.kv = "prefill", e.node, e.length
    r.target = len(r.prompt) + len(r.output)
    if e.first:
        r.cached, r.computed, r.admitted = e.cached, e.computed, e.t
        s.totals["prompt_tokens"] += len(r.prompt)
        s.totals["cached_tokens"] += e.cached
        s.totals["computed_tokens"] += e.computed
    r.recovered += e.recovered
    r.recomputed += e.recomputed
    s.totals["loaded_tokens"] += e.loaded
    s.totals["recovered_tokens"] += e.recovered
    s.totals["recomputed_tokens"] += e.recomputed


def _first_token(s: State, e: ev.RequestFirstToken) -> None:
    s.requests[e.request].first_token = e.t


def _retracted(s: State, e: ev.RequestRetracted) -> None:
    r = s.requests[e.request]
    r.status, r.node, r.kv, r.retractions = "waiting", 0, 0, e.times
    if e.to == "front":
        s.queue.insert(0, e.request)
    else:
        s.queue.append(e.request)
    s.totals["retractions"] += 1


def _give_pages(s: State, node: int, request: str, pages: list[int]) -> None:
    private = s.requests[request].pages
    if private[: len(pages)] == pages:
        del private[: len(pages)]
    else:
        taken = set(pages)
        private[:] = [p for p in private if p not in taken]
    for page in pages:
        s.owners[page] = node


def _node_created(s: State, e: ev.NodeCreated) -> None:
    parent = s.nodes.get(e.parent)
    depth = parent.depth + parent.count if parent else 0
    s.nodes[e.node] = NodeState(
        e.node, e.parent, e.namespace, depth, e.stop - e.start, ((e.request, e.start, e.stop),), list(e.pages),
        priority=s.requests[e.request].priority,
    )  # fmt: skip
    if parent:
        parent.children += 1
        parent.resident += 1
    _give_pages(s, e.node, e.request, e.pages)


def _node_grown(s: State, e: ev.NodeGrown) -> None:
    node = s.nodes[e.node]
    node.pieces += ((e.request, e.start, e.stop),)
    node.count += e.stop - e.start
    node.pages += e.pages
    _give_pages(s, e.node, e.request, e.pages)


def cut(pieces: Iterable[Piece], at: int) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Split a list of token runs after `at` tokens."""
    front: list[Piece] = []
    back: list[Piece] = []
    for request, start, stop in pieces:
        middle = min(max(start + at, start), stop)
        if middle > start:
            front.append((request, start, middle))
        if stop > middle:
            back.append((request, middle, stop))
        at -= stop - start
    return tuple(front), tuple(back)


def _node_split(s: State, e: ev.NodeSplit) -> None:
    node = s.nodes[e.node]
    front_pieces, node.pieces = cut(node.pieces, e.at)
    k = e.at // s.page_size
    s.nodes[e.front] = replace(
        node, id=e.front, count=e.at, pieces=front_pieces, pages=node.pages[:k], host=node.host[:k], children=1,
        resident=int(bool(node.pages)),
    )  # fmt: skip
    node.parent, node.depth, node.count, node.pages = e.front, node.depth + e.at, node.count - e.at, node.pages[k:]
    node.host = node.host[k:]
    for page in s.nodes[e.front].pages:
        s.owners[page] = e.front


def _join(s: State, node: NodeState) -> None:
    """What nobody holds joins the free queue (anew) with this event."""
    if not (node.locks or node.pins):
        node.joined = s.seq


def _node_touched(s: State, e: ev.NodeTouched) -> None:
    for i in s.path(e.node):
        s.nodes[i].last_used = e.tick
        s.nodes[i].hits += e.hit
        if e.priority is not None:
            s.nodes[i].priority = max(s.nodes[i].priority, e.priority)
        _join(s, s.nodes[i])


def _node_locked(s: State, e: ev.NodeLocked) -> None:
    for i in s.path(e.node):
        s.nodes[i].locks += 1
    if e.request is not None:
        s.requests[e.request].node = e.node


def _node_unlocked(s: State, e: ev.NodeUnlocked) -> None:
    for i in s.path(e.node):
        s.nodes[i].locks -= 1
        _join(s, s.nodes[i])


def _node_trimmed(s: State, e: ev.NodeTrimmed) -> None:
    node = s.nodes[e.node]
    node.count -= e.tokens
    node.pieces, _ = cut(node.pieces, node.count)
    del node.pages[len(node.pages) - len(e.pages) :]
    s.totals["evicted_tokens"] += e.tokens


def _node_evicted(s: State, e: ev.NodeEvicted) -> None:
    node = s.nodes.pop(e.node)
    if node.parent in s.nodes:
        s.nodes[node.parent].children -= 1
        s.nodes[node.parent].resident -= bool(node.pages)
    s.gone[e.node] = (e.seq, node)
    s.totals["evicted_tokens"] += e.tokens


def _node_demoted(s: State, e: ev.NodeDemoted) -> None:
    node = s.nodes[e.node]
    node.host = list(e.host_pages)
    if not e.kept:
        node.pages = []
        if node.parent in s.nodes:
            s.nodes[node.parent].resident -= 1
        s.totals["demoted_tokens"] += node.count


def _node_restored(s: State, e: ev.NodeRestored) -> None:
    node = s.nodes[e.node]
    node.pages = list(e.pages)
    if node.parent in s.nodes:
        s.nodes[node.parent].resident += 1
    if e.request is not None:
        _give_pages(s, e.node, e.request, e.pages)


def _node_pinned(s: State, e: ev.NodePinned) -> None:
    for i in s.path(e.node):
        s.nodes[i].pins = e.until
        _join(s, s.nodes[i])


def _eviction(s: State, e: ev.Eviction) -> None:
    s.totals["evictions"] += 1


def _page_allocated(s: State, e: ev.PageAllocated) -> None:
    if e.tier != "device":
        return  # node.demoted says whose they are
    at = 0
    for owner, count in zip(e.owners, e.counts, strict=True):
        mine = e.pages[at : at + count]
        at += count
        for page in mine:
            s.owners[page] = owner
        if isinstance(owner, str):
            s.requests[owner].pages += mine


def _page_freed(s: State, e: ev.PageFreed) -> None:
    if e.tier != "device":
        return
    freed = set(e.pages)
    for page in e.pages:
        s.owners[page] = None
    if isinstance(e.owner, str):
        private = s.requests[e.owner].pages
        private[:] = [p for p in private if p not in freed]


def _step_planned(s: State, e: ev.StepPlanned) -> None:
    s.planned = e


def _step_started(s: State, e: ev.StepStarted) -> None:
    plan = s.planned
    if plan is None:
        raise ValueError("no step is planned")
    runs = [i for i, request in enumerate(plan.members) if request not in e.dropped]
    s.members = [plan.members[i] for i in runs]
    s.member_tokens = [plan.tokens[i] for i in runs]
    s.member_drafted = [plan.drafted[i] if plan.drafted else 0 for i in runs]
    s.totals["forward_passes"] += 1


def _step_finished(s: State, e: ev.StepFinished) -> None:
    at = 0
    for i, (request, emitted) in enumerate(zip(s.members, e.emitted, strict=True)):
        r = s.requests[request]
        if r.status not in LIVE:
            continue
        r.kv += s.member_tokens[i] - s.member_drafted[i]
        if r.status == "prefill" and r.kv >= r.target:
            r.status = "decode"
        r.kv += max(emitted - 1, 0)
        r.output += e.ids[at : at + emitted]
        at += emitted
    s.totals["output_tokens"] += len(e.ids)
    s.totals["steps"] += 1


def _token_emitted(s: State, e: ev.TokenEmitted) -> None:
    if e.source == "sampled":
        return
    s.totals[f"{e.source}_tokens"] += 1
    grammar = s.requests[e.request].grammar
    if grammar is not None:
        setattr(grammar, e.source, getattr(grammar, e.source) + 1)


def _grammar_waiting(s: State, e: ev.GrammarWaiting) -> None:
    s.queue.remove(e.request)
    s.requests[e.request].held = True


def _grammar_compiled(s: State, e: ev.GrammarCompiled) -> None:
    r = s.requests[e.request]
    r.grammar = GrammarState(e.start)
    if r.held:
        r.held = False
        s.queue.append(e.request)


def _grammar_masked(s: State, e: ev.GrammarMasked) -> None:
    grammar = s.requests[e.request].grammar
    if grammar is not None:
        grammar.state = e.target


def _grammar_jumped(s: State, e: ev.GrammarJumped) -> None:
    r = s.requests[e.request]
    gain = len(e.after) - len(e.before)
    r.output[len(r.output) - len(e.before) :] = e.after
    r.kv = e.kv
    s.totals["output_tokens"] += gain
    s.totals["jumped_tokens"] += gain
    if r.grammar is not None:
        r.grammar.state, r.grammar.jumped = e.target, r.grammar.jumped + gain


def _grammar_rolled_back(s: State, e: ev.GrammarRolledBack) -> None:
    grammar = s.requests[e.request].grammar
    if grammar is not None:
        grammar.rolled_back += len(e.tokens)


_HANDLERS: dict[type[ev.Event], Callable[[State, Any], None]] = {
    ev.RunStarted: _run_started,
    ev.RequestArrived: _arrived,
    ev.RequestRefused: _refused,
    ev.RequestAborted: _aborted,
    ev.RequestFinished: _finished,
    ev.RequestAdmitted: _admitted,
    ev.RequestFirstToken: _first_token,
    ev.RequestRetracted: _retracted,
    ev.NodeCreated: _node_created,
    ev.NodeGrown: _node_grown,
    ev.NodeSplit: _node_split,
    ev.NodeTouched: _node_touched,
    ev.NodeLocked: _node_locked,
    ev.NodeUnlocked: _node_unlocked,
    ev.NodeTrimmed: _node_trimmed,
    ev.NodeEvicted: _node_evicted,
    ev.NodeDemoted: _node_demoted,
    ev.NodeRestored: _node_restored,
    ev.NodePinned: _node_pinned,
    ev.Eviction: _eviction,
    ev.PageAllocated: _page_allocated,
    ev.PageFreed: _page_freed,
    ev.StepPlanned: _step_planned,
    ev.StepStarted: _step_started,
    ev.StepFinished: _step_finished,
    ev.TokenEmitted: _token_emitted,
    ev.GrammarWaiting: _grammar_waiting,
    ev.GrammarCompiled: _grammar_compiled,
    ev.GrammarMasked: _grammar_masked,
    ev.GrammarJumped: _grammar_jumped,
    ev.GrammarRolledBack: _grammar_rolled_back,
}


def fold(events: Iterable[ev.Event], state: State | None = None) -> State:
    """Fold events into a state (a fresh one unless given)."""
    state = state or State()
    for event in events:
        state.apply(event)
    return state


class Replay:
    """Any moment of a trace in bounded time: the nearest keyframe, then at most `every` events."""

    def __init__(self, events: Iterable[ev.Event] = (), every: int = 512) -> None:
        self.events: list[ev.Event] = []
        self.last = State()
        self._every = every
        self._seqs = [0]
        self._frames = [State()]
        for event in events:
            self.append(event)

    def append(self, event: ev.Event) -> None:
        """Go on by one event, as in a live run. Raises ReplayError when it does not fit."""
        i = len(self.events)
        if i and i % self._every == 0:
            self._seqs.append(i)
            self._frames.append(self.last.copy())
        self.last.apply(event)
        self.events.append(event)

    def at(self, seq: int) -> State:
        """The state after event `seq` (-1: before the first)."""
        if not -1 <= seq < len(self.events):
            raise IndexError(f"seq: must be -1 to {len(self.events) - 1}; got {seq}")
        i = bisect_right(self._seqs, seq + 1) - 1
        return fold(self.events[self._seqs[i] : seq + 1], self._frames[i].copy())
