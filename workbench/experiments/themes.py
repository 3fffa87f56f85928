"""What each experiment teaches: the groups in which they are offered."""

from __future__ import annotations

from collections.abc import Iterable

THEMES: dict[str, tuple[str, ...]] = {
    "What can be found again": ("walkthrough", "attention", "handbook", "hits", "mooncake"),
    "Room, and who has to go": ("capacity", "memory", "branch-lru"),
    "Who is served first": ("schedule", "aware", "optimal"),
    "How prompts are put together": ("ordering", "language"),
    "What reuse is worth": ("prefill", "groups", "three-cases", "amdahl", "speedup", "overhead"),
    "Beside the cache": ("offload", "overlap", "routing", "separate", "jump"),
}
REST = "More"


def grouped(names: Iterable[str]) -> dict[str, list[str]]:
    """The experiments that are there, by theme, in its order; those that no theme names come last."""
    there = list(names)
    out = {theme: [name for name in wanted if name in there] for theme, wanted in THEMES.items()}
    named = {name for wanted in THEMES.values() for name in wanted}
    out[REST] = [name for name in there if name not in named]
    return {theme: found for theme, found in out.items() if found}
