"""Recorded chats, side by side: how much of every prompt is still in a cache of so many tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from workbench import scenario as scenarios
from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import MEASURED, Chart, Curve, Point, Row, told, within
from workbench.report import Report
from workbench.runner import Run
from workbench.scenario import RequestSpec, Scenario
from workbench.workloads import Chat
from workbench.workloads.ceiling import best_possible

PUBLIC, OWN = "chat_replay", "chats.jsonl"
BLOCK = 16
CAPACITIES = (16_384, 65_536, 262_144, 1_048_576)
PUBLISHED = {16_384: (30.3, 30.0), 65_536: (80.5, 79.4), 262_144: (92.0, 90.9), 1_048_576: (92.0, 90.9), None: (92.0, 90.9)}
"""Radix tree and 16-token blocks, in per cent; None: unlimited."""
CHATS, OPEN, TURNS, SEED = 429, 192, 3, 0
OWN_OPEN, OWN_CAPACITIES = 4, (256, 512, 1024, 2048)
ADVANTAGE = (0.5, 4.0)
"""Points by which the tree may lead the blocks."""
CACHES = {"radix tree": ("radix", 1), "16-token blocks": ("blocks", BLOCK)}


def workload(bench: Bench, file: str) -> dict[str, Any]:
    """The chats: one request at a time, the next chat drawn at random among those that are open."""
    base = {"kind": "chat", "file": file, "sequential": True, "answers": "stored"}
    if file == OWN:
        return base | {"open": OWN_OPEN, "text": "words"}
    if bench.file is not None:
        return base | {"open": OPEN}
    return base | {"open": OPEN, "min_turns": TURNS, "pick": "random", "conversations": CHATS}


def asked(report: Report) -> list[Any]:
    """The requests that count: those that store an answer (ID+) do not."""
    return [r for r in report.requests if not r.id.endswith("+")]


def rate(report: Report) -> float:
    """Prompt tokens found in the cache, in per cent."""
    rows = asked(report)
    return round(100 * sum(r.cached_tokens or 0 for r in rows) / sum(r.prompt_tokens for r in rows), 2)


def working_set(requests: Iterable[RequestSpec]) -> int:
    """Most tokens that the chats under way hold at any time: from a chat's first request to its last, as long as it is by then."""
    requests = list(requests)
    chat = [str(r.id).split("-")[0] for r in requests]
    last = {name: i for i, name in enumerate(chat)}
    held: dict[str, int] = {}
    most = 0
    for i, request in enumerate(requests):
        held[chat[i]] = len(request.tokens or [])
        most = max(most, sum(held.values()))
        if last[chat[i]] == i:
            del held[chat[i]]
    return most


def find(bench: Bench) -> Findings:
    """Both caches at every capacity, and at the working set itself."""
    file, words = bench.traffic_file(PUBLIC, OWN)
    scenario = scenarios.parse(
        {"name": "hits", "seed": SEED, "engine": {"executor": "puppet"}, "workload": workload(bench, file)}, files=True
    )
    requests = scenario.requests
    longest = max(len(r.tokens or []) for r in requests)
    whole = sum(len(r.tokens or []) for r in requests)
    busy = working_set(requests)
    known = OWN_CAPACITIES if file == OWN else CAPACITIES
    capacities: list[int | None] = [*sorted({*known, busy // 4, busy, 2 * busy}), None]
    main: Run | None = None
    rates: dict[str, dict[int | None, float]] = {name: {} for name in CACHES}
    for capacity in capacities:
        for name, (cache, page) in CACHES.items():
            room = {"pages": whole // page + 1, "cache_pages": None}
            if capacity is not None:
                kept = min(capacity, whole)
                room = {"pages": (kept + longest) // page + 2, "cache_pages": max(1, kept // page)}
            run = bench.again(scenario, f"{name}, {size(capacity)}", cache=cache, page_size=page, **room)
            main = run if capacity is None and cache == "radix" else main
            rates[name][capacity] = rate(run.report)
    assert main is not None
    asserted = bench.file is None
    rows = rows_of(rates, [*known, None], busy, file == OWN, asserted)
    turns = [r for r in requests if not str(r.id).endswith("+")]
    best = ceiling(turns, requests)
    rows.append(told("unlimited: best possible, every stored token found again", best, "%", "replay"))
    why = (
        "The published chats and their draw are others and were tokenised by another model, so levels are not expected to agree. The shape is: little while "
        "the cache is smaller than the chats under way, all there is once they fit with some room for chats that have ended, which least recently used cannot tell from the others, and a point or two more for the tree, which also finds the tokens of an incomplete block."
    )
    curves = [
        Curve(name=name, points=[Point(c, y, size(c)) for c, y in by.items() if c is not None]) for name, by in rates.items()
    ]
    chart = Chart(
        kind="capacity", title="Hit rate against capacity", x="capacity, tokens", y="prompt tokens reused, %", curves=curves, ceiling=best, log_x=True,
    )  # fmt: skip
    return Findings(setup(scenario, turns, words, busy), rows, main, why, [chart])


def setup(scenario: Scenario, turns: list[RequestSpec], words: str, busy: int) -> str:
    """What was set up, in words."""
    chats = len({str(r.id).split("-")[0] for r in turns})
    prompt = sum(len(r.tokens or []) for r in turns)
    assert isinstance(scenario.workload, Chat)
    said = (
        f"{chats:,} chats of {scenario.workload.min_turns} turns or more from {words}, {min(chats, scenario.workload.open)} under way at a time: {len(turns):,} requests, {prompt:,} "
        f"prompt tokens ({prompt // len(turns):,} a request), one at a time, the next chat drawn at random; each answer is in the cache before the next request comes. "
        f"A prompt may reuse all but its last token; blocks, whole blocks of {BLOCK} within that. Least recently used out first; the cache keeps so many tokens beside "
        f"the running request. Working set, the most that the chats under way hold at any time: {busy:,} tokens."
    )
    return " ".join([said, *(f"{line[0].upper()}{line[1:]}." for line in scenario.told)])


def size(capacity: int | None) -> str:
    """A capacity in words."""
    return "unlimited" if capacity is None else f"{capacity:,} tokens"


def rows_of(rates: dict[str, dict[int | None, float]], known: list[int | None], busy: int, own: bool, asserted: bool) -> list[Row]:
    """Levels beside the published ones, then the knee and the tree's lead, asserted where the traffic is known."""
    rows = []
    for capacity in known:
        for i, (name, by) in enumerate(rates.items()):
            said = {"published": PUBLISHED[capacity][i], "source": MEASURED} if not own and capacity in PUBLISHED else {}
            rows.append(told(f"{name}, {size(capacity)}: prompt tokens reused", by[capacity], "%", "replay", **said))
    tree, blocks = rates.values()
    for words, capacity, low, high, rule in (
        ("twice the working set", 2 * busy, 95, None, "at least 95 %"), ("the working set", busy, 75, None, "at least 75 %"),
        ("a quarter of it", busy // 4, None, 60, "under 60 %"),
    ):  # fmt: skip
        share = round(100 * tree[capacity] / tree[None], 2) if tree[None] else 0.0
        label = f"radix tree, {words} ({capacity:,} tokens): of what unlimited room gives"
        rows.append(within(label, share, low, high, "%", "replay", rule=rule) if asserted else told(label, share, "%", "replay"))
    lead, label = round(tree[None] - blocks[None], 2), "unlimited: points that the tree leads the blocks by"
    low, high = ADVANTAGE
    rule = f"{low:g} to {high:g} points"
    rows.append(
        told(label, lead, "points", "replay")
        if own or not asserted
        else within(label, lead, low, high, "points", "replay", rule=rule, published=1.1, source=MEASURED)
    )
    return rows


def ceiling(turns: list[RequestSpec], requests: list[RequestSpec]) -> float:
    """Most that any cache could reuse of the turns' prompts, answers stored, in per cent."""
    stored = {str(r.id)[:-1]: r.tokens or [] for r in requests if str(r.id).endswith("+")}
    prompts = [r.tokens or [] for r in turns]
    # `best_possible` leaves the last token of an answer out, as an engine does.
    answers = [[*stored[str(r.id)][len(r.tokens or []) :], 0] if str(r.id) in stored else [] for r in turns]
    return round(100 * best_possible(prompts, answers=answers) / sum(map(len, prompts)), 2)


PLAN = Plan(
    "hits", "Recorded chats, many at a time: how much of each prompt is found again in a cache of so many tokens?",
    "replay", "seconds", "a minute or two", find, takes="chats in ShareGPT layout",
)  # fmt: skip
