"""An agent's prompt, its parts in one order or another: one part that changes in front costs all that follows it."""

from __future__ import annotations

from typing import Any

from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import SERVING, Chart, Curve, Point, Row, told, within
from workbench.runner import Run
from workbench.workloads.prompt_order import ORDERS

PUBLIC, TOOLS, OWN = "tau_bench/gpt-4o-airline.json", "bfcl/multi_turn_func_doc/travel_booking.json", "agents.jsonl"
SESSIONS, OPEN, BLOCK = 50, 8, 16
DEPLOYED = "ProjectDiscovery, How We Cut LLM Costs by 59% With Prompt Caching: 7 to 84 % (74 % in a second account)"
RULES: dict[str, tuple[float | None, float | None, str]] = {
    "canonical": (95, None, "at least 95 %"), "timestamp first": (None, 2, "under 2 %"), "dynamic last": (93, None, "above 93 %"),
    "tools shuffled": (None, 25, "under 25 %: most of it is lost"),
}  # fmt: skip
OWN_RULES = {"timestamp first": RULES["timestamp first"]}
"""The small set is too short for more than the collapse."""
WORDS = {
    "canonical": "tools, instructions, history", "dynamic last": "the same, a note and the time at the end",
    "header first": "a line about the session in front", "note in the middle": "a note that changes with every call, between instructions and history",
    "tools shuffled": "the tools in another order at every call", "timestamp first": "the time and the request's id in front",
}  # fmt: skip
PUBLISHED = {"timestamp first": 7, "dynamic last": 84}


def workload(bench: Bench, file: str, order: str, sessions: int = SESSIONS, text: str | None = None) -> dict[str, Any]:
    """The sessions, one request at a time, the next session drawn at random among those under way; `sessions` of the public set.

    `text`: how they become ids; None: our own set by words, another by the model's tokenizer where it is on this machine.
    """
    public = bench.file is None and file != OWN
    assert bench.data is not None or not public
    more: dict[str, Any] = {"tools_file": str(bench.data / TOOLS), "sessions": sessions} if public and bench.data else {}
    return {
        "kind": "agent", "file": file, "order": order, "open": OPEN, "sequential": True, "output": 0, "text": text or ("words" if file == OWN else None), **more,
    }  # fmt: skip


def scenario(bench: Bench, file: str, order: str, sessions: int = SESSIONS, text: str | None = None) -> dict[str, Any]:
    """One order in 16-token blocks, with room for everything."""
    return {
        "name": f"ordering, {order}", "engine": {"executor": "puppet", "page_size": BLOCK, "pages": 2**19 if file != OWN else 2**13},
        "workload": workload(bench, file, order, sessions, text),
    }  # fmt: skip


def find(bench: Bench) -> Findings:
    """Every order in 16-token blocks, with room for everything."""
    file, words = bench.traffic_file(PUBLIC, OWN)
    rows: list[Row] = []
    rates: dict[str, float] = {}
    main: Run | None = None
    for order in ORDERS:
        run = bench.run(scenario(bench, file, order), order)
        main = main or run
        rates[order] = round(100 * (run.report.totals.hit_rate or 0), 2)
        rules = {} if bench.file is not None else OWN_RULES if file == OWN else RULES
        rows.append(row(order, rates[order], rules.get(order)))
    assert main is not None
    lost = round(rates["canonical"] - rates["dynamic last"], 2)
    best = max(rate for order, rate in rates.items() if order not in ("canonical", "dynamic last"))
    most = round(rates["canonical"] - best, 2)
    label, rule = "points lost with the changing parts at the end", "no more than anywhere else"
    rows.append(told(label, lost, "points", "replay") if bench.file else within(label, lost, None, most, "points", "replay", rule=rule))
    count = len(main.scenario.requests)
    setup = (
        f"Agents at work from {words}, {OPEN} sessions under way at a time, the next one drawn at random: {count:,} calls, {main.report.totals.prompt_tokens:,} prompt tokens in the canonical "
        f"order, blocks of {BLOCK}, room for everything, one request at a time, prompts alone. Orders: {'; '.join(f'{order}: {WORDS[order]}' for order in ORDERS)}. "
        f"Each part became ids by itself, without a chat template. {' '.join(f'{line[0].upper()}{line[1:]}.' for line in main.scenario.told)}"
    )
    why = (
        "The deployment's traffic is not public; its figures stand beside the two orders that resemble its before and after, and no agreement with them is asserted. Only an unbroken "
        "beginning is ever found again: a part that changes in front leaves nothing, in the middle it costs the history, at the end only itself."
    )
    return Findings(setup, rows, main, why, [chart(rates)])


def chart(rates: dict[str, float]) -> Chart:
    """What each order reused, in per cent, and above it what it lost against the canonical one."""
    points = sorted((Point(order, rate, f"{rate:.1f}") for order, rate in rates.items()), key=lambda p: -p.y)
    lost = [Point(p.x, round(max(0, rates["canonical"] - p.y), 2), f"-{max(0, rates['canonical'] - p.y):.1f}" if p.y < rates["canonical"] else None) for p in points]
    return Chart(
        kind="waterfall", title="Prompt tokens reused in the canonical order, and what each change of it costs by itself", x="order", y="prompt tokens reused, %",
        curves=[Curve(name="reused", points=points), Curve(name="lost to this change", points=lost)],
    )  # fmt: skip


def row(order: str, rate: float, rule: tuple[float | None, float | None, str] | None) -> Row:
    """One order's rate, and what is asserted of it."""
    label = f"{order}: prompt tokens reused"
    said: dict[str, Any] = {"published": PUBLISHED[order], "source": DEPLOYED} if order in PUBLISHED else {}
    if rule is None:
        return told(label, rate, "%", "replay", **said)
    return within(label, rate, rule[0], rule[1], "%", "replay", rule=rule[2], **({"source": SERVING} | said))


PLAN = Plan(
    "ordering", "An agent sends tools, instructions and history again with every call: what does one misplaced part cost?",
    "replay", "seconds", "a minute or two", find, takes="agents' trajectories",
)  # fmt: skip
