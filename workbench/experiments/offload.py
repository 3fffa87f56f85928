"""Saved state on the host: load it back, or compute it again? The arithmetic, and the engine deciding by it."""

from __future__ import annotations

from typing import Any

from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import HANDBOOK, Chart, Curve, Point, Row, told, within
from workbench.runner import Run

SAVED = 2**30
"""Bytes of saved state;"""
LINK = 25e9
"""bytes a second between host and device;"""
TOKENS = 1024
"""tokens that they are the state of: a MiB a token,"""
QUESTION = 16
"""and those of the question that follows them."""
SLOW, FAST = 200, 20
"""Milliseconds that computing the saved tokens takes in the two published cases."""
SWEEP = (10, FAST, 30, 40, 42, 44, 50, 70, 100, SLOW)
LOADING = 1000 * SAVED / LINK


def traffic(compute: float) -> dict[str, Any]:
    """A prefix is served, pushed off the device by another prompt, and asked for again; `compute` ms for its tokens.

    The puppet's token is one byte, so its link is told in MiB a second.
    """
    return {
        "name": f"offload-{compute:g}",
        "engine": {
            "executor": "puppet", "page_size": 16, "pages": (TOKENS + 2 * QUESTION) // 16, "host_pages": 4 * TOKENS // 16,
            "host_bandwidth": LINK / (SAVED / TOKENS), "clock": {"step": 0, "token": compute / 1000 / TOKENS},
        },
        "requests": [
            {"id": "first", "tokens": f"A{TOKENS}+B{QUESTION}", "max_new_tokens": 1},
            {"id": "other", "tokens": f"C{TOKENS}+D{QUESTION}", "max_new_tokens": 2, "after": "first"},
            {"id": "again", "tokens": f"A{TOKENS}+E{QUESTION}", "max_new_tokens": 1, "after": "other"},
        ],
    }  # fmt: skip


def loaded(run: Run) -> int:
    """Tokens that the last request loaded."""
    return run.report.totals.loaded_tokens


def first_token(run: Run) -> float:
    """Simulated milliseconds to the last request's first token."""
    ttft = run.report.requests[-1].ttft
    assert ttft is not None
    return round(1000 * ttft, 2)


def find(bench: Bench) -> Findings:
    """The two published cases with the tier and without, then a sweep over what computing takes."""
    rows = [within("1 GiB over 25 GB/s", round(LOADING, 2), 42.5, 43.5, "ms", "exact", rule="about 43", published=43, source=HANDBOOK)]
    points: dict[str, list[Point]] = {"load it": [], "compute it again": [], "what the engine took": []}
    main = None
    for compute in SWEEP:
        tier = bench.run(traffic(compute), f"computing takes {compute} ms")
        if compute in (FAST, SLOW):
            wins = compute > LOADING
            want = TOKENS if wins else 0
            alone = bench.run(traffic(compute), f"computing takes {compute} ms, no host tier", host_pages=0)
            rows += [
                within(f"computing takes {compute} ms: tokens the engine loads", loaded(tier), want, want, "tokens", "exact",
                       rule=f"published: load {'wins, so all' if wins else 'loses, so none'}"),
                told(f"computing takes {compute} ms: first token, the engine deciding", first_token(tier), "ms", "simulated"),
                told(f"computing takes {compute} ms: first token, no host tier", first_token(alone), "ms", "simulated"),
            ]  # fmt: skip
            main = tier if wins else main
        took = "loads" if loaded(tier) else "computes"
        points["load it"].append(Point(compute, round(LOADING, 2), "loading"))
        points["compute it again"].append(Point(compute, compute, "computing"))
        question = compute * QUESTION / TOKENS
        points["what the engine took"].append(Point(compute, round(first_token(tier) - question, 2), took))
    assert main is not None
    rows.append(_crossing(points["what the engine took"]))
    setup = (
        f"{TOKENS:,} tokens of a MiB each are served, pushed off the device by another prompt while the host keeps them, and asked for again with a question of {QUESTION}. "
        f"The link carries 25 GB/s. What computing those tokens takes is varied; the engine compares it with the load, both from the header's rates. "
        "Simulated time, in which a load comes before the step's forward; copying out takes none."
    )
    chart = Chart(
        kind="times", title="Load or compute: where the two cross", x="computing the saved tokens takes, ms", y="until they are there, ms (simulated)",
        curves=[Curve(name=name, points=line) for name, line in points.items()],
    )  # fmt: skip
    return Findings(setup, rows, main, charts=[chart])


def _crossing(took: list[Point]) -> Row:
    """Where the engine changes its mind, against where the arithmetic says that it should."""
    first = min(float(p.x) for p in took if p.label == "loads")
    last = max(float(p.x) for p in took if p.label == "computes")
    rule = f"the engine still computes at {last:g} ms and loads from {first:g} ms on"
    return within("load and computing take the same at", round(LOADING, 2), last, first, "ms", "exact", rule=rule)


PLAN = Plan(
    "offload", "A gigabyte of saved state lies on the host: load it back, or compute it again?", "exact", "seconds", "seconds", find,
)  # fmt: skip
