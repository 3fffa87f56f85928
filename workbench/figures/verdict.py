"""What a comparison says, in sentences: how much sooner, for whom later, and how far chance alone goes."""

from __future__ import annotations

from statistics import median
from typing import NamedTuple

from workbench.compare import Comparison
from workbench.report import RequestReport

NAMED = 4
"""Requests told by name."""
NOTICEABLE = 1.05
"""A request counts as later or sooner from this ratio of its TTFTs on."""


class Pair(NamedTuple):
    """One request in the first arm and in another: its TTFTs and whole durations, in seconds."""

    id: str
    ttft: tuple[float, float]
    whole: tuple[float, float]
    reports: tuple[RequestReport, RequestReport]


def pairs(result: Comparison, arm: int = 1) -> list[Pair]:
    """The requests that got a first token and ended in both arms."""
    out = []
    known = [{r.id: r for r in result.arms[i].report.requests} for i in (0, arm)]
    for pair in result.paired:
        a, b = (requests.get(pair.id) for requests in known)
        if a is None or b is None:
            continue
        first, other, whole, others = pair.ttft[0], pair.ttft[arm], lasted(a), lasted(b)
        if first and other and whole and others:
            out.append(Pair(pair.id, (first, other), (whole, others), (a, b)))
    return out


def lasted(r: RequestReport) -> float | None:
    """Seconds from its arrival to its end."""
    return None if r.finished is None else round(r.finished - r.arrived, 6)


def sentence(result: Comparison) -> str:
    """How much sooner the first token came with the cache, and how much of the whole request that was."""
    reused = [p for p in pairs(result) if p.reports[0].cached_tokens]
    if not reused:
        return "No request found anything in the cache, so the cache saved nothing here."
    sooner = median(p.ttft[1] / p.ttft[0] for p in reused)
    whole = median(p.whole[1] / p.whole[0] for p in reused)
    count = "the one request" if len(reused) == 1 else f"the {len(reused)} requests"
    chance = noise(result)
    if chance is not None and sooner <= chance[1]:
        return (
            f"For {count} that found something in the cache, the first token came {sooner:.1f} times sooner (median): no more than "
            f"chance. {chance[0]} did the same work in both arms, and one run took {chance[1]:.1f} times as long as the other."
        )
    return (
        f"For {count} that found something in the cache, the first token came {sooner:.1f} times sooner (median) "
        f"and the whole answer {whole:.1f} times sooner: reuse shortens the prefill, not the decoding.{_chance(chance)}"
    )


def _chance(chance: tuple[str, float] | None) -> str:
    if chance is None or chance[1] < NOTICEABLE:
        return ""
    return f" For scale: {chance[0]} did the same work in both arms, and its first token took {chance[1]:.1f} times as long in one as in the other."


def noise(result: Comparison) -> tuple[str, float] | None:
    """How far apart two runs of the same work were: the request and the larger TTFT over the smaller.

    Known only on a wall clock, from requests that waited for nobody and computed as much in both arms.
    """
    if result.arms[0].report.header.clock == "virtual":
        return None
    same = [
        (p.id, max(p.ttft) / min(p.ttft))
        for p in pairs(result)
        if p.reports[0].computed_tokens == p.reports[1].computed_tokens and not any(r.wait_tokens != r.computed_tokens for r in p.reports)
    ]
    return max(same, key=lambda pair: pair[1], default=None)


def for_whom_later(result: Comparison, arm: int) -> str:
    """Who waited longer for the first token in another arm than in the first, who less; empty on a tie of all."""
    ratios = [(p.id, p.ttft[1] / p.ttft[0]) for p in pairs(result, arm)]
    later = sorted((r for r in ratios if r[1] >= NOTICEABLE), key=lambda r: -r[1])
    sooner = [r for r in ratios if r[1] <= 1 / NOTICEABLE]
    name, base = result.arms[arm].name, result.arms[0].name
    if not later and not sooner:
        return f"{name} against {base}: nobody's first token came noticeably later or sooner."
    told = [f"sooner for {len(sooner)} of {len(ratios)}"] if sooner else []
    if later:
        named = ", ".join(f"{id} ({ratio:.1f} times)" for id, ratio in later[:NAMED])
        more = f" and {len(later) - NAMED} more" if len(later) > NAMED else ""
        told.append(f"later for {len(later)}: {named}{more}")
    return f"First tokens in {name} against {base}: {'; '.join(told)}."
