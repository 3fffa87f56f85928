"""Sentences about the run, its steps, its pages and its troubles."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Any

from engine import events as ev
from workbench.explain.words import Texts, count, listed, number, owner_name, request_name, seconds, token
from workbench.replay import State

SOURCES = {"sampled": "sampled", "forced": "forced: the mask left only this one", "jumped": "jumped: it took no pass of its own",
           "drafted": "drafted from what was said before: it took no pass of its own"}  # fmt: skip


def _run_started(e: ev.RunStarted, s: State, texts: Texts) -> str:
    return f"The run starts with {count(e.pages, 'free page')} of {count(e.page_size, 'token')} each."


def _run_ended(e: ev.RunEnded, s: State, texts: Texts) -> str:
    return "The run ends: it was stopped." if e.stopped else "The run ends: nothing is left to do."


def _jumped(e: ev.ClockJumped, s: State, texts: Texts) -> str:
    moved = (
        f"from step {number(e.from_step)} to step {number(e.to_step)}"
        if e.to_step != e.from_step
        else f"from {seconds(e.from_t)} to {seconds(e.to_t)}"
    )
    return f"The engine is idle and goes on {moved}, to the next arrival."


def _allocated(e: ev.PageAllocated, s: State, texts: Texts) -> str:
    where = "" if e.tier == "device" else f" of the {e.tier}"
    whom = (f"{owner_name(o)} ({number(c)})" if len(e.owners) > 1 else owner_name(o) for o, c in zip(e.owners, e.counts, strict=True))
    return f"{count(len(e.pages), 'page')}{where} {'leaves' if len(e.pages) == 1 else 'leave'} the free list for {listed(whom)}."


def _freed(e: ev.PageFreed, s: State, texts: Texts) -> str:
    where = "" if e.tier == "device" else f" of the {e.tier}"
    return f"{count(len(e.pages), 'page')}{where} of {owner_name(e.owner)} {'is' if len(e.pages) == 1 else 'are'} free again."


def _planned(e: ev.StepPlanned, s: State, texts: Texts) -> str:
    ahead = f" It is planned while the step before is in flight: {'its decodes wait' if e.prefills < len(e.members) else 'it waits'} for what that one brings." if e.ahead else ""
    waiting = f", {count(e.waiting, 'request')} {'waits' if e.waiting == 1 else 'wait'}" if e.waiting else ""
    return (
        f"Step {number(e.step)} is {e.mode}: {count(sum(e.tokens), 'token')} of {listed(e.members)}; "
        f"{count(e.free, 'page')} free{waiting}.{ahead}"
    )


def _started(e: ev.StepStarted, s: State, texts: Texts) -> str:
    dropped = f" {listed(e.dropped)} {'stays' if len(e.dropped) == 1 else 'stay'} behind: the step before has brought no token to go on from." if e.dropped else ""
    return f"The forward pass of step {number(e.step)} begins: {count(sum(s.member_tokens), 'token')} of {listed(s.members)}.{dropped}"


def _finished(e: ev.StepFinished, s: State, texts: Texts) -> str:
    new = "no new token" if not e.ids else f"{count(len(e.ids), 'new token')} ({listed(token(i, texts) for i in e.ids)})"
    late = f" {listed(e.late)} had ended one step before: the pass was one too many, its token is not used." if e.late else ""
    took = e.forward_seconds + e.sample_seconds
    if e.ahead:
        planning = f", planned in {seconds(e.plan_seconds)} beside the step before it" if e.plan_seconds else ""
    else:
        took += e.plan_seconds
        planning = f", {seconds(e.plan_seconds)} of it planning" if e.plan_seconds else ""
    return f"Step {number(e.step)} is done after {seconds(took)}{planning}: {new}.{late}"


def _emitted(e: ev.TokenEmitted, s: State, texts: Texts) -> str:
    logprob = "" if e.logprob is None else f", logprob {e.logprob:.3f}"
    return (
        f"Output token {number(e.position + 1)} of {request_name(s, e.request)} is {token(e.token, texts)}, "
        f"{SOURCES.get(e.source, e.source)}{logprob}."
    )


def _draft(e: ev.DraftVerified, s: State, texts: Texts) -> str:
    pages = f", {count(len(e.pages), 'page')} given back" if e.pages else ""
    return (
        f"{request_name(s, e.request)} drafted {count(e.drafted, 'token')} ({listed(token(i, texts) for i in e.draft)}), as they followed the same words "
        f"at token {number(e.since + 1)}; the model says {number(e.accepted)} of them itself{pages}."
    )


def _scored(e: ev.TokensScored, s: State, texts: Texts) -> str:
    last = e.start + len(e.logprobs) - 1
    if last == e.start:
        return f"Prompt token {number(last + 1)} of {request_name(s, e.request)} is scored: logprob {e.logprobs[0]:.3f}."
    return f"Prompt tokens {number(e.start + 1)} to {number(last + 1)} of {request_name(s, e.request)} are scored: mean logprob {fmean(e.logprobs):.3f}."


def _failed(e: ev.ExecutorFailed, s: State, texts: Texts) -> str:
    return f"The forward pass fails ({e.error}): {listed(e.members)} {'ends' if len(e.members) == 1 else 'end'} with an error, the engine goes on."


def _broken(e: ev.InvariantBroken, s: State, texts: Texts) -> str:
    page = "" if e.page is None else f" (page {e.page})"
    last = f"; it was last held by {' and '.join(owner_name(o) for o in e.last_owners)}" if e.last_owners else ""
    return f"The invariant is broken{page}: {e.what}{last}."


STEPS: dict[type[ev.Event], Callable[[Any, State, Texts], str]] = {
    ev.RunStarted: _run_started,
    ev.RunEnded: _run_ended,
    ev.ClockJumped: _jumped,
    ev.PageAllocated: _allocated,
    ev.PageFreed: _freed,
    ev.StepPlanned: _planned,
    ev.StepStarted: _started,
    ev.StepFinished: _finished,
    ev.TokenEmitted: _emitted,
    ev.DraftVerified: _draft,
    ev.TokensScored: _scored,
    ev.ExecutorFailed: _failed,
    ev.InvariantBroken: _broken,
}
