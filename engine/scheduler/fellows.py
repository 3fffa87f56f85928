"""`in_batch: sort`: of those that share an uncached start, one goes first and the others behind everyone.

SGLang's in-batch rule (facts: reference engines.md 2.2). It is only a sort key: with room left, the others are
admitted in the same step, without a hit. `in_batch: barrier` is the rule that waits.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine import events as ev
from engine.cache.base import PrefixCache
from engine.cache.radix import RadixCache
from engine.request import Request

COLD = 32
"""Tokens found in the cache, at most, for a request to count as cold."""
SHARED = 32
"""Tokens shared with one further ahead, at least, to go behind."""
BEHIND = 1
"""The key of those that go behind: above every `-matched`."""


def behind_fellows(waiting: Sequence[Request], cache: PrefixCache) -> Sequence[int]:
    """Longest prefix first, but a cold request that shares its start with one ahead of it goes last."""
    ahead = RadixCache(1, trace=ev.Trace(keep=False))
    keys = []
    for request in waiting:
        query = request.packed_but_last()
        found = cache.match(query, request.namespace).known
        key = -found
        if found <= COLD:
            if ahead.match(query, request.namespace).length >= SHARED:
                key = BEHIND
            else:
                ahead.insert(query, range(request.size - 1), request.namespace, request)
        keys.append(key)
    return keys
