"""One request's answer as a tape: where each token came from, which pass gave it, what the mask allowed there.

From events alone. A pass is a forward pass in which the request took part. Plain decoding needs one for each token
of the answer, so what jump-forward saved can be counted in the jumping run itself.
"""

from __future__ import annotations

import re
from itertools import pairwise
from statistics import median
from typing import Any

import msgspec

from engine import events as ev
from workbench.replicas import trace_of

SOURCES = ("sampled", "forced", "jumped", "respelt")
"""Where a token came from: the model chose; the mask left one; no pass of its own; spelt anew by a jump."""

ESCAPED = re.compile(r"\\x[0-9a-f]{2}")
"""How a token's text tells a byte that is no whole character."""


class Candidate(msgspec.Struct, kw_only=True):
    """One of the model's top few at a position, before the mask."""

    id: int
    text: str | None
    logprob: float
    forbidden: bool


class Token(msgspec.Struct, kw_only=True):
    """One token of an answer. What the trace does not say is None."""

    id: int
    text: str | None
    source: str = "sampled"
    step: int = 0
    number: int | None = None
    """The pass that gave it, counted from 1; None where it was appended and no pass followed."""
    state: int | None = None
    """The automaton's state before it, `target` the one after it."""
    target: int | None = None
    allowed: int | None = None
    """How many ids the mask allowed; None where nobody looked."""
    logprob: float | None = None
    top: list[Candidate] = []
    mask_seconds: float | None = None


class TakenBack(msgspec.Struct, kw_only=True):
    """Tokens that stood before `position` for a moment: drafted and rolled back, or spelt anew."""

    position: int
    why: str
    """`rolled back` or `respelt`."""
    ids: list[int]
    texts: list[str | None]
    number: int | None
    step: int
    pages: int = 0


class Compiled(msgspec.Struct, kw_only=True):
    """The request's grammar."""

    kind: str
    """`regex` or `json_schema`."""
    source: str
    backend: str
    seconds: float
    states: int
    start: int
    reused: bool
    edges: list[ev.GrammarEdge] = []
    ends: list[int] = []


class Decoding(msgspec.Struct, kw_only=True):
    """One request's answer as it came about. Times in seconds."""

    request: str
    mode: str
    """`verified`, `unverified` or `off`: how the engine jumped."""
    status: str
    reason: str | None = None
    error: str | None = None
    text: str | None = None
    incomplete: bool = False
    still_needed: int | None = None
    tokens: list[Token] = []
    back: list[TakenBack] = []
    passes: int = 0
    giving: int = 0
    """Passes that gave tokens; the others computed a part of the prompt, or what was lost."""
    grammar: Compiled | None = None
    ttft: float | None = None
    duration: float | None = None
    """From its arrival to its end."""
    simulated: bool = False

    @property
    def saved(self) -> int:
        """Passes that plain decoding would have needed beyond those that were run for these tokens."""
        return len(self.tokens) - self.giving

    def count(self, source: str) -> int:
        """Tokens from a source."""
        return sum(t.source == source for t in self.tokens)

    @property
    def rolled_back(self) -> int:
        """Drafted tokens that were taken back."""
        return sum(len(b.ids) for b in self.back if b.why == "rolled back")

    @property
    def masks(self) -> list[float]:
        """What each mask took."""
        return [t.mask_seconds for t in self.tokens if t.mask_seconds is not None]

    @property
    def mask_median(self) -> float | None:
        """What a mask took, in the middle."""
        return median(self.masks) if self.masks else None


class NothingToShowError(ValueError):
    """The trace has no such request, or none at all."""


def constrained(trace: ev.Trace) -> list[str]:
    """The requests of a trace that have a grammar, in the order of their arrival."""
    arrived = [e for e in trace.events if isinstance(e, ev.RequestArrived)]
    return [e.request for e in arrived if e.regex is not None or e.json_schema is not None]


def decode(trace: ev.Trace, request: str | None = None) -> Decoding:
    """The tape of a request; of the first that has a grammar, or the first of all, where none is named.

    Raises NothingToShowError.
    """
    names = [e.request for e in trace.events if isinstance(e, ev.RequestArrived)]
    name = request if request is not None else next(iter(constrained(trace) or names), None)
    if name is None or name not in names:
        raise NothingToShowError(
            f"the trace has no request {name!r}" if name else "no request has arrived in this trace"
        )
    own = trace_of(trace, next(e.replica for e in trace.events if isinstance(e, ev.RequestArrived) and e.request == name))
    tape = _Tape(own, name)
    for event in own.events:
        tape.take(event)
    return tape.decoding


class _Tape:
    """Reads a trace, event by event, for one request."""

    def __init__(self, trace: ev.Trace, request: str) -> None:
        self.header = trace.header
        self.texts = trace.header.texts
        self.request = request
        mode = str(trace.header.config.get("jump", "off"))
        self.decoding = Decoding(
            request=request, mode=mode, status="waiting", simulated=trace.header.clock == "virtual"
        )
        self._all: list[Any] = [e for e in trace.events if isinstance(e, ev.GrammarCompiled)]
        self._arrived = 0.0
        self._kind = ""
        self._planned: list[str] = []
        self._members: list[str] = []
        self._parted = 0
        """Where in the answer the last draft was refused."""
        self._next: dict[int, int] = {}
        """The state that a forced byte leads to."""

    def take(self, event: ev.Event) -> None:
        """One more event."""
        if isinstance(event, ev.StepPlanned):
            self._planned = event.members
        elif isinstance(event, ev.StepStarted):
            self._members = [name for name in self._planned if name not in event.dropped]
        elif isinstance(event, ev.StepFinished):
            self._passed(event)
        elif isinstance(event, ev.ExecutorFailed):
            self._members = []
        elif getattr(event, "request", None) == self.request:
            handler = _HANDLERS.get(type(event))
            if handler is not None:
                handler(self, event)

    # --- passes and tokens ---------------------------------------------------------------------

    def _passed(self, event: ev.StepFinished) -> None:
        if self.request not in self._members:
            return
        d = self.decoding
        i = self._members.index(self.request)
        first, count = sum(event.emitted[:i]), event.emitted[i]
        d.passes += 1
        d.giving += count > 0
        for token in d.tokens:
            if token.step == event.step and token.number is None:
                token.number = d.passes  # jumped before this pass, which computes their KV
        for id in event.ids[first : first + count]:
            d.tokens.append(Token(id=id, text=self._text(id), step=event.step, number=d.passes))

    def _masked(self, event: ev.GrammarMasked) -> None:
        token = self.decoding.tokens[event.position]
        forbidden = set(event.forbade)
        token.state, token.target, token.allowed = event.state, event.target, event.allowed
        token.top = [Candidate(id=i, text=self._text(i), logprob=p, forbidden=i in forbidden) for i, p in event.top]
        token.mask_seconds = None if self.decoding.simulated else event.seconds

    def _emitted(self, event: ev.TokenEmitted) -> None:
        token = self.decoding.tokens[event.position]
        token.source, token.logprob = event.source, event.logprob
        if not token.top:
            token.top = [Candidate(id=i, text=self._text(i), logprob=p, forbidden=False) for i, p in event.top]

    def _verified(self, event: ev.GrammarVerified) -> None:
        d = self.decoding
        before = sum(t.number != d.passes for t in d.tokens)
        self._parted = before + event.accepted

    def _rolled_back(self, event: ev.GrammarRolledBack) -> None:
        d = self.decoding
        number = d.tokens[-1].number if d.tokens else None
        d.back.append(self._taken(self._parted, "rolled back", event.tokens, number, event.step, len(event.pages)))

    def _jumped(self, event: ev.GrammarJumped) -> None:
        d = self.decoding
        keep = len(d.tokens) - len(event.before)
        old = d.tokens[keep:]
        del d.tokens[keep:]
        if old:
            d.back.append(self._taken(keep, "respelt", event.before, old[-1].number, event.step, 0))
        states = self._states(event)
        state = old[0].state if old else event.state
        for i, id in enumerate(event.after):
            source = "respelt" if i < len(old) else "jumped"
            d.tokens.append(
                Token(id=id, text=self._text(id), source=source, step=event.step, state=state, target=states[i])
            )
            state = states[i]

    def _states(self, event: ev.GrammarJumped) -> list[int | None]:
        """The state after each token of a jump, where the run's bytes lead there."""
        sizes = [self._size(id) for id in event.after]
        skip = sum(self._size(id) for id in event.before)
        path = [event.state]
        while len(path) <= sum(sizes) - skip and path[-1] in self._next:
            path.append(self._next[path[-1]])
        if len(path) != sum(sizes) - skip + 1 or path[-1] != event.target:
            return [None] * (len(sizes) - 1) + [event.target]
        ends = [sum(sizes[: i + 1]) - skip for i in range(len(sizes))]
        return [path[end] if end >= 0 else None for end in ends]

    def _taken(self, position: int, why: str, ids: list[int], number: int | None, step: int, pages: int) -> TakenBack:
        texts = [self._text(i) for i in ids]
        return TakenBack(position=position, why=why, ids=ids, texts=texts, number=number, step=step, pages=pages)

    def _text(self, id: int) -> str | None:
        return self.texts.get(str(id))

    def _size(self, id: int) -> int:
        """Bytes of a token."""
        return len(ESCAPED.sub("?", self._text(id) or "").encode())

    # --- the request ---------------------------------------------------------------------------

    def _came(self, event: ev.RequestArrived) -> None:
        self._arrived = event.arrived
        self._kind = "regex" if event.regex is not None else "json_schema"

    def _compiled(self, event: ev.GrammarCompiled) -> None:
        # Edges travel with the first request that asks for a grammar.
        first = next((e for e in self._all if e.source == event.source and e.edges), event)
        self.decoding.grammar = Compiled(
            kind=self._kind, source=event.source, backend=event.backend, seconds=event.seconds, states=event.states,
            start=event.start, reused=event.reused, edges=first.edges, ends=first.ends,
        )  # fmt: skip
        for edge in first.edges:
            if edge.forced:
                way = [edge.source, *edge.through, edge.target]
                self._next.update(pairwise(way))

    def _admitted(self, event: ev.RequestAdmitted) -> None:
        self.decoding.status = "running"

    def _first(self, event: ev.RequestFirstToken) -> None:
        self.decoding.ttft = event.ttft

    def _ended(self, event: ev.RequestFinished | ev.RequestAborted | ev.RequestRefused) -> None:
        d = self.decoding
        d.duration = round(event.t - self._arrived, 9)
        if isinstance(event, ev.RequestRefused):
            d.status, d.reason, d.error = "refused", event.reason, event.error
        elif isinstance(event, ev.RequestAborted):
            d.status, d.reason, d.text = "aborted", "abort", event.text
        else:
            d.status = "failed" if event.reason == "error" else "finished"
            d.reason, d.text, d.error = event.reason, event.text, event.error
            d.incomplete, d.still_needed = event.incomplete, event.still_needed


_HANDLERS: dict[type[ev.Event], Any] = {
    ev.RequestArrived: _Tape._came,
    ev.RequestAdmitted: _Tape._admitted,
    ev.RequestFirstToken: _Tape._first,
    ev.RequestFinished: _Tape._ended,
    ev.RequestAborted: _Tape._ended,
    ev.RequestRefused: _Tape._ended,
    ev.GrammarCompiled: _Tape._compiled,
    ev.GrammarMasked: _Tape._masked,
    ev.GrammarJumped: _Tape._jumped,
    ev.GrammarVerified: _Tape._verified,
    ev.GrammarRolledBack: _Tape._rolled_back,
    ev.TokenEmitted: _Tape._emitted,
}
