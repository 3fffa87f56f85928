"""Contract 1: every event type, and the trace that holds them.

A trace is the truth of a run: folding its events rebuilds the engine's state exactly
(`workbench.replay`). On disk it is JSONL: line 1 is the header, events begin on line 2 with
`run.started`, seq 0.

Fields that every event carries: `seq` (0, 1, 2, ...), `t` (seconds on the run's clock), `step`
(steps count from 1), `replica` (0 unless several engines run), `commit` (true on the last event of
each submit, abort, plan and step: there the folded state equals `Engine.snapshot()`).

Ids: node ids rise and are never reused, the root is 0 and has no events; page ids run from 0 to
pages-1; a slot is page x page_size + offset; request ids are strings, unique in a run. Token runs are
named as (request, start, stop) into that request's prompt + output, so each id travels once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

SCHEMA_VERSION = 1
ROOT = 0

Namespace = tuple[str | None, str | None, str | None]
"""Salt, adapter, content: sequences with different namespaces never share a node."""

Owner = str | int | None
"""Who holds a page: a request id, a node id, or nobody (free)."""


class Header(msgspec.Struct, kw_only=True):
    """Line 1 of a trace file: facts that hold for the whole run."""

    schema_version: int = SCHEMA_VERSION
    config: dict[str, Any] = {}
    scenario: str | None = None
    note: str | None = None
    seed: int = 0
    model: str | None = None
    device: str | None = None
    dtype: str | None = None
    executor: str = "puppet"
    clock: str = "virtual"
    """`wall` or `virtual`; a virtual clock's times are simulated."""
    pages: int = 0
    page_size: int = 1
    eos: list[int] = []
    vocabulary: int | None = None
    """How many token ids the model can say; null: unknown."""
    rates: dict[str, float] = {}
    """Rates measured once at start, or those that a simulated machine goes by; constants of the run."""
    hardware: dict[str, str] = {}
    """The machine that is simulated (`executor: cost`): name, model, source, `simulated: yes`. Empty: none is."""
    host: str | msgspec.UnsetType = msgspec.UNSET
    """What the second tier's pages lie in; left out where there is none."""
    plugs: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Parts that the caller brought, as `match: my_function`; their decisions are not the engine's. Left out where there are none."""
    versions: dict[str, str] = {}
    texts: dict[str, str] = {}
    """Token id -> its text, for the ids that occur in this trace (empty: unknown)."""


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", gc=False):
    """What every event says."""

    seq: int
    t: float
    step: int
    replica: int = 0
    commit: bool = False


# --- the run -----------------------------------------------------------------------------------


class RunStarted(Event, tag="run.started"):
    """The engine is ready; the header's shape again, so that a stream alone can be folded."""

    pages: int
    page_size: int


class RunEnded(Event, tag="run.ended"):
    """Nothing is left to do, or the run was stopped (`stopped` true)."""

    stopped: bool = False


class ClockJumped(Event, tag="clock.jumped"):
    """An idle engine went on to the next arrival: the step counter or the time moved, never both."""

    from_step: int
    to_step: int
    from_t: float
    to_t: float


# --- requests ----------------------------------------------------------------------------------


class RequestArrived(Event, tag="request.arrived"):
    """A request joined the back of the queue. `arrived` is when it was due (seconds on the run's clock)."""

    request: str
    prompt: list[int]
    max_new_tokens: int
    arrived: float
    namespace: Namespace | None = None
    priority: int = 0
    label: str | None = None
    store: bool = True
    """False: it leaves nothing in the cache."""
    pin: int = 0
    """Steps for which its stored prompt is to be held, from its end."""
    content: str | None = None
    """What its tokens from `content_at` on stand for, where that is not the whole sequence: that is `namespace`."""
    content_at: int = 0
    note: str | None = None
    """What looks wrong with its prompt, which is served all the same."""
    regex: str | None = None
    """The pattern that its answer has to match."""
    json_schema: str | None = None
    """The JSON schema that its answer has to follow, as JSON text."""
    score_from: int | None = None
    """The first prompt token that is to be scored; what the cache may hand out ends before the token in front of it."""


class RequestRefused(Event, tag="request.refused"):
    """It can never run: `needed` against `available`, both in the unit that `reason` names."""

    request: str
    reason: str
    """`pages` (pages), `positions` (tokens) or `grammar` (1 that can be used, 0 found; `error` says why)."""
    needed: int
    available: int
    error: str | None = None


class RequestRouted(Event, tag="request.routed"):
    """A router chose a replica: why, and each replica's load (requests) and match (tokens)."""

    request: str
    chosen: int
    reason: str
    loads: list[int] = []
    matches: list[int] = []
    transferred: int = 0
    """Tokens whose KV came with it from replica `source` (separate prefill and decode engines), in so many `seconds`."""
    source: int | None = None
    seconds: float = 0.0


class RequestMatched(Event, tag="request.matched"):
    """How far the cache knew the request's tokens when it was admitted.

    `length` tokens are reusable (whole pages); `raw_length` counts single tokens up to where the walk
    really stopped. `stop` is `end` (a leaf's end), `no child`, `parted` (inside node `at_node`, `offset`
    tokens into it), `page` (parted within a page), `not written yet` (request `writer` is computing the
    next token), `last token` (the last token must run), `brought` (so says a look-up that the caller
    brought, where the tree's own would end elsewhere) or `off` (no cache).
    `stored` and `wanted` are the two token ids where it parted.
    """

    request: str
    length: int
    raw_length: int
    path: list[int]
    stop: str
    host_length: int = 0
    at_node: int | None = None
    offset: int | None = None
    stored: int | None = None
    wanted: int | None = None
    writer: str | None = None


class RequestAdmitted(Event, tag="request.admitted"):
    """It left the queue and runs. Counts in tokens; `needed` and `available` in pages.

    First admission: `cached` + `computed` = prompt. After a retraction both stay as they were and
    `recovered` (found again) and `recomputed` (to be forwarded again) say what this admission adds.
    """

    request: str
    node: int
    length: int
    """Tokens whose KV is already there: the sequence goes on from here."""
    first: bool
    cached: int
    computed: int
    recovered: int = 0
    recomputed: int = 0
    needed: int = 0
    available: int = 0
    reserve: float = 0.0
    overtaken: int = 0
    """Prompt tokens computed since its arrival for requests that arrived later."""
    host: int = 0
    """Tokens that only the host tier held, and"""
    loaded: int = 0
    """how many of them are loaded: they count as cached, after a retraction as recovered."""
    load_seconds: float | None = None
    """What loading them would take, behind what this step loads already, and what computing them would,"""
    recompute_seconds: float | None = None
    """by the header's rates; null where there was nothing to decide or a rate is not known."""


class RequestFirstToken(Event, tag="request.first_token"):
    """Its first token was sampled; `ttft` in seconds since it arrived."""

    request: str
    ttft: float


class RequestRemapped(Event, tag="request.remapped"):
    """Someone else had stored the same tokens first: it goes on with the tree's pages."""

    request: str
    start: int
    """First token position whose page changed."""
    old: list[int]
    new: list[int]


class RequestRetracted(Event, tag="request.retracted"):
    """Decoding ran out of pages, or a more important request (`by`) displaced it.

    It gives its pages back and waits again; its output stays.
    """

    request: str
    outputs: int
    freed: int
    """Private pages given back."""
    reserve: float
    """The reserve estimate after this retraction."""
    to: str = "back"
    times: int = 1
    by: str | None = None


class RequestAborted(Event, tag="request.aborted"):
    """Taken back by its sender, in whatever state it was."""

    request: str
    was: str
    text: str | None = None


class RequestFinished(Event, tag="request.finished"):
    """It ended: `stop`, `length`, `capacity` or `error`; `failed` ends carry `error`."""

    request: str
    reason: str
    outputs: int
    text: str | None = None
    matched_stop: str | int | None = None
    error: str | None = None
    incomplete: bool = False
    """It ended before the document that its grammar asks for was whole."""
    still_needed: int | None = None
    """Fewest tokens that would have completed it, where that is known."""


class QueueOrdered(Event, tag="queue.ordered"):
    """The order in which this step looks at the queue, when it changed: its head and the keys."""

    policy: str
    waiting: int
    head: list[str]
    keys: list[float | int]
    fell_back: bool = False
    why: str | None = None


class RequestPassedOver(Event, tag="request.passed_over"):
    """Not admitted this step, and which limit held it; told when it changes.

    `limit`: `pages`, `budget`, `running cap`, `chunk`, `prefix in flight`, `leader room`.
    `needed` and `available` in the limit's unit (pages, tokens or requests).
    `overtaken`: prompt tokens computed since its arrival for requests that arrived later.
    """

    request: str
    limit: str
    needed: int
    available: int
    overtaken: int = 0
    behind: str | None = None
    """For `prefix in flight`: the request that is computing the prefix."""


# --- the tree ----------------------------------------------------------------------------------


class NodeCreated(Event, tag="node.created"):
    """A new leaf: tokens [start, stop) of `request`; its pages pass from the request to the node."""

    node: int
    parent: int
    request: str
    start: int
    stop: int
    pages: list[int]
    namespace: Namespace | None = None


class NodeSplit(Event, tag="node.split"):
    """`front` (new) takes the first `at` tokens and their pages; `node` keeps the tail and its id.

    The front has the node's locks, hits, date and pins.
    """

    node: int
    front: int
    at: int


class NodeGrown(Event, tag="node.grown"):
    """A leaf whose prompt is still being written goes on: tokens [start, stop) of `request`."""

    node: int
    request: str
    start: int
    stop: int
    pages: list[int]


class NodeTouched(Event, tag="node.touched"):
    """The path from the root to `node` is dated `tick`; `hit` adds one hit to each of its nodes."""

    node: int
    tick: int
    hit: bool = False
    priority: int | None = None


class NodeLocked(Event, tag="node.locked"):
    """One lock on each node of the path to `node`, for `request`."""

    node: int
    request: str | None = None


class NodeUnlocked(Event, tag="node.unlocked"):
    """One lock less on each node of the path to `node`."""

    node: int
    request: str | None = None


class NodeTrimmed(Event, tag="node.trimmed"):
    """Eviction took whole pages from the end of a leaf; it keeps id, hits and date."""

    node: int
    tokens: int
    pages: list[int]


class NodeEvicted(Event, tag="node.evicted"):
    """Eviction took all that was left of a node; it is gone from the tree.

    A leaf, except with blocks that leave head first: what is below it stays, and no look-up can find it.
    """

    node: int
    tokens: int
    pages: list[int]


class NodeDemoted(Event, tag="node.demoted"):
    """Its pages were copied to the host tier (`kept`), or its device pages go while the host keeps its tokens.

    Without `kept` the copy is made at that moment, unless the node had one.
    """

    node: int
    host_pages: list[int]
    """All host pages of the node, in order."""
    kept: bool = False


class NodeRestored(Event, tag="node.restored"):
    """Its tokens came back from the host tier into these pages; the copy on the host stays."""

    node: int
    pages: list[int]
    seconds: float = 0.0
    """What loading costs by the header's rate; `recompute_seconds` is what computing would have."""
    recompute_seconds: float = 0.0
    request: str | None = None
    """Not loaded, but computed again by this request: its pages pass from the request to the node."""


class NodePinned(Event, tag="node.pinned"):
    """The path to `node` is held up to and including step `until` (0: unpinned); `refused` pages were over budget.

    `node` 0: nothing of it could be held. `request` is whose prompt it is; where the pin gave way before its
    time, the one that could not have been served otherwise.
    """

    node: int
    until: int
    refused: int = 0
    request: str | None = None


class Ranked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One candidate of an eviction: its key in the policy's order, smallest first."""

    node: int
    key: list[float | int]
    tokens: int
    age: int
    """Ticks since it was last used."""
    hits: int
    taken: int = 0
    """Tokens that this eviction took from it; 0: a runner-up."""


class Eviction(Event, tag="eviction"):
    """One call for pages: what was asked and freed (pages), and the head of the ranking.

    `unit` is `page` or `leaf` in a tree, `block` where one free queue decides.
    """

    asked: int
    freed: int
    policy: str
    unit: str
    ranking: list[Ranked]
    evictable: int
    """Pages that could have been taken when it was called."""
    locked: int = 0
    request: str | None = None
    """For whom, where one request asked."""


# --- pages -------------------------------------------------------------------------------------


class PageAllocated(Event, tag="page.allocated"):
    """Pages left the free list: the first counts[0] for owners[0], the next counts[1] for owners[1], ..."""

    pages: list[int]
    owners: list[str | int]
    counts: list[int]
    tier: str = "device"


class PageFreed(Event, tag="page.freed"):
    """Pages went back to the free list; `owner` held them (a request id or a node id)."""

    pages: list[int]
    owner: str | int
    tier: str = "device"


# --- steps -------------------------------------------------------------------------------------


class StepPlanned(Event, tag="step.planned"):
    """One forward pass: member i forwards tokens[i] tokens; the first `prefills` members prefill."""

    mode: str
    """`prefill`, `decode` or `mixed`."""
    members: list[str]
    tokens: list[int]
    prefills: int
    budget: int | None = None
    waiting: int = 0
    free: int = 0
    reserve: float = 0.0
    drafted: list[int] = []
    """The last drafted[i] of member i's tokens are what its grammar forces, still to be verified; empty: none are."""
    ahead: bool = False
    """Planned while the step before was in flight (`overlap`): a decode's token is not known yet."""


class StepStarted(Event, tag="step.started"):
    """The executor was called. With `overlap` the step before has only just come back, and is looked at after this.

    `dropped`: members of the plan that do not run after all, as the step before brought them no token or ended them.
    """

    dropped: list[str] = []


class StepFinished(Event, tag="step.finished"):
    """Member i of the step's plan has emitted[i] new tokens; `ids` lists them all, in that order.

    Durations in seconds; on a virtual clock they are simulated.
    """

    emitted: list[int]
    ids: list[int]
    plan_seconds: float = 0.0
    forward_seconds: float = 0.0
    sample_seconds: float = 0.0
    late: list[str] = []
    """Members that had ended before this step came back (`overlap`): what it brought them is not used."""
    ahead: bool = False
    """It was planned while the step before was in flight: that planning took no time of its own."""


class TokenEmitted(Event, tag="token.emitted"):
    """A token that carries more than its id: where it came from, its logprob, the top few."""

    request: str
    position: int
    """Index into the output."""
    token: int
    source: str = "sampled"
    """`sampled`, `forced` (the mask left one), `jumped` or `drafted` (no pass of its own: its grammar, or earlier text, foretold it)."""
    logprob: float | None = None
    top: list[tuple[int, float]] = []


class TokensScored(Event, tag="tokens.scored"):
    """How likely a prompt's own tokens are, each after all before it: log-probabilities of those from `start` on."""

    request: str
    start: int
    """Position of the first scored token in the prompt."""
    logprobs: list[float]


# --- grammar -----------------------------------------------------------------------------------


class GrammarEdge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One edge of the compressed automaton."""

    source: int
    target: int
    label: str
    forced: bool = False
    through: list[int] = []
    """The states between the bytes of a forced run: an answer may stand in the middle of it."""


class GrammarCompiled(Event, tag="grammar.compiled"):
    """A grammar is ready: compile time in seconds, its source, size and compressed edges.

    The request joins the queue, if it had to wait. Edges come with the first request that asks for it.
    """

    request: str
    seconds: float
    source: str
    backend: str
    states: int
    edges: list[GrammarEdge] = []
    start: int = 0
    """The state in which an answer begins."""
    ends: list[int] = []
    """The states of the edges in which an answer may end."""
    reused: bool = False
    """An earlier request of this run asked for the same: its event has the edges. `seconds` is what compiling took."""


class GrammarWaiting(Event, tag="grammar.waiting"):
    """A request leaves the queue until its grammar is compiled."""

    request: str


class GrammarMasked(Event, tag="grammar.masked"):
    """At automaton state `state`, `allowed` tokens were allowed; the model's top few before the mask."""

    request: str
    state: int
    allowed: int
    top: list[tuple[int, float]] = []
    forbidden: int = 0
    """How many of `top` the mask forbade."""
    position: int = 0
    """Index into the output of the token that was taken."""
    target: int = 0
    """The state that it led to."""
    seconds: float = 0.0
    """What the mask took; 0 on a virtual clock."""
    forbade: list[int] = []
    """Which of `top` the mask forbade."""


class GrammarJumped(Event, tag="grammar.jumped"):
    """A forced run taken without looking: the answer's last tokens `before` gave way to `after`."""

    request: str
    state: int
    target: int
    run: str
    before: list[int]
    after: list[int]
    pages: list[int] = []
    kv: int = 0
    """Tokens of prompt and output whose KV still holds."""


class GrammarVerified(Event, tag="grammar.verified"):
    """Of `drafted` forced tokens the model agreed with `accepted`."""

    request: str
    drafted: int
    accepted: int
    draft: list[int] = []
    run: str = ""
    """The forced text that was drafted."""


class GrammarRolledBack(Event, tag="grammar.rolled_back"):
    """Drafted tokens that were taken back, and the pages that went with them."""

    request: str
    tokens: list[int]
    pages: list[int] = []


# --- speculation -------------------------------------------------------------------------------


class DraftVerified(Event, tag="draft.verified"):
    """Of `drafted` tokens that followed the same words before, the model said `accepted` itself.

    The rest is taken back with its `pages`. `since`: where in prompt + output the words occurred whose continuation was drafted.
    """

    request: str
    drafted: int
    accepted: int
    draft: list[int]
    since: int
    pages: list[int] = []


# --- trouble -----------------------------------------------------------------------------------


class ExecutorFailed(Event, tag="executor.failed"):
    """A forward pass raised: its members fail, give everything back, and the engine goes on."""

    members: list[str]
    error: str


class InvariantBroken(Event, tag="invariant.broken"):
    """The tree walk found a page with more or less than one owner, or a wrong count."""

    what: str
    page: int | None = None
    owners: list[str | int] = []
    last_owners: list[str | int | None] = []


AnyEvent = (
    RunStarted | RunEnded | ClockJumped
    | RequestArrived | RequestRefused | RequestRouted | RequestMatched | RequestAdmitted
    | RequestFirstToken | RequestRemapped | RequestRetracted | RequestAborted | RequestFinished
    | QueueOrdered | RequestPassedOver
    | NodeCreated | NodeSplit | NodeGrown | NodeTouched | NodeLocked | NodeUnlocked | NodeTrimmed
    | NodeEvicted | NodeDemoted | NodeRestored | NodePinned | Eviction
    | PageAllocated | PageFreed
    | StepPlanned | StepStarted | StepFinished | TokenEmitted | TokensScored
    | GrammarCompiled | GrammarWaiting | GrammarMasked | GrammarJumped | GrammarVerified | GrammarRolledBack
    | DraftVerified
    | ExecutorFailed | InvariantBroken
)  # fmt: skip

KINDS: dict[str, type[Event]] = {c.__struct_config__.tag: c for c in AnyEvent.__args__}

_encoder = msgspec.json.Encoder()
_event_decoder = msgspec.json.Decoder(AnyEvent)
_header_decoder = msgspec.json.Decoder(Header)

Sink = Callable[[list[Event]], None]
"""Called with the events of one commit, in order."""


class TraceError(ValueError):
    """A trace file that cannot be read; the message names the line."""


class Trace:
    """Collects a run's events in order and hands them on, one commit at a time.

    `keep` holds the events in memory (`events`); each of `sinks` is called with the events of every
    commit. With neither, `on` is false and emitting does nothing.
    """

    def __init__(self, header: Header | None = None, *, keep: bool = True, sinks: Iterable[Sink] = ()) -> None:
        self.header = header or Header()
        self.events: list[Event] = []
        self.keep = keep
        self.sinks: list[Sink] = list(sinks)
        self.t = 0.0
        self.step = 1
        self.replica = 0
        self.seq = 0
        """The next event's number."""
        self._open: list[Event] = []

    @property
    def on(self) -> bool:
        """Whether anybody listens; costly parts of events are computed only then."""
        return self.keep or bool(self.sinks)

    def emit(self, event: type[Event], **fields: Any) -> None:
        """Append one event at the trace's current `t` and `step`."""
        if not (self.keep or self.sinks):
            return
        self._open.append(event(seq=self.seq, t=self.t, step=self.step, replica=self.replica, **fields))
        self.seq += 1

    def tell(self, event: Event) -> None:
        """Append one event that was built with this trace's `seq`, `t`, `step` and `replica`, while it is `on`.

        For what is told with every request: handing fields on costs `emit` five times what building does.
        """
        self._open.append(event)
        self.seq += 1

    def commit(self) -> None:
        """Close an operation: its last event gets `commit`, and the sinks see all of them."""
        batch = self._open
        if not batch:
            return
        msgspec.structs.force_setattr(batch[-1], "commit", True)
        self._open = []
        if self.keep:
            self.events.extend(batch)
        for sink in self.sinks:
            sink(batch)

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def write(self, path: str | Path) -> None:
        """Write header and events as JSONL. Raises OSError as the file system does."""
        with open(path, "wb") as file:
            write_lines(file, self.header, self.events)

    @classmethod
    def read(cls, path: str | Path) -> Trace:
        """Read a JSONL trace. Raises TraceError naming the first line that is wrong."""
        with open(path, "rb") as file:
            return cls.parse(file)

    @classmethod
    def parse(cls, lines: Iterable[bytes]) -> Trace:
        """Read a trace from its lines; a wrong line raises TraceError with its number and reason."""
        rows = iter(lines)
        try:
            header = decode_header(next(rows))
        except StopIteration:
            raise TraceError("line 1: the file is empty; a trace begins with its header") from None
        trace = cls(header, keep=True)
        for number, line in enumerate(rows, 2):
            if not line.strip():
                continue
            try:
                event = _event_decoder.decode(line)
            except msgspec.MsgspecError as error:
                raise TraceError(f"line {number}: {error}") from None
            except UnicodeDecodeError:
                raise TraceError(f"line {number}: not UTF-8 text") from None
            if event.seq != len(trace.events):
                raise TraceError(f"line {number}: seq is {event.seq}, expected {len(trace.events)}")
            trace.events.append(event)
        if not trace.events or not isinstance(trace.events[0], RunStarted):
            raise TraceError("line 2: the first event must be run.started with seq 0")
        trace.seq = len(trace.events)
        return trace


def decode_header(line: bytes) -> Header:
    """Decode line 1. Raises TraceError when it is no header or of a schema this version cannot read."""
    try:
        header = _header_decoder.decode(line)
        known = "schema_version" in msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError) as error:
        raise TraceError(f"line 1: not a trace header ({error})") from None
    if not known:
        raise TraceError("line 1: not a trace header (schema_version is missing)")
    if not 1 <= header.schema_version <= SCHEMA_VERSION:
        raise TraceError(f"line 1: schema_version is {header.schema_version}; this version reads 1 to {SCHEMA_VERSION}")
    return header


def write_lines(file: IO[bytes], header: Header, events: Iterable[Event]) -> None:
    """Write a header and events as JSON lines."""
    file.write(_encoder.encode(header) + b"\n")
    for event in events:
        file.write(_encoder.encode(event) + b"\n")


def encode(event: Event | Header) -> bytes:
    """One event or header as JSON, without the line end."""
    return _encoder.encode(event)


def decode(line: bytes) -> Event:
    """One event from its JSON. Raises msgspec.MsgspecError."""
    return _event_decoder.decode(line)


def json_schema() -> dict[str, Any]:
    """The JSON schema of the header and of every event kind."""
    (header, event), components = msgspec.json.schema_components(
        [Header, AnyEvent], ref_template="#/$defs/{name}"
    )
    components["Header"]["required"] = ["schema_version"]  # what tells a header from an event
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Radix Workbench trace",
        "description": "Line 1 of a JSONL trace is the header, every further line one event.",
        "oneOf": [header, event],
        "$defs": components,
    }


if __name__ == "__main__":
    print(msgspec.json.format(msgspec.json.encode(json_schema()), indent=1).decode())
