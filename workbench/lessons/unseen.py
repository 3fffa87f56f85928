"""The capstone's traffic: a burst on one simulated card, drawn for each learner, with a memory that does not hold it all."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from workbench.course import progress
from workbench.lessons.verdicts import CheckFailed, Unfinished

HARDWARE = "l4-llama-3.1-8b"
CHANGES = ("never", "tenant", "request")
PAGE_SIZES, POLICIES, EVICTIONS = (1, 16, 128), ("fcfs", "lpm"), ("lru", "lfu")
SETTINGS = ("order", "page_size", "policy", "eviction")


@dataclass(frozen=True)
class Unseen:
    """Requests of several tenants that all come at once. Each prompt has the same four parts, in an order still to be chosen."""

    parts: dict[str, dict[str, Any]]
    """Name -> its `tokens`, and with whom it `changes`: never, tenant, request."""
    tenants: int
    requests: int
    slots: int
    """Tokens whose KV fits into memory, of cache and running requests together."""
    seed: int

    @property
    def facts(self) -> dict[str, Any]:
        """What may be known beforehand."""
        return {"parts": {name: dict(part) for name, part in self.parts.items()}, "tenants": self.tenants, "requests": self.requests, "slots": self.slots}

    @property
    def rows(self) -> list[list[Any]]:
        """The same, for a table."""
        same = {"never": "is the same in every prompt", "tenant": "is another for each tenant", "request": "is another in every prompt"}
        parts = [[f"part: {name}", f"{part['tokens']} tokens; {same[part['changes']]}"] for name, part in self.parts.items()]
        return [*parts, ["requests", self.requests], ["tenants", self.tenants], ["memory", f"{self.slots:,} tokens"]]

    def scenario(self, settings: Any) -> dict[str, Any]:
        """The burst under these settings. Raises Unfinished for none, CheckFailed for what cannot be."""
        order, page_size, policy, eviction = self._settings(settings)
        return {
            "name": "your own burst", "seed": self.seed,
            "engine": {
                "executor": "cost", "hardware": HARDWARE, "page_size": page_size, "pages": self.slots // page_size, "policy": policy, "eviction": eviction,
                "in_batch": "barrier", "max_running": 8,
            },
            "workload": {
                "kind": "template", "parts": [{"name": name, **part} for name, part in self.parts.items()], "order": order, "requests": self.requests, "tenants": self.tenants, "output": 1,
            },
        }  # fmt: skip

    def _settings(self, given: Any) -> tuple[list[str], int, str, str]:
        if given is None:
            raise Unfinished(f"settings: a dict with {', '.join(SETTINGS)}")
        if not isinstance(given, dict) or set(given) != set(SETTINGS):
            raise CheckFailed(f"settings: expected a dict with {', '.join(SETTINGS)}, got {given!r}")
        order = given["order"]
        if not isinstance(order, (list, tuple)) or sorted(map(str, order)) != sorted(self.parts):
            raise CheckFailed(f"settings: order names each part once ({', '.join(self.parts)}); got {order!r}")
        for key, allowed in (("page_size", PAGE_SIZES), ("policy", POLICIES), ("eviction", EVICTIONS)):
            if given[key] not in allowed or isinstance(given[key], bool):
                raise CheckFailed(f"settings: {key} is one of {', '.join(map(str, allowed))}; got {given[key]!r}")
        return list(order), given["page_size"], given["policy"], given["eviction"]


def drawn(key: str) -> Unseen:
    """One burst, the same for the same key."""
    rng = random.Random(key)
    named = {
        "never": rng.choice(("instructions", "handbook", "tools")), "tenant": rng.choice(("profile", "contract", "memory")), "request": rng.choice(("clock", "request id", "session id")),
    }  # fmt: skip
    parts = {
        named["request"]: {"tokens": rng.randint(8, 16), "changes": "request"},
        named["tenant"]: {"tokens": rng.randint(300, 700), "changes": "tenant"},
        named["never"]: {"tokens": rng.randint(400, 900), "changes": "never"},
        "question": {"tokens": rng.randint(30, 80), "changes": "request"},
    }
    whole = sum(part["tokens"] for part in parts.values())
    held = parts[named["never"]]["tokens"] + whole + int(rng.uniform(1.6, 3.2) * (parts[named["tenant"]]["tokens"] + 150)) + 300
    first = list(parts.items())
    rng.shuffle(first)
    return Unseen(dict(first), rng.randint(5, 9), rng.choice((40, 48, 56)), held, rng.randrange(10**6))


def mine() -> Unseen:
    """This learner's own."""
    return drawn(f"{progress.learner()}/capstone")


def p95(times: Iterable[float]) -> float:
    """The 95th percentile by nearest rank: the smallest value that at least 95 of 100 do not exceed."""
    ordered = sorted(times)
    return ordered[math.ceil(0.95 * len(ordered)) - 1]
