"""Small scripted runs to be explained."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

from engine import events as ev
from workbench.explain import Answer, Explainer
from workbench.runner import run
from workbench.scenario import parse


def made(engine: dict[str, Any], *requests: dict[str, Any]) -> tuple[ev.Trace, Explainer]:
    """A checked puppet run; a request that names no time comes after the one before it."""
    asked = [{"max_new_tokens": 1, **r} for r in requests]
    for before, r in pairwise(asked):
        if not {"at", "at_step", "after"} & set(r):
            r["after"] = before["id"]
    trace = run(parse({"engine": engine, "requests": asked}), check=True).trace
    return trace, Explainer(trace)


def at_end(engine: dict[str, Any], *requests: dict[str, Any]) -> Answer:
    """The last request, explained at the run's end."""
    trace, explainer = made(engine, *requests)
    return explainer.request(len(trace) - 1, requests[-1]["id"])


TIERS: dict[str, Any] = {"host_pages": 30, "host_bandwidth": 25.0, "clock": {"token": 0.1}}
"""A host tier that is short as well, over a link on which loading now wins and now loses."""


def busy(seed: int, page: int = 1, **more: Any) -> ev.Trace:
    """Traffic with splits, evictions, retractions, aborts, failures and namespaces; `more` keys of the engine."""
    chance = random.Random(seed)
    requests = [
        {
            "id": f"R{i}", "tokens": f"{chance.choice('AB')}{chance.randint(2, 9)}+{chance.choice('XYZ')}{chance.randint(1, 6)}",
            "max_new_tokens": chance.randint(0, 24), "at_step": chance.randint(1, 60), "salt": chance.choice([None, None, "s"]),
            "abort_at_step": 20 + i if i % 9 == 4 else None, "fail_at_step": 30 if i % 13 == 5 else None, "store": i % 11 != 7,
        }
        for i in range(40)
    ]  # fmt: skip
    engine = {"pages": 40 // page + 2, "page_size": page, "chunk": 5, "mixed": True, "reserve_start": 0.0, "reserve_min": 0.0} | more
    return run(parse({"engine": engine, "requests": requests}), check=True).trace
