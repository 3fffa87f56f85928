"""L5: which handbooks are still there, by a list of names; what is left of a chain of pages, by a list of pages; and an audit of the
trace by books of its own. Nothing of the engine's caches."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine import Plugs
from engine import events as ev
from workbench.lessons.lesson import Lesson
from workbench.lessons.questions import Asked, Own
from workbench.lessons.reading import events
from workbench.lessons.verdicts import Card, CheckFailed, event_sentence, expect
from workbench.runner import Run

HANDBOOK, QUESTION, ROOM = 32, 4, 2
"""Tokens of a handbook and of a question; handbooks that there is room for, in the lesson's runs."""
CYCLIC, GROUPED, MIXED = "ABCDABCD", "AABBCCDD", "ABACADAB"
AROUND = "ABCD" * 6
"""The exercise's cyclic trace."""
KEPT = 0.85
"""On the ordinary trace, the share of what LRU finds that an answer has to find."""


def sessions(rng: random.Random, handbooks: str, each: int, together: int) -> str:
    """Readers who ask `each` questions on a handbook of their own; so many of them are there at a time, in turns by chance."""
    here: dict[str, int] = {}
    waiting, order = list(handbooks), ""
    while waiting or here:
        while waiting and len(here) < together:
            here[waiting.pop(0)] = each
        name = rng.choice(sorted(here))
        order += name
        here[name] -= 1
        if not here[name]:
            del here[name]
    return order


ORDINARY = sessions(random.Random(1), "ABCDEFGHIJKL", 5, 2)
"""The exercise's other trace: twelve readers, two of them at a time."""


def uneven(rng: random.Random, handbooks: str, most: int) -> str:
    """Readers two at a time, each with a number of questions of their own, from 1 to `most`."""
    left = {name: rng.randint(1, most) for name in handbooks}
    order = ""
    while left:
        name = rng.choice(list(left)[:2])
        order += name
        left[name] -= 1
        if not left[name]:
            del left[name]
    return order


RENAMED = str.maketrans("ABCDEFGHIJKL", "GKBLDAJFCIHE")
"""Other names for the same handbooks: a rule that looks at names does other things then."""
UNEVEN = uneven(random.Random(2), "ABCDEFGHIJKL", 9)
"""A third trace, which the exercise does not grade."""


def visits(order: Sequence[str], room: int = ROOM, name: str = "visits", **engine: Any) -> dict[str, Any]:
    """A scenario: one request after the other, each a handbook of the order and a question of its own.

    A handbook is one page, so that it is kept whole or not at all. One page more serves for the question, which is not kept.
    """
    requests = []
    for i, handbook in enumerate(order):
        when = {"after": f"R{i}"} if i else {"at_step": 1}
        tokens = f"{handbook}{HANDBOOK}+{'QRSTUVWXYZ'[i // 26]}{chr(97 + i % 26)}{QUESTION}"
        requests.append({"id": f"R{i + 1}", "label": f"handbook {handbook}", "tokens": tokens, "max_new_tokens": 0, **when})
    return {"name": name, "engine": {"executor": "puppet", "page_size": HANDBOOK, "pages": room + 1, **engine}, "requests": requests}


# --- references --------------------------------------------------------------------------------


def kept(order: Sequence[str], room: int = ROOM) -> list[bool]:
    """For each request, whether its handbook is still there; the least recently used goes."""
    there: list[str] = []
    out = []
    for name in order:
        out.append(name in there)
        there = [*(one for one in there if one != name), name][-room:]
    return out


def cliff(order: Sequence[str] = CYCLIC) -> int:
    """The least room at which anything is found."""
    return next(room for room in range(1, len(order) + 1) if any(kept(order, room)))


def left_over(tail_first: bool, pages: int = 14, page: int = 4) -> int:
    """Of a handbook of 8 pages, asked about twice, the tokens that a third question finds after a visitor of 6 pages.

    Pages go by their own date; of pages with the same date, the last or the first of a prompt.
    """
    dates = {("A", i): 2 for i in range(8)} | {("Qa", 8): 1, ("Qb", 8): 2}
    short = len(dates) + 6 - pages
    for gone in sorted(dates, key=lambda p: (dates[p], -p[1] if tail_first else p[1]))[:short]:
        del dates[gone]
    return page * next((i for i in range(8) if ("A", i) not in dates), 8)


def goes(dates: dict[str, int], running: str) -> str:
    """Who is thrown out: the oldest of those that nobody reads at the moment."""
    return min((name for name in dates if name != running), key=lambda name: dates[name])


KEYS: dict[str, Callable[[Lesson], Any]] = {
    "cyclic": lambda lesson: sum(kept(CYCLIC)),
    "grouped": lambda lesson: sum(kept(GROUPED)),
    "mixed": lambda lesson: sum(kept(MIXED)),
    "cliff": lambda lesson: cliff(),
    "naive": lambda lesson: left_over(tail_first=False),
    "tree": lambda lesson: left_over(tail_first=True),
    "locked": lambda lesson: goes({"A": 1, "B": 2}, running="A"),
}


# --- the audit ---------------------------------------------------------------------------------


@dataclass
class Books:
    """What was read off a trace: every page is free or held, and who went before whom."""

    events: int = 0
    pages: int = 0
    evicted: list[int] = field(default_factory=list)
    """Numbers of the events in which a node went."""
    orphaned: list[int] = field(default_factory=list)
    """Those of them in which something still hung below it."""


def audit(run: Run) -> Books:
    """Keep books of pages and nodes through a trace. Raises CheckFailed for a page that is given away or back twice.

    So at every event each page is either free or held.
    """
    books = Books(events=len(run.trace.events))
    free: set[int] = set()
    held: set[int] = set()
    above: dict[int, int] = {}
    for event in run.trace.events:
        if isinstance(event, ev.RunStarted):
            books.pages, free = event.pages, set(range(event.pages))
        elif isinstance(event, ev.PageAllocated):
            _move(event, free, held)
        elif isinstance(event, ev.PageFreed):
            _move(event, held, free)
        elif isinstance(event, ev.NodeCreated):
            above[event.node] = event.parent
        elif isinstance(event, ev.NodeSplit):
            above[event.front], above[event.node] = above[event.node], event.front
        elif isinstance(event, ev.NodeEvicted):
            books.evicted.append(event.seq)
            above.pop(event.node, None)
            if event.node in above.values():
                books.orphaned.append(event.seq)
    return books


def _move(event: ev.PageAllocated | ev.PageFreed, source: set[int], target: set[int]) -> None:
    for page in event.pages:
        if page not in source:
            what = "given away, though it was not free" if isinstance(event, ev.PageAllocated) else "given back, though nobody held it"
            raise CheckFailed(f"event {event.seq}: page {page} is {what}")
        source.remove(page)
        target.add(page)


def books(*runs: Run) -> Card:
    """The audit of some runs in words."""
    lines = []
    for run in runs:
        found = audit(run)
        text = f"{run.scenario.name}: each of {found.pages} pages is free or held, never both, at all of {found.events} events; {len(found.evicted)} nodes were evicted"
        if found.orphaned:
            lines.append(("wrong", f"{text}, {len(found.orphaned)} of them before what hung below ({event_sentence(run, found.orphaned[0])})"))
        else:
            lines.append(("right", f"{text}, none before what hung below it"))
    return Card("The books of pages and nodes", lines)


# --- exercise and questions --------------------------------------------------------------------


def found(run: Run) -> list[bool]:
    """For each request, whether it found its handbook."""
    return [(r.cached_tokens or 0) >= HANDBOOK for r in run.report.requests]


def regretted(run: Run, order: Sequence[str]) -> str:
    """The first eviction of a handbook that the very next request asks for, in words; else the first of all."""
    names: dict[int, str] = {}
    asked = 0
    first = ""
    for event in run.trace.events:
        if isinstance(event, ev.NodeCreated):
            names[event.node] = order[int(event.request[1:]) - 1]
        elif isinstance(event, ev.Eviction):
            asked = int((event.request or "R0")[1:])
        elif isinstance(event, ev.NodeEvicted):
            name = names.get(event.node, "?")
            first = first or f"{event_sentence(run, event.seq)} It was handbook {name}."
            if asked < len(order) and name == order[asked]:
                return f"{event_sentence(run, event.seq)} It was handbook {name}, to make room for R{asked}; and R{asked + 1} asks for {name}."
    return first or "nothing was evicted at all"


def check_policy(lesson: Lesson, policy: Callable[..., Any]) -> list[str]:
    """The engine evicts by the learner's key: better than LRU around the circle, not much worse on the ordinary trace."""
    if not callable(policy):
        raise CheckFailed(f"check(\"policy\", ...): give it your function itself; got {policy!r}")
    runs: dict[str, tuple[Run, Run]] = {}
    for name, order in (("the cyclic trace", AROUND), ("the ordinary trace", ORDINARY)):
        runs[name] = _with(lesson, policy, order, name), lesson.run(visits(order, name=f"{name}, LRU"))
    lines = []
    for name, (mine, _) in runs.items():
        seen = audit(mine)
        expect(f"{name}: nodes evicted before what hung below them", len(seen.orphaned), 0, run=mine, event=seen.orphaned[0] if seen.orphaned else None)
    mine, lru = runs["the cyclic trace"]
    ours, theirs = sum(found(mine)), sum(found(lru))
    if ours <= theirs:
        raise CheckFailed(
            f"the cyclic trace: expected more handbooks found than LRU's {theirs} of {len(AROUND)}, got {ours}\n  {regretted(mine, AROUND)}\n"
            "  Hint: around a circle the one that was used longest ago is the next one needed, so it should be the last to go. "
            "And as long as nothing is found, every handbook has 0 hits: then a rule by hits alone decides nothing"
        )  # fmt: skip
    lines.append(f"the cyclic trace: {ours} of {len(AROUND)} requests found their handbook, {theirs} with LRU")
    mine, lru = runs["the ordinary trace"]
    ours, theirs = sum(found(mine)), sum(found(lru))
    if ours < KEPT * theirs:
        raise CheckFailed(
            f"the cyclic trace is won, but on the ordinary trace only {ours} of {len(ORDINARY)} requests found their handbook, {theirs} with LRU; "
            f"expected at least {-int(-KEPT * theirs // 1)}\n  {regretted(mine, ORDINARY)}\n"
            "  Hint: a rule that is right for the circle alone throws out what a reader is using. `hits` tells two kinds of handbook apart: those found at least once, "
            "and those that nobody has come back for yet. Which kind should go first? And which order is right among each kind?"
        )  # fmt: skip
    renamed = sum(found(_with(lesson, policy, ORDINARY.translate(RENAMED), "the ordinary trace, renamed")))
    if renamed != ours:
        raise CheckFailed(
            f"the ordinary trace with its handbooks renamed: expected {ours} requests that find theirs, as before, got {renamed}\n"
            "  Hint: your rule looks at which handbook it is. Go by how a node was used instead: `last_used`, `hits`, `id`"
        )  # fmt: skip
    lines.append(f"the ordinary trace: {ours} of {len(ORDINARY)} requests found their handbook, {theirs} with LRU")
    lines.append("in both runs no node went before what hung below it, and free and held pages added up at every event")
    return lines


def _with(lesson: Lesson, policy: Callable[..., Any], order: Sequence[str], name: str) -> Run:
    try:
        return lesson.run(visits(order, name=name), plugs=Plugs(eviction=policy))
    except CheckFailed as error:
        hint = ""
        if "is no key" in str(error):
            hint = "a number, or a tuple of numbers in round brackets, as (1, node.last_used)"
        elif "pages, " in str(error):
            hint = "the same node must get the same key whenever it is asked for: no chance, and nothing that you count yourself"
        if not hint:
            raise
        raise CheckFailed(f"{error}\n  Hint: {hint}") from None


CHECKS: dict[str, Callable[..., list[str]]] = {"policy": check_policy}


def questions(lesson: Lesson, rng: random.Random) -> Own:
    """Twelve requests on five handbooks; how many found theirs, what was computed, whose was thrown out first."""
    while True:
        order = [rng.choice("ABCDE") for _ in range(12)]
        there = kept(order)
        missed = [i for i, name in enumerate(order) if name in order[:i] and not there[i]]
        if missed and 3 <= sum(there) <= 8:
            break
    run = lesson.run(visits(order, name="your own readers"))
    matched = {e.request: e.seq for e in events(run, "request.matched")}
    computed = sum(QUESTION if hit else QUESTION + HANDBOOK for hit in there)
    facts = {
        "the handbooks, in the order of the requests": " ".join(order), "room for": f"{ROOM} handbooks, least recently used out first",
        "tokens of a prompt": f"{HANDBOOK} of the handbook and {QUESTION} of the question",
    }  # fmt: skip
    asked = (
        Asked("How many of the twelve requests found their handbook?", sum(there), matched[f"R{there.index(True) + 1}"], "requests",
              hint="keep a list of the two handbooks that are there, the last one used at its end"),
        Asked("How many prompt tokens were computed, over all twelve?", computed, None, "tokens",
              hint="a request that found its handbook computes its question, any other the handbook as well"),
        Asked("Which request is the first whose handbook had been there and was thrown out? (as \"R7\")", f"R{missed[0] + 1}", matched[f"R{missed[0] + 1}"],
              hint="it asks for a handbook that an earlier request had asked for, and finds nothing"),
    )  # fmt: skip
    return Own(run, asked, facts)
