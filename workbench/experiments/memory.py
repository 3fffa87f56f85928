"""What the saved state of a handbook weighs, alone and in 32 copies."""

from __future__ import annotations

from typing import Any

from engine import events as ev
from workbench.experiments.arithmetic import GIB, bytes_a_token
from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import HANDBOOK, exact
from workbench.runner import Run

LAYERS, HEADS, WIDTH, BYTES, TOKENS, READERS = 32, 8, 128, 2, 8192, 32
PAGE, QUESTION, OUTPUT = 16, 16, 2
SCALE = 64
"""The quick version divides the handbook by this, and shows what its run held times this."""


def traffic(handbook: int) -> dict[str, Any]:
    """Somebody reads the handbook; then 32 ask about it at once."""
    reader = {"id": "first", "tokens": list(range(handbook)), "max_new_tokens": 0}
    asked = [
        {"id": f"R{i}", "tokens": [*range(handbook), *range(20_000 + 100 * i, 20_000 + 100 * i + QUESTION)], "max_new_tokens": OUTPUT, "ignore_eos": True, "after": "first"}
        for i in range(1, READERS + 1)
    ]  # fmt: skip
    return {
        "name": "memory",
        "engine": {
            "executor": "puppet", "page_size": PAGE, "pages": (READERS + 1) * (handbook // PAGE + 2), "max_running": READERS, "prefill_budget": None,
            "admission": "full",
        },
        "requests": [reader, *asked],
    }  # fmt: skip


def most_held(run: Run) -> int:
    """Most tokens' worth of pages that were in use at any time, the readers' own questions and answers left out."""
    held = most = 0
    for event in run.trace.events:
        if isinstance(event, ev.PageAllocated):
            held += len(event.pages)
            most = max(most, held)
        elif isinstance(event, ev.PageFreed):
            held -= len(event.pages)
    own = -(-(QUESTION + OUTPUT) // PAGE)
    return (most - READERS * own) * PAGE


def find(bench: Bench) -> Findings:
    """The arithmetic, then what 32 readers at once held on the engine, with a private copy each and with a shared one."""
    scale = SCALE if bench.quick else 1
    handbook = TOKENS // scale
    each = bytes_a_token(LAYERS, HEADS, WIDTH, BYTES)
    runs = {cache: bench.run(traffic(handbook), f"{READERS} readers, cache {cache}", cache=cache) for cache in ("off", "radix")}
    held = {cache: most_held(run) for cache, run in runs.items()}
    rows = [
        exact(f"{TOKENS:,} tokens of state", TOKENS * each / GIB, 1, "GiB", HANDBOOK),
        exact(f"{READERS} private copies", READERS * TOKENS * each / GIB, 32, "GiB", HANDBOOK),
        exact(f"a run of the engine: {READERS} readers at once, cache off", held["off"] * scale * each / GIB, 32, "GiB", HANDBOOK),
        exact(f"a run of the engine: {READERS} readers at once, one shared copy", held["radix"] * scale * each / GIB, 1, "GiB", HANDBOOK),
    ]  # fmt: skip
    setup = (
        f"Bytes a token = 2 (keys and values) x {LAYERS} layers x {HEADS} KV heads x width {WIDTH} x {BYTES} bytes = {each:,}. On the engine: a handbook of {handbook:,} tokens is read once, "
        f"then {READERS} requests with a question of {QUESTION} tokens each run at once, in pages of {PAGE}; counted are the most pages in use at any time, what holds the readers' own "
        "questions and answers left out."
    )
    quick = f" Quick: the handbook is a {scale}th of {TOKENS:,} tokens, and what was held is shown times {scale}." if scale > 1 else ""
    return Findings(setup + quick, rows, runs["radix"])


PLAN = Plan(
    "memory", "What does the saved state of 8,192 tokens weigh, in 32 private copies and in one shared?", "exact", "seconds", "seconds", find,
)  # fmt: skip
