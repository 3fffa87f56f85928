"""Sentences about constrained decoding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine import events as ev
from workbench.explain.words import Texts, count, number, quoted, request_name, seconds, token, tokens
from workbench.replay import State


def _compiled(e: ev.GrammarCompiled, s: State, texts: Texts) -> str:
    return f"The grammar of {request_name(s, e.request)} is ready after {seconds(e.seconds)}: {count(e.states, 'state')} ({e.backend})."


def _waiting(e: ev.GrammarWaiting, s: State, texts: Texts) -> str:
    return f"{request_name(s, e.request)} waits for its grammar to be compiled."


def _masked(e: ev.GrammarMasked, s: State, texts: Texts) -> str:
    best = ""
    if e.top:
        best = f"; the model's first choice was {token(e.top[0][0], texts)}, {number(e.forbidden)} of its top {number(len(e.top))} are forbidden"
    return f"The grammar of {request_name(s, e.request)} allows {count(e.allowed, 'token')} in state {e.state}{best}."


def _jumped(e: ev.GrammarJumped, s: State, texts: Texts) -> str:
    pages = f", {count(len(e.pages), 'page')} given back" if e.pages else ""
    return (
        f"{request_name(s, e.request)} jumps over {quoted(e.run)} without a pass: "
        f"{count(len(e.before), 'token')} before, {number(len(e.after))} after re-tokenisation{pages}."
    )


def _verified(e: ev.GrammarVerified, s: State, texts: Texts) -> str:
    return f"The model agrees with {number(e.accepted)} of {count(e.drafted, 'drafted token')} of {request_name(s, e.request)}."


def _rolled_back(e: ev.GrammarRolledBack, s: State, texts: Texts) -> str:
    pages = f" and {count(len(e.pages), 'page')}" if e.pages else ""
    return f"{request_name(s, e.request)} takes back {count(len(e.tokens), 'drafted token')} ({tokens(e.tokens, texts)}){pages}."


GRAMMAR: dict[type[ev.Event], Callable[[Any, State, Texts], str]] = {
    ev.GrammarCompiled: _compiled,
    ev.GrammarWaiting: _waiting,
    ev.GrammarMasked: _masked,
    ev.GrammarJumped: _jumped,
    ev.GrammarVerified: _verified,
    ev.GrammarRolledBack: _rolled_back,
}
