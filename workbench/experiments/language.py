"""A program that forks: what its branches share is computed first, and each of them finds all of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from engine import State
from engine import events as ev
from workbench import names
from workbench import scenario as scenarios
from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import MEASURED, Row, exact, told
from workbench.programs.essay_judges import CRITERIA, ESSAY
from workbench.runner import Run

Part = str | Sequence[int]
SCRIPTED: tuple[Part, list[Part]] = (names.parse("E200"), [names.parse(f"J{letter}20") for letter in "abc"])
WRITTEN: tuple[Part, list[Part]] = (f"An essay.\n\n{ESSAY}", [f"\n\nOf {aspect} one can say that" for aspect in CRITERIA.values()])
"""What branches share, and how each goes on: for a puppet in ids, for a model in words."""
PAGES = (1, 16)
SHARED = f"what {len(CRITERIA)} branches share"


def find(bench: Bench) -> Findings:
    """The same fork on a puppet and, where there is one, on a model; with pages of one token and of sixteen."""
    main = bench.run(scenarios.as_data(scenarios.load("fork")), "the preset")
    rows = _together(main)
    executors: list[tuple[str, tuple[Part, list[Part]]]] = [("puppet", SCRIPTED)]
    if bench.model is not None or bench.perform is not None:
        executors.append(("model", WRITTEN))
    for executor, (start, ends) in executors:
        for page_size in PAGES:
            where = f"{executor}, pages of {page_size}"
            engine = {"executor": executor, "pages": 2048 // page_size, "page_size": page_size}
            traffic = {"name": f"language-{executor}", "engine": engine, "requests": [{"id": "before", "tokens": [1, 2], "max_new_tokens": 0}]}
            for forked in (True, False):
                run = bench.run(traffic, where + ("" if forked else ", not forked"), started=partial(_write, start=start, ends=ends, forked=forked))
                rows += _rows(run, where, page_size) if forked else _apart(run, where)
    setup = (
        f"A program writes what its branches share and forks into {len(CRITERIA)}, each of which goes on in its own words and has the model answer; on a scripted "
        "model and on a real one, in a pool with room for all. Whole pages of the common prefix count, as no other can be shared. Beside it the same three without a "
        "fork: they arrive together, and nobody finds what another is still computing."
    )
    return Findings(setup, rows, main)


def _write(engine: Any, start: Part, ends: list[Part], forked: bool) -> None:
    """Write the program down and ask all of it; the run drives the engine."""
    s = State(engine)
    if forked:
        s += start
        branches = s.fork(len(ends))
    else:
        branches = [State(engine) for _ in ends]
    for branch, end in zip(branches, ends, strict=True):
        if not forked:
            branch += start
        branch += end
        branch.gen("verdict", max_tokens=4)
        branch.ask()


def _rows(run: Run, where: str, page_size: int) -> list[Row]:
    """How many branches hit all whole pages of what they share, and what it cost."""
    arrived = [e for e in run.trace if isinstance(e, ev.RequestArrived)]
    prefix = next(e for e in arrived if e.label == SHARED)
    cached = {r.id: r.cached_tokens or 0 for r in run.report.requests}
    branches = [e for e in arrived if (e.label or "").startswith("verdict")]
    size = len(prefix.prompt)
    whole = sum(e.prompt[:size] == prefix.prompt and cached[e.request] == size // page_size * page_size for e in branches)
    return [
        exact(f"{where}: branches that hit the whole common prefix", whole, len(branches), "branches", MEASURED),
        told(f"{where}: the common prefix", size, "tokens", "exact"),
        told(f"{where}: hit by each branch", min(cached[e.request] for e in branches), "tokens", "exact"),
    ]


def _apart(run: Run, where: str) -> list[Row]:
    """The same without a fork."""
    return [told(f"{where}, not forked: hit by the three together", sum(r.cached_tokens or 0 for r in run.report.requests), "tokens", "exact")]


def _together(main: Run) -> list[Row]:
    """In the preset: the branches come when what they share is there, and start in one step."""
    hit = {r.id: r.cached_tokens or 0 for r in main.report.requests}
    shared = next(r.prompt_tokens for r in main.report.requests if r.id == "essay")
    judges = ("argument", "facts", "style")
    return [exact("the preset: judges that hit the whole essay", sum(hit[j] == shared for j in judges), len(judges), "judges", MEASURED)]


PLAN = Plan(
    "language", "A program forks: do its branches find all that they share?",
    "exact", "seconds", "seconds", find,
)  # fmt: skip
