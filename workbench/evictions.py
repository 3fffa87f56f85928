"""One traffic under every eviction policy: what each reused, evicted and regretted. Which one wins is the traffic's doing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from engine.config import EVICTIONS
from workbench.explain.regrets import regrets
from workbench.explain.words import eviction_name
from workbench.replicas import traces
from workbench.runner import Run, run
from workbench.scenario import Scenario, ScenarioError, parse
from workbench.workloads.ceiling import best_possible


class PolicyRow(msgspec.Struct, kw_only=True):
    """One policy. Counts in tokens; `refused` says why it could not run, and then the counts are None."""

    eviction: str
    name: str
    cached: int | None = None
    """Prompt tokens found at first admission."""
    hit_rate: float | None = None
    share_of_best: float | None = None
    """`cached` of what could be reused with room for everything; None where that is not known:
    prompts that are texts, namespaces, requests that store nothing."""
    computed: int | None = None
    """Prompt tokens computed, and computed again after retractions."""
    evictions: int | None = None
    evicted: int | None = None
    regretted: int | None = None
    """Tokens that look-ups missed because they had been evicted."""
    refused: str | None = None


def every_policy(
    scenario: Scenario,
    policies: Sequence[str] = EVICTIONS,
    *,
    perform: Callable[[Scenario], Run] = run,
    progress: Callable[[str], None] = lambda text: None,
) -> list[PolicyRow]:
    """Run a scenario under each policy, everything else the same, seed included.

    A recorded trace goes in as `workbench.recording.as_scenario` makes it.
    """
    data = scenario.model_dump(mode="json", exclude_defaults=True)
    data.pop("workload", None)  # the requests that were made from it are there
    rows = []
    for eviction in policies:
        name = eviction_name(eviction)
        progress(name)
        try:
            one = parse(data, {"engine.eviction": eviction})
        except ScenarioError as error:
            rows.append(PolicyRow(eviction=eviction, name=name, refused=str(error)))
            continue
        rows.append(_row(eviction, name, one, perform(one)))
    return rows


def _row(eviction: str, name: str, scenario: Scenario, done: Run) -> PolicyRow:
    totals = done.report.totals
    best = None
    if all(r.tokens is not None and r.store and r.namespace is None for r in scenario.requests):
        answers = [r.output_ids for r in done.report.requests]
        best = best_possible([r.tokens or [] for r in scenario.requests], scenario.engine.page_size, answers)
    return PolicyRow(
        eviction=eviction, name=name, cached=totals.cached_tokens, hit_rate=totals.hit_rate,
        share_of_best=round(totals.cached_tokens / best, 6) if best else None,
        computed=totals.computed_tokens + totals.recomputed_tokens, evictions=totals.evictions,
        evicted=totals.evicted_tokens, regretted=sum(regrets(one.events).tokens for one in traces(done.trace)),
    )  # fmt: skip
