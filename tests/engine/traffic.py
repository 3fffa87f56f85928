"""Random traffic for the properties: small pools, shared heads, much retraction, every kind of trouble."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
from hypothesis import strategies as st

from engine import Engine, EngineConfig
from engine import events as ev
from engine.config import EVICTIONS, POLICIES, SORTS, Clock
from engine.outcomes import Progress
from tests.engine.lab import Shadow

LIMIT = 3000
"""Steps that no generated run may need: at most 12 requests of at most 100 tokens each."""
TIMED = {"t", "ttft", "arrived", "from_t", "to_t", "plan_seconds", "forward_seconds", "sample_seconds"}
"""Event fields that hold a time."""
PATTERNS = (
    r'\{"name": "[a-z]{1,6}", "year": [0-9]{1,4}, "city": "(the |)[a-z]+"\}',
    r'\{"title": \["[a-z]{2}", "er(ror|st)", (true|false|null)\], "id": [1-9][0-9]*\}',
    r"(20|19)[0-9]{2}-(0[1-9]|1[0-2])",
    r"name: (é|ü|日本)[a-z]{0,3}; city: [^x]{1,4}",
    r"true, false, null, name, title, year, city, true",
    r"[a-z]*",
)
"""Grammars with long forced runs, with none, with characters of several bytes, with one text only, and without an end."""
TOKEN = 0.125
OTHER_CLOCK = Clock(plan=0.25, step=3.0, token=TOKEN)
"""The price of a token is a rate by which loads are decided: where there is a host tier, only the rest may differ."""


@dataclass
class Case:
    """One engine configuration and the requests to put to it."""

    config: dict[str, Any]
    requests: list[dict[str, Any]]


@dataclass
class Played:
    """What one run of a case came to."""

    engine: Engine
    trace: ev.Trace
    outputs: dict[str, list[int]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def timeless(self) -> list[dict[str, Any]]:
        """The trace without its times."""
        rows = [msgspec.to_builtins(e) for e in self.trace]
        return [{k: v for k, v in row.items() if k not in TIMED} for row in rows]


def hear(progress: list[Progress], outputs: dict[str, list[int]], reasons: dict[str, str]) -> None:
    """Add what a step has brought to what every request has said, and how it ended."""
    for p in progress:
        said = outputs.setdefault(p.request, [])
        del said[len(said) - p.replaced :]
        said += p.ids
        if p.reason is not None:
            reasons[p.request] = p.reason


def play(case: Case, *, fold: bool = False, traced: bool = True, **changed: Any) -> Played:
    """Run a case on a fresh engine that checks itself at every step; `fold` checks the trace as well."""
    shadow = Shadow()
    trace = ev.Trace(keep=traced, sinks=[shadow] if fold else [])
    engine = Engine(config=EngineConfig(**{**case.config, **changed}), trace=trace, check=True)
    shadow.engine = engine
    played = Played(engine, trace)
    for request in case.requests:
        asked = dict(request)
        engine.submit(asked.pop("prompt"), **asked)
    for _ in range(LIMIT):
        progress = engine.step()
        if progress is None:
            engine.finish()
            return played
        hear(progress, played.outputs, played.reasons)
    raise AssertionError(f"still busy after {LIMIT} steps")


@st.composite
def policies(draw: Any) -> dict[str, Any]:
    """A scheduling policy and what goes with it."""
    policy = draw(st.sampled_from(["fcfs", "fcfs", "lpm", "lpm", *POLICIES]))
    rules = ["off", "off", "barrier", *(["sort"] if policy in SORTS else [])]
    return {
        "policy": policy,
        "in_batch": draw(st.sampled_from(rules)),
        "fair_bound": draw(st.sampled_from([None, 0, 10, 50])),
        "preempt_threshold": draw(st.sampled_from([0, 1, 10])),
    }


@st.composite
def configs(draw: Any, page_size: int) -> dict[str, Any]:
    """A configuration whose pool is short for the traffic below."""
    pages = draw(st.integers(max(3, 24 // page_size), max(6, 96 // page_size)))
    chunk = draw(st.none() | st.integers(1, 2 * page_size + 3))
    least = draw(st.sampled_from([0.0, 0.0, 0.1]))
    order = draw(policies())
    cache = draw(st.sampled_from(["radix", "radix", "blocks"]))
    keys = [e for e in EVICTIONS if e != "belady" or order["policy"] == "fcfs"] if cache == "radix" else ["lru"]
    host = draw(st.none() | second_tiers(page_size)) if cache == "radix" else None
    return {
        "executor": "puppet",
        "page_size": page_size,
        "pages": pages,
        "chunk": chunk,
        "prefill_budget": draw(st.none() | st.integers(chunk or 8, 64)),
        "mixed": draw(st.booleans()),
        **order,
        "max_running": draw(st.sampled_from([1, 2, 4, 8, 8])),
        "admission": draw(st.sampled_from(["estimate", "estimate", "estimate", "full"])),
        "reserve_start": draw(st.floats(least, 0.2)),
        "reserve_min": least,
        "cache": cache,
        "block_order": draw(st.sampled_from(["tail-first", "head-first"])),
        "eviction": draw(st.sampled_from(keys)),
        "eviction_unit": draw(st.sampled_from(["page", "leaf"])),
        "pin_budget": draw(st.sampled_from([0.0, 0.3, 0.5, 1.0])),
        "cache_pages": draw(st.none() | st.none() | st.integers(1, pages)),
        "retract_victim": draw(st.sampled_from(["least-output", "newest", "priority"])),
        "retract_to": draw(st.sampled_from(["back", "front"])),
        "retract_max": draw(st.sampled_from([1, 2, 8, 8])),
        "jump": draw(st.sampled_from(["verified", "verified", "unverified", "off"])),
        **draw(st.sampled_from([{}, {}, {"overlap": not host}, {"speculate": 4, "speculate_ngram": 1}, {"speculate": 8}])),
        **(host or {}),
    }


@st.composite
def second_tiers(draw: Any, page_size: int) -> dict[str, Any]:
    """A host tier: from too small to of use to larger than the pool, over links on which loading wins, loses, or now this, now that."""
    return {
        "host_pages": draw(st.integers(1, max(4, 160 // page_size))),
        "host_policy": draw(st.sampled_from(["write-through", "write-through", "write-back", "write-back"])),
        "host_threshold": draw(st.sampled_from([1, 1, 2, 3])),
        "host_bandwidth": draw(st.sampled_from([1.0, 20.0, 40.0, 1e9])),
        "clock": Clock(step=1.0, token=TOKEN),
    }


@st.composite
def cases(draw: Any, page_size: int, grammars: bool = True) -> Case:
    """Up to twelve requests over three shared heads; long answers, so that the pool runs out.

    Half of the cases are crowded: many come at once, allowed far more than they will say, so that the
    estimate is low and each is retracted again and again. With `grammars`, half of the
    requests of every third case have one.
    """
    config = draw(configs(page_size))
    crowded = draw(st.booleans())
    constrained = grammars and draw(st.integers(0, 2)) == 2
    if crowded:
        config.update(max_running=8, admission="estimate", reserve_start=0.0, reserve_min=0.0, retract_max=draw(st.integers(2, 8)))
    token = st.integers(100, 102)
    heads = draw(st.lists(st.lists(token, min_size=1, max_size=6 if crowded else 20), min_size=1, max_size=3))
    requests: list[dict[str, Any]] = []
    for i in range(draw(st.integers(6 if crowded else 1, 12))):
        request: dict[str, Any] = {
            "id": f"R{i}",
            "prompt": draw(st.sampled_from(heads)) + draw(st.lists(token, min_size=0, max_size=10)),
            "max_new_tokens": draw(st.sampled_from([30, 60, 12, 40, 5, 2, 1, 0])),
        }
        if crowded:
            request["says"] = [100 + k % 3 for k in range(draw(st.integers(12, 50)))]
            request["max_new_tokens"] = draw(st.sampled_from([2000, 1000, 60]))
        if i and draw(st.integers(0, 5)) == 5:
            request["after"] = f"R{draw(st.integers(0, i - 1))}"
        else:
            request["at_step"] = draw(st.integers(0, 3 if crowded else 12))
        trouble = draw(st.integers(0, 15))
        if trouble == 15:
            request["abort_at_step"] = draw(st.integers(1, 50))
        elif trouble == 14:
            request["fail_at_step"] = draw(st.integers(1, 50))
        elif trouble == 13:
            request["says"] = draw(st.lists(st.integers(0, 9), max_size=6))
        elif trouble == 12:
            request["store"] = False
        elif trouble == 11:
            request["namespace"] = (None, None, draw(st.sampled_from(["k1", "k2"])))
            request["content_at"] = draw(st.integers(0, len(request["prompt"]) - 1))
        elif trouble == 10:
            request["namespace"] = (draw(st.sampled_from(["s", "t"])), None, None)
        elif trouble >= 8:
            request["pin"] = draw(st.integers(1, 40))
        if draw(st.integers(0, 3)) == 3:
            request["priority"] = draw(st.integers(-1, 2))
        if constrained and draw(st.booleans()):
            request["regex"] = draw(st.sampled_from(PATTERNS))
        requests.append(request)
    if config["eviction"] == "belady":  # it takes the order of the file for the order of service
        for request in requests:
            request.pop("after", None)
        requests.sort(key=lambda r: r.get("at_step", 0))
    return Case(config, requests)
