"""L6: who is served when, by a queue of a few lines that knows handbooks by name; nothing of the engine's scheduler or cache."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from engine import Plugs
from workbench.lessons.lesson import Lesson
from workbench.lessons.questions import Asked, Own
from workbench.lessons.reading import events
from workbench.lessons.verdicts import CheckFailed, event_sentence
from workbench.runner import Run

CLOCK = {"step": 0.01, "token": 0.001}
HANDBOOK, QUESTION = 128, 8
"""Tokens, in the stream; the families have"""
SHORT, ASKED = 32, 4
"""so many."""
HOT = 20
"""Requests on the known handbook, in the lesson's stream."""
BOUND = 8
"""Of them, how many may go before a cold one in the exercise."""
AGEING = 8
"""Tokens a pass, in the lesson's own run with ageing."""
SHARE = 0.75
"""In turns, the share of LPM's finds that an answer has to reach."""


@dataclass(frozen=True)
class Ask:
    """One request for the reference: the step it comes at, its handbook, tokens of that and of its own."""

    step: int
    book: str
    shared: int
    own: int


Rule = Callable[[int, int], int]
"""(tokens known, passes waited) -> key; the smallest goes first, ties by arrival."""


def fcfs(known: int, waits: int) -> int:
    """First come, first served."""
    return 0


def lpm(known: int, waits: int) -> int:
    """Longest prefix first."""
    return -known


def aged(tokens: int) -> Rule:
    """Longest prefix first, where a pass of waiting counts as so many tokens."""
    return lambda known, waits: -(known + tokens * waits)


def served(asks: Sequence[Ask], rule: Rule, room: int = 99) -> list[tuple[int, int]]:
    """(number of the request, tokens it finds), in the order in which they are served, one a step."""
    there: list[str] = []
    waits = [0] * len(asks)
    left = list(range(len(asks)))
    out = []
    step = 0
    while left:
        step = max(step + 1, min(asks[i].step for i in left))
        here = [i for i in left if asks[i].step <= step]
        known = {i: asks[i].shared if asks[i].book in there else 0 for i in here}
        goes = min(here, key=lambda i: (rule(known[i], waits[i]), i))
        left.remove(goes)
        for i in here:
            waits[i] += 1
        there = [*(one for one in there if one != asks[goes].book), asks[goes].book][-room:]
        out.append((goes, known[goes]))
    return out


FAMILIES = [Ask(1, "AB"[i % 2], SHORT, ASKED) for i in range(6)]


def the_stream(hot: int = HOT) -> list[Ask]:
    """One makes A known; then one asks for C, and for A one more a step."""
    return [Ask(1, "A", HANDBOOK, QUESTION), Ask(2, "C", HANDBOOK, QUESTION), *(Ask(2 + i, "A", HANDBOOK, QUESTION) for i in range(hot))]


def before_the_cold(rule: Rule, hot: int = HOT) -> int:
    """How many of the stream's hot requests are served before the cold one."""
    return [goes for goes, _ in served(the_stream(hot), rule)].index(1) - 1


def mean_time(rule: Rule) -> float:
    """Mean time to first token of four long requests on a known handbook and four short ones that know nothing, all there at once."""
    asks = [Ask(1, "A", HANDBOOK, 200) if i % 2 == 0 else Ask(1, f"own {i}", 0, 16) for i in range(8)]
    known = {i: a.shared for i, a in enumerate(asks)}
    order = sorted(range(8), key=lambda i: (rule(known[i], 0), i))
    now, times = 0.0, []
    for i in order:
        now += CLOCK["step"] + CLOCK["token"] * asks[i].own
        times.append(now)
    return sum(times) / len(times)


KEYS: dict[str, Callable[[Lesson], Any]] = {
    "fcfs_found": lambda lesson: sum(known > 0 for _, known in served(FAMILIES, fcfs, 1)),
    "lpm_found": lambda lesson: sum(known > 0 for _, known in served(FAMILIES, lpm, 1)),
    "second": lambda lesson: f"R{served(FAMILIES, lpm, 1)[1][0] + 1}",
    "cold_fcfs": lambda lesson: before_the_cold(fcfs),
    "cold_lpm": lambda lesson: before_the_cold(lpm),
    "cold_aged": lambda lesson: before_the_cold(aged(AGEING)),
    "quicker": lambda lesson: "fcfs" if mean_time(fcfs) < mean_time(lpm) else "lpm",
}


# --- traffic -----------------------------------------------------------------------------------


def stream(hot: int = HOT, handbook: int = HANDBOOK, policy: str = "fcfs") -> dict[str, Any]:
    """A handbook that is known, one cold request, and from then on a hot one a step; one is served a step."""
    requests: list[dict[str, Any]] = [
        {"id": "S", "label": "makes A known", "at_step": 1, "tokens": f"A{handbook}+Z{QUESTION}", "max_new_tokens": 1},
        {"id": "cold", "label": "cold", "at_step": 2, "tokens": f"C{handbook}+Y{QUESTION}", "max_new_tokens": 1},
    ]
    for i in range(hot):
        tail = f"{'BDEFGHIJK'[i // 26]}{chr(97 + i % 26)}{QUESTION}"
        requests.append({"id": f"H{i + 1}", "label": "hot", "at_step": 2 + i, "tokens": f"A{handbook}+{tail}", "max_new_tokens": 1})
    engine = {"executor": "puppet", "pages": 4 * handbook + 64 * hot, "max_running": 1, "policy": policy, "clock": CLOCK}
    return {"name": f"one cold request and {hot} hot ones", "engine": engine, "requests": requests}


def turns(steps: int = 24, policy: str = "fcfs") -> dict[str, Any]:
    """Two families, a request of each at every step, and room for one handbook: more than can be served, so the queue grows."""
    requests = []
    for i in range(2 * steps):
        tail = f"{'QRSTUVWXYZ'[i // 26]}{chr(97 + i % 26)}{ASKED}"
        requests.append({"id": f"R{i + 1}", "at_step": 1 + i // 2, "tokens": f"{'AB'[i % 2]}{HANDBOOK}+{tail}", "max_new_tokens": 1})
    engine = {"executor": "puppet", "page_size": HANDBOOK, "pages": 2, "max_running": 1, "policy": policy, "clock": CLOCK}
    return {"name": "two families in turns", "engine": engine, "requests": requests}


def ageing(tokens: int) -> Plugs:
    """An order for the engine in which each pass of waiting counts as so many matched tokens."""

    def aged_order(waiting: Any) -> int:
        return aged(tokens)(waiting.matched, waiting.waits)

    return Plugs(order=aged_order)


# --- reading and checking ----------------------------------------------------------------------


def kind(request: str) -> str:
    """What a request of the stream is."""
    return {"S": "makes A known", "cold": "cold"}.get(request, "hot")


def overtook(run: Run, request: str = "cold") -> int:
    """How many requests that arrived later were admitted before this one."""
    arrived = [e.request for e in events(run, "request.arrived")]
    order = run.report.order
    return sum(arrived.index(other) > arrived.index(request) for other in order[: order.index(request)])


def finds(run: Run) -> int:
    """Requests that found their handbook."""
    return sum((r.cached_tokens or 0) > 0 for r in run.report.requests)


def check_ageing(lesson: Lesson, order: Callable[..., Any]) -> list[str]:
    """The engine looks at its queue in the learner's order: the cold request is not starved, and handbooks are still found."""
    if not callable(order):
        raise CheckFailed(f"check(\"ageing\", ...): give it your function itself; got {order!r}")
    waits = {}
    for hot in (HOT, 3 * HOT):
        run = _with(lesson, order, stream(hot))
        waits[hot] = overtook(run)
        if waits[hot] > BOUND:
            at = events(run, "request.admitted", request="cold")[0].seq
            raise CheckFailed(
                f"{hot} hot requests: expected at most {BOUND} of them to go before the cold one, got {waits[hot]}\n  {event_sentence(run, at)}\n"
                f"  Hint: a hot one is ahead by the {HANDBOOK} tokens that it matches; each pass of waiting has to make up for some of them"
            )  # fmt: skip
    mine, ours, theirs = _with(lesson, order, turns()), lesson.run(turns(policy="lpm")), lesson.run(turns())
    got, least = finds(mine), max(finds(theirs) + 1, int(SHARE * finds(ours)))
    if got < least:
        miss = next((e.seq for e in events(mine, "request.matched")[2:] if not e.length), None)
        shown = f"\n  {event_sentence(mine, miss)}" if miss is not None else ""
        raise CheckFailed(
            f"two families in turns: expected at least {least} requests to find their handbook (lpm: {finds(ours)}, fcfs: {finds(theirs)}), got {got}{shown}\n"
            "  Hint: whoever waits gains too much a pass, or matches count for too little, so it is nearly first come, first served again"
        )  # fmt: skip
    return [
        f"{waits[HOT]} hot requests went before the cold one of {HOT}, and {waits[3 * HOT]} of {3 * HOT}: its wait does not grow with the stream",
        f"two families in turns: {got} of {len(mine.report.requests)} requests found their handbook (lpm {finds(ours)}, fcfs {finds(theirs)})",
    ]


def _with(lesson: Lesson, order: Callable[..., Any], scenario: dict[str, Any]) -> Run:
    try:
        return lesson.run(scenario, plugs=Plugs(order=order))
    except CheckFailed as error:
        if "is no key" not in str(error):
            raise
        raise CheckFailed(f"{error}\n  Hint: return one whole number; int(...) makes one of a fraction") from None


CHECKS: dict[str, Callable[..., list[str]]] = {"ageing": check_ageing}


def questions(lesson: Lesson, rng: random.Random) -> Own:
    """Eight requests on three handbooks, all there at once; longest prefix first, room for one."""
    books = list("AABBC") + [rng.choice("ABC") for _ in range(3)]
    rng.shuffle(books)
    asks = [Ask(1, book, SHORT, ASKED) for book in books]
    order = served(asks, lpm, 1)
    whose = rng.choice([i for i in range(1, 8) if order[i][0] != 0])
    name = f"R{order[whose][0] + 1}"
    wait = sum(asks[i].shared + asks[i].own - known for i, known in order[: whose + 1])
    requests = [{"id": f"R{i + 1}", "label": f"handbook {b}", "at_step": 1, "tokens": f"{b}{SHORT}+Q{chr(97 + i)}{ASKED}", "max_new_tokens": 1} for i, b in enumerate(books)]
    engine = {"executor": "puppet", "page_size": SHORT, "pages": 2, "max_running": 1, "policy": "lpm", "clock": CLOCK}
    run = lesson.run({"name": "your own queue", "engine": engine, "requests": requests})
    admitted = {e.request: e.seq for e in events(run, "request.admitted")}
    facts = {
        "the queue, R1 to R8": " ".join(books), "policy": "longest prefix first, one request at a time",
        "room for": "one handbook", "the third question is about": name, "tokens of a prompt": f"{SHORT} of the handbook and {ASKED} of the question",
    }  # fmt: skip
    asked = (
        Asked("How many of the eight requests found their handbook?", sum(known > 0 for _, known in order), None, "requests",
              hint="longest prefix first serves all of one handbook before it turns to the next"),
        Asked("Which request was served last? (as \"R7\")", f"R{order[-1][0] + 1}", admitted[f"R{order[-1][0] + 1}"],
              hint="the last handbook to be begun is the one whose first request came last"),
        Asked(f"How many prompt tokens were computed until {name} had its first token, its own included?", wait, admitted[name], "tokens",
              hint="add up what each request computed, in the order in which they were admitted, up to and including this one"),
    )  # fmt: skip
    return Own(run, asked, facts)
