"""What an engine has counted since it started, without the help of its trace."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Totals:
    """Requests, tokens, calls. Token counts are over admitted requests; a retraction changes none of the first three."""

    arrived: int = 0
    finished: int = 0
    refused: int = 0
    aborted: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    computed_tokens: int = 0
    loaded_tokens: int = 0
    """Of the cached and the recovered ones, those that came back from the host tier."""
    recovered_tokens: int = 0
    recomputed_tokens: int = 0
    output_tokens: int = 0
    forced_tokens: int = 0
    jumped_tokens: int = 0
    drafted_tokens: int = 0
    forward_passes: int = 0
    steps: int = 0
    evictions: int = 0
    evicted_tokens: int = 0
    demoted_tokens: int = 0
    """Tokens that lost their device pages while the host kept them. `evicted_tokens`: gone from every tier."""
    retractions: int = 0
